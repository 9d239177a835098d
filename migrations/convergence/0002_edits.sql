-- Details of failures, verdicts as they were told, and edits of the work tree as the host counts them.

-- SHA-256 over the messages of the failing tests. Absent in runs that passed and in those of earlier versions.
ALTER TABLE convergence_runs ADD COLUMN detail_fingerprint TEXT;
-- 1 if the reply said so. What an envelope shows are the same words.
ALTER TABLE convergence_runs ADD COLUMN non_progress BIGINT NOT NULL DEFAULT 0;
ALTER TABLE convergence_runs ADD COLUMN flaky BIGINT NOT NULL DEFAULT 0;
ALTER TABLE convergence_runs ADD COLUMN regression BIGINT NOT NULL DEFAULT 0;
-- 1 if the column mutations has edits of the work tree, as the host saw them.
ALTER TABLE convergence_runs ADD COLUMN by_edits BIGINT NOT NULL DEFAULT 0;
-- Failures are known across envelopes.
CREATE INDEX convergence_runs_by_workspace ON convergence_runs (workspace, failure_fingerprint, at)
    WHERE failure_fingerprint IS NOT NULL;

-- Edits of the work tree by then, if the host saw it.
ALTER TABLE convergence_mutations ADD COLUMN edits BIGINT;
