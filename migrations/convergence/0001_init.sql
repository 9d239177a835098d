-- What the pack remembers: test runs and states of work trees, by envelope and workspace. Calls outside an
-- envelope have an empty envelope_id.

CREATE TABLE convergence_runs (
    id INTEGER PRIMARY KEY,
    envelope_id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    command TEXT NOT NULL,
    outcome TEXT NOT NULL,
    failure_fingerprint TEXT,
    -- Mutations of the envelope by then; outside one, recorded states of the work tree.
    mutations BIGINT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX convergence_runs_by_scope ON convergence_runs (envelope_id, workspace, id);
CREATE INDEX convergence_runs_by_failure ON convergence_runs (envelope_id, workspace, failure_fingerprint)
    WHERE failure_fingerprint IS NOT NULL;
CREATE INDEX convergence_runs_by_time ON convergence_runs (at);

CREATE TABLE convergence_mutations (
    id INTEGER PRIMARY KEY,
    envelope_id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    no_op BIGINT NOT NULL,
    -- 0 if it was not there among the last eight.
    period BIGINT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX convergence_mutations_by_scope ON convergence_mutations (envelope_id, workspace, id);
CREATE INDEX convergence_mutations_by_time ON convergence_mutations (at);

-- Where a workspace was when a command last ran in it, so that reports by others are read alike.
CREATE TABLE convergence_roots (
    workspace TEXT PRIMARY KEY,
    root TEXT NOT NULL
);
