//! Operations of test runs as evidence: the ledger's word counts, the caller's does not.

use serde_json::{Value, json};
use tollgate_sdk::native::{EPOCH_MS, Session};
use tollgate_sdk::{Effect, FoundOperation, Operation, TestOutcome, TestResult, TestedTree, ToolError};

use crate::harness::{THREE_STEPS, after, call_tool, ok, refused};
use crate::offers::probe;

/// A test run in the ledger, of an envelope that had counted some mutations.
pub(crate) fn run(op_id: &str, result: TestResult, envelope: Option<(&str, u64)>) -> FoundOperation {
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
    let session = after(&[THREE_STEPS]).config(&json!({"evidence": rule}));
    session.advance_ms(3_600_000);
    know(&session, found);
    session
}

/// Lets the ledger have runs, each on the work tree of now.
pub(crate) fn know(session: &Session, found: Vec<FoundOperation>) {
    for run in &found {
        session.set_tree(&run.operation.op_id, current());
    }
    session.set_found(found);
}

/// A work tree that has not changed since a run.
pub(crate) fn current() -> TestedTree {
    TestedTree {
        workspace: Some("w".to_owned()),
        unchanged: Some(true),
        looked: true,
        unseen: None,
    }
}

pub(crate) fn capture(session: &Session, op_id: &str) -> Result<Value, ToolError> {
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
        "items[0].exit_code is taken from the operation and must be omitted"
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
        let message = "checkpoint `criteria` of step s:0 has evidence that is older than the last change";
        assert_eq!(err.blockers[0].message, message);
    }
    // Somebody edited a file without a call.
    let edited = session("required", in_env(5));
    begin(&edited);
    capture(&edited, "op_1").unwrap();
    edited.set_edits(1);
    assert_eq!(refused(&edited, CLOSE).code, "EVIDENCE_REQUIRED");
    // Another envelope does not know what changed since, but the work tree tells.
    let elsewhere = |rule: &str| {
        let elsewhere = session(rule, in_env(5));
        begin(&elsewhere);
        capture(&elsewhere, "op_1").unwrap();
        elsewhere.set_envelope(Some("env_2"));
        elsewhere
    };
    ok(&elsewhere("required"), CLOSE);
    assert_eq!(codes(&ok(&elsewhere("optional"), CLOSE)), ["STALE_EVIDENCE"; 2]);
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

/// Reasons of a refused call.
fn reasons(session: &Session, line: &str) -> Vec<String> {
    let err = refused(session, line);
    assert_eq!(err.code, "EVIDENCE_REQUIRED", "{line}: {err:?}");
    assert_eq!(probe(session, &json!(err)), Vec::<String>::new());
    let blockers = err.blockers.into_iter();
    blockers.map(|blocker| blocker.message).collect()
}

const TYPED: &str = r#"evidence_capture {"task": "TASK-001", "path": "s:0", "items": [
    {"kind": "cmd_output", "title": "cargo test", "exit_code": 0, "body": "14 passed"}]}"#;

