-- Edits of the workspace over all envelopes by the run, if the host saw its work tree: failures are compared with those of
-- other envelopes.
ALTER TABLE convergence_runs ADD COLUMN workspace_edits BIGINT;
-- The newest run of a command that passed ends what failed before it.
CREATE INDEX convergence_runs_passed ON convergence_runs (workspace, command, id) WHERE outcome = 'passed';
