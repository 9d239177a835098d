//! Calls that replies and refusals name: each is accepted as it is, in stories and in random work.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_sdk::NextCall;
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, ok};

/// Tries every call that a reply or refusal names, each in a transaction that is rolled back. Returns those that are
/// refused, and those that nobody asked for.
pub(crate) fn probe(session: &Session, said: &Value) -> Vec<String> {
    let mut calls = Vec::new();
    collect(said, &mut calls);
    let mut faults = Vec::new();
    for call in calls {
        let arguments = Value::Object(call.arguments.clone());
        session.sql("SAVEPOINT probe");
        if let Err(err) = session.call(&call.tool, &arguments.to_string()) {
            faults.push(format!("{} {arguments}: {err}", call.tool));
        }
        session.sql("ROLLBACK TO probe");
        session.sql("RELEASE probe");
        let forces = arguments.get("force").is_some();
        let creates = [
            "tasks_create",
            "tasks_bootstrap",
            "tasks_scaffold",
            "tasks_decompose",
        ];
        if forces || creates.contains(&call.tool.as_str()) {
            faults.push(format!("{} {arguments}: nobody asked for it", call.tool));
        }
    }
    faults
}

fn collect(value: &Value, calls: &mut Vec<NextCall>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let one = (name == "next_call").then_some(member);
                let many = member.as_array().filter(|_| name == "next_calls");
                let named = one.into_iter().chain(many.into_iter().flatten());
                let named = named.filter(|call| call.is_object());
                calls.extend(named.map(|call| serde_json::from_value::<NextCall>(call.clone()).unwrap()));
                collect(member, calls);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, calls)),
        _ => {}
    }
}

/// A workspace of several tasks: nodes, a step below a step, dependencies, and a second plan that waits.
pub(crate) const SETUP: [&str; 6] = [
    THREE_STEPS,
    r#"create {"title": "waits", "plan": "PLAN-001", "depends_on": ["TASK-001"], "steps": [{"title": "s", "tests": ["t"]}]}"#,
    r#"create {"title": "free", "plan": "PLAN-001", "steps": [{"title": "a"}, {"title": "b", "checkpoints": ["security"]}]}"#,
    r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "node"}"#,
    r#"decompose {"task": "TASK-001", "path": "s:1", "steps": [{"title": "below", "tests": ["t"]}]}"#,
    r#"bootstrap {"plan_title": "Q", "task_title": "U", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
];

pub(crate) const TASKS: [&str; 4] = ["TASK-001", "TASK-002", "TASK-003", "TASK-004"];
const PLANS: [&str; 2] = ["PLAN-001", "PLAN-002"];
pub(crate) const PATHS: [&str; 4] = ["s:0", "s:1", "s:2", "s:1.s:0"];
const OWNERS: [&str; 2] = ["ann", "bob"];
const STATUSES: [&str; 5] = ["TODO", "ACTIVE", "DONE", "PARKED", "CANCELED"];

/// Random choices, from which a call is made.
pub(crate) type Choice = (usize, usize, usize, usize, bool);

pub(crate) fn choice() -> impl Strategy<Value = Choice> {
    (0..35_usize, 0..4_usize, 0..4_usize, 0..20_usize, any::<bool>())
}

