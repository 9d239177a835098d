//! States of work trees after calls whose files are written after their rows. The next row of the ledger adds each of
//! them to the chain, as an event, so that later changes to the table are detected.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::engine::postgres::STATES_WAIT;
use super::engine::{Dialects, Engine, Once, sql};
use super::error::StoreResult;
use super::handles::WorkTrees;
use super::unchained::{MAX_OF_ROW, chain};
use super::work_trees::Sighting;

/// Event type for a state. Components' events have no field `op_id`.
const STATE_AFTER_EVENT: &str = "work_tree.after";

/// State that a call left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateAfter {
    op_id: String,
    state: String,
}

/// Events of the row that adds states to the chain.
pub(super) fn events(states: &[StateAfter]) -> Vec<Value> {
    let event = |one: &StateAfter| json!({"type": STATE_AFTER_EVENT, "op_id": one.op_id, "state": one.state});
    states.iter().map(event).collect()
}

impl WorkTrees<'_> {
    /// Stores the state that a call left, if the call's row is written already. Requires a write transaction.
    pub fn note_state_after(self, envelope: &str, op_id: &str, seen: &Sighting) -> StoreResult<()> {
        let sql = "INSERT INTO core_states_after (op_id, envelope_id, state)
            SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM core_envelopes WHERE id = ?2)
            ON CONFLICT (op_id) DO NOTHING";
        self.0.add_state();
        self.0
            .engine
            .run(sql, sql![op_id, envelope, seen.state])
            .map(drop)
    }

    /// False if no state waits for a row. For a file this queries the states, which costs almost nothing.
    pub(super) fn may_be_unchained(self) -> StoreResult<bool> {
        match &self.0.engine {
            Engine::Sqlite(_) => Ok(true),
            Engine::Postgres(postgres) => match postgres.states_wait() {
                Some(wait) => Ok(wait),
                None => self.0.engine.one(STATES_WAIT, &[], |row| row.get(0)),
            },
        }
    }

    /// States that are not in the chain yet, and that no other transaction is about to add.
    pub(super) fn unchained_states(self) -> StoreResult<Vec<StateAfter>> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "SELECT op_id, state FROM core_states_after WHERE chained_seq IS NULL ORDER BY op_id LIMIT ?1",
            postgres: "SELECT op_id, state FROM core_states_after WHERE chained_seq IS NULL ORDER BY op_id LIMIT ?1
                FOR UPDATE SKIP LOCKED",
        });
        self.0.engine.all(sql, sql![MAX_OF_ROW], |row| {
            Ok(StateAfter {
                op_id: row.get(0)?,
                state: row.get(1)?,
            })
        })
    }

    /// Stores the row that holds states.
    pub(super) fn chain_states(self, states: &[StateAfter], seq: i64) -> StoreResult<()> {
        let sql = "UPDATE core_states_after SET chained_seq = ?2 WHERE op_id = ?1";
        let keys: Vec<&str> = states.iter().map(|one| one.op_id.as_str()).collect();
        chain(&self.0.engine, sql, &keys, seq)
    }

    /// States that differ from the ledger's rows, one message each.
    pub(super) fn faults_of_states(self) -> StoreResult<Vec<String>> {
        let mut told = self.told_states()?;
        let mut faults = Vec::new();
        let sql = "SELECT op_id, state, chained_seq,
                EXISTS (SELECT 1 FROM core_anchors WHERE chained_seq BETWEEN first_seq AND last_seq)
            FROM core_states_after ORDER BY op_id";
        self.0.engine.each(Once(sql), &[], |row| {
            let (op_id, state): (String, String) = (row.get(0)?, row.get(1)?);
            let (chained, is_pruned): (Option<i64>, bool) = (row.get(2)?, row.get(3)?);
            match (told.remove(&op_id), chained) {
                (Some((seq, told)), _) if told != state => faults.push(format!(
                    "the work tree's state after {op_id} does not match row {seq}: the state was changed"
                )),
                (None, Some(seq)) if !is_pruned => faults.push(format!(
                    "the work tree's state after {op_id} is not recorded in row {seq}: the state was added or changed"
                )),
                _ => {}
            }
            Ok(())
        })?;
        // Pruning removes states with their envelope, and rows before it.
        let sql = "SELECT 1 FROM core_operations JOIN core_envelopes ON core_envelopes.id = core_operations.envelope_id
             WHERE op_id = ?1";
        let mut kept = self.0.engine.prepare(Once(sql))?;
        for (op_id, (seq, _)) in told {
            if kept.exists(sql![op_id])? {
                faults.push(format!(
                    "the work tree's state after {op_id}, which row {seq} records, was removed"
                ));
            }
        }
        Ok(faults)
    }

    /// States in rows, with the row, by operation. If there are several, the first counts.
    fn told_states(self) -> StoreResult<BTreeMap<String, (i64, String)>> {
        let mut told = BTreeMap::new();
        self.0.ledger().each_event(STATE_AFTER_EVENT, |seq, event| {
            if let (Some(op_id), Some(state)) = (event["op_id"].as_str(), event["state"].as_str()) {
                told.entry(op_id.to_owned())
                    .or_insert_with(|| (seq, state.to_owned()));
            }
        })?;
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::super::OperationFilter;
    use super::super::fixture::{Place, change, disarm, faults, ledger, next, prune, rearm, verify};
    use super::super::session::Session;
    use super::*;

    fn seen(state: &str) -> Sighting {
        Sighting {
            workspace: "one".to_owned(),
            state: state.to_owned(),
            ..Sighting::default()
        }
    }

    /// A ledger with two calls of an open envelope, and their states after, which the next row holds.
    fn story() -> (Place, Session) {
        let (place, session) = ledger("kk");
        session.begin_write().unwrap();
        for (op_id, state) in [("op_0", "A"), ("op_1", "B")] {
            session
                .work_trees()
                .note_state_after("env_k", op_id, &seen(state))
                .unwrap();
        }
        session.commit().unwrap();
        (place, session)
    }

    fn tamper(session: &Session, sql: &str) {
        change(session, sql).unwrap();
    }

    #[test]
    fn a_state_after_a_row_is_shown_with_it_and_the_next_row_holds_it() {
        let (_place, session) = story();
        let found = session.operations().list(&OperationFilter::default(), 2).unwrap();
        assert_eq!(found[0].repo_after_hash.as_deref(), Some("B"));
        assert_eq!(faults(&session), [] as [String; 0], "no row came since");
        next(&session, "kk", 2);
        assert_eq!(session.work_trees().unchained_states().unwrap(), []);
        let told = session.work_trees().told_states().unwrap();
        assert_eq!(told["op_0"], (3, "A".to_owned()));
        assert_eq!(told["op_1"], (3, "B".to_owned()));
        assert_eq!(faults(&session), [] as [String; 0]);
    }

    #[test]
    fn a_changed_or_removed_state_is_found() {
        for (sql, says) in [
            (
                "UPDATE core_states_after SET state = 'A' WHERE op_id = 'op_1'",
                "after op_1 does not match row 3",
            ),
            (
                "UPDATE core_states_after SET state = 'A', chained_seq = NULL WHERE op_id = 'op_1'",
                "after op_1 does not match",
            ),
            (
                "DELETE FROM core_states_after WHERE op_id = 'op_0'",
                "after op_0, which row 3 records, was removed",
            ),
            (
                "UPDATE core_states_after SET op_id = 'op_2' WHERE op_id = 'op_1'",
                "after op_2 is not recorded in row 3",
            ),
            (
                "INSERT INTO core_states_after VALUES ('op_3', 'env_k', 'C', 4)",
                "after op_3 is not recorded in row 4",
            ),
        ] {
            let (_place, session) = story();
            next(&session, "kk", 2);
            tamper(&session, sql);
            let found = faults(&session);
            assert!(found.iter().any(|fault| fault.contains(says)), "{sql}: {found:?}");
            // A row that comes later does not cover it up.
            next(&session, "k", 9);
            let found = faults(&session);
            assert!(found.iter().any(|fault| fault.contains(says)), "{sql}: {found:?}");
        }
    }

    #[test]
    fn a_changed_event_breaks_the_chain() {
        let (_place, session) = story();
        next(&session, "k", 2);
        disarm(&session);
        tamper(
            &session,
            "UPDATE core_states_after SET state = 'X' WHERE op_id = 'op_1';
             UPDATE core_operations SET events = replace(events, '\"B\"', '\"X\"') WHERE seq = 3",
        );
        rearm(&session);
        let broken = verify(&session, None).unwrap();
        assert_eq!((broken.seq, broken.what.as_str()), (3, "the row was changed"));
    }

    #[test]
    fn states_of_earlier_versions_are_taken_in_by_and_by_and_pruned_rows_are_no_fault() {
        let (_place, session) = ledger(&"k".repeat(70));
        session.begin_write().unwrap();
        for number in 0..70 {
            session
                .work_trees()
                .note_state_after("env_k", &format!("op_{number}"), &seen("A"))
                .unwrap();
        }
        session.commit().unwrap();
        // An old row outside of the envelope takes the first of them, and goes.
        next(&session, "o", 70);
        assert_eq!(session.work_trees().unchained_states().unwrap().len(), 6);
        next(&session, "y", 71);
        assert_eq!(session.work_trees().unchained_states().unwrap(), []);
        assert_eq!(faults(&session), [] as [String; 0]);
        assert_eq!(prune(&session, 10).unwrap().rows_outside, 1);
        assert_eq!(faults(&session), [] as [String; 0]);
    }
}
