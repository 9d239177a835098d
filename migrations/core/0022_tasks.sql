-- Calls whose clients do not wait for the reply: MCP's tasks.
CREATE TABLE core_tasks (
    -- Nobody can guess it.
    id TEXT PRIMARY KEY,
    -- Identity of the caller. Absent for who has the machine itself.
    owner TEXT,
    tool TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    envelope_id TEXT,
    -- The latest call: a task that asked calls again.
    op_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('working', 'input_required', 'completed', 'cancelled', 'failed')),
    -- The latest note of progress, or how it ended.
    note TEXT,
    -- Milliseconds since 1970 UTC.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- From then on the task is unknown, if it is over.
    until_ms BIGINT NOT NULL,
    poll_ms BIGINT NOT NULL,
    -- The host that works on it, whose lock on its file says whether it still does.
    host_id TEXT NOT NULL,
    -- 1 if somebody wants it to end.
    cancel BIGINT NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
    -- JSON object: what it waits for, by key, and the requests for approval that say the same.
    asked TEXT,
    -- JSON object: answers so far, by key.
    answers TEXT,
    -- JSON object: the arguments, if another host may take the task up again.
    arguments TEXT,
    error_code TEXT,
    -- SHA-256 and bytes of the reply, whose parts are in core_task_replies.
    reply_hash TEXT,
    reply_bytes BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX core_tasks_open ON core_tasks (host_id, envelope_id) WHERE state IN ('working', 'input_required');
CREATE INDEX core_tasks_by_owner ON core_tasks (owner, created_at);
CREATE INDEX core_tasks_by_time ON core_tasks (created_at, id);
CREATE INDEX core_tasks_by_end ON core_tasks (until_ms) WHERE state NOT IN ('working', 'input_required');

-- Replies of tasks that are over, in parts that fit into a value.
CREATE TABLE core_task_replies (
    task_id TEXT NOT NULL,
    part BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (task_id, part)
);
