//! Policies in the gate: no call bypasses them, and their verdicts are enforced and recorded.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use rmcp::model::GetPromptRequestParams;
use serde_json::{Value, json};

use crate::harness::{Place, Session, field_of_each};

/// Ways to call, each with a call of the protected tool.
enum Way {
    /// Over standard input and output, to a server with these flags.
    Stdio(&'static [&'static str]),
    Http,
    /// `tollgate call`.
    Command,
}

/// A call, and the tool that it runs.
fn ways() -> Vec<(Way, &'static str, Value, &'static str)> {
    let create = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "actor": "a",
        "actor_role": "orchestrator", "initial_phase": "spec_review"});
    let start = json!({"workspace": "w", "milestone_id": "M01", "slice_id": "S01", "task_id": "T01"});
    let member = json!({"workspace": "w", "operations": [
        {"tool": "tasks_radar", "args": {"task": "TASK-001"}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}},
    ]});
    vec![
        (Way::Stdio(&[]), "task_create", create.clone(), "task_create"),
        (
            Way::Stdio(&["--compact"]),
            "tool_call",
            json!({"tool": "task_create", "arguments": create.clone()}),
            "task_create",
        ),
        (Way::Http, "task_create", create.clone(), "task_create"),
        (Way::Command, "task_create", create, "task_create"),
        (Way::Stdio(&[]), "gsd_start_task", start, "gsd_task_start"),
        (Way::Stdio(&[]), "tasks_batch", member, "tasks_note"),
        (Way::Stdio(&[]), "envelope_open", json!({}), "envelope_open"),
    ]
}

/// The configuration of a policy that denies calls of a tool.
fn closed(tool: &str) -> String {
    format!(
        r#"
        [policies.closed]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = [{tool:?}]
        config = {{ when = "true", code = "CLOSED", message = "it is closed", remediation = "Come back." }}
        "#
    )
}

async fn come_in(place: &Place, way: &Way, tool: &str, arguments: Value) -> Value {
    match way {
        Way::Stdio(flags) => {
            let session = place.serve(flags).await;
            let refusal = session.refused(tool, arguments).await;
            session.close().await;
            refusal
        }
        Way::Http => {
            let server = place.serve_http(&[]);
            let session = Session::over_http(&server).await;
            let refusal = session.refused(tool, arguments).await;
            session.close().await;
            refusal
        }
        Way::Command => {
            let (code, printed) = place.call(tool, &arguments);
            assert_eq!(code, 1, "{printed:#}");
            printed["error"].clone()
        }
    }
}

#[tokio::test]
async fn a_denial_holds_whichever_way_a_call_comes_in() {
    for (way, called, arguments, tool) in ways() {
        let place = Place::with(&closed(tool));
        let refusal = come_in(&place, &way, called, arguments).await;
        assert_eq!(refusal["code"], "CLOSED", "{called}: {refusal:#}");
        assert_eq!(refusal["context"]["policy"], "closed");
        assert_eq!(refusal["message"], "policy `closed`: it is closed");
        assert_eq!(refusal["remediation"], "Come back.");
        let rows = place.sql("SELECT error_code || ' ' || failure_class FROM core_operations");
        assert_eq!(rows, ["CLOSED refused"], "{called}");
        for table in ["task_store_tasks", "tasks_operations", "core_envelopes"] {
            let count = format!("SELECT count(*) FROM {table}");
            assert_eq!(place.sql(&count), ["0"], "{called} reached {table}");
        }
    }
}

#[tokio::test]
async fn a_prompt_is_judged_like_a_call_that_reads() {
    let place = Place::with(&closed("plan_job"));
    let session = place.serve(&[]).await;
    let mut request = GetPromptRequestParams::new("plan_job");
    request.arguments = json!({"goal": "x"}).as_object().cloned();
    let refused = session
        .client()
        .get_prompt(request)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("it is closed"), "{refused}");
    session.close().await;
    assert_eq!(place.ledger(), ["plan_job read CLOSED"]);
}

/// The verdicts of every row, without their durations.
fn verdicts(place: &Place) -> Vec<String> {
    let rows = place.sql("SELECT coalesce(verdicts, '-') FROM core_operations ORDER BY seq");
    let told = |row: String| {
        let Ok(Value::Array(verdicts)) = serde_json::from_str(&row) else {
            return row;
        };
        let lines = verdicts.iter().map(|verdict| {
            assert!(verdict["us"].is_u64(), "{verdict}");
            let words =
                ["policy", "phase", "mode", "verdict", "code", "cause", "times"].map(|key| &verdict[key]);
            let words = words.iter().filter(|word| !word.is_null());
            words
                .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(" ")
        });
        lines.collect::<Vec<_>>().join(", ")
    };
    rows.into_iter().map(told).collect()
}

