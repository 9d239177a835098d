-- The row of the ledger that holds the state, and its hash with it. The next row takes each state that has none yet.
ALTER TABLE core_work_tree_states ADD COLUMN chained_seq BIGINT;
CREATE INDEX core_work_tree_states_unchained ON core_work_tree_states (id) WHERE chained_seq IS NULL;