/// A call of any kind about anything. Names that do not exist are among them.
pub(crate) fn made(choice: Choice) -> (&'static str, Value) {
    let (kind, task, path, other, flag) = choice;
    let (task, plan) = (TASKS[task % 4], PLANS[task % 2]);
    let (path, status, owner) = (PATHS[path % 4], STATUSES[other % 5], OWNERS[other % 2]);
    let root = if flag { task } else { plan };
    let at = |more: Value| {
        let mut arguments = json!({"task": task, "path": path});
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        arguments
    };
    let said = [
        json!("gate"),
        json!("all"),
        json!({"security": true}),
        json!({"tests": false}),
    ];
    match kind {
        0 | 1 => (
            "close_step",
            at(json!({"checkpoints": said[other % 4], "owner": owner})),
        ),
        2 => ("done", at(json!({}))),
        3 => ("verify", at(json!({"checkpoints": said[other % 4]}))),
        4 => (
            "evidence_capture",
            at(json!({"items": [{"kind": "cmd_output", "title": "t", "exit_code": other % 2}]})),
        ),
        5 => ("step_claim", at(json!({"owner": owner}))),
        6 => ("step_release", at(json!({"owner": owner}))),
        7 => ("progress", at(json!({"completed": flag, "reason": "r"}))),
        8 => (
            "progress",
            at(json!({"completed": true, "force": true, "reason": "r"})),
        ),
        9 => ("block", at(json!({"blocked": flag}))),
        10 => ("complete", json!({"task": root, "status": status})),
        11 => ("complete", json!({"task": root})),
        12 => (
            "task_define",
            json!({"task": task, "path": format!("{path}.t:0"), "status": status}),
        ),
        13 => (
            "task_add",
            json!({"task": task, "parent_step": path, "title": "n"}),
        ),
        14 => (
            "decompose",
            at(json!({"steps": [{"title": "new", "tests": ["t"]}]})),
        ),
        15 => ("take", json!({"owner": owner})),
        16 => ("take", json!({"owner": owner, "plan": plan})),
        17 => ("edit", json!({"task": task, "depends_on": [TASKS[other % 4]]})),
        18 => (
            "edit",
            json!({"task": plan, "depends_on": if flag { json!([PLANS[other % 2]]) } else { json!([]) }}),
        ),
        19 => ("delete", json!({"task": task})),
        20 => ("next", json!({"owner": owner})),
        21 => ("radar", json!({"task": root})),
        22 => ("handoff", json!({"task": root})),
        23 => (
            "show",
            if flag {
                at(json!({}))
            } else {
                json!({"task": root})
            },
        ),
        24 => ("close_task", json!({"task": task, "apply": flag})),
        25 => ("search", json!({"query": "s"})),
        26 => ("radar", json!({"workspace": "ww", "task": root})),
        27 => (
            "undo",
            if flag {
                json!({"actor": owner})
            } else {
                json!({"task": root})
            },
        ),
        28 => ("redo", if flag { json!({"actor": owner}) } else { json!({}) }),
        29 => ("undo", json!({"operation": other})),
        30 => (
            "move",
            at(json!({"parent_step": PATHS[other % 4], "actor": owner})),
        ),
        31 => ("close_step", at(json!({"checkpoints": "all", "actor": owner}))),
        32 => (
            "evidence_capture",
            at(json!({"checks": ["seen"], "checkpoint": "docs", "actor": owner})),
        ),
        33 => ("take", json!({"actor": owner})),
        _ => ("delete", at(json!({}))),
    }
}

