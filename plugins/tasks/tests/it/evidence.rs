//! Evidence: how old it is, what is not stored, and where what is large goes.

use serde_json::{Value, json};
use tollgate_sdk::native::{EPOCH_MS, Session};
use tollgate_sdk::{ArtifactKind, TestResult};

use crate::harness::{THREE_STEPS, after, call_tool, ok};
use crate::runs::{self, know, run};

fn capture(step: usize) -> String {
    format!(
        r#"evidence_capture {{"task": "TASK-001", "path": "s:{step}", "checkpoint": "tests", "checks": ["cargo test"]}}"#
    )
}

fn close(step: usize) -> String {
    format!(r#"close_step {{"task": "TASK-001", "path": "s:{step}", "checkpoints": "gate"}}"#)
}

/// The codes of a reply's warnings.
fn warned(reply: &Value) -> Vec<&str> {
    let warnings = reply["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| warning["code"].as_str().unwrap())
        .collect()
}

#[test]
fn evidence_older_than_the_last_change_is_told() {
    let session = after(&[THREE_STEPS]);
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "tests", "checks": ["cargo test"]}"#,
    );
    let close = r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#;
    assert_eq!(ok(&session, close).get("warnings"), None);
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:1", "checkpoint": "tests", "checks": ["cargo test"]}"#,
    );
    ok(&session, r#"edit {"task": "TASK-001", "title": "changed since"}"#);
    let closed = ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#,
    );
    assert_eq!(closed["warnings"][0]["code"], "STALE_EVIDENCE");
}

/// A session in an envelope, with evidence for the first step.
fn in_envelope() -> Session {
    let session = after(&[THREE_STEPS]);
    session.set_envelope(Some("env_1"));
    ok(&session, &capture(0));
    session
}

#[test]
fn what_other_packs_change_in_the_envelope_makes_evidence_old() {
    let session = in_envelope();
    session.mutate_elsewhere(2);
    let closed = ok(&session, &close(0));
    assert_eq!(warned(&closed), ["STALE_EVIDENCE"]);
    let message = closed["warnings"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("2 mutations happened after"), "{message}");
    ok(&session, &capture(1));
    assert_eq!(warned(&ok(&session, &close(1))), [""; 0]);
}

