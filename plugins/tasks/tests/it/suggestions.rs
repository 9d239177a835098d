//! Suggestions that a stranger followed and should not have been given, and names that got lost on the way.

use serde_json::{Value, json};
use tollgate_sdk::NextCall;
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, call_tool, follow, ok, refused};
use crate::offers::probe;

/// The only next call of a reply. It is accepted.
fn next(session: &Session, reply: &Value) -> NextCall {
    assert_eq!(probe(session, reply), Vec::<String>::new());
    let calls = reply["next_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{reply}");
    serde_json::from_value(calls[0].clone()).unwrap()
}

fn tool(session: &Session, line: &str) -> String {
    let reply = ok(session, line);
    next(session, &reply).tool
}

#[test]
fn what_nobody_showed_anything_for_is_not_confirmed_on_the_side() {
    let step = r#"{"title": "s", "success_criteria": ["c"], "tests": ["t"], "checkpoints": ["security"]}"#;
    let begun = || {
        after(&[
            r#"create {"title": "P"}"#,
            &format!(r#"create {{"title": "T", "plan": "PLAN-001", "steps": [{step}]}}"#),
        ])
    };
    let capture = |checkpoint: &str| {
        format!(
            r#"evidence_capture {{"task": "TASK-001", "path": "s:0", "checks": ["c"], "checkpoint": "{checkpoint}"}}"#
        )
    };
    // One confirmation or one piece of evidence says nothing of the others.
    let session = begun();
    let verify =
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": {"security": {"confirmed": true}}}"#;
    assert_eq!(tool(&session, verify), "tasks_show");
    assert_eq!(tool(&session, &capture("perf")), "tasks_show");
    // Evidence for the tests speaks for the criteria, but perf is still open.
    let tests = ok(&session, &capture("tests"));
    let call = next(&session, &tests);
    assert_eq!(call.tool, "tasks_close_step");
    let said: Vec<&String> = call.arguments["checkpoints"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(said, ["criteria", "tests", "perf"]);
    follow(&session, &call);
    // A step that was closed by force is looked at first, and then confirmed as far as something was shown.
    let session = begun();
    let force =
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": true, "force": true, "reason": "r"}"#;
    assert_eq!(tool(&session, force), "tasks_show");
    let complete = || {
        refused(&session, r#"complete {"task": "TASK-001"}"#)
            .next_call
            .unwrap()
    };
    assert_eq!(complete().tool, "tasks_show");
    ok(&session, &capture("perf"));
    let call = complete();
    assert_eq!(
        (call.tool.as_str(), &call.arguments["checkpoints"]),
        ("tasks_verify", &json!({"perf": {"confirmed": true}}))
    );
    follow(&session, &call);
    assert_eq!(complete().tool, "tasks_show");
}

#[test]
fn the_name_of_the_caller_stays_in_the_calls_that_write() {
    let session = after(&[
        r#"bootstrap {"plan_title": "P", "task_title": "T", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}], "actor": "ann"}"#,
    ]);
    let task_add = r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n", "actor": "ann"}"#;
    let reply = ok(&session, task_add);
    let mut call = next(&session, &reply);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(call.tool.trim_start_matches("tasks_").to_owned());
        assert_eq!(call.arguments.get("actor"), Some(&json!("ann")), "{seen:?}");
        let reply = follow(&session, &call);
        if call.tool == "tasks_complete" && call.arguments["task"] == "PLAN-001" {
            break;
        }
        call = next(&session, &reply);
        if call.tool == "tasks_show" {
            let capture =
                r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checks": ["c"], "actor": "ann"}"#;
            let reply = ok(&session, capture);
            call = next(&session, &reply);
        }
    }
    assert_eq!(
        seen,
        [
            "task_define",
            "task_define",
            "step_claim",
            "close_step",
            "complete",
            "complete"
        ]
    );
    let history = ok(&session, "history {}");
    for entry in history["operations"].as_array().unwrap() {
        assert_eq!(entry["operation"]["actor"], "ann", "{entry}");
    }
}

#[test]
fn a_step_in_full_says_who_confirmed_forced_reopened_and_showed() {
    let session = after(&[
        THREE_STEPS,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checks": ["c"], "actor": "ann"}"#,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": {"criteria": {"confirmed": true}}, "actor": "bob"}"#,
    ]);
    let fact = |kind: &str, name: &str| {
        let shown = ok(&session, r#"show {"task": "TASK-001", "path": "s:0"}"#);
        let part = shown["parts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part["kind"] == kind);
        part.unwrap()["facts"][name].clone()
    };
    assert_eq!(fact("evidence", "actor"), "ann");
    assert_eq!(fact("checkpoint", "confirmed_by"), "bob");
    let progress = |more: &str| format!(r#"progress {{"task": "TASK-001", "path": "s:0", {more}}}"#);
    ok(
        &session,
        &progress(r#""completed": true, "force": true, "reason": "r", "actor": "cy""#),
    );
    assert_eq!(fact("forced", "actor"), "cy");
    ok(
        &session,
        &progress(r#""completed": false, "reason": "r", "actor": "dora""#),
    );
    assert_eq!(fact("reopened", "actor"), "dora");
}

#[test]
fn nothing_suggests_to_reverse_what_somebody_decided() {
    // What is blocked stays blocked.
    let block = r#"block {"task": "TASK-001", "path": "s:0", "reason": "waiting for legal"}"#;
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "T", "plan": "PLAN-001", "steps": [{"title": "s"}]}"#,
        block,
    ]);
    for line in [
        r#"radar {"task": "TASK-001"}"#,
        r#"note {"task": "TASK-001", "note": "n"}"#,
    ] {
        assert_eq!(tool(&session, line), "tasks_show", "{line}");
    }
    let err = refused(&session, r#"done {"task": "TASK-001", "path": "s:0"}"#);
    assert_eq!(
        (err.code.as_str(), err.next_call.unwrap().tool.as_str()),
        ("STEP_BLOCKED", "tasks_show")
    );
    // A plan whose only task is canceled has done nothing.
    let cancel = ok(&session, r#"complete {"task": "TASK-001", "status": "CANCELED"}"#);
    assert_eq!(next(&session, &cancel).tool, "tasks_show");
    assert_eq!(ok(&session, "next {}")["ready"], json!([]));
    let horizon = &ok(&session, r#"radar {"plan": "PLAN-001"}"#)["horizon"];
    assert_eq!((&horizon["done"], &horizon["canceled"]), (&json!(0), &json!(1)));
    // What is reopened for a review is not completed at once.
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "T", "plan": "PLAN-001", "steps": [{"title": "s"}]}"#,
        r#"done {"task": "TASK-001", "path": "s:0"}"#,
        r#"complete {"task": "TASK-001"}"#,
        r#"complete {"task": "PLAN-001"}"#,
    ]);
    for id in ["PLAN-001", "TASK-001"] {
        let reopen = format!(r#"complete {{"task": "{id}", "status": "ACTIVE", "reason": "review"}}"#);
        let reply = ok(&session, &reopen);
        assert_eq!(next(&session, &reply).tool, "tasks_show", "{id}");
        assert!(reply["next"].as_str().unwrap().starts_with("Check "), "{reply}");
    }
}

#[test]
fn every_faulty_field_of_bootstrapped_tasks_is_named() {
    let tasks = json!([
        {"title": "A", "steps": [{"title": "x"}, "y", {"title": 1, "success_criteria": [2], "tests": ["t"]}]},
        {"titel": "q", "steps": {}, "priority": "SOON", "depends_on": "A"},
    ]);
    let session = after(&[]);
    let call = |tasks: &Value| {
        call_tool(
            &session,
            "tasks_bootstrap",
            json!({"plan_title": "P", "tasks": tasks}),
        )
    };
    let err = call(&tasks).unwrap_err();
    let fields: Vec<&str> = err
        .blockers
        .iter()
        .map(|blocker| blocker.field.as_deref().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "tasks[0].steps[0].success_criteria",
            "tasks[0].steps[0].tests",
            "tasks[0].steps[1]",
            "tasks[0].steps[2].title",
            "tasks[0].steps[2].success_criteria",
            "tasks[1].titel",
            "tasks[1].title",
            "tasks[1].steps",
            "tasks[1].priority",
            "tasks[1].depends_on",
        ]
    );
    assert_eq!(
        err.blockers[5].message,
        "tasks[1].titel is unknown; the fields are title, steps, description, priority, depends_on"
    );
    assert!(!err.message.contains("column"), "{}", err.message);
    let fine = json!([{"title": "A", "description": null, "steps": [{"title": "x", "success_criteria": ["c"], "tests": ["t"]}]}]);
    call(&fine).unwrap();
}

#[test]
fn undo_says_what_it_undid() {
    let session = after(&[
        THREE_STEPS,
        r#"block {"task": "TASK-001", "path": "s:0", "reason": "r", "actor": "ann"}"#,
    ]);
    let wanted = json!([{"operation": 2, "tool": "tasks_block", "actor": "ann", "summary": "blocked step \"one\" of TASK-001 (r)"}]);
    let undone = ok(&session, "undo {}");
    assert_eq!(undone["reverted"], wanted);
    assert_eq!(undone["next"], "Do s:0: one");
    assert_eq!(ok(&session, "redo {}")["reverted"], wanted);
    let batch = r#"batch {"operations": [
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "a"}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "b"}}]}"#;
    ok(&session, batch);
    assert_eq!(ok(&session, "undo {}")["reverted"].as_array().unwrap().len(), 2);
    // What is undone can be gone.
    let session = after(&[THREE_STEPS]);
    assert_eq!(ok(&session, "undo {}").get("next"), None);
}

