-- The row of the ledger that holds the state, and its hash with it. The next row takes each state that has none yet.
ALTER TABLE core_states_after ADD COLUMN chained_seq BIGINT;
CREATE INDEX core_states_after_unchained ON core_states_after (op_id) WHERE chained_seq IS NULL;
