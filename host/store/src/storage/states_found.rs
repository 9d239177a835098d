//! States of work trees as calls found them. The next row of the ledger adds each of them to the chain, as an event
//! with a hash, so that later changes to the table are detected.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_core::hash;

use super::engine::{Dialects, Once, Row, sql};
use super::error::StoreResult;
use super::handles::WorkTrees;
use super::unchained::{MAX_OF_ROW, chain};

/// Event type for a state. Components' events have no field `op_id`.
const STATE_FOUND_EVENT: &str = "work_tree.state";

/// Columns that [`FoundState::read`] reads.
const COLUMNS: &str = "id, envelope_id, op_id, workspace, state, git_head, differs, cause, seen_at";

/// A state with a hash over its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundState {
    id: i64,
    envelope_id: String,
    op_id: String,
    state: String,
    hash: String,
}

/// A state in an event.
#[derive(Debug)]
struct Told {
    seq: i64,
    envelope_id: String,
    hash: String,
}

impl FoundState {
    fn read(row: &Row<'_>) -> StoreResult<FoundState> {
        let text = |column: usize| row.get::<Option<String>>(column);
        let differs = text(6)?.map(|differs| hash::sha256_hex(differs.as_bytes()));
        let content = json!([
            text(1)?,
            text(2)?,
            text(3)?,
            text(4)?,
            text(5)?,
            differs,
            text(7)?,
            text(8)?
        ]);
        Ok(FoundState {
            id: row.get(0)?,
            envelope_id: row.get(1)?,
            op_id: row.get(2)?,
            state: row.get(4)?,
            hash: hash::sha256_hex(content.to_string().as_bytes()),
        })
    }
}

/// Events of the row that adds states to the chain.
pub(super) fn events(states: &[FoundState]) -> Vec<Value> {
    let event = |one: &FoundState| {
        json!({
            "type": STATE_FOUND_EVENT,
            "envelope_id": one.envelope_id,
            "op_id": one.op_id,
            "number": one.id,
            "hash": one.hash,
        })
    };
    states.iter().map(event).collect()
}

