-- Retention: what pruning leaves behind, and content that is kept for a while.

DROP TRIGGER core_operations_no_delete;
DROP TRIGGER core_operations_in_order;
DROP TABLE core_anchors;

-- A stretch of pruned rows: the chain enters it at `prev_hash` and leaves it at `hash`. Stretches
-- that touch are one. `signature` is the ledger key's, over all the other columns.
CREATE TABLE core_anchors (
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    pruned_at TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (first_seq, last_seq)
);

CREATE TRIGGER core_anchors_no_update BEFORE UPDATE ON core_anchors
BEGIN SELECT RAISE(ABORT, 'anchors are append-only'); END;

-- An anchor goes only when a wider one took its place.
CREATE TRIGGER core_anchors_no_delete BEFORE DELETE ON core_anchors
WHEN NOT EXISTS (SELECT 1 FROM core_anchors WHERE first_seq <= OLD.first_seq AND last_seq >= OLD.last_seq
                 AND last_seq - first_seq > OLD.last_seq - OLD.first_seq)
BEGIN SELECT RAISE(ABORT, 'anchors are append-only'); END;

-- A row goes only when an anchor stands for it.
CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations
WHEN coalesce((SELECT last_seq FROM core_anchors WHERE first_seq <= OLD.seq ORDER BY first_seq DESC LIMIT 1), 0) < OLD.seq
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- A row can only come after the last one, pruned or not, so none is slipped in or replaced.
CREATE TRIGGER core_operations_in_order BEFORE INSERT ON core_operations
WHEN NEW.seq <> max(coalesce((SELECT max(seq) FROM core_operations), 0),
    coalesce((SELECT last_seq FROM core_anchors ORDER BY first_seq DESC LIMIT 1), 0)) + 1
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Few rows fail, so finding them is cheap to prepare.
CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 0;

-- Content that operations refer to by id. The file is named by `hash`; it goes at `expires_at` or when
-- room is short, and the row stays a while longer to say so.
CREATE TABLE core_artifacts (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('log', 'diff', 'arguments', 'result')),
    -- Bytes stored, and bytes there were: more if the store's limit cut it.
    size BIGINT NOT NULL,
    total_size BIGINT NOT NULL,
    op_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    collected BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX core_artifacts_by_expiry ON core_artifacts (expires_at, id) WHERE collected = 0;
CREATE INDEX core_artifacts_by_hash ON core_artifacts (hash) WHERE collected = 0;