#[test]
fn what_only_records_or_changes_nothing_does_not_make_evidence_old() {
    let session = in_envelope();
    for line in [
        r#"note {"task": "TASK-001", "note": "n"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
        r#"step_release {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
        r#"focus_set {"task": "TASK-001"}"#,
        r#"edit {"task": "TASK-001", "title": "T"}"#,
        &capture(1),
        r#"radar {"task": "TASK-001"}"#,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": {"criteria": {"confirmed": true}}}"#,
    ] {
        assert_eq!(warned(&ok(&session, line)), [""; 0], "{line}");
    }
    assert_eq!(warned(&ok(&session, &close(0))), [""; 0]);
    ok(&session, r#"edit {"task": "TASK-001", "title": "changed"}"#);
    assert_eq!(warned(&ok(&session, &close(1))), ["STALE_EVIDENCE"]);
}

#[test]
fn an_envelope_counts_a_batch_before_its_members() {
    let session = in_envelope();
    let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
    let refused = json!({"tool": "tasks_note", "args": {"task": "TASK-009", "note": "n"}});
    let verify =
        json!({"tool": "tasks_verify", "args": {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}});
    let capture = json!({"tool": "tasks_evidence_capture", "args":
        {"task": "TASK-001", "path": "s:1", "checkpoint": "tests", "checks": ["c"]}});
    let batch = |operations: Vec<&Value>| {
        let reply = call_tool(&session, "tasks_batch", json!({"operations": operations})).unwrap();
        serde_json::from_str::<Value>(&reply.structured).unwrap()
    };
    let ran = batch(vec![&note, &refused, &verify, &capture, &note]);
    assert_eq!(ran["failed"], 1, "{ran}");
    assert_eq!(warned(&ran["results"][2]["result"]), [""; 0]);
    assert_eq!(warned(&ok(&session, &close(1))), [""; 0]);
    // What came between is seen although the batch before it counted more than it had done.
    let capture = json!({"tool": "tasks_evidence_capture", "args":
        {"task": "TASK-001", "path": "s:2", "checkpoint": "tests", "checks": ["c"]}});
    batch(vec![&capture, &note, &note]);
    session.mutate_elsewhere(1);
    assert_eq!(warned(&ok(&session, &close(2))), ["STALE_EVIDENCE"]);
}

#[test]
fn counts_of_two_envelopes_are_not_compared() {
    let session = in_envelope();
    session.mutate_elsewhere(5);
    session.set_envelope(Some("env_2"));
    assert_eq!(warned(&ok(&session, &close(0))), [""; 0]);
    ok(&session, &capture(1));
    session.set_envelope(None);
    assert_eq!(warned(&ok(&session, &close(1))), [""; 0]);
    ok(&session, &capture(2));
    ok(&session, r#"edit {"task": "TASK-001", "title": "changed"}"#);
    assert_eq!(warned(&ok(&session, &close(2))), ["STALE_EVIDENCE"]);
}

/// Captures one item and returns the reply.
fn item(session: &Session, kind: &str, body: &str) -> Value {
    let items = json!([{"kind": kind, "title": "t", "body": body}]);
    let arguments = json!({"task": "TASK-001", "path": "s:0", "items": items});
    let reply = call_tool(session, "tasks_evidence_capture", arguments).unwrap();
    serde_json::from_str(&reply.structured).unwrap()
}

fn bodies(session: &Session) -> Vec<usize> {
    let rows = session.sql("SELECT length(body) FROM tasks_bodies ORDER BY evidence");
    rows.iter()
        .map(|row| usize::try_from(row.get::<i64>(0).unwrap()).unwrap())
        .collect()
}

#[test]
fn large_bodies_become_artifacts_with_a_preview_here() {
    let session = after(&[THREE_STEPS]);
    session.keep_artifacts();
    let large = "é".repeat(9_000) + " token=abcd1234";
    let kept = item(&session, "diff", &large);
    assert_eq!(kept["artifacts"], json!(["art_1"]));
    assert_eq!(item(&session, "cmd_output", "small").get("artifacts"), None);
    item(&session, "cmd_output", &large);
    let artifacts = session.artifacts();
    let kinds: Vec<ArtifactKind> = artifacts.iter().map(|artifact| artifact.kind).collect();
    assert_eq!(kinds, [ArtifactKind::Diff, ArtifactKind::Log]);
    let stored = String::from_utf8(artifacts[0].content.clone()).unwrap();
    assert_eq!(stored, "é".repeat(9_000) + " token=[REDACTED]");
    assert_eq!(bodies(&session), [2_000, 5, 2_000]);
    let fresh = ok(&session, r#"resume_pack {"task": "TASK-001"}"#);
    let shown = &fresh["evidence"][0];
    assert_eq!(shown["item"]["artifact"], "art_1");
    assert_eq!(shown["item"]["bytes"], stored.len());
    assert!(shown["start"].as_str().unwrap().starts_with("ééé"));
}

#[test]
fn without_artifacts_large_bodies_stay_here() {
    let session = after(&[THREE_STEPS]);
    let kept = item(&session, "diff", &"x".repeat(200_000));
    assert_eq!(kept.get("artifacts"), None);
    assert_eq!(bodies(&session), [200_000]);
}

#[test]
fn what_the_host_does_not_take_stays_here_and_a_refused_call_keeps_nothing() {
    let session = after(&[THREE_STEPS]);
    session.keep_artifacts();
    let body = "x".repeat(17_000);
    let items: Vec<Value> = (0..20)
        .map(|_| json!({"kind": "cmd_output", "body": body}))
        .collect();
    let capture = json!({"tool": "tasks_evidence_capture", "args": {"task": "TASK-001", "items": items}});
    let failing = json!({"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:0"}});
    let batch = |operations: Vec<&Value>| {
        call_tool(
            &session,
            "tasks_batch",
            json!({"operations": operations, "atomic": true}),
        )
    };
    assert_eq!(batch(vec![&capture, &failing]).unwrap_err().code, "BATCH_FAILED");
    assert_eq!((session.artifacts().len(), bodies(&session).len()), (0, 0));
    batch(vec![&capture, &capture]).unwrap();
    assert_eq!(session.artifacts().len(), 32, "more than a call may keep");
    let whole = bodies(&session)
        .iter()
        .filter(|&&length| length == 17_000)
        .count();
    assert_eq!((whole, bodies(&session).len()), (8, 40));
}

#[test]
fn secrets_are_not_stored() {
    let session = after(&[THREE_STEPS]);
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let noted = ok(
        &session,
        &format!(r#"note {{"task": "TASK-001", "note": "use {secret}"}}"#),
    );
    assert_eq!(noted["warnings"][0]["code"], "SECRETS_REDACTED");
    let item = json!({"kind": "cmd_output", "title": format!("echo {secret}"), "body": format!("AKIAIOSFODNN7EXAMPLE {secret}"), "uri": format!("https://x/?token={secret}")});
    call_tool(
        &session,
        "tasks_evidence_capture",
        json!({"task": "TASK-001", "items": [item]}),
    )
    .unwrap();
    let said = json!({"tests": {"confirmed": true, "note": format!("ran with {secret}")}});
    let verified = call_tool(
        &session,
        "tasks_verify",
        json!({"task": "TASK-001", "path": "s:0", "checkpoints": said}),
    );
    assert!(verified.unwrap().structured.contains("SECRETS_REDACTED"));
    for table in ["records", "bodies", "events", "changes"] {
        for row in session.sql(&format!("SELECT * FROM tasks_{table}")) {
            let row = format!("{row:?}");
            assert!(
                !row.contains(secret) && !row.contains("AKIAIOSF"),
                "{table}: {row}"
            );
        }
    }
}

#[test]
fn failing_evidence_is_told_until_a_later_run_passes() {
    let session = after(&[THREE_STEPS]);
    let run = |code: i32| {
        let items = json!([{"kind": "cmd_output", "title": "cargo test", "exit_code": code}]);
        let arguments = json!({"task": "TASK-001", "path": "s:0", "checkpoint": "tests", "items": items});
        call_tool(&session, "tasks_evidence_capture", arguments).unwrap()
    };
    let verify =
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": {"tests": {"confirmed": true}}}"#;
    let captured: Value = serde_json::from_str(&run(1).structured).unwrap();
    assert_eq!(
        captured["next_calls"][0]["tool"], "tasks_show",
        "a failing run is no reason to close"
    );
    assert_eq!(warned(&ok(&session, verify)), ["FAILING_EVIDENCE"]);
    // What is said without a run does not outweigh the run.
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "tests", "checks": ["it works"]}"#,
    );
    assert_eq!(warned(&ok(&session, verify)), ["FAILING_EVIDENCE"]);
    let captured: Value = serde_json::from_str(&run(0).structured).unwrap();
    assert_eq!(captured["next_calls"][0]["tool"], "tasks_close_step");
    assert_eq!(warned(&ok(&session, verify)), [""; 0]);
}

#[test]
fn a_workspace_can_require_evidence() {
    let session = after(&[THREE_STEPS]).config(&json!({"workspaces": {"w": {"evidence": "required"}}}));
    let codes = |line: &str| -> Vec<String> {
        let refused = crate::harness::refused(&session, line);
        refused
            .blockers
            .into_iter()
            .map(|blocker| blocker.message)
            .collect()
    };
    assert_eq!(
        codes(&close(0)),
        [
            "checkpoint `criteria` of step s:0 has no evidence",
            "checkpoint `tests` of step s:0 has no evidence"
        ]
    );
    let ran = |op_id: &str, hour: i64, result| {
        let mut found = run(op_id, result, None);
        found.operation.at_ms = EPOCH_MS + hour * 3_600_000;
        session.advance_ms(3_600_000);
        know(&session, vec![found]);
        runs::capture(&session, op_id).unwrap();
        session.advance_ms(1_000);
    };
    ran("op_1", 1, TestResult::Failed);
    let verify = r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "all"}"#;
    assert_eq!(codes(verify).len(), 2);
    ran("op_2", 2, TestResult::Passed);
    ok(&session, verify);
    // What changed after the confirmation is seen when the step closes.
    ok(&session, r#"edit {"task": "TASK-001", "title": "changed since"}"#);
    let done = r#"done {"task": "TASK-001", "path": "s:0"}"#;
    assert_eq!(codes(done).len(), 2);
    ran("op_3", 3, TestResult::Passed);
    ok(&session, done);
    let elsewhere = r#"bootstrap {"workspace": "other", "plan_title": "P", "task_title": "T", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#;
    ok(&session, elsewhere);
    ok(
        &session,
        r#"close_step {"workspace": "other", "task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
}

/// Messages of all reasons of a refusal.
fn reasons(session: &Session, line: &str) -> Vec<String> {
    let refused = crate::harness::refused(session, line);
    let blockers = refused.blockers.into_iter();
    blockers.map(|blocker| blocker.message).collect()
}

#[test]
fn redo_confirms_only_what_the_evidence_of_now_proves() {
    let session = after(&[THREE_STEPS]).config(&json!({"evidence": "required"}));
    session.advance_ms(3_600_000);
    session.set_envelope(Some("env_1"));
    session.mutate_elsewhere(5);
    know(
        &session,
        vec![run("op_1", TestResult::Passed, Some(("env_1", 5)))],
    );
    runs::capture(&session, "op_1").unwrap();
    ok(&session, &close(0));
    ok(&session, "undo {}");
    // With the same evidence, what was done is done again.
    ok(&session, "redo {}");
    ok(&session, "undo {}");
    session.mutate_elsewhere(3);
    let expected = [
        "checkpoint `criteria` of step s:0 has evidence that is older than the last",
        "checkpoint `tests` of step s:0 has evidence that is older than the last",
    ];
    for line in ["redo {}", r#"redo {"task": "TASK-001"}"#] {
        let found = reasons(&session, line);
        assert_eq!(found.len(), 2, "{line}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{line}: {found}");
        }
    }
}

#[test]
fn an_empty_step_is_no_way_around_required_evidence() {
    let session = after(&[THREE_STEPS]).config(&json!({"evidence": "required"}));
    ok(
        &session,
        r#"define {"task": "TASK-001", "path": "s:0", "success_criteria": [], "tests": []}"#,
    );
    let done = r#"done {"task": "TASK-001", "path": "s:0"}"#;
    assert_eq!(
        reasons(&session, done),
        ["checkpoint `criteria` of step s:0 has no evidence"]
    );
    session.advance_ms(3_600_000);
    know(&session, vec![run("op_1", TestResult::Passed, None)]);
    runs::capture(&session, "op_1").unwrap();
    ok(&session, done);
    // A task without steps proves nothing either.
    ok(
        &session,
        r#"create {"kind": "task", "title": "bare", "plan": "PLAN-001"}"#,
    );
    let empty = r#"complete {"task": "TASK-002", "allow_empty": true}"#;
    assert_eq!(crate::harness::refused(&session, empty).code, "NO_STEPS");
    let optional = after(&[THREE_STEPS]);
    ok(
        &optional,
        r#"create {"kind": "task", "title": "bare", "plan": "PLAN-001"}"#,
    );
    ok(&optional, empty);
}

#[test]
fn a_diff_without_content_is_no_evidence() {
    let session = after(&[THREE_STEPS]);
    for body in ["", " \n"] {
        let arguments = json!({"task": "TASK-001", "path": "s:0", "items": [{"kind": "diff", "title": "ok", "body": body}]});
        let refused = call_tool(&session, "tasks_evidence_capture", arguments).unwrap_err();
        assert_eq!(refused.code, "INVALID_ARGUMENTS");
        assert_eq!(refused.blockers[0].field.as_deref(), Some("items[0].body"));
    }
}
