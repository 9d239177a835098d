-- Questions to clients that were answered, by the id that was sealed with each: an answer counts once, on any host.
CREATE TABLE core_consents (
    id TEXT PRIMARY KEY,
    -- Milliseconds since 1970 UTC.
    used_at BIGINT NOT NULL
);
CREATE INDEX core_consents_by_time ON core_consents (used_at);
