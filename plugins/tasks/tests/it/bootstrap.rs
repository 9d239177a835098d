//! Several tasks with dependencies in one call.

use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, call_tool, ok, refused};
use crate::offers::probe;

/// A task of a call: title, and titles or ids that it depends on.
fn task(title: &str, depends_on: &[&str]) -> Value {
    json!({"title": title, "depends_on": depends_on,
        "steps": [{"title": format!("do {title}"), "success_criteria": ["c"], "tests": ["t"]}]})
}

fn bootstrap(session: &Session, tasks: Vec<Value>) -> Result<Value, tollgate_sdk::ToolError> {
    let arguments = json!({"plan": "PLAN-001", "tasks": tasks, "actor": "ann"});
    let reply = call_tool(session, "tasks_bootstrap", arguments)?;
    Ok(serde_json::from_str(&reply.structured).unwrap())
}

fn depends_on(session: &Session, id: &str) -> Value {
    let detail = ok(session, &format!(r#"resume {{"task": "{id}"}}"#))["detail"].clone();
    detail.get("depends_on").cloned().unwrap_or(json!([]))
}

#[test]
fn tasks_name_each_other_by_title_in_any_order_and_others_by_id() {
    let session = after(&[THREE_STEPS]);
    let tasks = vec![
        task("Server", &["Storage", "TASK-001"]),
        task("Storage", &[]),
        task("Docs", &["Server"]),
    ];
    let made = bootstrap(&session, tasks).unwrap();
    assert_eq!(made["tasks"], json!(["TASK-002", "TASK-003", "TASK-004"]));
    assert_eq!(probe(&session, &made), Vec::<String>::new());
    assert_eq!(depends_on(&session, "TASK-002"), json!(["TASK-003", "TASK-001"]));
    assert_eq!(depends_on(&session, "TASK-004"), json!(["TASK-002"]));
    let next = ok(&session, r#"next {"plan": "PLAN-001"}"#);
    let ready: Vec<&Value> = next["ready"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["task"])
        .collect();
    assert_eq!(ready, ["TASK-001", "TASK-003"]);
    // One call is one operation, by whom it says.
    let history = ok(&session, r#"history {"limit": 1}"#);
    assert_eq!(history["operations"][0]["operation"]["actor"], "ann");
    ok(&session, "undo {}");
    for id in ["TASK-002", "TASK-003", "TASK-004"] {
        let line = format!(r#"radar {{"task": "{id}"}}"#);
        assert_eq!(refused(&session, &line).code, "NOT_FOUND");
    }
    ok(&session, "redo {}");
    assert_eq!(depends_on(&session, "TASK-002"), json!(["TASK-003", "TASK-001"]));
}

#[test]
fn what_cannot_be_is_refused_whole() {
    let session = after(&[THREE_STEPS]);
    let rows = || session.sql("SELECT kind, id, body FROM tasks_records ORDER BY kind, id");
    let before = rows();
    for (tasks, code) in [
        (vec![task("a", &["b"]), task("b", &["a"])], "DEPENDENCY_CYCLE"),
        (vec![task("a", &["a"])], "DEPENDENCY_CYCLE"),
        (
            vec![task("a", &["c"]), task("b", &["a"]), task("c", &["b"])],
            "DEPENDENCY_CYCLE",
        ),
        (vec![task("a", &["nobody"])], "NOT_FOUND"),
        (vec![task("a", &["PLAN-001"])], "INVALID_ARGUMENTS"),
        (vec![task("a", &[]), task("a", &[])], "INVALID_ARGUMENTS"),
        (
            vec![task("a", &[]), json!({"title": "b", "steps": []})],
            "INVALID_ARGUMENTS",
        ),
        (vec![task(" ", &[])], "INVALID_ARGUMENTS"),
    ] {
        let said = format!("{tasks:?}");
        let err = bootstrap(&session, tasks).unwrap_err();
        assert_eq!(err.code, code, "{said}: {err:?}");
        assert_eq!(probe(&session, &json!(err)), Vec::<String>::new(), "{said}");
        assert_eq!(rows(), before, "{said}");
    }
    let both = json!({"plan": "PLAN-001", "task_title": "x", "tasks": [task("a", &[])]});
    let err = call_tool(&session, "tasks_bootstrap", both).unwrap_err();
    assert_eq!(err.code, "INVALID_ARGUMENTS");
}

#[test]
fn fifty_tasks_in_a_row_start_one_after_the_other() {
    let session = after(&[THREE_STEPS]);
    let names: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let tasks: Vec<Value> = (0..50)
        .map(|number: usize| match number {
            0 => task(&names[0], &[]),
            _ => task(&names[number], &[&names[number - 1]]),
        })
        .collect();
    let made = bootstrap(&session, tasks).unwrap();
    assert_eq!(made["tasks"].as_array().unwrap().len(), 50);
    let next = ok(&session, r#"next {"plan": "PLAN-001", "limit": 50}"#);
    assert_eq!(
        next["ready"].as_array().unwrap().len(),
        2,
        "TASK-001 and the first of the row"
    );
    let line = r#"complete {"task": "TASK-051", "status": "ACTIVE"}"#;
    assert_eq!(refused(&session, line).code, "DEPENDENCY_OPEN");
    let one_more: Vec<Value> = (0..51).map(|number| task(&format!("u{number}"), &[])).collect();
    assert!(bootstrap(&session, one_more).is_err());
}