#[test]
fn what_a_caller_types_is_kept_as_stated_and_proves_nothing_where_evidence_is_required() {
    let strict = session("required", vec![run("op_1", TestResult::Passed, None)]);
    let typed = ok(&strict, TYPED);
    assert_eq!(codes(&typed), ["STATED_EVIDENCE"]);
    assert_eq!(typed["next_calls"][0]["tool"], "tasks_show");
    for line in [
        CLOSE,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "all"}"#,
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": true, "force": true, "reason": "trust me"}"#,
        r#"batch {"operations": [{"tool": "tasks_close_step", "args":
            {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}}], "atomic": true}"#,
    ] {
        let err = refused(&strict, line);
        let said: Vec<String> = err.blockers.into_iter().map(|blocker| blocker.message).collect();
        // A batch says first which operation failed.
        assert!(said.len() >= 2, "{line}: {said:?}");
        assert!(
            said.iter()
                .all(|said| said.contains("has only evidence that is not from test_run: ")),
            "{said:?}"
        );
    }
    let shown = ok(&strict, r#"show {"task": "TASK-001", "path": "s:0"}"#).to_string();
    assert!(shown.contains(r#""stated":true"#), "{shown}");
    // A run counts beside it, wherever it stands, unless something failed after it.
    capture(&strict, "op_1").unwrap();
    ok(&strict, TYPED);
    ok(&strict, CLOSE);
    ok(&strict, "undo {}");
    let failed = TYPED.replace(r#""exit_code": 0"#, r#""exit_code": 3"#);
    ok(&strict, &failed);
    assert!(reasons(&strict, CLOSE)[0].contains("has exit code 3"));
    // Elsewhere it counts as before.
    let lax = session("optional", Vec::new());
    assert_eq!(codes(&ok(&lax, TYPED)), [""; 0]);
    ok(&lax, CLOSE);
}

#[test]
fn a_run_proves_only_the_work_tree_on_which_it_tested_something() {
    let other = |change: fn(&mut TestedTree)| {
        let mut tree = current();
        change(&mut tree);
        tree
    };
    let moved = other(|tree| tree.unchanged = Some(false));
    let unknown = other(|tree| {
        (tree.unchanged, tree.looked) = (None, false);
        tree.unseen = Some("it ran outside of envelopes".to_owned());
    });
    let unlooked = other(|tree| {
        tree.looked = false;
        tree.unseen = Some("Git failed".to_owned());
    });
    let elsewhere = other(|tree| (tree.workspace, tree.unchanged) = (Some("x".to_owned()), Some(false)));
    let run = || vec![run("op_1", TestResult::Passed, None)];
    for (tree, fault) in [
        (&moved, "op_1, which ran before the work tree changed"),
        (
            &unlooked,
            "op_1, which cannot be compared with the work tree: Git failed",
        ),
        (
            &unknown,
            "op_1, which cannot be compared with the work tree: it ran outside of envelopes",
        ),
        (&elsewhere, "op_1, which ran in workspace x"),
    ] {
        // It was attached while it proved the step.
        let strict = session("required", run());
        capture(&strict, "op_1").unwrap();
        strict.set_tree("op_1", tree.clone());
        let expected = format!("checkpoint `criteria` of step s:0 has evidence of {fault}");
        assert_eq!(reasons(&strict, CLOSE)[0], expected);
    }
    for (tree, fault) in [
        (
            &unknown,
            "cannot be compared with the work tree: it ran outside of envelopes",
        ),
        (&elsewhere, "ran in workspace x"),
    ] {
        let strict = session("required", run());
        strict.set_tree("op_1", tree.clone());
        assert_eq!(
            capture(&strict, "op_1").unwrap_err().message,
            format!("operation op_1 {fault}")
        );
    }
    let lax = session("optional", run());
    lax.set_tree("op_1", elsewhere);
    assert_eq!(codes(&capture(&lax, "op_1").unwrap()), ["UNKNOWN_RUN"]);
    for total in [None, Some(0)] {
        let mut empty = run();
        empty[0].tests.as_mut().unwrap().total = total;
        let strict = session("required", empty);
        let message = "operation op_1 ran no tests, as far as its output shows";
        assert_eq!(capture(&strict, "op_1").unwrap_err().message, message);
    }
}

#[test]
fn what_was_proven_before_its_run_left_the_ledger_stays_closed_and_nothing_new_is_proven() {
    let strict = session("required", vec![run("op_1", TestResult::Passed, None)]);
    capture(&strict, "op_1").unwrap();
    strict.set_found(Vec::new());
    let gone = "checkpoint `criteria` of step s:0 has evidence of op_1, which is not in the ledger";
    assert_eq!(reasons(&strict, CLOSE)[0], gone);
}

#[test]
fn parts_that_go_and_tasks_that_are_canceled_are_no_way_around_required_evidence() {
    let bare = r#"define {"task": "TASK-001", "path": "s:0", "success_criteria": [], "tests": []}"#;
    let part = r#"decompose {"task": "TASK-001", "parent_step": "s:0", "steps": [
        {"title": "part", "success_criteria": ["c"], "tests": ["t"]}]}"#;
    for way in [
        r#"move {"task": "TASK-001", "path": "s:0.s:0", "top": true}"#,
        r#"move {"task": "TASK-001", "path": "s:0.s:0", "parent_step": "s:1"}"#,
        r#"delete {"task": "TASK-001", "path": "s:0.s:0"}"#,
    ] {
        let strict = after(&[THREE_STEPS, bare, part]).config(&json!({"evidence": "required"}));
        strict.advance_ms(3_600_000);
        know(&strict, vec![run("op_1", TestResult::Passed, None)]);
        let item = json!({"task": "TASK-001", "path": "s:0.s:0", "items": [{"operation_id": "op_1"}]});
        call_tool(&strict, "tasks_evidence_capture", item).unwrap();
        strict.advance_ms(1_000);
        ok(
            &strict,
            r#"close_step {"task": "TASK-001", "path": "s:0.s:0", "checkpoints": "gate"}"#,
        );
        // What its part proves needs no evidence of its own, as long as the part is there.
        ok(&strict, r#"done {"task": "TASK-001", "path": "s:0"}"#);
        assert_eq!(
            reasons(&strict, way),
            ["checkpoint `criteria` of step s:0 has no evidence"],
            "{way}"
        );
    }
    let strict = after(&[THREE_STEPS]).config(&json!({"evidence": "required"}));
    ok(&strict, r#"complete {"task": "TASK-001", "status": "CANCELED"}"#);
    let done = r#"complete {"task": "PLAN-001"}"#;
    assert_eq!(
        refused(&strict, done).message,
        "PLAN-001 cannot become DONE, because none of its tasks is DONE and this workspace requires evidence"
    );
    let empty = done.replace('}', r#", "allow_empty": true}"#);
    assert_eq!(refused(&strict, &empty).code, "EVIDENCE_REQUIRED");
    ok(&strict, &done.replace('}', r#", "status": "CANCELED"}"#));
}

/// The finding: the undo of a deletion asked for the evidence that the deletion had removed.
#[test]
fn the_undo_of_a_deletion_brings_a_proven_step_back_as_it_was() {
    let session = session("required", vec![run("op_1", TestResult::Passed, None)]);
    capture(&session, "op_1").unwrap();
    session.advance_ms(1_000);
    ok(&session, CLOSE);
    // The age of the evidence changes with each write.
    let shown = || {
        let mut parts = ok(&session, r#"show {"task": "TASK-001", "path": "s:0"}"#)["parts"].clone();
        let parts = parts.as_array_mut().unwrap();
        for part in parts.iter_mut().filter(|part| part["kind"] == "checkpoint") {
            part["facts"]["evidence"] = json!(null);
        }
        json!(parts)
    };
    let before = shown();
    ok(&session, r#"delete {"task": "TASK-001", "path": "s:0"}"#);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(shown(), before);
    // Deleted again and brought back after other work, it is still the step that was proven.
    ok(&session, r#"redo {"task": "TASK-001"}"#);
    ok(&session, r#"edit {"task": "PLAN-001", "title": "other"}"#);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(shown()[0]["facts"]["status"], "done");
    // A step that was reopened is to be proven anew, by undo as well.
    ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": false, "reason": "review"}"#,
    );
    assert_eq!(
        refused(&session, r#"undo {"task": "TASK-001"}"#).code,
        "EVIDENCE_REQUIRED"
    );
}
