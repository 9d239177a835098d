-- The host's own tables on PostgreSQL: the tables and columns of migrations/core, as they are after all of its steps.
-- TEXT stands for text with the collation "C", so that it is sorted and compared by bytes as in SQLite.
-- `core_migrations` exists before this step.

-- Functions and operators that SQLite has and the host's statements use.
CREATE FUNCTION instr(text, text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS 'SELECT pg_catalog.strpos($1, $2)::pg_catalog.int8';
CREATE FUNCTION json_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS 'SELECT $1::pg_catalog.json OPERATOR(pg_catalog.->>) $2';
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_text);
CREATE FUNCTION json_each(text) RETURNS TABLE (value json) LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS 'SELECT value FROM pg_catalog.json_array_elements($1::pg_catalog.json)';

-- Pages of the database that each component's rows take. PostgreSQL's pages are its own, so that this stays empty.
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
    closed_by TEXT,
    max_mutations BIGINT,
    max_test_runs BIGINT,
    max_duration_sec BIGINT,
    mutation_count BIGINT NOT NULL DEFAULT 0,
    test_run_count BIGINT NOT NULL DEFAULT 0,
    opened_boot_ms BIGINT NOT NULL,
    git_head TEXT,
    index_version BIGINT,
    closed_git_head TEXT,
    last_mutation_fingerprint TEXT,
    last_failure_fingerprint TEXT,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    identity TEXT,
    parent TEXT,
    closed_actor TEXT,
    detached_until_ms BIGINT,
    max_edits BIGINT,
    edit_count BIGINT NOT NULL DEFAULT 0,
    restart_moved BIGINT
) WITH (fillfactor = 50);
CREATE INDEX core_envelopes_by_state ON core_envelopes (state, opened_at, id);
CREATE INDEX core_envelopes_by_opened ON core_envelopes (opened_at, id);
CREATE INDEX core_envelopes_by_parent ON core_envelopes (parent) WHERE parent IS NOT NULL;

-- Connections that work in an envelope which another one opened.
CREATE TABLE core_envelope_users (
    envelope_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    joined_at TEXT NOT NULL,
    PRIMARY KEY (envelope_id, host_id, connection)
);
CREATE INDEX core_envelope_users_by_connection ON core_envelope_users (host_id, connection);

