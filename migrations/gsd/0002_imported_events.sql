-- Events can come from a log in the workspace.

-- The reading of an event's arguments. 1: absent fields of a plan are empty. 2: absent fields stay as they are.
ALTER TABLE gsd_events ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
-- True for an imported event that contradicted what was stored, and was not applied.
ALTER TABLE gsd_events ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0;
