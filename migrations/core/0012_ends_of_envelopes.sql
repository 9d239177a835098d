-- The outcome of what a call ran, such as tests that failed, apart from the call's own success: a JSON object.
ALTER TABLE core_operations ADD COLUMN outcome TEXT;
-- The counters of the call's envelope, with the call counted, and of the envelopes around it: a JSON object. What is
-- in core_envelopes can be counted again from these.
ALTER TABLE core_operations ADD COLUMN counters TEXT;

-- The envelope around this one. What this one uses, that one uses as well.
ALTER TABLE core_envelopes ADD COLUMN parent TEXT;
CREATE INDEX core_envelopes_by_parent ON core_envelopes (parent) WHERE parent IS NOT NULL;
-- Who closed it, as operations name who calls.
ALTER TABLE core_envelopes ADD COLUMN closed_actor TEXT;
-- Until when it is open without a connection or a host of its own, in milliseconds since 1970 UTC.
ALTER TABLE core_envelopes ADD COLUMN detached_until_ms BIGINT;

-- Connections that work in an envelope which another one opened. When that one leaves, the envelope becomes theirs.
CREATE TABLE core_envelope_users (
    envelope_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    joined_at TEXT NOT NULL,
    PRIMARY KEY (envelope_id, host_id, connection)
);
CREATE INDEX core_envelope_users_by_connection ON core_envelope_users (host_id, connection);