#[tokio::test]
async fn every_verdict_is_recorded_and_every_reason_is_told_at_once() {
    let config = r#"
        [policies.watch]
        source = "builtin:cel"
        limits.time_ms = 10000
        mode = "audit"
        order = 1
        config = { when = "true", message = "seen" }
        [policies.a]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["task_*"]
        config = { when = "tool == 'task_get'", code = "A", message = "no gets" }
        [policies.b]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["*_get"]
        config = { when = "arguments.task_id == 'x'", code = "B", message = "no x" }
    "#;
    let place = Place::with(config);
    let session = place.serve(&[]).await;
    let refused = session.refused("task_get", json!({"task_id": "x"})).await;
    let codes = field_of_each(&refused["blockers"], "code");
    assert_eq!(codes, ["A", "B"], "{refused:#}");
    assert_eq!(refused["code"], "A");
    session.ok("task_list", json!({})).await;
    session.close().await;
    assert_eq!(
        verdicts(&place),
        [
            "watch request audit deny DENIED_BY_RULE, a request enforce deny A, b request enforce deny B",
            "watch request audit deny DENIED_BY_RULE, a request enforce pass",
        ]
    );
}

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

#[tokio::test]
async fn an_amendment_is_what_runs_and_what_is_recorded() {
    let config = r#"
        [artifacts]
        enabled = true
        arguments = true
        [policies.secret-scan]
        limits.time_ms = 10000
        config = { arguments = "redact" }
    "#;
    let place = Place::with(config);
    let session = place.serve(&["--tier", "full"]).await;
    let spec = format!("# Goal\nuse {TOKEN}\n");
    let actor = format!("ada {TOKEN}");
    let created = session
        .ok("task_create", json!({"title": "T", "spec_markdown": spec, "workspace": "w", "actor": actor, "actor_role": "orchestrator", "initial_phase": "spec_review"}))
        .await;
    // Who called is named as in the arguments that ran.
    assert_eq!(
        place.sql("SELECT actor FROM core_operations WHERE tool = 'task_create'"),
        ["claimed:ada [redacted]"]
    );
    let task = session
        .ok("task_get", json!({"task_id": created["task"]["id"]}))
        .await;
    assert!(task.to_string().contains("use [redacted]"), "{task:#}");
    let operations = json!([
        {"tool": "tasks_bootstrap", "args": {"plan_title": "P", "task_title": "T",
            "steps": [{"title": "s", "success_criteria": [TOKEN], "tests": ["cargo test"]}]}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": TOKEN}},
    ]);
    session
        .ok("tasks_batch", json!({"workspace": "w", "operations": operations}))
        .await;
    session.close().await;
    let dump = |folder: &std::path::Path| -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    bytes.extend(std::fs::read(entry.path()).unwrap());
                }
            }
        }
        bytes
    };
    let bytes = dump(&place.data());
    assert!(
        !bytes
            .windows(TOKEN.len())
            .any(|window| window == TOKEN.as_bytes()),
        "the token is on disk"
    );
    assert_eq!(
        verdicts(&place),
        [
            "secret-scan request enforce amend, secret-scan response enforce pass",
            "secret-scan request enforce pass, secret-scan response enforce pass",
            "secret-scan request enforce amend, secret-scan request enforce pass 2, secret-scan response enforce pass",
        ]
    );
}

#[tokio::test]
async fn a_denied_result_takes_back_what_the_call_did() {
    let config = r#"
        [policies.secret-scan]
        limits.time_ms = 10000
        phase = "response"
    "#;
    let place = Place::with(config);
    let session = place.serve(&[]).await;
    let arguments = json!({"title": "T", "spec_markdown": format!("# Goal\n{TOKEN}"), "workspace": "w", "actor": "a", "actor_role": "orchestrator", "initial_phase": "spec_review"});
    let refused = session.refused("task_create", arguments).await;
    assert_eq!(refused["code"], "SECRET_IN_RESULT", "{refused:#}");
    assert!(!refused.to_string().contains(TOKEN));
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["0"]);
    assert_eq!(place.ledger(), ["task_create write SECRET_IN_RESULT"]);
    assert_eq!(
        verdicts(&place),
        ["secret-scan response enforce deny SECRET_IN_RESULT"]
    );
}

