-- What policies remember of the calls that they judge.
CREATE TABLE core_policy_memory (
    -- Component: `policy-` and the policy's name.
    component TEXT NOT NULL,
    -- 1 for the memory of audit mode.
    audit BIGINT NOT NULL CHECK (audit IN (0, 1)),
    key TEXT NOT NULL,
    text TEXT,
    number BIGINT NOT NULL,
    -- Milliseconds since 1970 UTC.
    until_ms BIGINT,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (component, audit, key)
);
CREATE INDEX core_policy_memory_by_until ON core_policy_memory (component, until_ms) WHERE until_ms IS NOT NULL;
-- Bytes of all that a component remembers.
CREATE TABLE core_policy_memory_use (
    component TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL
);