#[test]
fn replies_of_writes_say_what_comes_next() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for (line, tool) in [
        (
            r#"create {"title": "T", "plan": "PLAN-001", "actor": "ann"}"#,
            "tasks_show",
        ),
        (
            r#"decompose {"task": "TASK-001", "steps": [{"title": "a"}, {"title": "b"}], "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"define {"task": "TASK-001", "path": "s:0", "title": "other", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"move {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"note {"task": "TASK-001", "note": "n", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"edit {"task": "TASK-001", "title": "U", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"block {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (r#"undo {"actor": "ann"}"#, "tasks_step_claim"),
        (
            r#"delete {"task": "TASK-001", "path": "s:1", "actor": "ann"}"#,
            "tasks_step_claim",
        ),
        (
            r#"plan {"plan": "PLAN-001", "steps": ["x"], "actor": "ann"}"#,
            "tasks_step_claim",
        ),
    ] {
        let reply = ok(&session, line);
        assert!(reply["next"].is_string(), "{line}: {reply}");
        assert_eq!(next(&session, &reply).tool, tool, "{line}: {reply}");
    }
}

#[test]
fn small_things_that_strangers_tripped_over() {
    let session = after(&[
        THREE_STEPS,
        r#"note {"task": "TASK-001", "path": "s:1", "note": "below a step"}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    ]);
    // A note is shown without the step that it belongs to.
    let found = ok(&session, r#"search {"query": "below"}"#);
    let id = found["matches"][0]["id"].as_str().unwrap();
    let shown = ok(&session, &format!(r#"show {{"task": "TASK-001", "id": "{id}"}}"#));
    assert_eq!(
        (&shown["parts"][0]["text"], &shown["step"]["path"]),
        (&json!("below a step"), &json!("s:1"))
    );
    let elsewhere = format!(r#"show {{"task": "PLAN-001", "id": "{id}"}}"#);
    assert_eq!(refused(&session, &elsewhere).code, "NOT_FOUND");
    // The queue takes the name that all other tools take.
    let bob = ok(&session, r#"next {"actor": "bob"}"#);
    assert_eq!(bob, ok(&session, r#"next {"owner": "bob"}"#));
    assert_eq!(bob["ready"][0]["step"]["path"], "s:1");
    assert_eq!(
        refused(&session, r#"next {"owner": "bob", "actor": "ann"}"#).code,
        "TARGET_MISMATCH"
    );
    // The remedy names no argument that the tool has not got.
    let err = refused(&session, r#"take {"actor": "ann", "until": "connection"}"#);
    assert!(!err.message.contains("minutes"), "{}", err.message);
}

#[test]
fn no_suggestion_takes_back_what_others_decided() {
    let step = r#"[{"title": "s"}]"#;
    let session = after(&[
        r#"create {"title": "P"}"#,
        &format!(r#"create {{"title": "a", "plan": "PLAN-001", "steps": {step}}}"#),
        &format!(
            r#"create {{"title": "b", "plan": "PLAN-001", "depends_on": ["TASK-001"], "steps": {step}, "actor": "ann"}}"#
        ),
    ]);
    let shows = |line: &str, id: &str| {
        let err = refused(&session, line);
        let call = err.next_call.unwrap();
        assert_eq!(
            (call.tool.as_str(), &call.arguments["task"]),
            ("tasks_show", &json!(id)),
            "{line}"
        );
        follow(&session, &call);
    };
    shows(r#"delete {"task": "TASK-001", "actor": "bob"}"#, "TASK-002");
    shows(
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-002"], "actor": "bob"}"#,
        "TASK-002",
    );
    ok(
        &session,
        r#"done {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
    );
    ok(&session, r#"complete {"task": "TASK-001", "actor": "ann"}"#);
    ok(
        &session,
        r#"done {"task": "TASK-002", "path": "s:0", "actor": "bob"}"#,
    );
    ok(&session, r#"complete {"task": "TASK-002", "actor": "bob"}"#);
    shows(r#"undo {"actor": "ann"}"#, "TASK-002");
    ok(&session, r#"complete {"task": "PLAN-001", "actor": "bob"}"#);
    shows(
        r#"progress {"task": "TASK-002", "path": "s:0", "completed": false, "actor": "ann"}"#,
        "PLAN-001",
    );
}