#[tokio::test]
async fn the_list_says_who_judges_what_and_what_did_not_load() {
    let config = r#"
        [policies.nights]
        source = "builtin:quiet-hours"
        tools = ["task_create", "task_get"]
        config = { from = "25:00", to = "7" }
        [policies.require-actor]
        order = 2
        fail_open = true
    "#;
    let place = Place::with(config);
    let output = place.run(&["--json", "policies", "list"]);
    assert_eq!(output.status.code(), Some(1));
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&Value> = listed["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| &policy["name"])
        .collect();
    assert_eq!(names, ["require-actor", "nights"]);
    let nights = &listed["policies"][1];
    assert_eq!(nights["judges"], json!(["task_create", "task_get"]));
    assert_eq!(
        nights["problems"],
        json!([
            "[policies.nights.config].from: `25:00` is not a time of day; use HH:MM",
            "[policies.nights.config].to: `7` is not a time of day; use HH:MM",
            "[policies.nights.config].to: is the same as `from`, so there are no quiet hours",
        ])
    );
    let session = place.serve(&[]).await;
    let refused = session.refused("task_get", json!({"task_id": "x"})).await;
    assert_eq!(refused["code"], "POLICY_FAILED", "{refused:#}");
    assert_eq!(refused["context"]["cause"], "not_loaded");
    session.ok("task_list", json!({})).await;
    session.close().await;
    let output = place.run(&["policy", "list"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("enforce, fails open") && table.contains("task_create, task_get"),
        "{table}"
    );
}

#[test]
fn a_policy_that_nobody_has_keeps_the_host_from_starting() {
    let place = Place::with("[policies.mine]\n[policies.other]\nsource = \"builtin:none\"\n");
    let output = place.run(&["tools"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("policies.mine has no source"), "{said}");
    assert!(said.contains("there is no built-in policy none"), "{said}");
}

/// The configurations on a page of the documentation.
fn shown(page: &str) -> Vec<&str> {
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn what_the_documentation_shows_works() {
    let mut shown = shown(include_str!("../../../docs/policies.md"));
    // These two are not part of the program.
    shown.retain(|block| {
        !["[policies.rego", "[policies.cedar"]
            .iter()
            .any(|other| block.starts_with(other))
    });
    assert_eq!(shown.len(), 10, "one of a policy and one of each built-in");
    let place = Place::with(&shown.concat());
    let output = place.run(&["--json", "policies", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = listed["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["policy"].as_str().unwrap())
        .collect();
    for policy in tollgate_components::builtin::policies() {
        assert!(names.contains(&policy), "{policy} is not shown");
    }
}

#[tokio::test]
async fn members_are_judged_with_what_they_inherit() {
    let place = Place::with(
        r#"
        [policies.no-prod]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["tasks_note", "tasks_bootstrap"]
        config = { when = "has(arguments.workspace) && arguments.workspace == 'prod'", code = "CLOSED", message = "hands off" }
        "#,
    );
    let session = place.serve(&["--tier", "full"]).await;
    let start = json!({"plan_title": "P", "task_title": "T",
        "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["cargo test"]}]});
    let mut named = start.clone();
    named["workspace"] = Value::Null;
    for arguments in [start.clone(), named] {
        let operations = json!([{"tool": "tasks_bootstrap", "args": arguments}]);
        let batch = json!({"workspace": "prod", "operations": operations});
        let refused = session.refused("tasks_batch", batch).await;
        assert_eq!(refused["code"], "CLOSED", "{refused:#}");
        assert_eq!(refused["blockers"][0]["field"], "operations[0]");
    }
    let operations = json!([{"tool": "tasks_bootstrap", "args": start}]);
    let ran = session
        .ok(
            "tasks_batch",
            json!({"workspace": "test", "operations": operations}),
        )
        .await;
    assert_eq!(ran["succeeded"], 1, "{ran:#}");
    session.close().await;
    assert_eq!(place.sql("SELECT name FROM tasks_workspaces"), ["test"]);
}

#[tokio::test]
async fn a_call_that_passed_because_a_policy_fails_open_says_so() {
    let place = Place::with(
        r#"
        [policies.odd]
        source = "builtin:cel"
        limits.time_ms = 10000
        fail_open = true
        config = { when = "arguments.missing == 1", message = "never" }
        "#,
    );
    let session = place.serve(&[]).await;
    session.ok("task_list", json!({})).await;
    session.close().await;
    let said = place.sql(
        "SELECT json_extract(verdicts, '$[0].cause') || ' ' || json_extract(verdicts, '$[0].excused') FROM core_operations",
    );
    assert_eq!(said, ["cannot_judge 1"]);
}
