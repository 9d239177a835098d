-- A step that was applied never changes: what comes later is a file of its own, 0002_name.sql.
CREATE TABLE my_pack_notes (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    created_at TEXT NOT NULL
);
