//! Undo and redo beyond what the model runs.

use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, follow, ok, refused, texts};
use crate::offers::probe;

#[test]
fn there_is_an_end_to_undoing_and_redoing() {
    let session = after(&[THREE_STEPS]);
    assert_eq!(refused(&session, "redo {}").code, "NOTHING_TO_REDO");
    ok(&session, "undo {}");
    assert_eq!(refused(&session, "undo {}").code, "NOTHING_TO_UNDO");
    assert_eq!(
        refused(&session, r#"radar {"task": "TASK-001"}"#).code,
        "NOT_FOUND"
    );
    ok(&session, "redo {}");
    // The revision went on: nobody takes the task for what it was before.
    assert_eq!(ok(&session, r#"radar {"task": "TASK-001"}"#)["revision"], 3);
    let made = ok(&session, r#"create {"title": "next", "plan": "PLAN-001"}"#);
    assert_eq!(made["task"], "TASK-002");
}

#[test]
fn a_new_write_ends_redo_for_what_it_changed_only() {
    let session = after(&[THREE_STEPS, r#"create {"title": "other", "plan": "PLAN-001"}"#]);
    ok(&session, r#"block {"task": "TASK-001", "path": "s:0"}"#);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    ok(&session, r#"note {"task": "TASK-002", "note": "n"}"#);
    ok(&session, r#"redo {"task": "TASK-001"}"#);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    ok(&session, r#"note {"task": "TASK-001", "note": "n"}"#);
    assert_eq!(
        refused(&session, r#"redo {"task": "TASK-001"}"#).code,
        "NOTHING_TO_REDO"
    );
    let states: Vec<String> = ok(&session, r#"history {"task": "TASK-001"}"#)["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["operation"]["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["done", "dropped", "done"]);
}

/// Later operations can depend on an operation without a change of its records, so records alone do not show conflicts.
#[test]
fn what_later_operations_build_on_is_undone_after_them_and_redone_before_them() {
    let session = after(&[THREE_STEPS, r#"create {"title": "other", "plan": "PLAN-001"}"#]);
    let records = || session.sql("SELECT kind, id, body FROM tasks_records ORDER BY kind, id");
    let before = records();
    let err = refused(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(
        (err.code.as_str(), &err.context["before"]),
        ("UNDO_CONFLICT", &json!(2))
    );
    assert_eq!(records(), before, "the plan of TASK-002 is still there");
    let revision = || session.sql("SELECT revision FROM tasks_roots WHERE id = 'PLAN-001'");
    let made: i64 = revision()[0].get(0).unwrap();
    follow(&session, &err.next_call.unwrap());
    assert_eq!(revision()[0].get::<i64>(0).unwrap(), made + 1, "it lost a task");
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(records().len(), 0);
    let err = refused(&session, r#"redo {"task": "TASK-002"}"#);
    assert_eq!(
        (err.code.as_str(), &err.context["before"]),
        ("UNDO_CONFLICT", &json!(1))
    );
    assert_eq!(records().len(), 0, "no task without its plan");
    follow(&session, &err.next_call.unwrap());
    ok(&session, r#"redo {"task": "TASK-002"}"#);
    assert_eq!(records(), before);
}

#[test]
fn what_built_on_an_operation_that_a_write_replaced_cannot_be_redone() {
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "T", "plan": "PLAN-001"}"#,
    ]);
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "steps": [{"title": "s"}]}"#,
    );
    ok(&session, "undo {}");
    ok(&session, "undo {}");
    // It takes the place of the task, which the steps were for.
    ok(&session, r#"edit {"task": "PLAN-001", "title": "renamed"}"#);
    for line in [r#"redo {"task": "TASK-001"}"#, "redo {}"] {
        assert_eq!(refused(&session, line).code, "NOTHING_TO_REDO", "{line}");
    }
    assert_eq!(session.sql("SELECT 1 FROM tasks_records").len(), 1);
}

#[test]
fn what_changed_since_is_a_conflict() {
    let session = after(&[THREE_STEPS, r#"edit {"task": "PLAN-001", "title": "renamed"}"#]);
    // The task's latest operation made the plan as well, and the plan changed since.
    let err = refused(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(err.code, "UNDO_CONFLICT");
    ok(&session, r#"block {"task": "TASK-001", "path": "s:0"}"#);
    session.sql("UPDATE tasks_records SET body = replace(body, 'one', 'ONE') WHERE id = 'STEP-00000001'");
    let err = refused(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(
        (err.code.as_str(), &err.context["id"]),
        ("UNDO_CONFLICT", &json!("STEP-00000001"))
    );
}

#[test]
fn deleting_a_plan_or_task_is_final() {
    let session = after(&[
        THREE_STEPS,
        r#"evidence_capture {"task": "TASK-001", "items": [{"kind": "diff", "body": "x"}]}"#,
    ]);
    ok(&session, r#"delete {"task": "TASK-001"}"#);
    assert_eq!(
        refused(&session, r#"undo {"task": "TASK-001"}"#).code,
        "NOTHING_TO_UNDO"
    );
    assert_eq!(refused(&session, "undo {}").code, "NOTHING_TO_UNDO");
    assert_eq!(session.sql("SELECT 1 FROM tasks_bodies").len(), 0);
    ok(&session, r#"create {"title": "second", "plan": "PLAN-001"}"#);
    ok(&session, r#"delete {"task": "PLAN-001"}"#);
    assert_eq!(session.sql("SELECT 1 FROM tasks_records").len(), 0);
    assert_eq!(
        refused(&session, r#"radar {"task": "TASK-002"}"#).code,
        "NOT_FOUND"
    );
    let stream = ok(&session, "delta {}");
    let types = texts(&stream["events"], "type");
    assert!(types.ends_with(&["plan_deleted", "task_deleted"]), "{types:?}");
}

#[test]
fn a_deleted_step_returns_to_its_place_with_all_it_had() {
    let session = after(&[
        THREE_STEPS,
        r#"decompose {"task": "TASK-001", "path": "s:1", "steps": [{"title": "below"}]}"#,
        r#"task_add {"task": "TASK-001", "parent_step": "s:1", "title": "node"}"#,
        r#"evidence_capture {"task": "TASK-001", "path": "s:1", "items": [{"kind": "diff", "body": "proof"}]}"#,
        r#"note {"task": "TASK-001", "path": "s:1", "note": "n"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:1", "owner": "ada"}"#,
    ]);
    let mirror = || ok(&session, r#"mirror {"task": "TASK-001"}"#)["steps"].clone();
    let before = mirror();
    ok(
        &session,
        r#"delete {"task": "TASK-001", "path": "s:1", "actor": "ada"}"#,
    );
    assert_eq!(mirror().as_array().unwrap().len(), 2);
    assert_eq!(mirror()[1]["path"], "s:1", "the step behind it moved up");
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(mirror(), before);
    let pack = ok(&session, r#"resume_pack {"task": "TASK-001"}"#);
    assert_eq!(pack["evidence"][0]["start"], "proof");
}

/// The finding: an undo took over a live lease, and the refusal before it suggested so.
#[test]
fn undo_takes_no_lease_from_its_holder_and_suggests_no_operation_of_others() {
    let claim =
        |actor: &str| format!(r#"step_claim {{"task": "TASK-001", "path": "s:0", "actor": "{actor}"}}"#);
    let holder = |session: &Session| {
        let shown = ok(session, r#"show {"task": "TASK-001", "path": "s:0"}"#);
        shown["parts"][0]["facts"]["leased_to"].clone()
    };
    let session = after(&[
        THREE_STEPS,
        &claim("bob"),
        r#"step_release {"task": "TASK-001", "path": "s:0", "actor": "bob"}"#,
        &claim("ann"),
    ]);
    let err = refused(&session, r#"undo {"actor": "bob"}"#);
    assert_eq!(
        (err.code.as_str(), err.message.as_str()),
        (
            "UNDO_CONFLICT",
            "lease STEP-00000001 was changed after operation 3, by operation 4 of ann"
        )
    );
    assert_eq!(err.context["actor"], "ann");
    assert_eq!(err.next_call.unwrap().tool, "tasks_history");
    for line in [
        r#"undo {"operation": 4, "actor": "bob"}"#,
        r#"undo {"operation": 4}"#,
        r#"undo {"task": "TASK-001"}"#,
        "undo {}",
    ] {
        let err = refused(&session, line);
        assert_eq!(err.code, "STEP_LEASE_HELD", "{line}");
        assert_eq!(probe(&session, &json!(err)), Vec::<String>::new());
    }
    assert_eq!(holder(&session), "ann");
    // The holder may, and then nobody else gives her the lease back.
    ok(&session, r#"undo {"actor": "ann"}"#);
    assert_eq!(holder(&session), json!(null));
    assert_eq!(refused(&session, "redo {}").code, "STEP_LEASE_HELD");
    ok(&session, r#"redo {"actor": "ann"}"#);
    assert_eq!(holder(&session), "ann");
    // Force wants a reason, which the events keep.
    let force = r#"undo {"operation": 4, "actor": "bob", "force": true}"#;
    assert_eq!(refused(&session, force).code, "INVALID_ARGUMENTS");
    let forced = ok(
        &session,
        r#"undo {"operation": 4, "actor": "bob", "force": true, "reason": "ann left", "events": true}"#,
    );
    let data = &forced["events"][0]["data"];
    assert_eq!(
        (&data["taken_from"], &data["reason"]),
        (&json!(["ann"]), &json!("ann left"))
    );
    assert_eq!(holder(&session), json!(null));
}

/// Leases hold for an undo or redo as they do for other calls.
#[test]
fn undo_neither_confirms_nor_withdraws_on_a_step_that_somebody_else_holds() {
    let session = after(&[
        THREE_STEPS,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "actor": "ann"}"#,
    ]);
    let back = r#"undo {"task": "TASK-001", "actor": "bob", "operation": 3}"#;
    assert_eq!(refused(&session, back).code, "STEP_LEASE_HELD");
    // What she closed is hers again if it is undone, because closing took her lease.
    ok(
        &session,
        r#"done {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    );
    ok(&session, r#"undo {"operation": 4}"#);
    assert_eq!(
        refused(&session, r#"redo {"operation": 4, "actor": "bob"}"#).code,
        "STEP_LEASE_HELD"
    );
    ok(&session, r#"redo {"operation": 4, "actor": "ann"}"#);
}

#[test]
fn a_refused_undo_says_whose_operation_is_in_the_way() {
    let define = |title: &str, actor: &str| {
        format!(r#"define {{"task": "TASK-001", "path": "s:1", "title": "{title}", "actor": "{actor}"}}"#)
    };
    let session = after(&[
        THREE_STEPS,
        &define("of bob", "bob"),
        &define("of ann", "ann"),
        r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate", "actor": "ann"}"#,
    ]);
    let err = refused(&session, r#"undo {"actor": "bob"}"#);
    assert_eq!(
        err.message,
        "step STEP-00000002 was changed after operation 2, by operation 4 of ann"
    );
    assert_eq!(err.next_call.unwrap().tool, "tasks_history");
    // In the order of the journal, it says so as well.
    let err = refused(&session, r#"undo {"task": "PLAN-001"}"#);
    assert_eq!(err.code, "UNDO_CONFLICT");
    assert!(
        err.message
            .starts_with("operation 4 of ann comes before operation 1"),
        "{}",
        err.message
    );
    assert_eq!(err.next_call.unwrap().tool, "tasks_history");
    // Her own later operation is suggested to her, in her name.
    let err = refused(&session, r#"undo {"operation": 3, "actor": "ann"}"#);
    let call = err.next_call.unwrap();
    assert_eq!(
        (
            call.tool.as_str(),
            &call.arguments["operation"],
            &call.arguments["actor"]
        ),
        ("tasks_undo", &json!(4), &json!("ann"))
    );
    follow(&session, &call);
    // A note of ann on a step of bob belongs to her.
    let steps = r#"decompose {"task": "TASK-001", "steps": [{"title": "more"}], "actor": "bob"}"#;
    ok(&session, steps);
    ok(
        &session,
        r#"note {"task": "TASK-001", "path": "s:3", "note": "n", "actor": "ann"}"#,
    );
    let err = refused(&session, r#"undo {"actor": "bob"}"#);
    assert!(
        err.message
            .ends_with("which would no longer exist; operation 6 of ann created it"),
        "{}",
        err.message
    );
    assert_eq!(err.next_call.unwrap().tool, "tasks_history");
}
