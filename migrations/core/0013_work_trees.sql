-- States of work trees that calls of envelopes found, so that edits count which nobody tells of.

-- Most edits that no call made, and how many there are.
ALTER TABLE core_envelopes ADD COLUMN max_edits BIGINT;
ALTER TABLE core_envelopes ADD COLUMN edit_count BIGINT NOT NULL DEFAULT 0;

-- A row for each state that differs from the one before it, in the order in which calls found them.
CREATE TABLE core_work_tree_states (
    id INTEGER PRIMARY KEY,
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    workspace TEXT NOT NULL,
    -- SHA-256 over workspace, paths, modes and contents, ignored files left out.
    state TEXT NOT NULL,
    git_head TEXT,
    -- What differs from that commit: a JSON object of paths to modes and hashes. Absent if there is too much of it.
    differs TEXT,
    -- Opening of the envelope, first look of a call, edit that no call made, call that changed it, test run that did.
    cause TEXT NOT NULL CHECK (cause IN ('opened', 'first', 'observed', 'call', 'test_run')),
    op_id TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    -- When the newest look began that found it, by the clock that counts from the machine's start.
    looked_boot_ms BIGINT NOT NULL
);
CREATE INDEX core_work_tree_states_by_envelope ON core_work_tree_states (envelope_id, workspace, id);
CREATE INDEX core_work_tree_states_by_state ON core_work_tree_states (envelope_id, state);
