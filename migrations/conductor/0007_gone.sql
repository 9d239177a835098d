-- Ids that are never given again, and context that changed after its plan was agreed.

-- Ids of deleted jobs and context blocks.
CREATE TABLE conductor_gone (
    id TEXT PRIMARY KEY
);

-- Highest number that a step of the job ever had, removed ones included.
ALTER TABLE conductor_jobs ADD COLUMN last_step BIGINT NOT NULL DEFAULT 0;
UPDATE conductor_jobs SET last_step = coalesce((
    SELECT max(CAST(substr(given.step_id, 2) AS BIGINT)) FROM (
        SELECT job_id, step_id FROM conductor_steps UNION ALL SELECT job_id, step_id FROM conductor_attempts
    ) AS given WHERE given.job_id = conductor_jobs.id
), 0);

-- Time of the last change after the plan was agreed; NULL for a block as it was then.
ALTER TABLE conductor_contexts ADD COLUMN changed_at TEXT;
