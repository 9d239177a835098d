use tollgate_core::envelope::{Charge, Refusal, State};

use super::super::Admission;
use super::super::fixture::{self, NOW, Place, envelope};
use super::super::session::Session;
use super::*;

fn seen(workspace: &str, state: &str, looked_boot_ms: i64) -> Sighting {
    Sighting {
        workspace: workspace.to_owned(),
        state: format!("{workspace}-{state}"),
        looked_boot_ms,
        ..Sighting::default()
    }
}

fn session(max_edits: Option<i64>) -> (Place, Session) {
    let (place, database) = fixture::database();
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    let around = envelope("env_around", None);
    session.envelopes().open(&around).unwrap();
    let mut inner = envelope("env_in", None);
    inner.parent = Some("env_around".to_owned());
    inner.standing.limits.max_edits = max_edits;
    session.envelopes().open(&inner).unwrap();
    (place, session)
}

fn admit(session: &Session, sighting: &Sighting) -> Result<i64, Refusal> {
    let admission = session
        .envelopes()
        .admit_seeing("env_in", Charge::TestRun, 0, NOW, Some((sighting, "op_1")))
        .unwrap();
    match admission {
        Admission::Admitted(admitted) => Ok(admitted.standing.edits),
        Admission::Refused { refusal, .. } => Err(refusal),
        Admission::Unknown => unreachable!(),
    }
}

#[test]
fn states_that_no_call_made_are_edits_by_workspace() {
    let (_place, session) = session(None);
    session
        .work_trees()
        .note_baseline("env_in", &seen("one", "A", 1), "op_0", NOW)
        .unwrap();
    let mut counted = Vec::new();
    for (workspace, state, at) in [
        ("one", "A", 2),
        ("one", "B", 3),
        ("other", "X", 4),
        ("one", "B", 5),
        // It began before the last one, and says nothing.
        ("one", "A", 4),
        ("other", "Y", 6),
        ("one", "A", 7),
    ] {
        counted.push(admit(&session, &seen(workspace, state, at)).unwrap());
    }
    assert_eq!(counted, [0, 1, 1, 1, 1, 2, 3]);
    let one = session.work_trees().progress("env_in", "one").unwrap().unwrap();
    assert_eq!((one.edits, one.observed_edits, one.oscillation), (2, 2, Some(2)));
    assert!(one.has_baseline);
    let other = session.work_trees().progress("env_in", "other").unwrap().unwrap();
    assert_eq!(
        (other.edits, other.oscillation, other.has_baseline),
        (1, None, false)
    );
    assert_eq!(session.work_trees().progress("env_in", "third").unwrap(), None);
    let around = session.envelopes().get("env_around").unwrap().unwrap();
    assert_eq!(
        around.standing.edits, 3,
        "its baseline is the first call of the part"
    );
    let opened = session.envelopes().get("env_in").unwrap().unwrap();
    assert_eq!(opened.index_version, Some(1));
}

#[test]
fn a_look_at_closing_counts_within_the_limit_and_leaves_the_edit_to_windows() {
    let (_place, session) = session(Some(1));
    session
        .work_trees()
        .note_baseline("env_in", &seen("one", "A", 1), "op_0", NOW)
        .unwrap();
    let close = |state: &str, at: i64| {
        let found = session
            .work_trees()
            .see_at_closing("env_in", &seen("one", state, at), "op_9", NOW);
        let edits = session.envelopes().standing("env_in").unwrap().unwrap().edits;
        (found.unwrap(), edits)
    };
    assert_eq!(close("A", 2), (true, 0));
    assert_eq!(close("B", 3), (true, 1));
    assert_eq!(close("C", 4), (false, 1), "one more than the limit is not noted");
    assert_eq!(
        session
            .work_trees()
            .edits_over_envelopes(&seen("one", "B", 5))
            .unwrap(),
        1
    );
}

#[test]
fn changes_by_calls_and_by_test_runs_are_not_observed() {
    let (_place, session) = session(None);
    admit(&session, &seen("one", "A", 1)).unwrap();
    for (state, cause, at) in [("B", Cause::TestRun, 2), ("C", Cause::Call, 3)] {
        let after = seen("one", state, at);
        session
            .work_trees()
            .note_sighting_around("env_in", &after, cause, "op_2", NOW)
            .unwrap();
        assert_eq!(admit(&session, &after), Ok(0));
    }
    let progress = session
        .work_trees()
        .progress("env_around", "one")
        .unwrap()
        .unwrap();
    assert_eq!((progress.edits, progress.observed_edits), (1, 0));
}

#[test]
fn the_edit_past_the_limit_closes_the_envelope_and_does_not_count() {
    let (_place, session) = session(Some(2));
    for (state, at) in [("A", 1), ("B", 2), ("C", 3)] {
        admit(&session, &seen("one", state, at)).unwrap();
    }
    assert_eq!(
        admit(&session, &seen("one", "D", 4)),
        Err(Refusal::Edits { limit: 2 })
    );
    let closed = session.envelopes().get("env_in").unwrap().unwrap();
    assert_eq!(closed.standing.state, State::ClosedFailed);
    assert_eq!(closed.standing.edits, 2);
    assert_eq!(closed.closed_by.as_deref(), Some("EDIT_BUDGET_EXHAUSTED"));
    assert_eq!(
        admit(&session, &seen("one", "D", 5)),
        Err(Refusal::Closed(State::ClosedFailed))
    );
}
