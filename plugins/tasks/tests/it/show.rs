//! Reading of stored records: in full, in pages, and by search.

use serde_json::{Value, json};

use crate::harness::{THREE_STEPS, after, call_tool, follow, ok, refused};

/// All parts of a target, read page by page, with divided texts joined again.
fn whole(session: &tollgate_sdk::native::Session, target: &Value, max_chars: i64) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    for reads in 0.. {
        assert!(reads < 2_000, "the cursor stands still");
        let mut arguments = target.clone();
        arguments["max_chars"] = json!(max_chars);
        if !cursor.is_null() {
            // The earlier name is still accepted.
            let name = if reads % 2 == 0 { "cursor" } else { "after" };
            arguments[name] = cursor.clone();
        }
        let reply = call_tool(session, "tasks_show", arguments).unwrap();
        let page: Value = serde_json::from_str(&reply.structured).unwrap();
        for part in page["parts"].as_array().unwrap() {
            match part["from"].as_u64() {
                None => parts.push(part.clone()),
                Some(from) => {
                    let last = parts.last_mut().unwrap();
                    let joined = format!(
                        "{}{}",
                        last["text"].as_str().unwrap(),
                        part["text"].as_str().unwrap()
                    );
                    assert_eq!(last["text"].as_str().unwrap().chars().count() as u64, from);
                    last["text"] = json!(joined);
                }
            }
        }
        assert_eq!(page["has_more"], page.get("next_cursor").is_some());
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    parts
}

