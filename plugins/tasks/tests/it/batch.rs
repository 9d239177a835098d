//! Batches: all or nothing, or each for itself.

use serde_json::{Value, json};

use crate::harness::{THREE_STEPS, after, call_tool, ok, refused};

fn rows(session: &tollgate_sdk::native::Session) -> usize {
    let tables = [
        "records",
        "events",
        "operations",
        "operation_roots",
        "changes",
        "bodies",
        "roots",
    ];
    tables
        .iter()
        .map(|table| session.sql(&format!("SELECT * FROM tasks_{table}")).len())
        .sum()
}

#[test]
fn an_atomic_batch_leaves_nothing_if_its_last_member_fails() {
    let session = after(&[THREE_STEPS]);
    let (before, workspace) = (rows(&session), session.sql("SELECT * FROM tasks_workspaces"));
    let operations = json!([
        {"tool": "tasks_progress", "args": {"task": "TASK-001", "path": "s:0", "completed": true, "force": true, "reason": "r"}},
        {"tool": "tasks_block", "args": {"task": "TASK-001", "path": "s:1"}},
        {"tool": "tasks_evidence_capture", "args": {"task": "TASK-001", "items": [{"kind": "diff", "body": "x"}]}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:2"}},
    ]);
    let err = call_tool(
        &session,
        "tasks_batch",
        json!({"operations": operations, "atomic": true}),
    )
    .unwrap_err();
    assert_eq!(err.code, "BATCH_FAILED");
    assert_eq!(err.context["operation"], 3);
    assert_eq!(err.context["code"], "CHECKPOINTS_NOT_CONFIRMED");
    assert_eq!(
        err.blockers.len(),
        3,
        "the batch's own reason and both of the member's"
    );
    assert_eq!(before, rows(&session));
    assert_eq!(workspace, session.sql("SELECT * FROM tasks_workspaces"));
}

#[test]
fn a_batch_that_is_not_atomic_keeps_what_succeeds() {
    let session = after(&[THREE_STEPS]);
    let operations = json!([
        {"tool": "tasks_block", "args": {"task": "TASK-001", "path": "s:1"}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:2"}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n", "unknown": 1}},
        {"tool": "tasks_radar", "args": {"task": "TASK-001"}},
    ]);
    let ran = call_tool(&session, "tasks_batch", json!({"operations": operations.clone()})).unwrap();
    let ran: Value = serde_json::from_str(&ran.structured).unwrap();
    let codes: Vec<&Value> = ran["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["code"])
        .collect();
    assert_eq!(
        json!(codes),
        json!([null, "CHECKPOINTS_NOT_CONFIRMED", "INVALID_ARGUMENTS", null])
    );
    assert_eq!((&ran["succeeded"], &ran["failed"]), (&json!(2), &json!(2)));
    assert_eq!(ran["results"][0]["revision"], 2);
    assert_eq!(ran["results"][3]["result"]["revision"], 2);
    let compact = call_tool(
        &session,
        "tasks_batch",
        json!({"operations": operations, "compact": true}),
    )
    .unwrap();
    let compact: Value = serde_json::from_str(&compact.structured).unwrap();
    assert_eq!(
        compact["results"][1],
        json!({"tool": "tasks_done", "ok": false, "code": "CHECKPOINTS_NOT_CONFIRMED"})
    );
}

#[test]
fn a_batch_in_which_nothing_succeeds_fails_and_names_every_reason() {
    let session = after(&[THREE_STEPS]);
    let before = rows(&session);
    let operations = json!([
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:2"}},
        {"tool": "tasks_radar", "args": {"task": "TASK-009"}},
    ]);
    let batch = |compact: bool| {
        let arguments = json!({"operations": operations, "compact": compact});
        call_tool(&session, "tasks_batch", arguments).unwrap_err()
    };
    let err = batch(false);
    assert_eq!(err.code, "BATCH_FAILED");
    let reasons: Vec<(&str, Option<&str>)> = err
        .blockers
        .iter()
        .map(|blocker| (blocker.code.as_str(), blocker.field.as_deref()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("BATCH_FAILED", None),
            ("CHECKPOINTS_NOT_CONFIRMED", Some("operations[0]")),
            ("NOT_FOUND", Some("operations[1]")),
        ]
    );
    assert_eq!(err.next_call.as_ref().unwrap().tool, "tasks_verify");
    assert!(err.blockers[1].next_call.is_some());
    let results = &err.context["results"];
    assert!(!results.to_string().contains("next_call"), "{results}");
    let details = &results[0]["error"]["blockers"];
    assert_eq!(details.as_array().unwrap().len(), 2, "{details}");
    assert_eq!(
        batch(true).context["results"],
        json!([
            {"tool": "tasks_done", "ok": false, "code": "CHECKPOINTS_NOT_CONFIRMED"},
            {"tool": "tasks_radar", "ok": false, "code": "NOT_FOUND"},
        ])
    );
    assert_eq!(before, rows(&session));
}

#[test]
fn a_batch_takes_every_write_but_batch_and_delete() {
    let session = after(&[THREE_STEPS]);
    for (tool, atomic) in [
        ("tasks_batch", false),
        ("tasks_batch", true),
        ("tasks_delete", true),
    ] {
        let operations = json!([{"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}}, {"tool": tool, "args": {"task": "TASK-001"}}]);
        let err = call_tool(
            &session,
            "tasks_batch",
            json!({"operations": operations, "atomic": atomic}),
        )
        .unwrap_err();
        assert_eq!(err.code, "BATCH_FAILED", "{tool}");
    }
    assert_eq!(
        refused(&session, r#"batch {"operations": []}"#).code,
        "INVALID_ARGUMENTS"
    );
    let many = vec![json!({"tool": "tasks_note"}); 51];
    assert_eq!(
        call_tool(&session, "tasks_batch", json!({"operations": many}))
            .unwrap_err()
            .code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(ok(&session, r#"radar {"task": "TASK-001"}"#)["revision"], 1);
}

#[test]
fn members_see_what_members_before_them_wrote_and_are_undone_as_one() {
    let session = after(&[THREE_STEPS]);
    let operations = json!([
        {"tool": "tasks_verify", "args": {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "expected_revision": 1}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:0", "expected_revision": 2}},
    ]);
    call_tool(
        &session,
        "tasks_batch",
        json!({"operations": operations, "atomic": true}),
    )
    .unwrap();
    assert_eq!(
        ok(&session, r#"mirror {"task": "TASK-001"}"#)["steps"][0]["status"],
        "done"
    );
    let step = || {
        let step = ok(&session, r#"mirror {"task": "TASK-001"}"#)["steps"][0].clone();
        (step["status"].clone(), step["confirmed"].clone())
    };
    let undone = ok(&session, r#"undo {"task": "TASK-001", "events": true}"#);
    assert_eq!(undone["events"][0]["data"]["operations"], json!([2, 3]));
    assert_eq!(step(), (json!("open"), Value::Null));
    let redone = ok(&session, r#"redo {"task": "TASK-001", "events": true}"#);
    assert_eq!(redone["events"][0]["data"]["tool"], "tasks_batch");
    assert_eq!(step(), (json!("done"), json!(["criteria", "tests"])));
}

#[test]
fn a_tool_without_a_workspace_is_called_without_one() {
    let session = after(&[THREE_STEPS]);
    let operations = json!([{"tool": "tasks_workspaces"}]);
    let ran = call_tool(&session, "tasks_batch", json!({"operations": operations})).unwrap();
    let ran: Value = serde_json::from_str(&ran.structured).unwrap();
    assert_eq!(ran["succeeded"], 1, "{ran}");
}

#[test]
fn every_refused_member_has_a_call_and_no_call_is_outdated() {
    let session = after(&[THREE_STEPS]);
    let operations = json!([
        {"tool": "tasks_next"},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:0"}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:0"}},
    ]);
    let ran = call_tool(&session, "tasks_batch", json!({"operations": operations})).unwrap();
    let ran: Value = serde_json::from_str(&ran.structured).unwrap();
    let results = &ran["results"];
    let ready = &results[0]["result"]["ready"][0];
    assert!(
        ready["task"] == "TASK-001" && ready.get("next_call").is_none(),
        "{ran}"
    );
    let show = json!({"tool": "tasks_show", "arguments": {"workspace": "w", "task": "TASK-001"}});
    assert_eq!(results[1]["error"]["next_call"], show, "the note came after it");
    assert_eq!(results[3]["error"]["next_call"]["tool"], "tasks_verify");
    let operations = json!([
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:0"}},
    ]);
    let err = call_tool(
        &session,
        "tasks_batch",
        json!({"operations": operations, "atomic": true}),
    )
    .unwrap_err();
    assert_eq!(json!(err.next_call), show);
}
