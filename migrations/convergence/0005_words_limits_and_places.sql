-- Words of a registered command, because an operator can give a name other words. Absent in reports and in rows of earlier
-- versions.
ALTER TABLE convergence_runs ADD COLUMN words TEXT;
-- 1 if the caller's time limit or the envelope's ended the run: it is compared with no other.
ALTER TABLE convergence_runs ADD COLUMN is_cut_off BIGINT NOT NULL DEFAULT 0;
-- SHA-256 over the source of the assertions that failed. Absent where nobody knows it, and equal to any then.
ALTER TABLE convergence_runs ADD COLUMN place_fingerprint TEXT;
