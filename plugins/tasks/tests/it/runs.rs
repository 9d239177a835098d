//! Operations of test runs as evidence: the ledger's word counts, the caller's does not.

use serde_json::{Value, json};
use tollgate_sdk::native::{EPOCH_MS, Session};
use tollgate_sdk::{Effect, FoundOperation, Operation, TestOutcome, TestResult, ToolError};

use crate::harness::{THREE, after, call_tool, ok, refused};
use crate::offers::probe;

/// A test run in the ledger, of an envelope that had counted some mutations.
fn run(op_id: &str, result: TestResult, envelope: Option<(&str, u64)>) -> FoundOperation {
    FoundOperation {
        operation: Operation {
            op_id: op_id.to_owned(),
            seq: 1_000,
            pack: "convergence".to_owned(),
            tool: "test_run".to_owned(),
            at_ms: EPOCH_MS + 3_600_000,
            success: Some(true),
            effect: Some(Effect::Run),
            envelope_id: envelope.map(|(id, _)| id.to_owned()),
            ..Operation::default()
        },
        tests: Some(TestOutcome {
            total: Some(14),
            failed: Some(u32::from(result == TestResult::Failed)),
            ..TestOutcome::new(result)
        }),
        mutations: envelope.map(|(_, mutations)| mutations),
        edits: envelope.map(|_| 0),
    }
}

/// A session an hour after its plan was made, at the time of the runs.
fn session(rule: &str, found: Vec<FoundOperation>) -> Session {
    let session = after(&[THREE]).config(&json!({"evidence": rule}));
    session.advance_ms(3_600_000);
    session.set_found(found);
    session
}

fn capture(session: &Session, op_id: &str) -> Result<Value, ToolError> {
    let arguments = json!({"task": "TASK-001", "path": "s:0", "items": [{"operation_id": op_id}]});
    let reply = call_tool(session, "tasks_evidence_capture", arguments)?;
    Ok(serde_json::from_str(&reply.structured).unwrap())
}

