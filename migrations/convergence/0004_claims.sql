-- 1 if the caller reported the run: it says nothing about what the host saw. Runs of earlier versions count as the host's.
ALTER TABLE convergence_runs ADD COLUMN is_claim BIGINT NOT NULL DEFAULT 0;
-- The newest run of a command, in whichever envelope, is what the next one is compared with.
CREATE INDEX convergence_runs_by_command ON convergence_runs (workspace, command, id);