/// Makes a call and tries everything that its outcome names.
pub(crate) fn tried(session: &Session, tool: &str, mut arguments: Value) -> Vec<String> {
    if arguments.get("workspace").is_none() {
        arguments["workspace"] = json!("w");
    }
    let said = match session.call(&format!("tasks_{tool}"), &arguments.to_string()) {
        Ok(reply) => serde_json::from_str(&reply.structured).unwrap(),
        Err(err) => {
            assert!(err.next_call.is_some(), "{tool} {arguments}: {err:?}");
            json!(err)
        }
    };
    let faults = probe(session, &said).into_iter();
    faults
        .map(|fault| format!("after {tool} {arguments}: {fault}"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_that_is_named_is_accepted(
        choices in proptest::collection::vec(choice(), 1..40),
        required in any::<bool>(),
    ) {
        let session = after(&SETUP);
        let session = match required {
            true => session.config(&json!({"workspaces": {"w": {"evidence": "required"}}})),
            false => session,
        };
        for choice in choices {
            let (tool, arguments) = made(choice);
            prop_assert_eq!(tried(&session, tool, arguments), Vec::<String>::new());
            for (view, arguments) in [("next", json!({})), ("radar", json!({"task": "PLAN-001"}))] {
                prop_assert_eq!(tried(&session, view, arguments), Vec::<String>::new());
            }
        }
    }
}

#[test]
fn a_mistyped_workspace_leads_to_the_one_that_was_meant() {
    let session = after(&[r#"create {"workspace": "acme/repo", "title": "P"}"#]);
    let call = |name: &str| {
        let arguments = json!({"workspace": name, "task": "PLAN-001"});
        let err = session.call("tasks_radar", &arguments.to_string()).unwrap_err();
        assert_eq!(err.code, "NOT_FOUND");
        assert_eq!(probe(&session, &json!(err)), Vec::<String>::new());
        err.next_call.unwrap()
    };
    let near = call("acme/rpeo");
    assert_eq!(
        (near.tool.as_str(), &near.arguments["workspace"]),
        ("tasks_context", &json!("acme/repo"))
    );
    assert_eq!(call("elsewhere").tool, "tasks_workspaces");
}

#[test]
fn arguments_that_do_not_fit_are_listed_as_blockers() {
    let session = after(&[THREE_STEPS]);
    let err = session
        .call("tasks_radar", r#"{"workspace": "w", "max_chars": "x"}"#)
        .unwrap_err();
    assert_eq!((err.code.as_str(), err.blockers.len()), ("INVALID_ARGUMENTS", 1));
    let reply = session.call(
        "tasks_radar",
        r#"{"workspace": "w", "task": "TASK-001", "max_chars": 300.0}"#,
    );
    assert!(reply.unwrap().structured.contains("\"max_chars\":300"));
}

#[test]
fn what_has_to_be_reopened_in_order_is_shown_and_not_reopened() {
    let step = r#"[{"title": "s"}]"#;
    let session = after(&[
        r#"create {"title": "P"}"#,
        &format!(r#"create {{"title": "a", "plan": "PLAN-001", "steps": {step}}}"#),
        &format!(
            r#"create {{"title": "b", "plan": "PLAN-001", "depends_on": ["TASK-001"], "steps": {step}}}"#
        ),
        &format!(
            r#"create {{"title": "c", "plan": "PLAN-001", "depends_on": ["TASK-002"], "steps": {step}}}"#
        ),
    ]);
    for task in ["TASK-001", "TASK-002", "TASK-003"] {
        ok(&session, &format!(r#"done {{"task": "{task}", "path": "s:0"}}"#));
        ok(&session, &format!(r#"complete {{"task": "{task}"}}"#));
    }
    ok(&session, r#"complete {"task": "PLAN-001"}"#);
    // Whoever decides to reopen what is shown gets there.
    let reopen = json!({"workspace": "w", "task": "TASK-001", "path": "s:0", "completed": false});
    let mut followed = Vec::new();
    while let Err(err) = session.call("tasks_progress", &reopen.to_string()) {
        assert_eq!(probe(&session, &json!(err)), Vec::<String>::new());
        let call = err.next_call.unwrap();
        assert_eq!(call.tool, "tasks_show");
        let id = call.arguments["task"].as_str().unwrap().to_owned();
        ok(
            &session,
            &format!(r#"complete {{"task": "{id}", "status": "TODO"}}"#),
        );
        followed.push(id);
    }
    assert_eq!(followed, ["PLAN-001", "TASK-003", "TASK-002"]);
}

#[test]
fn a_step_that_moves_below_a_later_one_is_where_the_reply_says() {
    let session = after(&[THREE_STEPS]);
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "path": "s:2", "steps": [{"title": "four"}, {"title": "five"}]}"#,
    );
    for (path, parent, to) in [
        ("s:0", "s:2.s:1", "s:1.s:1.s:0"),
        ("s:1.s:0", "s:1.s:1", "s:1.s:0.s:1"),
        ("s:0", "s:1", "s:0.s:1"),
        ("s:0.s:0.s:1", "s:0.s:1", "s:0.s:1.s:0"),
    ] {
        let moved = ok(
            &session,
            &format!(r#"move {{"task": "TASK-001", "path": "{path}", "parent_step": "{parent}"}}"#),
        );
        assert_eq!(moved["step"]["path"], to, "{path} below {parent}");
        let there = ok(
            &session,
            &format!(r#"show {{"task": "TASK-001", "path": "{to}"}}"#),
        );
        assert_eq!(there["parts"][0]["id"], moved["step"]["step_id"]);
    }
}
