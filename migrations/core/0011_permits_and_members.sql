-- What counts once, such as an approval: a call takes it in its own commit, and gives it back in the same if it fails.
-- A policy's keys are its own.
CREATE TABLE core_permits (
    policy TEXT NOT NULL,
    key TEXT NOT NULL,
    op_id TEXT NOT NULL,
    -- Milliseconds since 1970 UTC. From then on the policy itself lets nothing through for it.
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (policy, key)
);
CREATE INDEX core_permits_by_operation ON core_permits (op_id);
CREATE INDEX core_permits_by_expiry ON core_permits (policy, expires_at);

-- The calls inside a call, as a JSON array of {tool, effect, args_hash}. A row's hash covers it where there are any.
ALTER TABLE core_operations ADD COLUMN members TEXT;
CREATE INDEX core_operations_with_members ON core_operations (seq) WHERE members IS NOT NULL;
