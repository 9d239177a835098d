//! Lookup of a ledger row by its id, for components that know the id of an operation.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::engine::sql;
use super::error::StoreResult;
use super::handles::{Evidence, Operations};
use super::operations::{OperationFilter, StoredOperation};

/// A row with the counters of its envelope at the time of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundOperation {
    /// The row.
    pub operation: StoredOperation,
    /// Number of mutations in its envelope, including the call. Absent outside envelopes.
    pub mutations: Option<u64>,
    /// Number of edits of work trees that its envelope had counted.
    pub edits: Option<u64>,
}

/// States of a work tree to which the tests of an operation apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestedStates {
    /// Workspace of the work tree, while its envelope exists.
    pub workspace: Option<String>,
    /// State before the operation, the state with untracked files from its tests, and the states that `write` calls
    /// of the requesting pack derived from these. Empty if there was no scan.
    pub states: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Counters {
    mutations: u64,
    #[serde(default)]
    edits: u64,
}

impl Operations<'_> {
    /// Operation with an id. `None` if it was pruned or never existed.
    pub fn find(self, op_id: &str) -> StoreResult<Option<FoundOperation>> {
        let found: Option<(i64, Option<String>)> = self.0.engine.maybe(
            "SELECT seq, counters FROM core_operations WHERE op_id = ?1",
            sql![op_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let Some((seq, counters)) = found else {
            return Ok(None);
        };
        let filter = OperationFilter {
            after: Some(seq.saturating_sub(1)),
            before: Some(seq.saturating_add(1)),
            ..OperationFilter::default()
        };
        let operation = self.list(&filter, 1)?.into_iter().next();
        let counters = counters.and_then(|json| serde_json::from_str::<Counters>(&json).ok());
        Ok(operation.map(|operation| FoundOperation {
            operation,
            mutations: counters.as_ref().map(|counters| counters.mutations),
            edits: counters.as_ref().map(|counters| counters.edits),
        }))
    }
}

impl Evidence<'_> {
    /// States of the work tree to which the tests of an operation apply, for a pack that knows its own writes. States
    /// with an edit during the tests are left out.
    pub fn tested_states(self, op_id: &str, pack: &str) -> StoreResult<TestedStates> {
        let row: Option<(Option<String>, Option<String>)> = self.0.engine.maybe(
            "SELECT envelope_id, repo_before_hash FROM core_operations WHERE op_id = ?1",
            sql![op_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let Some((Some(envelope), Some(before))) = row else {
            return Ok(TestedStates::default());
        };
        let workspace = self.0.work_trees().workspace_of_state(&envelope, &before)?;
        let mut states = BTreeSet::from([before]);
        if let Some(workspace) = &workspace {
            self.add_states_since((&envelope, workspace, op_id, pack), &mut states)?;
        }
        Ok(TestedStates { workspace, states })
    }

    /// Adds the states that the operation's tests led to, and those that only `write` calls of a pack derived from
    /// them.
    fn add_states_since(
        self,
        (envelope, workspace, op_id, pack): (&str, &str, &str, &str),
        states: &mut BTreeSet<String>,
    ) -> StoreResult<()> {
        let sql = "SELECT seen.state, seen.cause = 'test_run' AND seen.op_id = ?3,
                 seen.cause = 'call' AND coalesce(by.effect = 'write' AND by.pack = ?4, FALSE)
             FROM core_work_tree_states AS seen LEFT JOIN core_operations AS by ON by.op_id = seen.op_id
             WHERE seen.envelope_id = ?1 AND seen.workspace = ?2 ORDER BY seen.id";
        let mut is_tested = false;
        let values = sql![envelope, workspace, op_id, pack];
        self.0.engine.each(sql, values, |row| {
            let (state, by_tests, by_write): (String, bool, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            is_tested = by_tests || states.contains(&state) || (is_tested && by_write);
            if is_tested {
                states.insert(state);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::effect::Effect;

    use super::super::fixture::{self, NOW, operation};
    use super::super::work_trees::{Cause, Sighting};
    use super::*;

    #[test]
    fn an_operation_is_found_by_its_id_alone() {
        let (_dir, session) = fixture::ledger("");
        session.begin_write().unwrap();
        session.ledger().record(&operation(1, None, NOW)).unwrap();
        let mut counted = operation(2, Some("env_1"), NOW);
        counted.counters = Some(r#"{"mutations": 3, "test_runs": 1, "edits": 2}"#.to_owned());
        session.ledger().record(&counted).unwrap();
        session.commit().unwrap();
        let found = session.operations().find("op_2").unwrap().unwrap();
        assert_eq!(
            (found.operation.op_id.as_str(), found.mutations, found.edits),
            ("op_2", Some(3), Some(2))
        );
        assert_eq!(
            session.operations().find("op_1").unwrap().unwrap().mutations,
            None
        );
        for unknown in ["op_", "op_9", "", "%"] {
            assert_eq!(session.operations().find(unknown).unwrap(), None);
        }
    }

    #[test]
    fn tests_speak_for_the_state_before_what_they_left_and_what_granted_writes_made_of_it() {
        let (_dir, session) = fixture::writing_in("env_1");
        let mut run = operation(1, Some("env_1"), NOW);
        run.repo_before_hash = Some("A".to_owned());
        session.ledger().record(&run).unwrap();
        for (number, pack, effect) in [
            (2, "pack", Effect::Write),
            (3, "pack", Effect::Run),
            (4, "other", Effect::Write),
        ] {
            let mut other = operation(number, Some("env_1"), NOW);
            (other.pack, other.effect) = (pack.to_owned(), effect);
            session.ledger().record(&other).unwrap();
        }
        let notes = [
            ("0", Cause::Opened, "op_0"),
            ("A", Cause::Observed, "op_1"),
            ("B", Cause::TestRun, "op_1"),
            ("C", Cause::Call, "op_2"),
            ("D", Cause::Call, "op_3"),
            ("E", Cause::Call, "op_2"),
            ("B", Cause::Observed, "op_3"),
            ("H", Cause::Call, "op_4"),
            ("A", Cause::Observed, "op_3"),
            ("F", Cause::Call, "op_2"),
            ("G", Cause::Observed, "op_2"),
        ];
        for ((state, cause, op_id), looked_boot_ms) in notes.into_iter().zip(1..) {
            let seen = Sighting {
                workspace: "one".to_owned(),
                state: state.to_owned(),
                looked_boot_ms,
                ..Sighting::default()
            };
            session
                .work_trees()
                .note_sighting("env_1", &seen, cause, op_id, NOW)
                .unwrap();
        }
        session.commit().unwrap();
        let tested = session.evidence().tested_states("op_1", "pack").unwrap();
        assert_eq!(tested.workspace.as_deref(), Some("one"));
        assert_eq!(tested.states.into_iter().collect::<String>(), "ABCF");
        for unseen in ["op_2", "op_gone"] {
            assert_eq!(
                session.evidence().tested_states(unseen, "pack").unwrap(),
                TestedStates::default()
            );
        }
    }
}
