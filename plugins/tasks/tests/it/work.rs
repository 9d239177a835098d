//! Promises of single tools.

use serde_json::{Value, json};

use crate::harness::{THREE_STEPS, after, ok, refused, texts};

#[test]
fn security_perf_and_docs_are_wanted_when_declared_linked_or_named() {
    let session = after(&[THREE_STEPS]);
    let close = |path: &str| {
        refused(
            &session,
            &format!(r#"close_step {{"task": "TASK-001", "path": "{path}", "checkpoints": "gate"}}"#),
        )
        .message
    };
    ok(
        &session,
        r#"define {"task": "TASK-001", "path": "s:0", "checkpoints": ["perf"]}"#,
    );
    assert_eq!(close("s:0"), "checkpoint `perf` of step s:0 is not confirmed");
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:1", "checkpoint": "docs", "attachments": ["README.md"]}"#,
    );
    assert_eq!(close("s:1"), "checkpoint `docs` of step s:1 is not confirmed");
    let named = r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": {"criteria": {"confirmed": true}, "tests": {"confirmed": true}, "security": {"confirmed": false}}}"#;
    assert_eq!(
        refused(&session, named).message,
        "checkpoint `security` of step s:2 is not confirmed"
    );
    for path in ["s:0", "s:1"] {
        ok(
            &session,
            &format!(r#"close_step {{"task": "TASK-001", "path": "{path}", "checkpoints": "all"}}"#),
        );
    }
    let neither =
        r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": {"docs": {"confirmed": true}}}"#;
    assert_eq!(refused(&session, neither).code, "CHECKPOINTS_NOT_CONFIRMED");
    let half =
        r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": {"criteria": {"confirmed": true}}}"#;
    assert_eq!(
        refused(&session, half).message,
        "checkpoint `tests` of step s:2 is not confirmed"
    );
    assert_eq!(
        ok(&session, r#"mirror {"task": "TASK-001", "path": "s:2"}"#)["steps"][0].get("confirmed"),
        None
    );
}

#[test]
fn force_is_for_progress_alone_needs_a_reason_and_does_not_complete_the_task() {
    let session = after(&[THREE_STEPS]);
    let force = |more: &str| {
        format!(r#"progress {{"task": "TASK-001", "path": "s:0", "completed": true, "force": true{more}}}"#)
    };
    assert_eq!(refused(&session, &force("")).code, "INVALID_ARGUMENTS");
    let forced = ok(&session, &force(r#", "reason": "no time", "events": true"#));
    assert_eq!(forced["events"][1]["data"]["forced"], "no time");
    for path in ["s:1", "s:2"] {
        ok(
            &session,
            &format!(r#"close_step {{"task": "TASK-001", "path": "{path}", "checkpoints": "gate"}}"#),
        );
    }
    assert_eq!(
        refused(&session, r#"complete {"task": "TASK-001"}"#).code,
        "CHECKPOINTS_NOT_CONFIRMED"
    );
    let risks = ok(&session, r#"handoff {"task": "TASK-001"}"#)["risks"].clone();
    assert_eq!(risks, json!(["s:0 one: closed without its checkpoints: no time"]));
    ok(
        &session,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    ok(&session, r#"complete {"task": "TASK-001"}"#);
}

#[test]
fn new_criteria_take_their_confirmation_back() {
    let session = after(&[THREE_STEPS]);
    ok(
        &session,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    ok(
        &session,
        r#"define {"task": "TASK-001", "path": "s:0", "success_criteria": ["another"]}"#,
    );
    let step =
        || ok(&session, r#"mirror {"task": "TASK-001", "path": "s:0"}"#)["steps"][0]["confirmed"].clone();
    assert_eq!(step(), json!(["tests"]));
    ok(
        &session,
        r#"patch {"task": "TASK-001", "kind": "step", "path": "s:0", "ops": [{"op": "append", "field": "tests", "value": "more"}]}"#,
    );
    assert_eq!(step(), Value::Null);
}

#[test]
fn what_a_call_says_does_not_hold_is_taken_back() {
    let session = after(&[THREE_STEPS]);
    let confirmed =
        || ok(&session, r#"mirror {"task": "TASK-001", "path": "s:0"}"#)["steps"][0]["confirmed"].clone();
    ok(
        &session,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    let taken = ok(
        &session,
        r#"verify {"task": "TASK-001", "path": "s:0", "checkpoints": {"tests": {"confirmed": false}}, "events": true}"#,
    );
    assert_eq!(
        taken["events"][0]["data"],
        json!({"path": "s:0", "checkpoints": [], "withdrawn": ["tests"], "confirmed_before": {"tests": null}})
    );
    assert_eq!(confirmed(), json!(["criteria"]));
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(confirmed(), json!(["criteria", "tests"]));
    // What a call has named once stays required.
    for holds in [true, false] {
        let docs = format!(r#"{{"docs": {{"confirmed": {holds}}}}}"#);
        ok(
            &session,
            &format!(r#"verify {{"task": "TASK-001", "path": "s:0", "checkpoints": {docs}}}"#),
        );
    }
    assert_eq!(
        refused(&session, r#"done {"task": "TASK-001", "path": "s:0"}"#).message,
        "checkpoint `docs` of step s:0 is not confirmed"
    );
}

#[test]
fn reopening_a_step_reopens_what_is_above_it() {
    let session = after(&[
        THREE_STEPS,
        r#"decompose {"task": "TASK-001", "path": "s:0", "steps": [{"title": "below"}]}"#,
        r#"done {"task": "TASK-001", "path": "s:0.s:0"}"#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    ]);
    let reopened = ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:0.s:0", "completed": false, "events": true}"#,
    );
    let paths: Vec<&Value> = reopened["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| &event["data"]["path"])
        .collect();
    assert_eq!(paths, ["s:0.s:0", "s:0"]);
    let steps = ok(&session, r#"mirror {"task": "TASK-001"}"#)["steps"].clone();
    assert_eq!(
        (&steps[0]["status"], &steps[1]["status"]),
        (&json!("open"), &json!("open"))
    );
}

#[test]
fn closing_a_task_shows_first_and_does_all_or_nothing() {
    let session = after(&[THREE_STEPS]);
    for path in ["s:0", "s:1"] {
        ok(
            &session,
            &format!(r#"close_step {{"task": "TASK-001", "path": "{path}", "checkpoints": "gate"}}"#),
        );
    }
    let patches =
        r#""patches": [{"kind": "task_detail", "ops": [{"op": "set", "field": "title", "value": "new"}]}]"#;
    assert_eq!(
        refused(
            &session,
            &format!(r#"close_task {{"task": "TASK-001", "apply": true, {patches}}}"#)
        )
        .code,
        "CHILDREN_OPEN"
    );
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:2", "checkpoints": "gate"}"#,
    );
    let shown = ok(
        &session,
        &format!(r#"close_task {{"task": "TASK-001", {patches}}}"#),
    );
    assert_eq!(
        (&shown["applied"], &shown["revision"]),
        (&json!(false), &json!(4))
    );
    let fields: Vec<&str> = shown["diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["title", "status", "done_at"]);
    assert_eq!(ok(&session, r#"radar {"task": "TASK-001"}"#)["revision"], 4);
    let closed = ok(
        &session,
        &format!(r#"close_task {{"task": "TASK-001", "apply": true, "expected_revision": 4, {patches}}}"#),
    );
    assert_eq!(
        (&closed["applied"], &closed["revision"]),
        (&json!(true), &json!(5))
    );
    assert_eq!(closed["next_calls"][0]["arguments"]["task"], "PLAN-001");
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(
        ok(&session, r#"resume {"task": "TASK-001"}"#)["detail"]["title"],
        "T"
    );
}

#[test]
fn a_plan_has_a_checklist_and_a_contract() {
    let session = after(&[THREE_STEPS]);
    ok(
        &session,
        r#"plan {"plan": "PLAN-001", "steps": ["x", "y"], "doc": "how"}"#,
    );
    let moved = ok(
        &session,
        r#"plan {"plan": "PLAN-001", "advance": true, "events": true}"#,
    );
    assert_eq!(moved["events"][0]["data"], json!({"current": 1, "entries": 2}));
    ok(&session, r#"plan {"plan": "PLAN-001", "advance": true}"#);
    assert_eq!(
        refused(&session, r#"plan {"plan": "PLAN-001", "advance": true}"#).code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        refused(&session, r#"plan {"plan": "PLAN-001", "current": 3}"#).code,
        "INVALID_ARGUMENTS"
    );
    ok(
        &session,
        r#"contract {"plan": "PLAN-001", "current": "we promise", "contract_data": {"version": 1}}"#,
    );
    assert_eq!(ok(&session, r#"radar {"plan": "PLAN-001"}"#)["why"], "we promise");
    ok(&session, r#"contract {"plan": "PLAN-001", "clear": true}"#);
    let detail = ok(&session, r#"resume {"plan": "PLAN-001"}"#)["detail"].clone();
    assert_eq!(
        (detail.get("contract"), detail.get("contract_data")),
        (None, None)
    );
}

#[test]
fn templates_make_work_that_can_be_gated() {
    let session = after(&[]);
    let list = ok(&session, "templates_list {}");
    let names = texts(&list["templates"], "name");
    assert_eq!(
        names,
        [
            "basic-task",
            "basic-plan",
            "bug-fix",
            "principal-plan",
            "principal-task",
            "refactor",
            "release"
        ]
    );
    for name in names {
        let plan = if name.ends_with("-plan") {
            ""
        } else {
            r#", "plan_title": "P""#
        };
        let made = ok(
            &session,
            &format!(r#"scaffold {{"template": "{name}", "title": "T"{plan}}}"#),
        );
        for task in made["tasks"].as_array().unwrap() {
            let lint = ok(&session, &format!(r#"lint {{"task": {task}}}"#));
            assert_eq!(lint["issues"], json!([]), "{name}");
        }
    }
    let steps = r#""steps": [{"task": "a", "title": "s", "success_criteria": ["c"], "tests": ["t"]},
        {"task": "b", "title": "s", "success_criteria": ["c"], "tests": ["t"]}]"#;
    ok(
        &session,
        &format!(r#"template_save {{"name": "ours", "kind": "plan", "description": "d", {steps}}}"#),
    );
    assert_eq!(
        ok(&session, r#"scaffold {"template": "ours", "title": "mine"}"#)["tasks"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let other = r#"scaffold {"workspace": "other", "template": "ours", "title": "x"}"#;
    assert_eq!(refused(&session, other).code, "NOT_FOUND");
    ok(&session, r#"undo {}"#);
    ok(&session, r#"undo {}"#);
    assert_eq!(
        refused(&session, r#"scaffold {"template": "ours", "title": "mine"}"#).code,
        "NOT_FOUND"
    );
}

#[test]
fn a_workspace_has_templates_of_its_own_up_to_a_number() {
    let session = after(&[]);
    let save = |name: &str, title: &str, kind: &str, task: &str| {
        let step = format!(r#"{{"title": "{title}", "success_criteria": ["c"], "tests": ["t"]{task}}}"#);
        format!(
            r#"template_save {{"name": "{name}", "kind": "{kind}", "description": "d", "steps": [{step}]}}"#
        )
    };
    let task = r#", "task": "a""#;
    assert_eq!(
        refused(&session, &save("x", "s", "task", task)).code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        refused(&session, &save("x", "s", "plan", "")).code,
        "INVALID_ARGUMENTS"
    );
    ok(&session, &save("bug-fix", "ours", "task", ""));
    let scaffold = r#"scaffold {"template": "bug-fix", "title": "T", "plan_title": "P"}"#;
    ok(&session, scaffold);
    let mirror = ok(&session, r#"mirror {"task": "TASK-001"}"#);
    assert_eq!(mirror["steps"].as_array().unwrap().len(), 1);
    assert_eq!(mirror["steps"][0]["title"], "ours");
    assert_eq!(mirror["steps"][0]["tests"], json!(["t"]));
    let into = r#"scaffold {"template": "basic-plan", "title": "T", "plan": "PLAN-001"}"#;
    assert_eq!(refused(&session, into).code, "INVALID_ARGUMENTS");
    for n in 1..100 {
        ok(&session, &save(&format!("t{n}"), "s", "task", ""));
    }
    assert_eq!(
        refused(&session, &save("t100", "s", "task", "")).code,
        "INVALID_ARGUMENTS"
    );
    ok(&session, &save("t99", "replaced", "plan", task));
    let listed = ok(&session, "templates_list {}");
    assert_eq!(listed["templates"].as_array().unwrap().len(), 107);
    let elsewhere = ok(&session, r#"templates_list {"workspace": "other"}"#);
    assert_eq!(elsewhere["templates"].as_array().unwrap().len(), 7);
}

#[test]
fn lists_go_on_from_a_cursor() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for n in 0..7 {
        ok(
            &session,
            &format!(r#"create {{"title": "t{n}", "plan": "PLAN-001"}}"#),
        );
    }
    let (mut cursor, mut seen) = (0, Vec::new());
    for reads in 0.. {
        assert!(reads < 10, "the cursor stands still");
        // The earlier name is still accepted.
        let name = if reads % 2 == 0 { "cursor" } else { "after" };
        let page = ok(
            &session,
            &format!(r#"context {{"kind": "task", "limit": 3, "{name}": {cursor}, "max_chars": 600}}"#),
        );
        seen.extend(
            page["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["number"].as_i64().unwrap()),
        );
        cursor = page["next_cursor"].as_i64().unwrap();
        if page["has_more"] == json!(false) && page["budget"]["truncated"] == json!(false) {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(
        ok(&session, r#"context {"status": ["DONE"]}"#)["entries"],
        json!([])
    );
    for name in ["cursor", "after"] {
        let refused = refused(&session, &format!(r#"context {{"{name}": 1}}"#));
        assert_eq!(refused.code, "INVALID_ARGUMENTS");
        assert_eq!(refused.blockers[0].field.as_deref(), Some(name));
    }
    // The schema forbids it, and nobody has to have checked it.
    let twice = r#"{"workspace": "w", "kind": "task", "status": ["TODO", "TODO"]}"#;
    let listed = session.call("tasks_context", twice).unwrap();
    let listed: Value = serde_json::from_str(&listed.structured).unwrap();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 7);
    assert_eq!(ok(&session, "storage {}")["tasks"], 7);
}
