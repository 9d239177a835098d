-- What the gates of a submission ran and noticed: it was in the reply alone, so that no export had it.
ALTER TABLE conductor_attempts ADD COLUMN commands_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE conductor_attempts ADD COLUMN notes_json TEXT NOT NULL DEFAULT '[]';
