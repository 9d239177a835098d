//! Leases: their ends by time, by events and with a connection.

use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, call_tool, ok, refused};
use crate::offers::probe;

const CLOSE: &str =
    r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "actor": "bob"}"#;

/// A session in which ann holds the first step.
fn held(more: &str) -> Session {
    let session = after(&[THREE_STEPS]);
    session.set_connection(Some("conn_ann"));
    ok(
        &session,
        &format!(r#"step_claim {{"task": "TASK-001", "path": "s:0", "actor": "ann"{more}}}"#),
    );
    session.set_connection(Some("conn_bob"));
    session
}

fn is_free(session: &Session) -> bool {
    let line = r#"show {"task": "TASK-001", "path": "s:0"}"#;
    ok(session, line)["parts"][0]["facts"]["leased_to"].is_null()
}

#[test]
fn a_lease_ends_to_the_millisecond_with_its_time() {
    const MINUTE: i64 = 60_000;
    for (more, minutes) in [("", 120), (r#", "minutes": 7"#, 7)] {
        let session = held(more);
        // Each call takes a millisecond of the clock at most.
        session.advance_ms(minutes * MINUTE - 1_000 * 10);
        assert!(!is_free(&session), "{more}");
        assert_eq!(refused(&session, CLOSE).code, "STEP_LEASE_HELD");
        session.advance_ms(1_000 * 10);
        assert!(is_free(&session), "{more}");
        let taken = ok(&session, r#"take {"actor": "bob"}"#);
        assert_eq!(taken["step"]["path"], "s:0");
        ok(&session, CLOSE);
    }
}

#[test]
fn a_renewal_starts_the_time_again_and_a_late_one_is_refused() {
    const MINUTE: i64 = 60_000;
    let renew = r#"step_renew {"task": "TASK-001", "path": "s:0", "actor": "ann", "minutes": 10}"#;
    let session = held(r#", "minutes": 10"#);
    for _ in 0..3 {
        session.advance_ms(9 * MINUTE);
        ok(&session, renew);
    }
    session.advance_ms(11 * MINUTE);
    assert_eq!(refused(&session, renew).code, "STEP_LEASE_NOT_HELD");
}

#[test]
fn a_lease_ends_after_events_as_well() {
    let session = held(r#", "events": 2"#);
    let note = r#"note {"task": "TASK-001", "note": "n"}"#;
    ok(&session, note);
    assert!(!is_free(&session));
    ok(&session, note);
    assert!(is_free(&session));
}

#[test]
fn a_lease_ends_with_its_connection_if_asked() {
    for (more, is_bound) in [("", false), (r#", "until": "connection""#, true)] {
        let session = held(more);
        assert_eq!(refused(&session, CLOSE).code, "STEP_LEASE_HELD");
        session.end_connection("conn_bob");
        assert!(
            !is_free(&session),
            "the end of another one is none of its business"
        );
        session.end_connection("conn_ann");
        assert_eq!(is_free(&session), is_bound, "{more}");
        let next = ok(&session, r#"next {"owner": "bob"}"#);
        let path = if is_bound { "s:0" } else { "s:1" };
        assert_eq!(next["ready"][0]["step"]["path"], path);
    }
}

#[test]
fn a_renewal_moves_the_lease_to_the_connection_over_which_it_comes() {
    let session = held(r#", "until": "connection""#);
    session.set_connection(Some("conn_again"));
    ok(
        &session,
        r#"step_renew {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    );
    session.end_connection("conn_ann");
    assert!(!is_free(&session));
    session.end_connection("conn_again");
    assert!(is_free(&session));
}

#[test]
fn a_connection_that_does_not_last_holds_nothing() {
    let session = after(&[THREE_STEPS]);
    for tool in ["tasks_step_claim", "tasks_take"] {
        let mut arguments = json!({"actor": "ann", "until": "connection"});
        if tool == "tasks_step_claim" {
            arguments["task"] = json!("TASK-001");
            arguments["path"] = json!("s:0");
        }
        let err = call_tool(&session, tool, arguments).unwrap_err();
        assert_eq!(err.code, "INVALID_ARGUMENTS");
        assert!(
            err.message.starts_with("until is connection, but"),
            "{}",
            err.message
        );
    }
    assert!(is_free(&session));
    session.set_connection(Some("conn_ann"));
    ok(&session, r#"take {"actor": "ann", "until": "connection"}"#);
    // An undone release restores the lease, and its end.
    ok(
        &session,
        r#"step_release {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    );
    ok(&session, r#"undo {"task": "TASK-001", "actor": "ann"}"#);
    assert!(!is_free(&session));
    session.end_connection("conn_ann");
    assert!(is_free(&session));
}

#[test]
fn a_step_that_somebody_else_holds_is_not_deleted() {
    let session = held("");
    let plan = r#"{"title": "below", "plan": "PLAN-001", "steps": [{"title": "s"}]}"#;
    ok(&session, &format!("create {plan}"));
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "path": "s:1", "steps": [{"title": "below"}]}"#,
    );
    ok(
        &session,
        r#"step_claim {"task": "TASK-001", "path": "s:1.s:0", "actor": "cy"}"#,
    );
    for (line, holders) in [
        (r#"delete {"task": "TASK-001", "path": "s:0", "actor": "bob"}"#, 1),
        (r#"delete {"task": "TASK-001", "path": "s:0"}"#, 1),
        (r#"delete {"task": "TASK-001", "path": "s:1", "actor": "ann"}"#, 1),
        (r#"delete {"task": "TASK-001", "actor": "bob"}"#, 2),
        (r#"delete {"task": "PLAN-001", "actor": "ann"}"#, 1),
    ] {
        let err = refused(&session, line);
        assert_eq!(
            (err.code.as_str(), err.blockers.len()),
            ("STEP_LEASE_HELD", holders),
            "{line}"
        );
        assert_eq!(probe(&session, &json!(err)), Vec::<String>::new());
    }
    assert!(!is_free(&session));
    ok(
        &session,
        r#"delete {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    );
    // What nobody holds any more goes with its plan.
    session.advance_ms(200 * 60_000);
    ok(&session, r#"delete {"task": "PLAN-001", "actor": "bob"}"#);
}

#[test]
fn the_history_says_why_a_lease_was_taken_over() {
    let session = after(&[
        THREE_STEPS,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "actor": "bob", "force": true, "reason": "ann left"}"#,
        r#"define {"task": "TASK-001", "path": "s:1", "title": "changed"}"#,
    ]);
    let history = ok(&session, r#"history {"limit": 2}"#);
    let told = |place: usize| {
        history["operations"][place]["operation"]["summary"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(told(0), r#"set title of step "two" of TASK-001 to changed"#);
    assert!(
        told(1).ends_with(" to bob, taken from ann (ann left)"),
        "{}",
        told(1)
    );
}
