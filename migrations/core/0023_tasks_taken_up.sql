-- How often another host took a task up again whose host was gone.
ALTER TABLE core_tasks ADD COLUMN resumed BIGINT NOT NULL DEFAULT 0;
-- The ledger shows which calls are tasks.
CREATE INDEX core_tasks_by_operation ON core_tasks (op_id);
