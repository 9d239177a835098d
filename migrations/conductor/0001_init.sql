-- Jobs, their steps, and everything that is recorded about them.

CREATE TABLE conductor_jobs (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    goal TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN (
        'PLANNING', 'READY', 'EXECUTING', 'PAUSED', 'COMPLETE', 'FAILED', 'ARCHIVED')),
    -- Why it was paused, failed or archived.
    status_reason TEXT,
    repo_root TEXT,
    tags_json TEXT NOT NULL,
    -- What differs from the default policies.
    policies_json TEXT NOT NULL,
    -- What the interview asks for, but for the steps.
    plan_json TEXT NOT NULL,
    -- Git's state when the current step began, which its changes are counted from.
    baseline_json TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX conductor_jobs_by_status ON conductor_jobs (status, updated_at);

CREATE TABLE conductor_steps (
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    step_id TEXT NOT NULL,
    -- From 0, without gaps.
    position BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('PENDING', 'ACTIVE', 'DONE')),
    -- Rejected submissions since the job last began or resumed.
    rejections BIGINT NOT NULL,
    -- A person's approval, if there is one.
    approval_json TEXT,
    spec_json TEXT NOT NULL,
    PRIMARY KEY (job_id, step_id)
);
CREATE UNIQUE INDEX conductor_steps_one_active ON conductor_steps (job_id) WHERE status = 'ACTIVE';

CREATE TABLE conductor_attempts (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    step_id TEXT NOT NULL,
    at TEXT NOT NULL,
    model_claim TEXT NOT NULL CHECK (model_claim IN ('MET', 'NOT_MET', 'PARTIAL')),
    accepted BIGINT NOT NULL,
    commit_hash TEXT,
    batch_commit_token TEXT,
    devlog_line TEXT,
    summary TEXT NOT NULL,
    feedback TEXT NOT NULL,
    rejection_reasons_json TEXT NOT NULL,
    evidence_json TEXT NOT NULL
);
CREATE INDEX conductor_attempts_by_job ON conductor_attempts (job_id, number);

CREATE TABLE conductor_contexts (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    block_type TEXT NOT NULL CHECK (block_type IN (
        'RESEARCH', 'NOTES', 'PLAN', 'REPO_MAP', 'DECISION', 'CONSTRAINTS', 'SNIPPET', 'OUTPUT')),
    tags_json TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- Last, because lists are read without it and it may be large.
    content TEXT NOT NULL
);
CREATE INDEX conductor_contexts_by_job ON conductor_contexts (job_id, number);

CREATE TABLE conductor_logs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    log_type TEXT NOT NULL CHECK (log_type IN ('DEVLOG', 'DECISION', 'POSTMORTEM', 'CHECKPOINT', 'SYSTEM')),
    step_id TEXT,
    commit_hash TEXT,
    at TEXT NOT NULL,
    content TEXT NOT NULL
);
CREATE INDEX conductor_logs_by_job ON conductor_logs (job_id, number);

CREATE TABLE conductor_mistakes (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    related_step_id TEXT,
    -- The rejected attempt that it learns from.
    attempt_id TEXT,
    title TEXT NOT NULL,
    what_happened TEXT NOT NULL,
    why TEXT NOT NULL,
    lesson TEXT NOT NULL,
    avoid_next_time TEXT NOT NULL,
    tags_json TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX conductor_mistakes_by_job ON conductor_mistakes (job_id, number);

-- Leave to accept a few steps before their changes are committed.
CREATE TABLE conductor_batches (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES conductor_jobs (id),
    reason TEXT NOT NULL,
    steps_left BIGINT NOT NULL CHECK (steps_left >= 0),
    steps_json TEXT NOT NULL,
    -- The commit that ended it.
    settled_by TEXT,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX conductor_batches_one_open ON conductor_batches (job_id) WHERE settled_by IS NULL;

-- Templates saved from finished jobs; the others are part of the pack.
CREATE TABLE conductor_templates (
    name TEXT PRIMARY KEY,
    summary TEXT NOT NULL,
    source_job_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    body_json TEXT NOT NULL
);