fn texts(parts: &[Value], kind: &str) -> Vec<String> {
    let of_kind = parts.iter().filter(|part| part["kind"] == kind);
    of_kind
        .map(|part| part["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn everything_about_a_step_comes_back_whole_at_any_size_of_a_page() {
    let session = after(&[THREE_STEPS]);
    let note = format!("{}DO NOT use the order id", "größe \"x\"\n".repeat(80));
    let body = format!("{}FAILED", "line 漢字\n".repeat(2_000));
    let at = json!({"task": "TASK-001", "path": "s:0"});
    let with = |more: Value| {
        let mut arguments = at.clone();
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        arguments
    };
    let item = json!({"kind": "cmd_output", "title": "cargo test", "body": body, "exit_code": 1, "checkpoint": "tests"});
    let said = json!({"criteria": {"confirmed": true, "note": "looked at it"}});
    for (tool, arguments) in [
        ("note", with(json!({"note": note}))),
        ("evidence_capture", with(json!({"items": [item]}))),
        (
            "define",
            with(json!({"checkpoints": ["security"], "blockers": ["no key"]})),
        ),
        ("verify", with(json!({"checkpoints": said}))),
        (
            "progress",
            with(json!({"completed": true, "force": true, "reason": "no time"})),
        ),
        (
            "progress",
            with(json!({"completed": false, "reason": "the review failed"})),
        ),
    ] {
        call_tool(&session, &format!("tasks_{tool}"), arguments).unwrap();
    }
    for max_chars in [900, 1_500, 20_000] {
        let parts = whole(&session, &at, max_chars);
        assert_eq!(texts(&parts, "note"), [note.trim()], "{max_chars}");
        assert_eq!(texts(&parts, "body"), [body.as_str()], "{max_chars}");
        assert_eq!(texts(&parts, "reopened"), ["the review failed"]);
        assert_eq!(texts(&parts, "blocker"), ["no key"]);
        assert_eq!(texts(&parts, "checkpoint"), ["", "", ""]);
        let reopened = parts.iter().find(|part| part["kind"] == "reopened").unwrap();
        assert_eq!(
            reopened["facts"]["confirmed_before"],
            json!({"criteria": "looked at it"})
        );
    }
    let parts = whole(&session, &at, 20_000);
    let tests = parts.iter().find(|part| part["id"] == "tests").unwrap();
    assert!(
        tests["facts"]["evidence"]
            .as_str()
            .unwrap()
            .contains("exit code 1"),
        "{tests}"
    );
    // A limit that the next part does not fit into is refused with the least, and each other one makes progress.
    for max_chars in [2, 200, 300, 400, 500, 600, 700] {
        let mut arguments = at.clone();
        arguments["max_chars"] = json!(max_chars);
        let Err(err) = call_tool(&session, "tasks_show", arguments) else {
            continue;
        };
        assert_eq!(err.code, "BUDGET_TOO_SMALL");
        let least = err.context["least"].as_i64().unwrap();
        assert!(least > max_chars && least < 700, "{max_chars}: {least}");
        let call = err.next_call.unwrap();
        assert_eq!(call.arguments["max_chars"], json!(least));
        assert_eq!(follow(&session, &call)["parts"].as_array().unwrap().len(), 1);
    }
    assert_eq!(texts(&whole(&session, &at, 600), "note"), [note.trim()]);
    assert_eq!(texts(&whole(&session, &at, 2_000_000), "body"), [body.as_str()]);
    let one = ok(&session, r#"search {"query": "größe order"}"#);
    let id = one["matches"][0]["id"].as_str().unwrap();
    let parts = whole(
        &session,
        &json!({"task": "TASK-001", "path": "s:0", "id": id}),
        20_000,
    );
    assert_eq!((parts.len(), texts(&parts, "note").len()), (1, 1));
}

#[test]
fn plans_tasks_and_nodes_show_their_texts() {
    let session = after(&[
        r#"create {"title": "P", "description": "why", "context": "where", "tags": ["backend"], "contract_data": {"a": [1]}}"#,
        r#"plan {"plan": "PLAN-001", "steps": ["x", "y"], "doc": "how"}"#,
        r#"create {"title": "T", "plan": "PLAN-001", "domain": "storage", "steps": [{"title": "s"}]}"#,
        r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n", "description": "d", "context": "c", "priority": "HIGH", "tags": ["slow"]}"#,
    ]);
    let plan = whole(&session, &json!({"task": "PLAN-001"}), 20_000);
    for (kind, text) in [
        ("description", "why"),
        ("context", "where"),
        ("tag", "backend"),
        ("contract_data", r#"{"a":[1]}"#),
        ("doc", "how"),
        ("task", "T"),
    ] {
        assert!(texts(&plan, kind).contains(&text.to_owned()), "{kind}: {plan:#?}");
    }
    assert_eq!(texts(&plan, "checklist"), ["x", "y"]);
    let node = whole(&session, &json!({"task": "TASK-001", "path": "s:0.t:0"}), 20_000);
    assert_eq!(node[0]["facts"]["priority"], "HIGH");
    for (kind, text) in [
        ("title", "n"),
        ("description", "d"),
        ("context", "c"),
        ("tag", "slow"),
    ] {
        assert_eq!(texts(&node, kind), [text]);
    }
    let step = whole(&session, &json!({"task": "TASK-001", "path": "s:0"}), 20_000);
    assert_eq!(texts(&step, "node"), ["n"]);
    let below = ok(&session, r#"mirror {"task": "TASK-001", "path": "s:0"}"#);
    assert_eq!(below["steps"][1]["path"], "s:0.t:0");
    for (line, code) in [
        (r#"show {"task": "TASK-001", "cursor": "x"}"#, "INVALID_ARGUMENTS"),
        (r#"show {"task": "TASK-001", "after": "x"}"#, "INVALID_ARGUMENTS"),
        (r#"show {"task": "TASK-001", "id": "NOTE-00000009"}"#, "NOT_FOUND"),
        (r#"show {"task": "TASK-001", "path": "s:9"}"#, "NOT_FOUND"),
        (
            r#"show {"task": "TASK-001", "path": "s:0", "task_node_id": "NODE-1"}"#,
            "INVALID_ARGUMENTS",
        ),
    ] {
        assert_eq!(refused(&session, line).code, code, "{line}");
    }
}

#[test]
fn search_finds_words_and_tags_best_first() {
    let session = after(&[
        r#"create {"title": "Parser", "tags": ["Backend"]}"#,
        r#"create {"title": "Retry on timeout", "plan": "PLAN-001", "tags": ["network"]}"#,
        r#"create {"title": "Other", "plan": "PLAN-001", "description": "mentions a Timeout of 100%_ here", "steps": [{"title": "s", "tests": ["timeout is told"]}]}"#,
        r#"note {"task": "TASK-002", "path": "s:0", "note": "a timeout\nwas seen"}"#,
        r#"create {"workspace": "other", "title": "timeout elsewhere"}"#,
    ]);
    let ids = |line: &str| -> Vec<String> {
        let found = ok(&session, line);
        let matches = found["matches"].as_array().unwrap().iter();
        matches
            .map(|found| found["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let found = ids(r#"search {"query": "TIMEOUT"}"#);
    assert_eq!((found[0].as_str(), found.len()), ("TASK-001", 4));
    assert_eq!(ids(r#"search {"query": "retry timeout"}"#), ["TASK-001"]);
    assert_eq!(ids(r#"search {"query": "100%_"}"#), ["TASK-002"]);
    assert_eq!(ids(r#"search {"query": "%"}"#).len(), 1);
    assert_eq!(ids(r#"search {"tags": ["backend"]}"#), ["PLAN-001"]);
    assert_eq!(ids(r#"search {"query": "parser", "tags": ["network"]}"#), [""; 0]);
    assert_eq!(
        ids(r#"search {"query": "position created_at"}"#),
        [""; 0],
        "keys are no text"
    );
    assert_eq!(ids(r#"search {"query": "timeout", "kind": "note"}"#).len(), 1);
    assert_eq!(ids(r#"search {"query": "timeout", "task": "TASK-002"}"#).len(), 3);
    let first = ok(&session, r#"search {"query": "timeout", "limit": 1}"#);
    assert_eq!(first["has_more"], true);
    assert_eq!(refused(&session, "search {}").code, "INVALID_ARGUMENTS");
    let names = ok(&session, r#"workspaces {"limit": 1}"#);
    assert_eq!(
        (&names["workspaces"][0]["workspace"], &names["next_cursor"]),
        (&json!("other"), &json!("other"))
    );
    let rest = ok(&session, r#"workspaces {"cursor": "other"}"#);
    assert_eq!(rest["workspaces"].as_array().unwrap().len(), 1);
    // The earlier name is still accepted.
    assert_eq!(ok(&session, r#"workspaces {"after": "other"}"#), rest);
}

#[test]
fn a_shortened_list_says_that_there_is_more() {
    let session = after(&[THREE_STEPS, r#"create {"title": "Q"}"#]);
    for max_chars in [80, 200] {
        let list = ok(&session, &format!(r#"context {{"max_chars": {max_chars}}}"#));
        assert_eq!(list["has_more"], true, "{list}");
    }
    let resume = ok(&session, r#"resume {"task": "TASK-001", "events_limit": 100}"#);
    assert_eq!(resume["has_more"], false);
}

#[test]
fn a_parent_step_is_named_by_path_in_both_tools() {
    let session = after(&[THREE_STEPS]);
    let under = ok(
        &session,
        r#"decompose {"task": "TASK-001", "parent_step": "s:2", "steps": [{"title": "x"}]}"#,
    );
    assert_eq!(under["steps"][0]["path"], "s:2.s:0");
}

#[test]
fn the_prompt_shows_the_work_of_a_workspace_and_how_to_go_on() {
    let session = after(&[]);
    let say = |arguments: &str| session.prompt("tasks_resume_work", arguments);
    assert!(say("{}").unwrap().starts_with("Nothing is planned."));
    let session = after(&[
        THREE_STEPS,
        r#"create {"title": "waits", "plan": "PLAN-001", "depends_on": ["TASK-001"], "steps": [{"title": "s"}]}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "actor": "ann"}"#,
        r#"create {"workspace": "other", "title": "elsewhere"}"#,
    ]);
    let say = |arguments: &str| session.prompt("tasks_resume_work", arguments);
    let all = say(r#"{"actor": "bob"}"#).unwrap();
    assert!(
        all.starts_with(
            "workspace other\n* nothing is ready\nworkspace w\n* TASK-001: Do s:1: two\n* TASK-002 waits for TASK-001, which is TODO\n"
        ),
        "{all}"
    );
    assert!(all.contains("Pass actor: \"bob\" in every call."), "{all}");
    let ann = say(r#"{"workspace": "w", "actor": "ann"}"#).unwrap();
    assert!(ann.starts_with("workspace w\n* TASK-001: Do s:0: one\n"), "{ann}");
    for (name, code) in [("elsewhere", "NOT_FOUND"), ("no name!", "INVALID_ARGUMENTS")] {
        let err = say(&json!({"workspace": name}).to_string()).unwrap_err();
        assert_eq!(err.code, code);
    }
}

/// Storage takes patterns of 256 bytes only, and a word may be longer.
#[test]
fn words_of_every_allowed_length_are_found() {
    let session = after(&[THREE_STEPS]);
    for length in [200, 248, 249, 250, 256, 500] {
        let word = "x".repeat(length - 4) + "%_!y";
        ok(
            &session,
            &format!(r#"note {{"task": "TASK-001", "note": "{word}"}}"#),
        );
        let found = ok(&session, &format!(r#"search {{"query": "{word}"}}"#));
        assert_eq!(found["matches"].as_array().unwrap().len(), 1, "{length}");
        let other = "x".repeat(length - 4) + "%_!z";
        let other = ok(&session, &format!(r#"search {{"query": "{other}"}}"#));
        assert_eq!(other["matches"], json!([]), "{length}");
    }
    let long = format!(r#"search {{"query": "{}"}}"#, "x".repeat(501));
    assert_eq!(refused(&session, &long).code, "INVALID_ARGUMENTS");
    let tag = format!(r#"search {{"tags": ["{}"]}}"#, "x".repeat(201));
    assert_eq!(refused(&session, &tag).code, "INVALID_ARGUMENTS");
}

#[test]
fn notes_of_confirmations_that_were_taken_back_can_be_read() {
    let session = after(&[THREE_STEPS]);
    let verify = |said: Value, actor: &str| {
        let at = json!({"task": "TASK-001", "path": "s:0", "checkpoints": said, "actor": actor});
        call_tool(&session, "tasks_verify", at).unwrap();
    };
    verify(
        json!({"tests": {"confirmed": true, "note": "green on x86"}}),
        "ann",
    );
    verify(
        json!({"tests": {"confirmed": false, "note": "fails on ARM"}}),
        "bob",
    );
    verify(
        json!({"tests": {"confirmed": true, "note": "green again"}}),
        "ann",
    );
    ok(
        &session,
        r#"define {"task": "TASK-001", "path": "s:0", "tests": ["t9"], "actor": "eve"}"#,
    );
    let parts = whole(&session, &json!({"task": "TASK-001", "path": "s:0"}), 20_000);
    let told: Vec<Value> = parts
        .iter()
        .filter(|part| part["kind"] == "withdrawn" || part["kind"] == "revoked")
        .map(|part| {
            let facts = &part["facts"];
            json!([
                part["kind"],
                part["id"],
                facts["actor"],
                facts["note_before"],
                part["text"]
            ])
        })
        .collect();
    assert_eq!(
        json!(told),
        json!([
            ["withdrawn", "tests", "bob", "green on x86", "fails on ARM"],
            ["revoked", "tests", "eve", "green again", null],
        ])
    );
    let delta = ok(&session, r#"delta {"task": "TASK-001"}"#).to_string();
    for note in ["green on x86", "fails on ARM", "green again"] {
        assert!(delta.contains(note), "{note}: {delta}");
    }
}
