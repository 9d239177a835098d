-- The host's own tables. `core_migrations` exists before this step.

-- Pages of the database that each component's rows take.
CREATE TABLE core_usage (
    pack TEXT PRIMARY KEY,
    pages BIGINT NOT NULL
);

-- Correlation envelopes: limits and counters around calls.
CREATE TABLE core_envelopes (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('OPEN', 'CLOSED_SUCCESS', 'CLOSED_FAILED', 'CLOSED_INTERRUPTED')),
    workspace TEXT,
    label TEXT,
    note TEXT,
    opened_at TEXT NOT NULL,
    closed_at TEXT,
    -- Why it was closed, if not by its owner: a limit's code, or what interrupted it.
    closed_by TEXT,
    max_mutations BIGINT,
    max_test_runs BIGINT,
    max_duration_sec BIGINT,
    mutation_count BIGINT NOT NULL DEFAULT 0,
    test_run_count BIGINT NOT NULL DEFAULT 0,
    -- By the clock that counts from the machine's start, which no one sets. An envelope does not
    -- outlive its host, and so not the machine's start either.
    opened_boot_ms BIGINT NOT NULL,
    git_head TEXT,
    index_version BIGINT,
    closed_git_head TEXT,
    last_mutation_fingerprint TEXT,
    last_failure_fingerprint TEXT,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    identity TEXT
);
CREATE INDEX core_envelopes_by_state ON core_envelopes (state, opened_at, id);
CREATE INDEX core_envelopes_by_opened ON core_envelopes (opened_at, id);

-- One row for each call that reached the gate. No argument or result content, only hashes and names.
CREATE TABLE core_operations (
    seq INTEGER PRIMARY KEY,
    op_id TEXT NOT NULL UNIQUE,
    envelope_id TEXT,
    timestamp TEXT NOT NULL,
    duration_ms DOUBLE NOT NULL,
    op_type TEXT NOT NULL CHECK (op_type IN ('query', 'mutation', 'test_run', 'control')),
    -- 1 done, 0 refused or failed, absent when nobody can know.
    success BIGINT CHECK (success IN (0, 1)),
    pack TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read', 'write', 'run')),
    error_code TEXT,
    failure_class TEXT,
    limit_triggered TEXT,
    actor TEXT,
    client TEXT,
    connection TEXT NOT NULL,
    request_id TEXT,
    host_id TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    result_hash TEXT,
    repo_before_hash TEXT,
    repo_after_hash TEXT,
    changed_paths TEXT,
    diff_stats TEXT,
    short_diff TEXT,
    mutation_fingerprint TEXT,
    failure_fingerprint TEXT,
    failing_tests TEXT,
    events TEXT,
    verdicts TEXT,
    artifact_ids TEXT,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX core_operations_by_envelope ON core_operations (envelope_id, seq) WHERE envelope_id IS NOT NULL;

CREATE TRIGGER core_operations_no_update BEFORE UPDATE ON core_operations
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Pruning removes rows only below the anchor that it wrote before.
CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations
WHEN NOT EXISTS (SELECT 1 FROM core_anchors WHERE seq >= OLD.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- A row can only come after the last one, so none is slipped in or replaced.
CREATE TRIGGER core_operations_in_order BEFORE INSERT ON core_operations
WHEN NEW.seq <> coalesce((SELECT max(seq) FROM core_operations), (SELECT max(seq) FROM core_anchors), 0) + 1
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Where pruning stopped: the last removed row and its hash, from which the chain goes on.
CREATE TABLE core_anchors (
    seq BIGINT PRIMARY KEY,
    hash TEXT NOT NULL,
    pruned_at TEXT NOT NULL,
    pruned_rows BIGINT NOT NULL
);

-- `run` calls that were admitted and whose end is not recorded yet. After a crash they become
-- operations of unknown outcome.
CREATE TABLE core_intents (
    op_id TEXT PRIMARY KEY,
    host_id TEXT NOT NULL,
    operation TEXT NOT NULL
);
