-- What is known of the repositories of jobs.

-- Every snapshot that was taken. The files of the latest are in conductor_parts.
CREATE TABLE conductor_snapshots (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    -- From 1 in each job.
    sequence BIGINT NOT NULL,
    repo_root TEXT NOT NULL,
    taken_at TEXT NOT NULL,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    -- How many files came, went, changed and moved since the one before.
    changes_json TEXT,
    key_files_json TEXT NOT NULL,
    notes TEXT,
    -- The directories with their numbers of files.
    file_tree TEXT NOT NULL
);
CREATE UNIQUE INDEX conductor_snapshots_by_job ON conductor_snapshots (job_id, sequence);

-- Records of files by the thousand, as bytes: the files of the latest snapshot, what is written in
-- them, and when Git last saw them change. A change touches the buckets it falls into.
CREATE TABLE conductor_parts (
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    kind TEXT NOT NULL CHECK (kind IN ('files', 'facts', 'ages')),
    bucket BIGINT NOT NULL,
    -- From 0: a large bucket is kept in pieces.
    piece BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (job_id, kind, bucket, piece)
);

-- One line about a file.
CREATE TABLE conductor_descriptions (
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    path TEXT NOT NULL,
    description TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (job_id, path)
);
