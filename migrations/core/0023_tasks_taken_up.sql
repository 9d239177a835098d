-- How often another host took a task up again whose host was gone.
ALTER TABLE core_tasks ADD COLUMN resumed BIGINT NOT NULL DEFAULT 0;