impl WorkTrees<'_> {
    /// States that are not in the chain yet, and that no other transaction is about to add.
    pub(super) fn unchained_finds(self) -> StoreResult<Vec<FoundState>> {
        let unless_taken = self.0.engine.text(Dialects {
            sqlite: "",
            postgres: "FOR UPDATE SKIP LOCKED",
        });
        let sql = format!(
            "SELECT {COLUMNS} FROM core_work_tree_states WHERE chained_seq IS NULL ORDER BY id LIMIT ?1 {unless_taken}"
        );
        self.0.engine.all(&sql, sql![MAX_OF_ROW], FoundState::read)
    }

    /// Stores the row that holds states.
    pub(super) fn chain_finds(self, states: &[FoundState], seq: i64) -> StoreResult<()> {
        let sql = "UPDATE core_work_tree_states SET chained_seq = ?2 WHERE id = ?1";
        let keys: Vec<i64> = states.iter().map(|one| one.id).collect();
        chain(&self.0.engine, sql, &keys, seq)
    }

    /// States that differ from the ledger's rows, one message each.
    pub(super) fn faults_of_finds(self) -> StoreResult<Vec<String>> {
        let mut told = self.told_finds()?;
        let mut faults = Vec::new();
        let sql = format!(
            "SELECT {COLUMNS}, chained_seq,
                EXISTS (SELECT 1 FROM core_anchors WHERE chained_seq BETWEEN first_seq AND last_seq)
            FROM core_work_tree_states ORDER BY id"
        );
        self.0.engine.each(Once(&sql), &[], |row| {
            let found = FoundState::read(row)?;
            let (chained, is_pruned): (Option<i64>, bool) = (row.get(9)?, row.get(10)?);
            let FoundState { id, op_id, .. } = &found;
            match (told.remove(id), chained) {
                (Some(told), _) if told.hash != found.hash => faults.push(format!(
                    "state {id} of a work tree (found by {op_id}) does not match row {}: the state was changed",
                    told.seq
                )),
                (None, Some(seq)) if !is_pruned => faults.push(format!(
                    "state {id} of a work tree (found by {op_id}) is not recorded in row {seq}: the state was added or changed"
                )),
                (_, Some(seq)) if !is_pruned && !self.has_call_of(&found, seq)? => faults.push(format!(
                    "state {id} of a work tree is not among those that {op_id} found: the state was added to the database"
                )),
                _ => {}
            }
            Ok(())
        })?;
        // Pruning removes states with their envelope.
        let sql = "SELECT 1 FROM core_envelopes WHERE id = ?1";
        let mut kept = self.0.engine.prepare(Once(sql))?;
        for (id, told) in told {
            if kept.exists(sql![told.envelope_id])? {
                faults.push(format!(
                    "state {id} of a work tree in envelope {}, which row {} records, was removed",
                    told.envelope_id, told.seq
                ));
            }
        }
        Ok(faults)
    }

    /// True if the ledger has the call that found a state, or may have had it: the call is running, or its row was
    /// pruned. The row of the call does not precede the one with the state.
    fn has_call_of(self, found: &FoundState, seq: i64) -> StoreResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM core_operations WHERE op_id = ?1
                AND (?2 IN (repo_before_hash, repo_after_hash,
                        (SELECT state FROM core_states_after WHERE op_id = ?1))
                    OR (tool = 'envelope_close' AND instr(events, '\"state\":\"' || ?2 || '\"') > 0)))
            OR EXISTS (SELECT 1 FROM core_intents WHERE op_id = ?1)
            OR (NOT EXISTS (SELECT 1 FROM core_operations WHERE op_id = ?1)
                AND EXISTS (SELECT 1 FROM core_anchors WHERE last_seq >= ?3))";
        self.0
            .engine
            .one(sql, sql![found.op_id, found.state, seq], |row| row.get(0))
    }

    /// States in rows, by number. If there are several, the first counts.
    fn told_finds(self) -> StoreResult<BTreeMap<i64, Told>> {
        let mut told = BTreeMap::new();
        self.0.ledger().each_event(STATE_FOUND_EVENT, |seq, event| {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            if let Some(number) = event["number"].as_i64() {
                told.entry(number).or_insert_with(|| Told {
                    seq,
                    envelope_id: text("envelope_id"),
                    hash: text("hash"),
                });
            }
        })?;
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sighting;
    use super::super::engine::sql;
    use super::super::fixture::{
        self, NOW, Place, change, disarm, faults, ledger, next, operation, prune, rearm, verify,
    };
    use super::super::session::Session;
    use super::super::work_trees::Cause;

    fn seen(state: &str, looked_boot_ms: i64) -> Sighting {
        Sighting {
            differs: Some("{\"files\":{}}".to_owned()),
            ..fixture::seen(state, looked_boot_ms)
        }
    }

    /// Rows of an open envelope, each of a call that found another state of the work tree.
    fn story(states: &[&str]) -> (Place, Session) {
        let (place, session) = ledger("");
        session.begin_write().unwrap();
        for (number, state) in states.iter().enumerate() {
            find(&session, number, state);
        }
        session.commit().unwrap();
        (place, session)
    }

    fn find(session: &Session, number: usize, state: &str) {
        let mut row = operation(number, Some("env_k"), NOW);
        row.repo_before_hash = Some(state.to_owned());
        let at = i64::try_from(number).unwrap();
        session
            .work_trees()
            .note_sighting("env_k", &seen(state, at), Cause::Observed, &row.op_id, NOW)
            .unwrap();
        session.ledger().record(&row).unwrap();
    }

    #[test]
    fn the_next_row_holds_a_state() {
        let (_place, session) = story(&["A", "B", "A"]);
        // The first row of the transaction took the first of them.
        assert_eq!(session.work_trees().unchained_finds().unwrap().len(), 2);
        assert_eq!(faults(&session), [] as [String; 0]);
        next(&session, "k", 9);
        assert_eq!(session.work_trees().unchained_finds().unwrap(), []);
        let told = session.work_trees().told_finds().unwrap();
        let rows: Vec<i64> = told.values().map(|told| told.seq).collect();
        assert_eq!(rows, [1, 4, 4]);
        assert_eq!(faults(&session), [] as [String; 0]);
        // Another scan of the same state does not change it.
        session.begin_write().unwrap();
        session
            .work_trees()
            .note_sighting("env_k", &seen("A", 50), Cause::Observed, "op_9", NOW)
            .unwrap();
        session.commit().unwrap();
        assert_eq!(faults(&session), [] as [String; 0]);
    }

    #[test]
    fn changed_removed_and_added_states_are_found() {
        let set = "UPDATE core_work_tree_states SET";
        let changed = "state 2 of a work tree (found by op_1) does not match row 4";
        for (sql, says) in [
            (format!("{set} state = 'A' WHERE id = 2"), changed),
            (format!("{set} cause = 'test_run' WHERE id = 2"), changed),
            (format!("{set} differs = NULL WHERE id = 2"), changed),
            (format!("{set} seen_at = '2020' WHERE id = 2"), changed),
            (
                format!("{set} git_head = 'x', chained_seq = NULL WHERE id = 2"),
                changed,
            ),
            (format!("{set} workspace = 'two' WHERE id = 2"), changed),
            (
                format!("{set} op_id = 'op_7' WHERE id = 2"),
                "(found by op_7) does not match row 4",
            ),
            (
                format!("{set} id = 8 WHERE id = 2"),
                "state 8 of a work tree (found by op_1) is not recorded in row 4",
            ),
            (
                "DELETE FROM core_work_tree_states WHERE id = 2".to_owned(),
                "state 2 of a work tree in envelope env_k, which row 4 records, was removed",
            ),
            (
                "DELETE FROM core_work_tree_states".to_owned(),
                "state 3 of a work tree in envelope env_k",
            ),
        ] {
            let (_place, session) = story(&["A", "B", "A"]);
            next(&session, "k", 9);
            change(&session, &sql).unwrap();
            let found = faults(&session);
            assert!(found.iter().any(|fault| fault.contains(says)), "{sql}: {found:?}");
            // A row that comes later does not cover it up.
            next(&session, "k", 10);
            let found = faults(&session);
            assert!(found.iter().any(|fault| fault.contains(says)), "{sql}: {found:?}");
        }
    }

    #[test]
    fn a_state_that_no_call_found_is_added() {
        for (op_id, state) in [("op_77", "Z"), ("op_1", "Z"), ("op_9", "A")] {
            let (_place, session) = story(&["A", "B", "A"]);
            let sql = "INSERT INTO core_work_tree_states
                (envelope_id, workspace, state, cause, op_id, seen_at, looked_boot_ms)
                VALUES ('env_k', 'one', ?1, 'observed', ?2, '2026', 99)";
            session.engine.run(sql, sql![state, op_id]).unwrap();
            next(&session, "k", 9);
            let found = faults(&session);
            let says = format!(
                "state 4 of a work tree is not among those that {op_id} found: the state was added to the database"
            );
            assert_eq!(found, [says]);
        }
    }

    #[test]
    fn a_changed_event_breaks_the_chain() {
        let (_place, session) = story(&["A"]);
        disarm(&session);
        change(
            &session,
            "UPDATE core_work_tree_states SET state = 'X';
             UPDATE core_operations SET events = NULL WHERE seq = 1",
        )
        .unwrap();
        rearm(&session);
        let broken = verify(&session, None).unwrap();
        assert_eq!((broken.seq, broken.what.as_str()), (1, "the row was changed"));
    }

    #[test]
    fn a_running_call_and_pruned_rows_are_no_faults() {
        let (_place, session) = story(&["A"]);
        // A call that began before has no row yet.
        let running = operation(7, Some("env_k"), NOW);
        session.begin_write().unwrap();
        session.intents().insert(&running).unwrap();
        session
            .work_trees()
            .note_sighting("env_k", &seen("B", 5), Cause::Observed, "op_7", NOW)
            .unwrap();
        session.commit().unwrap();
        // An old row outside of the envelope takes the state, and goes.
        next(&session, "o", 10);
        next(&session, "y", 11);
        assert_eq!(faults(&session), [] as [String; 0]);
        assert_eq!(prune(&session, 10).unwrap().rows_outside, 1);
        assert_eq!(faults(&session), [] as [String; 0]);
    }
}
