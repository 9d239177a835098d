-- Milestones, their slices and tasks, who holds them, and the log of every change.

CREATE TABLE gsd_milestones (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    -- The number in the id, by which milestones are sorted; M01 and M001 are not two milestones.
    ordinal BIGINT NOT NULL,
    title TEXT NOT NULL,
    vision TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'complete', 'parked')),
    depends_on_json TEXT NOT NULL,
    success_criteria_json TEXT NOT NULL,
    key_risks_json TEXT NOT NULL,
    definition_of_done_json TEXT NOT NULL,
    -- What its completion said, while it is complete.
    summary_json TEXT,
    closed_by TEXT,
    closed_hash TEXT,
    -- Why it was reopened, until it is complete again.
    reopen_json TEXT,
    -- The event of the last change to anything in it.
    changed_event BIGINT NOT NULL,
    verdict TEXT CHECK (verdict IN ('pass', 'needs_attention', 'fail')),
    validation_event BIGINT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, ordinal),
    CHECK ((status = 'complete') = (closed_hash IS NOT NULL))
);

CREATE TABLE gsd_slices (
    workspace TEXT NOT NULL,
    milestone_id TEXT NOT NULL,
    id TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    title TEXT NOT NULL,
    risk TEXT NOT NULL CHECK (risk IN ('low', 'medium', 'high')),
    depends_json TEXT NOT NULL,
    demo TEXT NOT NULL,
    goal TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'complete', 'skipped')),
    summary_json TEXT,
    closed_by TEXT,
    closed_hash TEXT,
    reopen_json TEXT,
    PRIMARY KEY (workspace, milestone_id, id),
    UNIQUE (workspace, milestone_id, ordinal),
    FOREIGN KEY (workspace, milestone_id) REFERENCES gsd_milestones (workspace, id),
    CHECK ((status IN ('complete', 'skipped')) = (closed_hash IS NOT NULL))
);

CREATE TABLE gsd_tasks (
    workspace TEXT NOT NULL,
    milestone_id TEXT NOT NULL,
    slice_id TEXT NOT NULL,
    id TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    title TEXT NOT NULL,
    estimate TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'complete', 'skipped')),
    started_by TEXT,
    closed_by TEXT,
    closed_hash TEXT,
    reopen_json TEXT,
    -- How often it was reopened; its summary's file says so from then on.
    reopened BIGINT NOT NULL,
    -- Last, because lists are read without them and they may be large.
    description TEXT NOT NULL,
    files_json TEXT NOT NULL,
    verify TEXT NOT NULL,
    inputs_json TEXT NOT NULL,
    expected_output_json TEXT NOT NULL,
    summary_json TEXT,
    PRIMARY KEY (workspace, milestone_id, slice_id, id),
    UNIQUE (workspace, milestone_id, slice_id, ordinal),
    FOREIGN KEY (workspace, milestone_id, slice_id) REFERENCES gsd_slices (workspace, milestone_id, id),
    CHECK ((status IN ('complete', 'skipped')) = (closed_hash IS NOT NULL))
);

-- Who holds a unit. The key is M01/S01 or M01/S01/T01.
CREATE TABLE gsd_claims (
    workspace TEXT NOT NULL,
    unit TEXT NOT NULL,
    owner TEXT NOT NULL,
    claimed_at TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (workspace, unit)
);

-- One assessment of a roadmap for each completed slice.
CREATE TABLE gsd_assessments (
    workspace TEXT NOT NULL,
    milestone_id TEXT NOT NULL,
    completed_slice_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    assessment TEXT NOT NULL,
    slice_changes_json TEXT NOT NULL,
    assessed_at TEXT NOT NULL,
    PRIMARY KEY (workspace, milestone_id, completed_slice_id)
);

-- One record of replanning for each blocker.
CREATE TABLE gsd_replans (
    workspace TEXT NOT NULL,
    milestone_id TEXT NOT NULL,
    slice_id TEXT NOT NULL,
    blocker_task_id TEXT NOT NULL,
    blocker_description TEXT NOT NULL,
    what_changed TEXT NOT NULL,
    replanned_at TEXT NOT NULL,
    PRIMARY KEY (workspace, milestone_id, slice_id, blocker_task_id)
);

-- Every change, in order.
CREATE TABLE gsd_events (
    id INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    cmd TEXT NOT NULL,
    unit TEXT NOT NULL,
    params_json TEXT NOT NULL,
    ts TEXT NOT NULL,
    hash TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor IN ('agent', 'system')),
    actor_name TEXT NOT NULL,
    trigger_reason TEXT,
    session_id TEXT NOT NULL
) WITH (append_only = true);
CREATE INDEX gsd_events_by_workspace ON gsd_events (workspace, id);

-- Every call that changed something, was refused or was warned about.
CREATE TABLE gsd_audit (
    id INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    ts TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('info', 'warn', 'error')),
    tool TEXT NOT NULL,
    unit TEXT NOT NULL,
    code TEXT,
    message TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    trigger_reason TEXT,
    session_id TEXT NOT NULL,
    op_id TEXT NOT NULL
) WITH (append_only = true);
CREATE INDEX gsd_audit_by_workspace ON gsd_audit (workspace, id);

-- How far a log's file goes, and how long it has to be then. Any other length means that it is written anew.
CREATE TABLE gsd_files (
    workspace TEXT NOT NULL,
    path TEXT NOT NULL,
    last_id BIGINT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (workspace, path)
);
