//! The list of refusals, code by code: each call ends in its code, says all it has to, and leaves every row as it
//! was, called alone as well as in a batch whose other members hold.

mod rest;
mod state;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_sdk::ToolError;
use tollgate_sdk::native::Session;

use self::rest::{bad_arguments, the_rest};
use self::state::{gates, targets};
use crate::harness::{THREE_STEPS, after, call_tool};
use crate::offers::probe;

/// Every code that the pack refuses with.
const CODES: [&str; 21] = [
    "BATCH_FAILED",
    "BUDGET_TOO_SMALL",
    "CHECKPOINTS_NOT_CONFIRMED",
    "CHILDREN_OPEN",
    "DEPENDENCY_CYCLE",
    "DEPENDENCY_OPEN",
    "EVIDENCE_REQUIRED",
    "EVIDENCE_TOO_LARGE",
    "INVALID_ARGUMENTS",
    "NOTHING_TO_REDO",
    "NOTHING_TO_UNDO",
    "NOT_FOUND",
    "NOT_OPEN",
    "NO_STEPS",
    "REVISION_MISMATCH",
    "STEP_BLOCKED",
    "STEP_CLOSED",
    "STEP_LEASE_HELD",
    "STEP_LEASE_NOT_HELD",
    "TARGET_MISMATCH",
    "UNDO_CONFLICT",
];

/// A second task that waits for the first, one without steps, and one of another plan.
const MORE_TASKS: [&str; 4] = [
    r#"create {"title": "waits", "plan": "PLAN-001", "depends_on": ["TASK-001"], "steps": [{"title": "s", "tests": ["t"]}]}"#,
    r#"create {"title": "empty", "plan": "PLAN-001", "depends_on": ["TASK-002"]}"#,
    r#"create {"title": "second plan", "depends_on": ["PLAN-001"]}"#,
    r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "node"}"#,
];

/// A call that is refused, after some that are not.
struct Row {
    code: &'static str,
    setup: &'static [&'static str],
    tool: &'static str,
    arguments: Value,
}

fn row(code: &'static str, tool: &'static str, arguments: Value) -> Row {
    after_some(&[], code, tool, arguments)
}

fn after_some(
    setup: &'static [&'static str],
    code: &'static str,
    tool: &'static str,
    arguments: Value,
) -> Row {
    Row {
        code,
        setup,
        tool,
        arguments,
    }
}

/// Everything that is stored, in an order.
fn stored(session: &Session) -> Vec<String> {
    [
        "workspaces",
        "roots",
        "records",
        "bodies",
        "operations",
        "operation_roots",
        "changes",
        "events",
        "envelopes",
    ]
    .iter()
    .flat_map(|table| session.sql(&format!("SELECT * FROM tasks_{table}")))
    .map(|row| format!("{row:?}"))
    .collect()
}

fn is_complete(err: &ToolError) {
    assert!(err.next_call.is_some(), "{err:?}");
    assert!(CODES.contains(&err.code.as_str()), "{err:?}");
    assert!(!err.blockers.is_empty(), "{err:?}");
    for blocker in &err.blockers {
        assert!(CODES.contains(&blocker.code.as_str()), "{err:?}");
    }
}

fn holds(row: &Row) {
    let mut setup = vec![THREE_STEPS];
    setup.extend(MORE_TASKS);
    setup.extend(row.setup);
    let session = after(&setup);
    let before = stored(&session);
    let name = format!("tasks_{}", row.tool);
    let at = row.arguments.to_string().chars().take(200).collect::<String>();
    let err = call_tool(&session, &name, row.arguments.clone()).expect_err(&at);
    assert_eq!(err.code, row.code, "{name} {at}: {err:?}");
    is_complete(&err);
    assert_eq!(probe(&session, &json!(err)), Vec::<String>::new(), "{name} {at}");
    assert_eq!(before, stored(&session), "{name} {at}");
    let elsewhere = row.arguments.get("workspace").is_some();
    if row.tool != "batch" && !elsewhere {
        // A member that fails must not have written by itself: nothing else takes it back.
        let operations = json!([{"tool": "tasks_workspaces"}, {"tool": name, "args": row.arguments}]);
        let ran = call_tool(&session, "tasks_batch", json!({"operations": operations})).unwrap();
        let ran: Value = serde_json::from_str(&ran.structured).unwrap();
        assert_eq!(ran["results"][1]["code"], row.code, "{name} {at}");
        assert_eq!(before, stored(&session), "{name} {at} in a batch");
    }
}

fn all_hold(rows: &[Row]) {
    rows.iter().for_each(holds);
}

#[test]
fn what_names_the_wrong_thing_or_an_old_state() {
    all_hold(&targets());
}

#[test]
fn what_the_gates_keep_out() {
    all_hold(&gates());
}

#[test]
fn leases_journal_bounds_and_batches() {
    all_hold(&the_rest());
}

#[test]
fn what_no_tool_takes() {
    all_hold(&bad_arguments());
}

#[test]
fn no_code_is_left_out() {
    let rows = [targets(), gates(), the_rest(), bad_arguments()];
    let mut met: BTreeSet<&str> = rows.iter().flatten().map(|row| row.code).collect();
    // Only a workspace that requires evidence has it: see the tests of evidence.
    met.insert("EVIDENCE_REQUIRED");
    assert_eq!(met, BTreeSet::from(CODES));
}
