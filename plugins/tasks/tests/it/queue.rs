//! The queue, taking from it, and the views that agree with it.

use serde_json::{Value, json};

use crate::harness::{THREE_STEPS, after, follow, ok, refused};

fn paths(queue: &Value) -> Vec<String> {
    let ready = queue["ready"].as_array().unwrap().iter();
    ready
        .map(|entry| {
            let place = entry.pointer("/node/path").or(entry.pointer("/step/path"));
            format!(
                "{} {}",
                entry["task"].as_str().unwrap(),
                place.and_then(Value::as_str).unwrap_or("complete")
            )
        })
        .collect()
}

#[test]
fn a_step_with_open_nodes_is_not_ready_but_its_nodes_are() {
    let session = after(&[
        THREE_STEPS,
        r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n"}"#,
    ]);
    for status in ["ACTIVE", "DONE"] {
        let queue = ok(&session, "next {}");
        assert_eq!(paths(&queue), ["TASK-001 s:0.t:0"]);
        let call = serde_json::from_value(queue["ready"][0]["next_call"].clone()).unwrap();
        follow(&session, &call);
        assert_eq!(call.arguments["status"], status);
    }
    assert_eq!(paths(&ok(&session, "next {}")), ["TASK-001 s:0"]);
    assert_eq!(ok(&session, r#"mirror {"task": "TASK-001"}"#)["status"], "ACTIVE");
}

#[test]
fn two_agents_share_a_task() {
    let session = after(&[THREE_STEPS]);
    let take = |owner: &str| ok(&session, &format!(r#"take {{"owner": "{owner}"}}"#));
    let first = take("ann");
    assert_eq!(
        (&first["step"]["path"], &first["success_criteria"]),
        (&json!("s:0"), &json!(["c1"]))
    );
    assert_eq!(
        take("ann")["step"]["path"],
        "s:0",
        "who holds a step gets it again"
    );
    assert_eq!(paths(&ok(&session, r#"next {"owner": "bob"}"#)), ["TASK-001 s:1"]);
    assert_eq!(take("bob")["step"]["path"], "s:1");
    assert_eq!(take("cy")["step"]["path"], "s:2");
    let nothing = take("dan");
    assert_eq!(nothing["taken"], false);
    assert_eq!(
        nothing["waits_for"],
        json!([
            "TASK-001 waits for step s:0, which is leased to ann; step s:1, which is leased to bob; step s:2, which is leased to cy"
        ])
    );
    assert_eq!(refused(&session, "take {}").code, "INVALID_ARGUMENTS");
    let close = r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "owner": "ann"}"#;
    ok(&session, close);
    assert_eq!(take("ann")["taken"], false);
}

#[test]
fn completion_is_work_and_the_views_say_so() {
    let session = after(&[THREE_STEPS]);
    for path in ["s:0", "s:1", "s:2"] {
        let close = format!(r#"close_step {{"task": "TASK-001", "path": "{path}", "checkpoints": "gate"}}"#);
        ok(&session, &close);
    }
    for (ready, next) in [
        ("TASK-001 complete", "Every step is closed; complete the task."),
        ("PLAN-001 complete", "Every task is finished; complete the plan."),
    ] {
        let queue = ok(&session, "next {}");
        assert_eq!(paths(&queue), [ready]);
        let radar = ok(&session, r#"radar {"plan": "PLAN-001"}"#);
        assert_eq!(radar["next"], next);
        assert_eq!(radar["next_calls"][0], queue["ready"][0]["next_call"]);
        assert_eq!(
            ok(&session, r#"handoff {"plan": "PLAN-001"}"#)["radar"]["next"],
            next
        );
        assert_eq!(
            ok(&session, r#"resume_pack {"plan": "PLAN-001"}"#)["radar"]["next"],
            next
        );
        follow(
            &session,
            &serde_json::from_value(radar["next_calls"][0].clone()).unwrap(),
        );
    }
    assert_eq!(paths(&ok(&session, "next {}")), [""; 0]);
}

#[test]
fn parked_canceled_and_waiting_plans_have_no_ready_work() {
    let session = after(&[
        THREE_STEPS,
        r#"create {"title": "Q"}"#,
        r#"edit {"task": "PLAN-001", "depends_on": ["PLAN-002"]}"#,
    ]);
    let queue = ok(&session, "next {}");
    assert_eq!(paths(&queue), [""; 0]);
    assert_eq!(
        queue["blocked"][0]["waits_for"],
        json!(["PLAN-002, which is TODO"])
    );
    assert_eq!(
        ok(&session, r#"radar {"task": "TASK-001"}"#)["next"],
        "Finish PLAN-002 first, which is TODO."
    );
    ok(&session, r#"edit {"task": "PLAN-001", "depends_on": []}"#);
    assert_eq!(paths(&ok(&session, "next {}")), ["TASK-001 s:0"]);
    for status in ["PARKED", "CANCELED"] {
        ok(
            &session,
            &format!(r#"complete {{"task": "PLAN-001", "status": "{status}"}}"#),
        );
        let queue = ok(&session, "next {}");
        assert_eq!(
            (&queue["ready"], &queue["blocked"]),
            (&json!([]), &json!([])),
            "{status}"
        );
    }
    // Canceling a plan cancels what was open in it, and one undo takes both back.
    assert_eq!(
        ok(&session, r#"mirror {"task": "TASK-001"}"#)["status"],
        "CANCELED"
    );
    ok(&session, r#"undo {"task": "PLAN-001"}"#);
    assert_eq!(ok(&session, r#"mirror {"task": "TASK-001"}"#)["status"], "TODO");
}

#[test]
fn every_task_is_ranked() {
    let session = after(&[r#"create {"title": "P"}"#]);
    let step = r#""steps": [{"title": "s", "tests": ["t"]}]"#;
    for n in 0..230 {
        let priority = if n == 229 { "LOW" } else { "MEDIUM" };
        ok(
            &session,
            &format!(r#"create {{"title": "t", "plan": "PLAN-001", "priority": "{priority}", {step}}}"#),
        );
    }
    let first = || paths(&ok(&session, r#"next {"limit": 1}"#))[0].clone();
    assert_eq!(first(), "TASK-001 s:0");
    ok(&session, r#"edit {"task": "TASK-230", "priority": "CRITICAL"}"#);
    assert_eq!(first(), "TASK-230 s:0");
    assert_eq!(ok(&session, r#"next {"limit": 1}"#)["has_more"], true);
}

#[test]
fn risks_of_a_plan_are_those_of_its_tasks() {
    let session = after(&[
        THREE_STEPS,
        r#"create {"title": "U", "plan": "PLAN-001", "depends_on": ["TASK-001"]}"#,
        r#"block {"task": "TASK-001", "path": "s:0", "reason": "no key"}"#,
        r#"progress {"task": "TASK-001", "path": "s:1", "completed": true, "force": true, "reason": "no time"}"#,
        r#"note {"task": "TASK-001", "note": "use ISO dates", "decision": true}"#,
    ]);
    assert_eq!(
        ok(&session, r#"handoff {"plan": "PLAN-001"}"#)["risks"],
        json!([
            "TASK-001 s:0 one: blocked: no key",
            "TASK-001 s:1 two: closed without its checkpoints: no time"
        ])
    );
    for view in ["resume_pack", "context_pack"] {
        let pack = ok(&session, &format!(r#"{view} {{"plan": "PLAN-001"}}"#));
        assert_eq!(pack["decisions"][0]["text"], "use ISO dates", "{view}");
    }
    for line in [
        r#"block {"task": "TASK-001", "path": "s:0", "blocked": false}"#,
        r#"verify {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
        r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": "gate"}"#,
        r#"complete {"task": "TASK-001"}"#,
        r#"complete {"task": "TASK-002", "allow_empty": true}"#,
    ] {
        ok(&session, line);
    }
    // No call leads to this state, but data of earlier versions can have it.
    for table in [
        "tasks_records SET body = replace(body, '\"DONE\"', '\"ACTIVE\"'),",
        "tasks_roots SET",
    ] {
        session.sql(&format!("UPDATE {table} status = 'ACTIVE' WHERE id = 'TASK-001'"));
    }
    assert_eq!(
        ok(&session, r#"handoff {"plan": "PLAN-001"}"#)["risks"],
        json!(["TASK-002 is DONE, but depends on TASK-001, which is ACTIVE"])
    );
}

#[test]
fn a_parked_plan_leaves_the_queue_and_refuses_no_named_work() {
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "t", "plan": "PLAN-001", "steps": [{"title": "s"}]}"#,
        r#"complete {"task": "PLAN-001", "status": "PARKED"}"#,
    ]);
    assert_eq!(ok(&session, "next {}")["ready"], json!([]));
    assert_eq!(ok(&session, r#"take {"actor": "ann"}"#)["taken"], false);
    ok(&session, r#"done {"task": "TASK-001", "path": "s:0"}"#);
}
