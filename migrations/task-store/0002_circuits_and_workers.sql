-- Where an open circuit returns to, who works on an attempt, and an index for the pending approvals of all tasks.

-- A table of its own, because columns that are added to task_store_tasks lie behind its large spec.
CREATE TABLE task_store_circuits (
    task_id TEXT PRIMARY KEY REFERENCES task_store_tasks (id),
    -- The phase that the task left. Not known of each circuit that was opened before this table.
    from_phase TEXT CHECK (from_phase IN (
        'spec_draft', 'spec_review', 'execution_ready', 'executing', 'spec_gate', 'quality_gate',
        'awaiting_approval', 'ready_to_resume'))
);
-- The latest transition of a task with an open circuit opened it. Its event starts with the phase before.
INSERT INTO task_store_circuits (task_id, from_phase)
SELECT t.id, (
    SELECT CASE
        WHEN e.payload_json LIKE '{"before":{"phase":"spec\_draft"%' ESCAPE '\' THEN 'spec_draft'
        WHEN e.payload_json LIKE '{"before":{"phase":"spec\_review"%' ESCAPE '\' THEN 'spec_review'
        WHEN e.payload_json LIKE '{"before":{"phase":"execution\_ready"%' ESCAPE '\' THEN 'execution_ready'
        WHEN e.payload_json LIKE '{"before":{"phase":"executing"%' THEN 'executing'
        WHEN e.payload_json LIKE '{"before":{"phase":"spec\_gate"%' ESCAPE '\' THEN 'spec_gate'
        WHEN e.payload_json LIKE '{"before":{"phase":"quality\_gate"%' ESCAPE '\' THEN 'quality_gate'
        WHEN e.payload_json LIKE '{"before":{"phase":"awaiting\_approval"%' ESCAPE '\' THEN 'awaiting_approval'
        WHEN e.payload_json LIKE '{"before":{"phase":"ready\_to\_resume"%' ESCAPE '\' THEN 'ready_to_resume'
    END
    FROM task_store_events e
    WHERE e.task_id = t.id AND e.event_type IN ('circuit.opened', 'task.transitioned')
    ORDER BY e.id DESC LIMIT 1
)
FROM task_store_tasks t WHERE t.phase = 'circuit_open';

-- The envelope and the client that started the attempt.
ALTER TABLE task_store_attempts ADD COLUMN envelope_id TEXT;
ALTER TABLE task_store_attempts ADD COLUMN client TEXT;
-- 1 if the attempt was aborted because its worker was gone, so that it does not count as a retry.
ALTER TABLE task_store_attempts ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;

CREATE INDEX task_store_events_by_attempt ON task_store_events (attempt_id, id) WHERE attempt_id IS NOT NULL;
CREATE INDEX task_store_approvals_pending ON task_store_approvals (seq) WHERE status = 'pending';
