//! Bad input: typed, complete, and nothing half done.

use serde_json::{Value, json};

use crate::harness::{THREE_STEPS, after, call_tool, fields, ok, refused};

#[test]
fn too_many_steps_leave_nothing() {
    let session = after(&[THREE_STEPS]);
    let steps: Vec<Value> = (0..10_000).map(|n| json!({"title": format!("s{n}")})).collect();
    let err = call_tool(
        &session,
        "tasks_decompose",
        json!({"task": "TASK-001", "steps": steps}),
    )
    .unwrap_err();
    assert_eq!(err.code, "INVALID_ARGUMENTS");
    assert_eq!(err.message, "steps has 10000 entries; at most 500 are allowed");
    assert_eq!(
        ok(&session, r#"radar {"task": "TASK-001"}"#)["progress"]["total"],
        3
    );
    let most: Vec<Value> = (0..500).map(|n| json!({"title": format!("s{n}")})).collect();
    call_tool(
        &session,
        "tasks_decompose",
        json!({"task": "TASK-001", "steps": most}),
    )
    .unwrap();
    assert_eq!(
        ok(&session, r#"radar {"task": "TASK-001"}"#)["progress"]["total"],
        503
    );
}

#[test]
fn large_and_blank_texts_are_refused() {
    let session = after(&[THREE_STEPS]);
    let note = json!({"task": "TASK-001", "note": "x".repeat(1_000_000)});
    let err = call_tool(&session, "tasks_note", note).unwrap_err();
    assert_eq!(
        err.message,
        "note has 1000000 characters; at most 16000 are allowed"
    );
    for note in ["", "  \n"] {
        let err = call_tool(&session, "tasks_note", json!({"task": "TASK-001", "note": note})).unwrap_err();
        assert_eq!(err.code, "INVALID_ARGUMENTS");
    }
    assert_eq!(
        ok(&session, r#"history {}"#)["operations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn control_characters_are_named() {
    let session = after(&[THREE_STEPS]);
    let step = json!({"title": "a\u{0}b", "success_criteria": ["\u{1b}[31m"], "tests": ["x\u{85}"], "blockers": ["fine\nhere\t"]});
    let err = call_tool(
        &session,
        "tasks_decompose",
        json!({"task": "TASK-001", "steps": [step]}),
    )
    .unwrap_err();
    assert_eq!(
        fields(&err),
        [
            "steps[0].title",
            "steps[0].success_criteria[0]",
            "steps[0].tests[0]"
        ]
    );
    assert_eq!(
        err.blockers[1].message,
        "steps[0].success_criteria[0] has the control character U+001B"
    );
}

#[test]
fn paths_are_checked_before_anything_is_looked_up() {
    let session = after(&[THREE_STEPS]);
    for path in [
        "",
        "s",
        "0",
        "s:-1",
        "s:x",
        "t:0",
        "s:0.t:0",
        "s:4294967296",
        "s:99999999999999999999999",
        "s:0/s:1",
    ] {
        let err = call_tool(&session, "tasks_done", json!({"task": "TASK-001", "path": path})).unwrap_err();
        assert_eq!(err.code, "INVALID_ARGUMENTS", "{path}");
    }
    assert_eq!(
        refused(&session, r#"done {"task": "TASK-001"}"#).code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        refused(&session, r#"done {"path": "s:0"}"#).code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        refused(&session, r#"done {"task": "PLAN-001", "path": "s:0"}"#).code,
        "INVALID_ARGUMENTS"
    );
}

#[test]
fn workspaces_are_names() {
    let session = after(&[]);
    for workspace in ["", "/x", "a b", "-a", "ä", "a\n", &"a".repeat(129)] {
        let err = call_tool(
            &session,
            "tasks_create",
            json!({"workspace": workspace, "title": "x"}),
        )
        .unwrap_err();
        assert_eq!(err.code, "INVALID_ARGUMENTS", "{workspace:?}");
    }
    call_tool(
        &session,
        "tasks_create",
        json!({"workspace": "acme/repo-1_x.y", "title": "x"}),
    )
    .unwrap();
}

#[test]
fn bootstrap_wants_steps_that_can_be_gated() {
    let session = after(&[]);
    let err = refused(
        &session,
        r#"bootstrap {"task_title": " ", "steps": [{"title": "a", "success_criteria": [], "tests": []}, {"title": "b", "success_criteria": ["c"], "tests": [" "]}]}"#,
    );
    assert_eq!(
        fields(&err),
        [
            "plan",
            "task_title",
            "steps[0].success_criteria",
            "steps[0].tests",
            "steps[1].tests[0]"
        ]
    );
    assert_eq!(
        refused(&session, "radar {\"task\": \"TASK-001\"}").code,
        "NOT_FOUND"
    );
    let both = r#"bootstrap {"plan": "PLAN-001", "plan_title": "x", "task_title": "t", "steps": [{"title": "b", "success_criteria": ["c"], "tests": ["t"]}]}"#;
    assert_eq!(refused(&session, both).code, "INVALID_ARGUMENTS");
}

#[test]
fn evidence_beyond_its_bounds_is_refused_with_sizes() {
    let session = after(&[THREE_STEPS]);
    let item = |bytes: usize| json!({"kind": "diff", "body": "x".repeat(bytes)});
    let capture = |items: Vec<Value>| {
        call_tool(
            &session,
            "tasks_evidence_capture",
            json!({"task": "TASK-001", "items": items}),
        )
    };
    capture(vec![item(256_000)]).unwrap();
    let err = capture(vec![item(1), item(256_001), item(300_000)]).unwrap_err();
    assert_eq!(err.code, "EVIDENCE_TOO_LARGE");
    assert_eq!(err.context["size"], 256_001);
    assert_eq!(err.blockers.len(), 2);
    assert_eq!(capture(vec![item(1); 21]).unwrap_err().context["size"], 21);
    capture(vec![item(1); 20]).unwrap();
    assert_eq!(capture(Vec::new()).unwrap_err().code, "INVALID_ARGUMENTS");
    assert_eq!(
        capture(vec![json!({"kind": "url"})]).unwrap_err().code,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(session.sql("SELECT 1 FROM tasks_bodies").len(), 21);
}

#[test]
fn patches_name_every_fault() {
    let session = after(&[THREE_STEPS]);
    let err = refused(
        &session,
        r#"patch {"task": "TASK-001", "kind": "step", "path": "s:0", "ops": [
            {"op": "set", "field": "nothing", "value": "x"}, {"op": "unset", "field": "title"}, {"op": "append", "field": "title", "value": "x"},
            {"op": "set", "field": "tests", "value": 7}, {"op": "remove", "field": "tests", "value": "absent"}, {"op": "set", "field": "title"}]}"#,
    );
    assert_eq!(
        fields(&err),
        [
            "ops[0].field",
            "ops[1].op",
            "ops[2].op",
            "ops[3].value",
            "ops[4].value",
            "ops[5].value"
        ]
    );
    let err = refused(
        &session,
        r#"patch {"task": "TASK-001", "kind": "task_detail", "ops": [{"op": "set", "field": "priority", "value": "BIG"}]}"#,
    );
    assert_eq!(err.code, "INVALID_ARGUMENTS");
}

#[test]
fn no_arguments_make_a_tool_panic() {
    let session = after(&[THREE_STEPS]);
    for tool in tasks::PACK.tools {
        for arguments in [
            "{}",
            "null",
            "[]",
            "{",
            r#"{"workspace": 1}"#,
            r#"{"workspace": "w"}"#,
            r#"{"workspace": "w", "task": "TASK-001", "x": 1}"#,
        ] {
            let _ = session.call(tool.name, arguments);
        }
    }
}
