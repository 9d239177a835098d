-- Plans, tasks and their trees as records, and the journal of every change to them.

CREATE TABLE tasks_workspaces (
    name TEXT PRIMARY KEY,
    -- How many of each were ever made, so that no number is used twice.
    plans BIGINT NOT NULL,
    tasks BIGINT NOT NULL,
    -- The latest event's and the latest operation's sequence number.
    events BIGINT NOT NULL,
    operations BIGINT NOT NULL,
    -- Operations that changed the work itself rather than what is recorded about it.
    mutations BIGINT NOT NULL,
    focus TEXT
);

-- What is the same for plans and tasks and never undone: the revision above all. A root that was
-- deleted or whose creation was undone stays as ABSENT, so that its revision goes on if it returns.
CREATE TABLE tasks_roots (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('plan', 'task')),
    -- The plan of a task.
    plan TEXT,
    number BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('TODO', 'ACTIVE', 'DONE', 'PARKED', 'CANCELED', 'ABSENT')),
    revision BIGINT NOT NULL,
    touched_at TEXT NOT NULL,
    -- As in the record, for lists.
    title TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    CHECK ((kind = 'task') = (plan IS NOT NULL))
);
CREATE INDEX tasks_roots_by_kind ON tasks_roots (workspace, kind, status, number);
CREATE INDEX tasks_roots_by_plan ON tasks_roots (workspace, plan, status, number);
CREATE INDEX tasks_roots_by_touch ON tasks_roots (workspace, plan, status, touched_at);

-- Everything else: the record as JSON, and what queries look for beside it.
CREATE TABLE tasks_records (
    workspace TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('plan', 'task', 'step', 'node', 'evidence', 'note', 'lease', 'template')),
    id TEXT NOT NULL,
    -- The plan or task whose revision covers it, empty for a template.
    root TEXT NOT NULL,
    -- Under which record it hangs: a step under its task or another step, a node under a step.
    parent TEXT NOT NULL,
    -- Its index among the records of its kind under the same parent.
    ordinal BIGINT NOT NULL,
    -- In the order of making, so that a record that returns finds its place.
    position BIGINT NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (workspace, kind, id)
);
CREATE INDEX tasks_records_by_place ON tasks_records (workspace, kind, parent, ordinal);
CREATE INDEX tasks_records_by_parent ON tasks_records (workspace, kind, parent, status, ordinal);
CREATE INDEX tasks_records_by_root ON tasks_records (workspace, root, kind, status, position);

-- Bodies of evidence, which never change and are too large for the journal.
CREATE TABLE tasks_bodies (
    workspace TEXT NOT NULL,
    root TEXT NOT NULL,
    evidence TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (workspace, root, evidence)
);

-- What can be undone and redone. An operation is done, undone, dropped (it can no longer be redone)
-- or final (it cannot be undone).
CREATE TABLE tasks_operations (
    workspace TEXT NOT NULL,
    seq BIGINT NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('done', 'undone', 'dropped', 'final')),
    -- The event with which it was undone.
    undone_at BIGINT,
    at TEXT NOT NULL,
    PRIMARY KEY (workspace, seq)
);
CREATE INDEX tasks_operations_by_state ON tasks_operations (workspace, state, seq);

-- Which roots an operation changed. The state is repeated so that the latest one is found at once.
CREATE TABLE tasks_operation_roots (
    workspace TEXT NOT NULL,
    root TEXT NOT NULL,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (workspace, root, seq)
);
CREATE INDEX tasks_operation_roots_by_operation ON tasks_operation_roots (workspace, seq);
CREATE INDEX tasks_operation_roots_by_state ON tasks_operation_roots (workspace, root, state, seq);

CREATE TABLE tasks_changes (
    workspace TEXT NOT NULL,
    operation BIGINT NOT NULL,
    place BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (workspace, operation, place)
);

CREATE TABLE tasks_events (
    workspace TEXT NOT NULL,
    seq BIGINT NOT NULL,
    -- The plan or task it is about, empty for a template.
    root TEXT NOT NULL,
    -- The root's revision after it.
    revision BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    -- What changed, if it is not the root itself.
    target TEXT,
    data TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (workspace, seq)
) WITH (append_only = true);
CREATE INDEX tasks_events_by_root ON tasks_events (workspace, root, seq);