-- Ends of chains of rows. There is one so far, stream 0, of which every host appends in its turn.
CREATE TABLE core_streams (
    id INTEGER PRIMARY KEY,
    place BIGINT NOT NULL,
    hash TEXT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO core_streams (id, place, hash)
    VALUES (0, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- One row for each call that reached the gate. No argument or result content, only hashes and names.
CREATE TABLE core_operations (
    seq BIGINT PRIMARY KEY,
    op_id TEXT NOT NULL UNIQUE,
    envelope_id TEXT,
    timestamp TEXT NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL,
    op_type TEXT NOT NULL CHECK (op_type IN ('query', 'mutation', 'test_run', 'control')),
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
    hash TEXT NOT NULL,
    members TEXT,
    outcome TEXT,
    counters TEXT,
    workspace TEXT
);
CREATE INDEX core_operations_by_envelope ON core_operations (envelope_id, seq) WHERE envelope_id IS NOT NULL;
CREATE INDEX core_operations_by_failure ON core_operations (failure_fingerprint, seq)
    WHERE failure_fingerprint IS NOT NULL;
CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 0;
CREATE INDEX core_operations_with_members ON core_operations (seq) WHERE members IS NOT NULL;

-- A stretch of pruned rows: the chain enters it at `prev_hash` and leaves it at `hash`.
CREATE TABLE core_anchors (
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    pruned_at TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (first_seq, last_seq)
);

CREATE FUNCTION core_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'TG004';
END $$;

-- A row only comes after the end of its stream, which it becomes: the guard of the order, the fence against a host that
-- does not know the end any more, and the chain in one.
CREATE FUNCTION core_append() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE core_streams SET place = NEW.seq, hash = NEW.hash
        WHERE id = 0 AND place = NEW.seq - 1 AND hash = NEW.prev_hash;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'TG001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER core_operations_in_order BEFORE INSERT ON core_operations
    FOR EACH ROW EXECUTE FUNCTION core_append();
CREATE TRIGGER core_operations_no_update BEFORE UPDATE ON core_operations
    FOR EACH ROW EXECUTE FUNCTION core_refuse('the ledger is append-only');
CREATE TRIGGER core_operations_no_truncate BEFORE TRUNCATE ON core_operations
    EXECUTE FUNCTION core_refuse('the ledger is append-only');

-- A row goes only when an anchor stands for it.
CREATE FUNCTION core_unpin() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF coalesce((SELECT last_seq FROM core_anchors WHERE first_seq <= OLD.seq ORDER BY first_seq DESC LIMIT 1), 0)
        < OLD.seq THEN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'TG004';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations
    FOR EACH ROW EXECUTE FUNCTION core_unpin();

-- An anchor goes only when a wider one took its place.
CREATE FUNCTION core_absorb() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF coalesce((SELECT last_seq FROM core_anchors
                 WHERE first_seq <= OLD.first_seq AND (first_seq <> OLD.first_seq OR last_seq <> OLD.last_seq)
                 ORDER BY first_seq DESC, last_seq DESC LIMIT 1), 0) < OLD.last_seq THEN
        RAISE EXCEPTION 'anchors are append-only' USING ERRCODE = 'TG004';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER core_anchors_no_update BEFORE UPDATE ON core_anchors
    FOR EACH ROW EXECUTE FUNCTION core_refuse('anchors are append-only');
CREATE TRIGGER core_anchors_no_truncate BEFORE TRUNCATE ON core_anchors
    EXECUTE FUNCTION core_refuse('anchors are append-only');
CREATE TRIGGER core_anchors_no_delete BEFORE DELETE ON core_anchors
    FOR EACH ROW EXECUTE FUNCTION core_absorb();

-- `run` calls that were admitted and whose end is not recorded yet.
CREATE TABLE core_intents (
    op_id TEXT PRIMARY KEY,
    host_id TEXT NOT NULL,
    operation TEXT NOT NULL
);

-- What an envelope may use of each named budget, and what it used.
CREATE TABLE core_budgets (
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    max_units BIGINT NOT NULL CHECK (max_units >= 0),
    used BIGINT NOT NULL DEFAULT 0 CHECK (used >= 0 AND used <= max_units),
    PRIMARY KEY (envelope_id, name)
);

-- Units that `run` calls have set aside.
CREATE TABLE core_reservations (
    id TEXT PRIMARY KEY,
    envelope_id TEXT NOT NULL,
    name TEXT NOT NULL,
    units BIGINT NOT NULL CHECK (units >= 0),
    op_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    FOREIGN KEY (envelope_id, name) REFERENCES core_budgets (envelope_id, name) ON DELETE CASCADE
);
CREATE INDEX core_reservations_by_budget ON core_reservations (envelope_id, name);
CREATE INDEX core_reservations_by_operation ON core_reservations (op_id);

-- Content that operations refer to by id.
CREATE TABLE core_artifacts (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('log', 'diff', 'arguments', 'result')),
    size BIGINT NOT NULL,
    total_size BIGINT NOT NULL,
    op_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    collected BIGINT NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT ''
);
CREATE INDEX core_artifacts_by_expiry ON core_artifacts (expires_at, id) WHERE collected = 0;
CREATE INDEX core_artifacts_by_hash ON core_artifacts (hash) WHERE collected = 0;

-- What each tool was when it was last loaded, and when the operator last accepted it.
CREATE TABLE core_tool_definitions (
    pack TEXT NOT NULL,
    tool TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    accepted TEXT,
    PRIMARY KEY (pack, tool)
);

-- Questions to clients that were answered, by the id that was sealed with each.
CREATE TABLE core_consents (
    id TEXT PRIMARY KEY,
    used_at BIGINT NOT NULL
);
CREATE INDEX core_consents_by_time ON core_consents (used_at);

-- What counts once, such as an approval.
CREATE TABLE core_permits (
    policy TEXT NOT NULL,
    key TEXT NOT NULL,
    op_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (policy, key)
);
CREATE INDEX core_permits_by_operation ON core_permits (op_id);
CREATE INDEX core_permits_by_expiry ON core_permits (policy, expires_at);

-- States of work trees that calls of envelopes found, in the order in which they found them.
CREATE TABLE core_work_tree_states (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    workspace TEXT NOT NULL,
    state TEXT NOT NULL,
    git_head TEXT,
    differs TEXT,
    cause TEXT NOT NULL CHECK (cause IN ('opened', 'first', 'observed', 'call', 'test_run')),
    op_id TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    looked_boot_ms BIGINT NOT NULL,
    chained_seq BIGINT
);
CREATE INDEX core_work_tree_states_by_envelope ON core_work_tree_states (envelope_id, workspace, id);
CREATE INDEX core_work_tree_states_by_state ON core_work_tree_states (envelope_id, state);
CREATE INDEX core_work_tree_states_unchained ON core_work_tree_states (id) WHERE chained_seq IS NULL;

-- The newest known state of each workspace's work tree, in whichever envelope it was seen.
CREATE TABLE core_work_trees (
    workspace TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    looked_boot_ms BIGINT NOT NULL,
    edits BIGINT NOT NULL DEFAULT 0
);

-- States that calls left behind whose files are written after their rows.
CREATE TABLE core_states_after (
    op_id TEXT PRIMARY KEY,
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    chained_seq BIGINT
);
CREATE INDEX core_states_after_by_envelope ON core_states_after (envelope_id);
CREATE INDEX core_states_after_unchained ON core_states_after (op_id) WHERE chained_seq IS NULL;

-- Connections that components asked about, by a name that says nothing of them.
CREATE TABLE core_connections (
    name TEXT NOT NULL PRIMARY KEY,
    host_id TEXT NOT NULL,
    connection TEXT NOT NULL
);
CREATE INDEX core_connections_by_host ON core_connections (host_id, connection);

-- Decisions that components wait for, and their answers.
CREATE TABLE core_approvals (
    id TEXT PRIMARY KEY,
    component TEXT NOT NULL,
    key TEXT NOT NULL,
    round BIGINT NOT NULL,
    title TEXT NOT NULL,
    detail TEXT NOT NULL,
    answering TEXT,
    answerers TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'withdrawn')),
    op_id TEXT NOT NULL,
    envelope_id TEXT,
    tool TEXT NOT NULL,
    requested_by TEXT,
    identity TEXT,
    connection TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    until_ms BIGINT,
    answered_by TEXT,
    answered_identity TEXT,
    answered_op TEXT,
    note TEXT,
    answered_at BIGINT,
    notified BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX core_approvals_by_key ON core_approvals (component, key, round);
