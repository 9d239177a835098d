//! Every error code, each for the reason it is there.

use serde_json::json;
use tollgate_sdk::native::Session;
use tollgate_sdk::{NextCall, ToolError};

use crate::harness::{THREE_STEPS, after, follow, ok, refused};

fn codes(err: &ToolError) -> Vec<&str> {
    err.blockers.iter().map(|blocker| blocker.code.as_str()).collect()
}

#[test]
fn targets_are_explicit() {
    let session = after(&[THREE_STEPS, r#"create {"title": "second"}"#]);
    for line in [
        r#"done {"task": "TASK-001", "path": "s:0", "step_id": "STEP-00000002"}"#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "step_id": "STEP-00000002", "checkpoints": "gate"}"#,
        r#"block {"task": "TASK-001", "path": "s:1", "expected_target_id": "STEP-00000001"}"#,
        r#"delete {"task": "TASK-001", "expected_target_id": "TASK-002"}"#,
        r#"edit {"task": "TASK-001", "title": "x", "expected_target_id": "TASK-002"}"#,
        r#"decompose {"task": "TASK-001", "step_id": "STEP-00000001", "parent_step": "STEP-00000002", "steps": [{"title": "x"}]}"#,
        r#"create {"title": "x", "plan": "PLAN-001", "parent": "PLAN-002"}"#,
        r#"radar {"task": "TASK-001", "plan": "PLAN-002"}"#,
    ] {
        assert_eq!(refused(&session, line).code, "TARGET_MISMATCH", "{line}");
    }
    ok(&session, r#"radar {"task": "TASK-001", "plan": "PLAN-001"}"#);
    let add = r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n"}"#;
    let first = ok(&session, add)["node"]["task_node_id"].clone();
    ok(&session, add);
    for tool in ["task_define", "task_delete"] {
        let both = format!(r#"{tool} {{"task": "TASK-001", "path": "s:0.t:1", "task_node_id": {first}}}"#);
        assert_eq!(refused(&session, &both).code, "TARGET_MISMATCH");
    }
}

#[test]
fn what_is_not_there_is_unknown() {
    let session = after(&[THREE_STEPS]);
    for line in [
        r#"radar {"task": "TASK-009"}"#,
        r#"radar {"task": "nonsense"}"#,
        r#"done {"task": "TASK-001", "path": "s:3"}"#,
        r#"done {"task": "TASK-001", "path": "s:0.s:0"}"#,
        r#"done {"task": "TASK-001", "path": "s:4294967295"}"#,
        r#"done {"task": "TASK-001", "step_id": "STEP-ZZZZZZZZ"}"#,
        r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "title": "x"}"#,
        r#"scaffold {"template": "none", "title": "x"}"#,
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-009"]}"#,
        r#"batch {"operations": [{"tool": "tasks_nothing"}]}"#,
    ] {
        assert_eq!(refused(&session, line).code, "NOT_FOUND", "{line}");
    }
    let elsewhere = refused(&session, r#"radar {"workspace": "other", "task": "TASK-001"}"#);
    assert_eq!(elsewhere.code, "NOT_FOUND");
    follow(&session, &elsewhere.next_call.unwrap());
}

#[test]
fn nothing_crosses_workspaces() {
    let session = after(&[THREE_STEPS, r#"create {"workspace": "other", "title": "theirs"}"#]);
    assert_eq!(
        refused(&session, r#"radar {"workspace": "other", "task": "TASK-001"}"#).code,
        "NOT_FOUND"
    );
    assert_eq!(
        refused(
            &session,
            r#"done {"workspace": "other", "task": "TASK-001", "step_id": "STEP-00000001"}"#
        )
        .code,
        "NOT_FOUND"
    );
    let theirs = ok(&session, r#"delta {"workspace": "other"}"#);
    assert_eq!(theirs["events"].as_array().unwrap().len(), 1);
    assert_eq!(theirs["next_cursor"], 1);
    ok(&session, r#"undo {"workspace": "other"}"#);
    assert_eq!(
        refused(&session, r#"undo {"workspace": "other"}"#).code,
        "NOTHING_TO_UNDO"
    );
    assert_eq!(ok(&session, r#"radar {"task": "TASK-001"}"#)["revision"], 1);
    // The same numbers in both, and each finds its own.
    ok(&session, r#"redo {"workspace": "other"}"#);
    let steps = r#""steps": [{"title": "their step"}]"#;
    ok(
        &session,
        &format!(r#"create {{"workspace": "other", "plan": "PLAN-001", "title": "their task", {steps}}}"#),
    );
    for (workspace, title, step, count) in [("w", "T", "one", 3), ("other", "their task", "their step", 1)] {
        let at = |tool: &str, more: &str| {
            ok(
                &session,
                &format!(r#"{tool} {{"workspace": "{workspace}"{more}}}"#),
            )
        };
        let mirror = at("mirror", r#", "task": "TASK-001""#);
        assert_eq!(
            (&mirror["title"], mirror["steps"].as_array().unwrap().len()),
            (&json!(title), count)
        );
        let first = at("mirror", r#", "task": "TASK-001", "path": "s:0""#);
        assert_eq!(first["steps"][0]["title"], step);
        assert_eq!(at("context", "")["entries"].as_array().unwrap().len(), 2);
        assert_eq!(at("next", "")["ready"].as_array().unwrap().len(), 1);
    }
    ok(&session, r#"delete {"workspace": "other", "task": "PLAN-001"}"#);
    assert_eq!(
        ok(&session, r#"mirror {"task": "TASK-001"}"#)["steps"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let batch = r#"batch {"operations": [{"tool": "tasks_note", "args": {"workspace": "other", "task": "PLAN-001", "note": "x"}}]}"#;
    assert_eq!(refused(&session, batch).code, "INVALID_ARGUMENTS");
}

/// Every tool that changes a plan or task refuses a stale revision, and writes nothing.
#[test]
fn a_stale_revision_is_refused_by_every_write() {
    let session = after(&[
        THREE_STEPS,
        r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n"}"#,
        r#"note {"task": "PLAN-001", "note": "n"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:1", "owner": "me"}"#,
    ]);
    let rows = || session.sql("SELECT * FROM tasks_records ORDER BY kind, id");
    let before = rows();
    for line in [
        r#"edit {"task": "TASK-001", "title": "x""#,
        r#"decompose {"task": "TASK-001", "steps": [{"title": "x"}]"#,
        r#"define {"task": "TASK-001", "path": "s:0", "title": "x""#,
        r#"note {"task": "TASK-001", "note": "x""#,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "gate""#,
        r#"done {"task": "TASK-001", "path": "s:0""#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate""#,
        r#"complete {"task": "TASK-001""#,
        r#"close_task {"task": "TASK-001""#,
        r#"patch {"task": "TASK-001", "kind": "task_detail", "ops": [{"op": "set", "field": "title", "value": "x"}]"#,
        r#"delete {"task": "TASK-001""#,
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": true"#,
        r#"block {"task": "TASK-001", "path": "s:0""#,
        r#"plan {"plan": "PLAN-001", "steps": ["x"]"#,
        r#"contract {"plan": "PLAN-001", "current": "x""#,
        r#"undo {"task": "TASK-001""#,
        r#"redo {"task": "TASK-001""#,
        r#"evidence_capture {"task": "TASK-001", "checks": ["x"]"#,
        r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "x""#,
        r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "title": "x""#,
        r#"task_delete {"task": "TASK-001", "path": "s:0.t:0""#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "owner": "me""#,
        r#"step_renew {"task": "TASK-001", "path": "s:1", "owner": "me""#,
        r#"step_release {"task": "TASK-001", "path": "s:1", "owner": "me""#,
        r#"create {"title": "x", "plan": "PLAN-001""#,
        r#"bootstrap {"plan": "PLAN-001", "task_title": "x", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]"#,
        r#"scaffold {"plan": "PLAN-001", "template": "bug-fix", "title": "x""#,
    ] {
        let err = refused(&session, &format!("{line}, \"expected_revision\": 77}}"));
        assert_eq!(err.code, "REVISION_MISMATCH", "{line}");
        assert_eq!(err.context["expected"], 77, "{line}");
    }
    assert_eq!(before, rows());
}

#[test]
fn a_mismatch_tells_what_changed_and_where_to_look() {
    let session = after(&[THREE_STEPS]);
    ok(&session, r#"block {"task": "TASK-001", "path": "s:0"}"#);
    ok(&session, r#"note {"task": "TASK-001", "note": "n"}"#);
    ok(&session, r#"note {"task": "PLAN-001", "note": "another's"}"#);
    let err = refused(
        &session,
        r#"edit {"task": "TASK-001", "title": "x", "expected_revision": 1}"#,
    );
    assert_eq!(err.context["actual"], 3);
    assert_eq!(
        err.context["changed"],
        json!(["step_blocked STEP-00000001", "note_added"])
    );
    assert_eq!(err.context["more"], false);
    assert_eq!(follow(&session, &err.next_call.unwrap())["revision"], 3);
    for _ in 0..19 {
        ok(&session, r#"note {"task": "TASK-001", "note": "n"}"#);
    }
    let err = refused(
        &session,
        r#"edit {"task": "TASK-001", "title": "x", "expected_revision": 1}"#,
    );
    assert_eq!(err.context["changed"].as_array().unwrap().len(), 20);
    assert_eq!(err.context["more"], true, "it does not hide that there are more");
}

#[test]
fn every_reason_not_to_close_comes_at_once() {
    let session = after(&[
        THREE_STEPS,
        r#"define {"task": "TASK-001", "path": "s:0", "checkpoints": ["security"]}"#,
        r#"decompose {"task": "TASK-001", "path": "s:0", "steps": [{"title": "below"}]}"#,
        r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "node"}"#,
        r#"block {"task": "TASK-001", "path": "s:0", "reason": "waiting"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
    ]);
    let err = refused(
        &session,
        r#"done {"task": "TASK-001", "path": "s:0", "owner": "bob"}"#,
    );
    assert_eq!(
        codes(&err),
        [
            "STEP_LEASE_HELD",
            "CHECKPOINTS_NOT_CONFIRMED",
            "CHECKPOINTS_NOT_CONFIRMED",
            "CHECKPOINTS_NOT_CONFIRMED",
            "CHILDREN_OPEN",
            "CHILDREN_OPEN",
            "STEP_BLOCKED"
        ]
    );
    let tools = |err: &ToolError| -> Vec<String> {
        let calls = err
            .blockers
            .iter()
            .filter_map(|blocker| blocker.next_call.as_ref());
        calls.map(|call| call.tool.clone()).collect()
    };
    // Others' steps are neither confirmed nor taken over.
    let wanted = ["tasks_next", "tasks_show", "tasks_show", "tasks_task_define"];
    assert_eq!(tools(&err), wanted);
    let err = refused(
        &session,
        r#"done {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
    );
    // One call confirms all three.
    let wanted = ["tasks_verify", "tasks_show", "tasks_task_define", "tasks_show"];
    assert_eq!(tools(&err), wanted);
    let calls: Vec<NextCall> = err
        .blockers
        .iter()
        .filter_map(|blocker| blocker.next_call.clone())
        .collect();
    assert_eq!(calls[0].arguments["checkpoints"].as_object().unwrap().len(), 3);
    for call in &calls {
        follow(&session, call);
    }
    // Whether the obstacle is gone is not for a suggestion to say.
    ok(
        &session,
        r#"block {"task": "TASK-001", "path": "s:0", "blocked": false}"#,
    );
    ok(
        &session,
        r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "status": "DONE"}"#,
    );
    ok(&session, r#"done {"task": "TASK-001", "path": "s:0.s:0"}"#);
    ok(
        &session,
        r#"done {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
    );
}

#[test]
fn each_gate_alone_has_its_code() {
    let session = after(&[THREE_STEPS, r#"block {"task": "TASK-001", "path": "s:0"}"#]);
    assert_eq!(
        refused(
            &session,
            r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#
        )
        .code,
        "STEP_BLOCKED"
    );
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "path": "s:1", "steps": [{"title": "below"}]}"#,
    );
    assert_eq!(
        refused(
            &session,
            r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#
        )
        .code,
        "CHILDREN_OPEN"
    );
    assert_eq!(
        refused(&session, r#"complete {"task": "TASK-001"}"#).code,
        "CHILDREN_OPEN"
    );
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": "gate"}"#,
    );
    let under = r#"decompose {"task": "TASK-001", "path": "s:2", "steps": [{"title": "x"}]}"#;
    let err = refused(&session, under);
    assert_eq!(err.code, "STEP_CLOSED");
    assert_eq!(follow(&session, &err.next_call.unwrap())["step"]["path"], "s:2");
    ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:2", "completed": false}"#,
    );
    ok(&session, under);
    ok(&session, r#"complete {"task": "TASK-001", "status": "PARKED"}"#);
    let err = refused(&session, r#"done {"task": "TASK-001", "path": "s:0"}"#);
    assert!(codes(&err).contains(&"NOT_OPEN"), "{err:?}");
}

#[test]
fn a_task_without_steps_needs_leave_to_complete() {
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "T", "plan": "PLAN-001"}"#,
    ]);
    assert_eq!(
        refused(&session, r#"complete {"task": "TASK-001"}"#).code,
        "NO_STEPS"
    );
    ok(&session, r#"complete {"task": "TASK-001", "allow_empty": true}"#);
}

#[test]
fn dependencies_are_enforced_and_circles_refused() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for title in ["a", "b", "c"] {
        let steps = r#""steps": [{"title": "s", "tests": ["t"]}]"#;
        ok(
            &session,
            &format!(r#"create {{"title": "{title}", "plan": "PLAN-001", {steps}}}"#),
        );
    }
    ok(
        &session,
        r#"edit {"task": "TASK-003", "depends_on": ["TASK-001", "TASK-002"]}"#,
    );
    for line in [
        r#"complete {"task": "TASK-003", "status": "ACTIVE"}"#,
        r#"close_step {"task": "TASK-003", "path": "s:0", "checkpoints": "gate"}"#,
        r#"verify {"task": "TASK-003", "path": "s:0", "checkpoints": "gate"}"#,
    ] {
        let err = refused(&session, line);
        assert_eq!(codes(&err), ["DEPENDENCY_OPEN", "DEPENDENCY_OPEN"], "{line}");
    }
    let err = refused(
        &session,
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-003"]}"#,
    );
    assert_eq!(err.code, "DEPENDENCY_CYCLE");
    assert_eq!(err.context["cycle"], json!(["TASK-001", "TASK-003", "TASK-001"]));
    assert_eq!(
        refused(
            &session,
            r#"edit {"task": "TASK-001", "depends_on": ["TASK-001"]}"#
        )
        .code,
        "DEPENDENCY_CYCLE"
    );
    assert_eq!(
        refused(
            &session,
            r#"edit {"task": "TASK-001", "depends_on": ["PLAN-001"]}"#
        )
        .code,
        "INVALID_ARGUMENTS"
    );
    // What was given up counts as finished.
    ok(&session, r#"complete {"task": "TASK-001", "status": "CANCELED"}"#);
    ok(
        &session,
        r#"close_step {"task": "TASK-002", "path": "s:0", "checkpoints": "gate"}"#,
    );
    ok(&session, r#"complete {"task": "TASK-002"}"#);
    ok(&session, r#"complete {"task": "TASK-003", "status": "ACTIVE"}"#);
}

/// A session with two tasks, the second of which depends on the first.
fn one_after_the_other() -> Session {
    let session = after(&[r#"create {"title": "P"}"#]);
    for more in ["", r#", "depends_on": ["TASK-001"]"#] {
        let steps = r#""steps": [{"title": "s", "tests": ["t"]}]"#;
        ok(
            &session,
            &format!(r#"create {{"title": "t", "plan": "PLAN-001", {steps}{more}}}"#),
        );
    }
    session
}

#[test]
fn a_deleted_dependency_stays_open_until_it_is_taken_away() {
    let session = one_after_the_other();
    // Only data of earlier versions depends on what is gone.
    session.sql("DELETE FROM tasks_records WHERE id = 'TASK-001' OR root = 'TASK-001'");
    session.sql("UPDATE tasks_roots SET status = 'ABSENT' WHERE id = 'TASK-001'");
    let err = refused(&session, r#"complete {"task": "TASK-002", "status": "ACTIVE"}"#);
    assert_eq!(codes(&err), ["DEPENDENCY_OPEN"]);
    follow(&session, &err.next_call.unwrap());
    ok(&session, r#"edit {"task": "TASK-002", "depends_on": []}"#);
    ok(&session, r#"complete {"task": "TASK-002", "status": "ACTIVE"}"#);
}

#[test]
fn a_done_task_is_not_reopened_past_what_it_depends_on() {
    let session = one_after_the_other();
    for task in ["TASK-001", "TASK-002"] {
        ok(
            &session,
            &format!(r#"close_step {{"task": "{task}", "path": "s:0", "checkpoints": "gate"}}"#),
        );
        ok(&session, &format!(r#"complete {{"task": "{task}"}}"#));
    }
    let status = |task: &str| ok(&session, &format!(r#"mirror {{"task": "{task}"}}"#))["status"].clone();
    let reopen = |task: &str| format!(r#"progress {{"task": "{task}", "path": "s:0", "completed": false}}"#);
    let err = refused(&session, &reopen("TASK-001"));
    assert_eq!(codes(&err), ["DEPENDENT_DONE"]);
    ok(&session, &reopen("TASK-002"));
    assert_eq!(status("TASK-002"), "ACTIVE");
    ok(&session, &reopen("TASK-001"));
    assert_eq!(status("TASK-001"), "ACTIVE");
    // Its way back would be DONE over an open dependency.
    let err = refused(&session, r#"undo {"task": "TASK-002"}"#);
    assert_eq!(codes(&err), ["DEPENDENCY_OPEN"]);
    follow(&session, &err.next_call.unwrap());
    assert_eq!(status("TASK-002"), "ACTIVE");
}

#[test]
fn a_task_of_a_done_plan_is_reopened_after_its_plan() {
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "t", "plan": "PLAN-001", "steps": [{"title": "s", "tests": ["t"]}]}"#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
        r#"complete {"task": "TASK-001"}"#,
        r#"complete {"task": "PLAN-001"}"#,
    ]);
    // Another finished status leaves the plan what it is.
    ok(&session, r#"complete {"task": "TASK-001", "status": "CANCELED"}"#);
    ok(&session, r#"complete {"task": "TASK-001"}"#);
    let reopen = r#"progress {"task": "TASK-001", "path": "s:0", "completed": false}"#;
    for call in [
        reopen,
        r#"complete {"task": "TASK-001", "status": "ACTIVE"}"#,
        r#"complete {"task": "TASK-001", "status": "PARKED"}"#,
    ] {
        let err = refused(&session, call);
        assert_eq!(err.code, "NOT_OPEN", "{call}");
        assert!(
            err.message.contains("PLAN-001 is DONE"),
            "{call}: {}",
            err.message
        );
    }
    // Nor does it come back by taking its completion back, before the plan's is.
    let undo = r#"undo {"task": "TASK-001"}"#;
    ok(&session, undo);
    ok(&session, undo);
    let err = refused(&session, undo);
    assert_eq!(
        (err.code.as_str(), err.message.as_str()),
        ("NOT_OPEN", "PLAN-001 is DONE")
    );
    ok(&session, r#"undo {"task": "PLAN-001"}"#);
    ok(&session, undo);
    ok(&session, r#"complete {"task": "TASK-001"}"#);
    ok(&session, r#"complete {"task": "PLAN-001"}"#);
    follow(&session, &refused(&session, reopen).next_call.unwrap());
    ok(&session, r#"complete {"task": "PLAN-001", "status": "ACTIVE"}"#);
    ok(&session, reopen);
    let status = |id: &str| ok(&session, &format!(r#"mirror {{"task": "{id}"}}"#))["status"].clone();
    assert_eq!(
        (status("PLAN-001"), status("TASK-001")),
        (json!("ACTIVE"), json!("ACTIVE"))
    );
}

#[test]
fn leases_name_their_holder_expire_and_are_taken_over_for_a_reason() {
    let session = after(&[THREE_STEPS]);
    let claim = |owner: &str, more: &str| {
        format!(r#"step_claim {{"task": "TASK-001", "path": "s:0", "owner": "{owner}"{more}}}"#)
    };
    ok(&session, &claim("ada", r#", "events": 3"#));
    ok(&session, &claim("ada", r#", "events": 3"#));
    let err = refused(&session, &claim("bob", ""));
    assert_eq!(
        (err.code.as_str(), &err.context["holder"]),
        ("STEP_LEASE_HELD", &json!("ada"))
    );
    assert_eq!(
        refused(&session, &claim("bob", r#", "force": true"#)).code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        refused(
            &session,
            r#"step_release {"task": "TASK-001", "path": "s:0", "owner": "bob"}"#
        )
        .code,
        "STEP_LEASE_HELD"
    );
    let close = r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#;
    assert_eq!(refused(&session, close).code, "STEP_LEASE_HELD");
    ok(
        &session,
        &claim("bob", r#", "force": true, "reason": "ada left""#),
    );
    let delta = ok(&session, r#"delta {"task": "TASK-001"}"#);
    let last = delta["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["data"]["taken_from"], "ada");
    ok(
        &session,
        r#"step_renew {"task": "TASK-001", "path": "s:0", "owner": "bob", "events": 2}"#,
    );
    ok(&session, r#"note {"task": "TASK-001", "note": "1"}"#);
    assert_eq!(refused(&session, &claim("ada", "")).code, "STEP_LEASE_HELD");
    ok(&session, r#"note {"task": "TASK-001", "note": "2"}"#);
    assert_eq!(
        refused(
            &session,
            r#"step_renew {"task": "TASK-001", "path": "s:0", "owner": "bob"}"#
        )
        .code,
        "STEP_LEASE_NOT_HELD"
    );
    let leases = || {
        session
            .sql("SELECT 1 FROM tasks_records WHERE kind = 'lease'")
            .len()
    };
    ok(&session, &claim("ada", ""));
    ok(
        &session,
        r#"step_release {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
    );
    assert_eq!(leases(), 0);
    ok(&session, &claim("ada", ""));
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "owner": "ada"}"#,
    );
    assert_eq!(leases(), 0, "a closed step is nobody's");
}

#[test]
fn a_faulty_checkpoint_is_named_by_its_field() {
    let session = after(&[THREE_STEPS]);
    for (checkpoints, field, fault) in [
        (
            r#"{"bogus": {"confirmed": true}}"#,
            "checkpoints.bogus",
            "is not one of criteria, tests, security, perf, docs",
        ),
        (
            r#"{"tests": {"note": "n"}}"#,
            "checkpoints.tests",
            "is not {\"confirmed\": true}",
        ),
    ] {
        for tool in ["verify", "close_step"] {
            let line =
                format!(r#"{tool} {{"task": "TASK-001", "path": "s:0", "checkpoints": {checkpoints}}}"#);
            let err = refused(&session, &line);
            assert_eq!(err.code, "INVALID_ARGUMENTS");
            assert_eq!(err.blockers[0].field.as_deref(), Some(field));
            assert!(
                err.message.contains(fault) && !err.message.contains("column"),
                "{err}"
            );
            assert!(err.next_call.is_some());
        }
    }
}
