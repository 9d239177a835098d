-- Mutations that an envelope counted and that changed nothing of the work: what only recorded something about
-- it, and what found everything as it should be.
CREATE TABLE tasks_envelopes (
    id TEXT PRIMARY KEY,
    passed BIGINT NOT NULL,
    -- When the latest was.
    at TEXT NOT NULL
);
CREATE INDEX tasks_envelopes_by_time ON tasks_envelopes (at);
