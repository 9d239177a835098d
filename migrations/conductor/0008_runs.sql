-- Runs of registered tests by the gates of a job, which show whether its failures repeat.

CREATE TABLE conductor_runs (
    number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    -- The submitted step; NULL for a run when the job started.
    step_id TEXT,
    -- Words of the gate's command.
    command TEXT NOT NULL,
    -- NULL for a run that passed.
    failure_fingerprint TEXT,
    detail_fingerprint TEXT,
    -- State of the work tree; NULL if Git cannot be read.
    state TEXT,
    at TEXT NOT NULL
);
CREATE INDEX conductor_runs_by_job ON conductor_runs (job_id, command, number);
