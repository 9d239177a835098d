-- With whom an artifact shares the room that there is: its caller's identity, or its address without one. Empty for a
-- caller that had the host to itself.
ALTER TABLE core_artifacts ADD COLUMN holder TEXT NOT NULL DEFAULT '';
