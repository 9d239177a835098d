-- Decisions that components wait for, and their answers.
CREATE TABLE core_approvals (
    id TEXT PRIMARY KEY,
    -- Component that asked: a pack's name, or `policy-` and a policy's.
    component TEXT NOT NULL,
    key TEXT NOT NULL,
    -- Number of the request among those with the same key.
    round BIGINT NOT NULL,
    title TEXT NOT NULL,
    -- JSON object.
    detail TEXT NOT NULL,
    -- JSON object: the calls that answer, if the component answers itself.
    answering TEXT,
    -- JSON object: who may answer, if that is restricted.
    answerers TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'withdrawn')),
    -- The call in which it was asked.
    op_id TEXT NOT NULL,
    envelope_id TEXT,
    tool TEXT NOT NULL,
    requested_by TEXT,
    identity TEXT,
    connection TEXT NOT NULL,
    -- Milliseconds since 1970 UTC.
    asked_at BIGINT NOT NULL,
    until_ms BIGINT,
    answered_by TEXT,
    answered_identity TEXT,
    answered_op TEXT,
    note TEXT,
    answered_at BIGINT,
    -- 1 if the operator's program was told.
    notified BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX core_approvals_by_key ON core_approvals (component, key, round);
CREATE INDEX core_approvals_by_status ON core_approvals (status, component, asked_at);
CREATE INDEX core_approvals_unheard ON core_approvals (asked_at) WHERE notified = 0;
CREATE INDEX core_approvals_by_answer ON core_approvals (answered_at);
