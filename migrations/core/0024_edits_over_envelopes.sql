-- Edits of each workspace by calls and by others, in all envelopes and between them: what fails over several envelopes
-- is compared by it. It never falls.
ALTER TABLE core_work_trees ADD COLUMN edits BIGINT NOT NULL DEFAULT 0;
