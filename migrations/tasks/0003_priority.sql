-- The rank of a plan or task, so that the queue is read in order: 0 LOW, 1 MEDIUM, 2 HIGH, 3 CRITICAL.

ALTER TABLE tasks_roots ADD COLUMN priority BIGINT NOT NULL DEFAULT 1;

-- The first "priority" of a record is its own: quotes inside of earlier texts are escaped.
UPDATE tasks_roots SET priority = 3 WHERE EXISTS (
    SELECT 1 FROM tasks_records AS record
    WHERE record.workspace = tasks_roots.workspace AND record.kind = tasks_roots.kind AND record.id = tasks_roots.id
        AND substr(record.body, instr(record.body, '"priority":"') + 12, 4) = 'CRIT'
);
UPDATE tasks_roots SET priority = 2 WHERE EXISTS (
    SELECT 1 FROM tasks_records AS record
    WHERE record.workspace = tasks_roots.workspace AND record.kind = tasks_roots.kind AND record.id = tasks_roots.id
        AND substr(record.body, instr(record.body, '"priority":"') + 12, 4) = 'HIGH'
);
UPDATE tasks_roots SET priority = 0 WHERE EXISTS (
    SELECT 1 FROM tasks_records AS record
    WHERE record.workspace = tasks_roots.workspace AND record.kind = tasks_roots.kind AND record.id = tasks_roots.id
        AND substr(record.body, instr(record.body, '"priority":"') + 12, 3) = 'LOW'
);

CREATE INDEX tasks_roots_by_rank ON tasks_roots (workspace, kind, status, priority, number);
