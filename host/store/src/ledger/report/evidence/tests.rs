//! Edits after the runs of a test, by the states of its work tree.

use tollgate_core::effect::Effect;

use super::*;
use crate::storage::fixture::{self, NOW};
use crate::storage::{Cause, Sighting, TestRun};

/// Contents of a state that has these files beside its commit.
fn differs(state: &str) -> String {
    let file = serde_json::json!({"n": ["100644", state], "h": null});
    serde_json::json!({"files": {"stamp": file, "same": {"n": null, "h": null}}}).to_string()
}

/// Edits after a run of test `default` that passed in the first state and left `after`. Each other state has its cause:
/// `o` observed, `t` left by the run. The last one is the present one.
fn edits(after: &str, states: &[(&str, char)]) -> Vec<Untested> {
    let (_dir, session) = fixture::writing_in("env_1");
    let note = |state: &str, cause: Cause, op_id: &str, at: usize| {
        let seen = Sighting {
            workspace: "shop".to_owned(),
            state: state.to_owned(),
            differs: Some(differs(state)),
            looked_boot_ms: i64::try_from(at).unwrap(),
            ..Sighting::default()
        };
        session
            .work_trees()
            .note_sighting("env_1", &seen, cause, op_id, NOW)
            .unwrap();
    };
    session
        .ledger()
        .record(&fixture::operation(1, Some("env_1"), NOW))
        .unwrap();
    note("A", Cause::Opened, "op_1", 1);
    let mut run = fixture::operation(2, Some("env_1"), NOW);
    (run.effect, run.workspace) = (Effect::Run, Some("shop".to_owned()));
    (run.repo_before_hash, run.repo_after_hash) = (Some("A".to_owned()), Some(after.to_owned()));
    let outcome = StoredTestOutcome {
        runs: vec![TestRun {
            workspace: "shop".to_owned(),
            test: "default".to_owned(),
            result: Ran::Passed,
        }],
        ..StoredTestOutcome::default()
    };
    run.outcome = serde_json::to_string(&outcome).ok();
    session.ledger().record(&run).unwrap();
    for (at, (state, cause)) in states.iter().enumerate() {
        match cause {
            't' => note(state, Cause::TestRun, "op_2", at + 2),
            // The closing has no row yet.
            _ => note(state, Cause::Observed, "op_9", at + 2),
        }
    }
    session.commit().unwrap();
    let now = session.evidence().newest_states("env_1").unwrap();
    let runs = newest_runs("env_1", &session.evidence().test_rows("env_1").unwrap(), &now);
    untested(&session, "env_1", &runs).unwrap()
}

#[test]
fn an_edit_that_was_taken_back_is_none() {
    assert_eq!(edits("A", &[("B", 'o')])[0].edits, 1);
    assert_eq!(edits("A", &[("B", 'o'), ("C", 'o')])[0].edits, 2);
    assert_eq!(edits("A", &[("B", 'o'), ("A", 'o')]), []);
    // Back to what the run left behind.
    assert_eq!(edits("B", &[("B", 't')]), []);
    assert_eq!(edits("B", &[("B", 't'), ("C", 'o'), ("B", 'o')]), []);
    assert_eq!(edits("B", &[("B", 't'), ("C", 'o')])[0].in_run, None);
}

#[test]
fn files_that_changed_while_tests_ran_are_named_as_such() {
    let found = edits("B", &[("B", 'o')]);
    assert_eq!(found[0].in_run.as_deref(), Some(&["stamp".to_owned()][..]));
    assert_eq!(
        doubts(&[], &found, Some("shop")),
        [
            "files of shop changed while test default ran (#2): stamp; let Git ignore files that tests write, or have the \
          tests restore them"
        ]
    );
    // Somebody put them back: the run passed with other files than those that are there now.
    let back = edits("B", &[("B", 'o'), ("A", 'o')]);
    assert_eq!(back[0].in_run.as_deref(), Some(&["stamp".to_owned()][..]));
    // An edit after the run.
    assert_eq!(edits("B", &[("B", 'o'), ("C", 'o')])[0].in_run, None);
}
