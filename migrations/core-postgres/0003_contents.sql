-- Content of artifacts by its hash, in pieces of 256 KiB that are numbered from 0. Hosts write it outside of the turn.
CREATE TABLE core_contents (
    hash TEXT NOT NULL,
    piece INTEGER NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (hash, piece)
);

-- Out of line and as it is: all hosts share the processor that would compress it.
ALTER TABLE core_contents ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Artifacts whose content was put, by the clock of the database. The row of the artifact may still come.
CREATE TABLE core_content_puts (
    artifact_id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    put_ms BIGINT NOT NULL
);
CREATE INDEX core_content_puts_by_hash ON core_content_puts (hash);
