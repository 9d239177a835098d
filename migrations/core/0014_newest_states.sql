-- The newest known state of each workspace's work tree, in whichever envelope it was seen: an edit between two envelopes
-- counts in the windows of time.
CREATE TABLE core_work_trees (
    workspace TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    -- When the look began that found it, by the clock that counts from the machine's start.
    looked_boot_ms BIGINT NOT NULL
);

-- States that calls left behind whose files are written after their rows.
CREATE TABLE core_states_after (
    op_id TEXT PRIMARY KEY,
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    state TEXT NOT NULL
);
CREATE INDEX core_states_after_by_envelope ON core_states_after (envelope_id);

-- After a restart: 1 if the work tree was in another state than the last call of an envelope of the gone host left it in,
-- 0 if not.
ALTER TABLE core_envelopes ADD COLUMN restart_moved BIGINT;
