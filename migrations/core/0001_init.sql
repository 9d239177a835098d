-- The host's own tables. `core_migrations` exists before this step.

-- Pages of the database that each component's rows take.
CREATE TABLE core_usage (
    pack TEXT PRIMARY KEY,
    pages BIGINT NOT NULL
);

-- One row for each call that reached the gate. No argument or result content, only hashes.
CREATE TABLE core_operations (
    seq INTEGER PRIMARY KEY,
    op_id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    duration_us BIGINT NOT NULL,
    pack TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read', 'write', 'run')),
    -- 1 done, 0 refused or failed, absent when nobody can know.
    success BIGINT CHECK (success IN (0, 1)),
    error_code TEXT,
    identity TEXT,
    client TEXT,
    connection TEXT NOT NULL,
    request_id TEXT,
    host_id TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    result_hash TEXT
);

CREATE TRIGGER core_operations_no_update BEFORE UPDATE ON core_operations
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- A row can only come after the last one, so none is slipped in or replaced.
CREATE TRIGGER core_operations_in_order BEFORE INSERT ON core_operations
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM core_operations)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
