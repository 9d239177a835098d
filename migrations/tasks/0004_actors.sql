-- Who made an operation or caused an event, an operation in words, and the batch that an operation is part of.

ALTER TABLE tasks_operations ADD COLUMN actor TEXT;
ALTER TABLE tasks_operations ADD COLUMN summary TEXT;
-- Sequence number of the batch's first operation, absent outside of batches.
ALTER TABLE tasks_operations ADD COLUMN batch BIGINT;
CREATE INDEX tasks_operations_by_actor ON tasks_operations (workspace, actor, state, seq);
CREATE INDEX tasks_operations_by_batch ON tasks_operations (workspace, batch, seq);

ALTER TABLE tasks_events ADD COLUMN actor TEXT;

-- Which operations changed a record.
CREATE INDEX tasks_changes_by_record ON tasks_changes (workspace, kind, id, operation);