fn codes(reply: &Value) -> Vec<&str> {
    let warnings = reply["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| warning["code"].as_str().unwrap())
        .collect()
}

const CLOSE: &str = r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#;

#[test]
fn a_run_that_passed_proves_a_step_and_says_so() {
    for rule in ["optional", "required"] {
        let session = session(rule, vec![run("op_1", TestResult::Passed, None)]);
        let captured = capture(&session, "op_1").unwrap();
        assert_eq!(codes(&captured), [""; 0]);
        assert_eq!(captured["next_calls"][0]["tool"], "tasks_close_step");
        let shown = ok(&session, r#"show {"task": "TASK-001", "path": "s:0"}"#).to_string();
        assert!(
            shown.contains("\"operation\":\"op_1\"") && shown.contains("test_run passed, 14 tests"),
            "{shown}"
        );
        assert_eq!(codes(&ok(&session, CLOSE)), [""; 0]);
    }
}

#[test]
fn a_run_that_failed_or_is_older_than_a_change_proves_nothing() {
    let edit = r#"edit {"task": "TASK-001", "title": "changed since"}"#;
    for (result, changes, code) in [
        (TestResult::Failed, false, "FAILING_EVIDENCE"),
        (TestResult::NoTests, false, "FAILING_EVIDENCE"),
        (TestResult::TimedOut, false, "FAILING_EVIDENCE"),
        (TestResult::Passed, true, "STALE_EVIDENCE"),
    ] {
        for rule in ["optional", "required"] {
            let session = session(rule, vec![run("op_1", result, None)]);
            if changes {
                session.advance_ms(1_000);
                ok(&session, edit);
            }
            let captured = capture(&session, "op_1").unwrap();
            assert_eq!(captured["next_calls"][0]["tool"], "tasks_show", "{captured}");
            assert_eq!(probe(&session, &captured), Vec::<String>::new());
            if rule == "required" {
                let err = refused(&session, CLOSE);
                assert_eq!(err.code, "EVIDENCE_REQUIRED");
                assert_eq!(probe(&session, &json!(err)), Vec::<String>::new());
            } else {
                assert_eq!(codes(&ok(&session, CLOSE)), [code, code]);
            }
        }
    }
}

#[test]
fn what_is_no_run_of_the_ledger_is_refused_where_evidence_is_required_and_warned_about_elsewhere() {
    let mut other = run("op_edit", TestResult::Passed, None);
    other.operation.tool = "test_report".to_owned();
    let mut broken = run("op_gone", TestResult::Passed, None);
    broken.tests = None;
    let found = vec![other, broken];
    for (op_id, message) in [
        ("op_invented", "operation op_invented is not in the ledger"),
        ("op_edit", "operation op_edit is a test_report, not a test_run"),
        ("op_gone", "operation op_gone has no result"),
    ] {
        let strict = session("required", found.clone());
        let err = capture(&strict, op_id).unwrap_err();
        assert_eq!(
            (err.code.as_str(), err.message.as_str()),
            ("EVIDENCE_REQUIRED", message)
        );
        assert_eq!(probe(&strict, &json!(err)), Vec::<String>::new());
        let lax = session("optional", found.clone());
        let captured = capture(&lax, op_id).unwrap();
        assert_eq!(codes(&captured), ["UNKNOWN_RUN"]);
        assert_eq!(
            captured["next_calls"][0]["tool"], "tasks_show",
            "it proves nothing"
        );
        assert_eq!(codes(&ok(&lax, CLOSE)), ["UNKNOWN_RUN", "UNKNOWN_RUN"]);
    }
    // A claim beside the ledger's word is refused, and an unknown run outweighs no known one.
    let session = session("optional", vec![run("op_1", TestResult::Failed, None)]);
    let items = json!([{"operation_id": "op_1", "exit_code": 0}]);
    let claim = json!({"task": "TASK-001", "path": "s:0", "items": items});
    let err = call_tool(&session, "tasks_evidence_capture", claim).unwrap_err();
    assert_eq!(
        err.message,
        "items[0].exit_code is that of the operation and must be left out"
    );
    capture(&session, "op_1").unwrap();
    capture(&session, "op_invented").unwrap();
    assert_eq!(codes(&ok(&session, CLOSE)), ["FAILING_EVIDENCE"; 2]);
}

#[test]
fn in_an_envelope_changes_of_all_packs_and_edits_count_from_the_run_on() {
    let in_env = |mutations| vec![run("op_1", TestResult::Passed, Some(("env_1", mutations)))];
    let begin = |session: &Session| {
        session.set_envelope(Some("env_1"));
        session.mutate_elsewhere(5);
    };
    // At once: the notes of this pack in between are no changes.
    let fresh = session("required", in_env(5));
    begin(&fresh);
    ok(&fresh, r#"note {"task": "TASK-001", "note": "before"}"#);
    fresh.set_operations(vec![Operation {
        seq: 1_001,
        pack: "tasks".to_owned(),
        tool: "tasks_note".to_owned(),
        envelope_id: Some("env_1".to_owned()),
        effect: Some(Effect::Write),
        ..Operation::default()
    }]);
    capture(&fresh, "op_1").unwrap();
    ok(&fresh, CLOSE);
    // Another pack changed something after the run and before it was attached, or after that.
    for late in [false, true] {
        let stale = session("required", in_env(5));
        begin(&stale);
        if !late {
            stale.mutate_elsewhere(1);
        }
        capture(&stale, "op_1").unwrap();
        if late {
            stale.mutate_elsewhere(1);
        }
        let err = refused(&stale, CLOSE);
        let message = "criteria of step s:0 has evidence that is older than the last 1 changes";
        assert_eq!(err.blockers[0].message, message);
    }
    // Somebody edited a file without a call.
    let edited = session("required", in_env(5));
    begin(&edited);
    capture(&edited, "op_1").unwrap();
    edited.set_edits(1);
    assert_eq!(refused(&edited, CLOSE).code, "EVIDENCE_REQUIRED");
    // Another envelope does not know what changed since.
    let elsewhere = session("required", in_env(5));
    begin(&elsewhere);
    capture(&elsewhere, "op_1").unwrap();
    elsewhere.set_envelope(Some("env_2"));
    let err = refused(&elsewhere, CLOSE);
    let message = "criteria of step s:0 has evidence of op_1, which ran in another envelope";
    assert_eq!(err.blockers[0].message, message);
}

#[test]
fn a_step_that_was_closed_makes_its_run_too_old_for_the_next() {
    let session = session("required", vec![run("op_1", TestResult::Passed, None)]);
    capture(&session, "op_1").unwrap();
    session.advance_ms(1_000);
    ok(&session, CLOSE);
    let next = json!({"task": "TASK-001", "path": "s:1", "items": [{"operation_id": "op_1"}]});
    call_tool(&session, "tasks_evidence_capture", next).unwrap();
    let close = r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#;
    assert_eq!(refused(&session, close).code, "EVIDENCE_REQUIRED");
}
