-- Baselines of steps that are too large for the column of the job, in pieces.
CREATE TABLE conductor_baselines (
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    -- From 0.
    piece BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (job_id, piece)
);
