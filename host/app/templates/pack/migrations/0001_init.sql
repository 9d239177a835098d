-- An applied step never changes. Put later changes into a new file, 0002_name.sql.
CREATE TABLE my_pack_notes (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    created_at TEXT NOT NULL
);