CREATE INDEX core_approvals_by_status ON core_approvals (status, component, asked_at);
CREATE INDEX core_approvals_unheard ON core_approvals (asked_at) WHERE notified = 0;
CREATE INDEX core_approvals_by_answer ON core_approvals (answered_at);

-- What policies remember of the calls that they judge.
CREATE TABLE core_policy_memory (
    component TEXT NOT NULL,
    audit BIGINT NOT NULL CHECK (audit IN (0, 1)),
    key TEXT NOT NULL,
    text TEXT,
    number BIGINT NOT NULL,
    until_ms BIGINT,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (component, audit, key)
);
CREATE INDEX core_policy_memory_by_until ON core_policy_memory (component, until_ms) WHERE until_ms IS NOT NULL;
-- Bytes of all that a component remembers.
CREATE TABLE core_policy_memory_use (
    component TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL
);

-- Calls whose clients do not wait for the reply: MCP's tasks.
CREATE TABLE core_tasks (
    id TEXT PRIMARY KEY,
    owner TEXT,
    tool TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    envelope_id TEXT,
    op_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('working', 'input_required', 'completed', 'cancelled', 'failed')),
    note TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    poll_ms BIGINT NOT NULL,
    host_id TEXT NOT NULL,
    cancel BIGINT NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
    asked TEXT,
    answers TEXT,
    arguments TEXT,
    error_code TEXT,
    reply_hash TEXT,
    reply_bytes BIGINT NOT NULL DEFAULT 0,
    resumed BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX core_tasks_open ON core_tasks (host_id, envelope_id) WHERE state IN ('working', 'input_required');
CREATE INDEX core_tasks_by_owner ON core_tasks (owner, created_at);
CREATE INDEX core_tasks_by_time ON core_tasks (created_at, id);
CREATE INDEX core_tasks_by_end ON core_tasks (until_ms) WHERE state NOT IN ('working', 'input_required');
CREATE INDEX core_tasks_by_operation ON core_tasks (op_id);

-- Replies of tasks that are over, in parts.
CREATE TABLE core_task_replies (
    task_id TEXT NOT NULL,
    part BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (task_id, part)
);
