-- The guard of anchors, without going through all that come before: stretches do not overlap, so the one that
-- took an anchor's place is the nearest that begins where it does or before. Pruning drops them in the
-- chain's order.
DROP TRIGGER core_anchors_no_delete;

-- An anchor goes only when a wider one took its place.
CREATE TRIGGER core_anchors_no_delete BEFORE DELETE ON core_anchors
WHEN coalesce((SELECT last_seq FROM core_anchors
               WHERE first_seq <= OLD.first_seq AND (first_seq <> OLD.first_seq OR last_seq <> OLD.last_seq)
               ORDER BY first_seq DESC, last_seq DESC LIMIT 1), 0) < OLD.last_seq
BEGIN SELECT RAISE(ABORT, 'anchors are append-only'); END;
