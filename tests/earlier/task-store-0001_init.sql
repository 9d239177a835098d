-- Tasks, what is recorded about them, and the log of every change.

CREATE TABLE task_store_tasks (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    workspace TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN (
        'spec_draft', 'spec_review', 'execution_ready', 'executing', 'spec_gate', 'quality_gate',
        'awaiting_approval', 'ready_to_resume', 'completed', 'failed', 'circuit_open')),
    labels_json TEXT NOT NULL,
    circuit_status TEXT NOT NULL CHECK (circuit_status IN ('closed', 'open')),
    -- The latest attempt, running or not.
    current_attempt_id TEXT,
    -- The ordinal of the latest attempt, 0 before the first.
    attempt_count BIGINT NOT NULL,
    -- The value of attempt_count when retries were last counted anew.
    retry_base BIGINT NOT NULL,
    next_retry_at TEXT,
    -- Grows whenever the spec is replaced, so that a review of an older text does not count.
    spec_revision BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    goal TEXT,
    scope_in_json TEXT NOT NULL,
    scope_out_json TEXT NOT NULL,
    inputs_json TEXT NOT NULL,
    outputs_json TEXT NOT NULL,
    acceptance_json TEXT NOT NULL,
    risks_json TEXT NOT NULL,
    -- Last, because the columns before it are read without it and it may be large.
    spec_markdown TEXT NOT NULL,
    CHECK ((phase = 'circuit_open') = (circuit_status = 'open'))
);
CREATE INDEX task_store_tasks_by_phase ON task_store_tasks (phase, id);
CREATE INDEX task_store_tasks_by_workspace ON task_store_tasks (workspace, id);

CREATE TABLE task_store_labels (
    label TEXT NOT NULL,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    PRIMARY KEY (label, task_id)
);

CREATE TABLE task_store_attempts (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    ordinal BIGINT NOT NULL CHECK (ordinal >= 1),
    phase TEXT NOT NULL CHECK (phase = 'executing'),
    runtime TEXT NOT NULL CHECK (runtime IN ('local', 'acp', 'other')),
    executor_kind TEXT NOT NULL CHECK (executor_kind IN ('builder', 'research', 'external_coder')),
    worker_ref TEXT,
    external_session_ref TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'aborted')),
    escalate BIGINT NOT NULL,
    error_summary TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    UNIQUE (task_id, ordinal),
    CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE UNIQUE INDEX task_store_attempts_one_running ON task_store_attempts (task_id) WHERE status = 'running';

CREATE TABLE task_store_reviews (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    attempt_id TEXT REFERENCES task_store_attempts (id),
    review_type TEXT NOT NULL CHECK (review_type IN ('spec', 'quality')),
    reviewer_ref TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('approved', 'changes_requested', 'blocked')),
    summary TEXT,
    finding_count BIGINT NOT NULL,
    findings_json TEXT NOT NULL,
    spec_revision BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    CHECK (attempt_id IS NOT NULL OR review_type = 'spec')
);
CREATE INDEX task_store_reviews_by_task ON task_store_reviews (task_id, seq);

CREATE TABLE task_store_artifacts (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    attempt_id TEXT REFERENCES task_store_attempts (id),
    kind TEXT NOT NULL CHECK (kind IN ('primary_output', 'test_report', 'diff', 'review_report', 'other')),
    uri TEXT NOT NULL,
    summary TEXT,
    produced_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX task_store_artifacts_by_task ON task_store_artifacts (task_id, seq);

CREATE TABLE task_store_approvals (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    attempt_id TEXT NOT NULL REFERENCES task_store_attempts (id),
    requested_action TEXT NOT NULL,
    side_effect_kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'request_changes')),
    requested_by TEXT NOT NULL,
    resolved_by TEXT,
    note TEXT,
    created_at TEXT NOT NULL,
    resolved_at TEXT,
    UNIQUE (task_id, side_effect_kind, idempotency_key),
    CHECK ((status = 'pending') = (resolved_at IS NULL))
);
CREATE INDEX task_store_approvals_by_task ON task_store_approvals (task_id, seq);

CREATE TABLE task_store_events (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES task_store_tasks (id),
    attempt_id TEXT REFERENCES task_store_attempts (id),
    event_type TEXT NOT NULL,
    actor TEXT NOT NULL,
    actor_role TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX task_store_events_by_task ON task_store_events (task_id, id);
CREATE INDEX task_store_events_checkpoints ON task_store_events (task_id, id)
    WHERE event_type = 'attempt.checkpoint';

CREATE TRIGGER task_store_events_never_updated BEFORE UPDATE ON task_store_events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER task_store_events_never_deleted BEFORE DELETE ON task_store_events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

-- A replacing insert deletes without the trigger above unless recursive triggers are on.
CREATE TRIGGER task_store_events_never_replaced BEFORE INSERT ON task_store_events
WHEN EXISTS (SELECT 1 FROM task_store_events WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
