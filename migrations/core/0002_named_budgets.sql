-- Named budgets beside the three limits, and failures that can be looked up.

-- What an envelope may use of each named budget, fixed when it is opened, and what it used.
CREATE TABLE core_budgets (
    envelope_id TEXT NOT NULL REFERENCES core_envelopes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    max_units BIGINT NOT NULL CHECK (max_units >= 0),
    used BIGINT NOT NULL DEFAULT 0 CHECK (used >= 0 AND used <= max_units),
    PRIMARY KEY (envelope_id, name)
);

-- Units that `run` calls have set aside. A `write` call needs none: its own transaction keeps others out.
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

CREATE INDEX core_operations_by_failure ON core_operations (failure_fingerprint, seq)
    WHERE failure_fingerprint IS NOT NULL;
