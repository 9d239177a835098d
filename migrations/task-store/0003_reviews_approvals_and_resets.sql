-- Reviews from before the end of their attempt, approvals that were requested again, and resets of circuits.

-- 1 if the review was appended before its attempt ended, so that it says nothing of the result. No such review is
-- appended since.
ALTER TABLE task_store_reviews ADD COLUMN too_early BIGINT NOT NULL DEFAULT 0;
UPDATE task_store_reviews SET too_early = 1
WHERE attempt_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM task_store_attempts a
    WHERE a.id = task_store_reviews.attempt_id AND a.finished_at <= task_store_reviews.created_at);

-- The later request of the same kind that replaces a denied one.
ALTER TABLE task_store_approvals ADD COLUMN replaced_by TEXT;

-- How often leaving the open circuit has reset a task's retry count. Resets before this table are not counted.
CREATE TABLE task_store_resets (
    task_id TEXT PRIMARY KEY REFERENCES task_store_tasks (id),
    resets BIGINT NOT NULL
);
