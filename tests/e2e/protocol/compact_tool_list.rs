//! The compact listing: three tools to find and call all others.

use serde_json::{Value, json};

use crate::harness::{Place, Session, params, until};

/// Calls a tool through `tool_call`. The call must succeed.
async fn relayed(session: &Session, tool: &str, arguments: Value) -> Value {
    session
        .ok("tool_call", json!({"tool": tool, "arguments": arguments}))
        .await
}

fn new_task() -> Value {
    json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
           "actor": "a", "actor_role": "orchestrator"})
}

#[tokio::test]
async fn three_tools_lead_to_all_others() {
    let place = Place::new();
    let session = place.serve(&["--compact"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["tool_call", "tool_describe", "tool_search"]);
    let hints = tools[0].annotations.as_ref().unwrap();
    assert_eq!(
        (hints.read_only_hint, hints.destructive_hint),
        (Some(false), Some(true))
    );
    let told = session.instructions();
    assert!(told.contains("tool_search"), "{told}");

    let found = session
        .ok(
            "tool_search",
            json!({"query": "create a task", "pack": "task-store"}),
        )
        .await;
    assert_eq!(found["tools"][0]["tool"], "task_create", "{found:#}");
    assert!(
        found["tools"][0]["required"]
            .as_array()
            .unwrap()
            .contains(&json!("title"))
    );
    let described = session
        .ok("tool_describe", json!({"tools": ["task_create"], "output": true}))
        .await;
    let definition = &described["tools"][0];
    assert!(definition["input_schema"]["properties"]["spec_markdown"].is_object());
    assert_eq!(definition["output_schema"]["type"], "object");

    let made = relayed(&session, "task_create", new_task()).await;
    let id = made["task"]["id"].clone();
    // As text, which some models write, and without arguments at all.
    let text = json!({"task_id": id}).to_string();
    let got = session
        .ok("tool_call", json!({"tool": "task_get", "arguments": text}))
        .await;
    assert_eq!(got["task"]["id"], id);
    relayed(&session, "task_list", Value::Null).await;
    session.ok("tool_call", json!({"tool": "envelope_list"})).await;
    // Those that are not listed answer by their own names as well.
    session.ok("task_get", json!({"task_id": id})).await;
    session.close().await;
    assert_eq!(
        place.ledger(),
        [
            "tool_search read ok",
            "tool_describe read ok",
            "task_create write ok",
            "task_get read ok",
            "task_list read ok",
            "envelope_list read ok",
            "task_get read ok",
        ]
    );
}

#[tokio::test]
async fn a_call_through_another_costs_what_it_costs_itself() {
    let place = Place::with("[envelope]\nrequire = \"writes\"\n");
    let session = place.serve(&["--compact"]).await;
    let refusal = session
        .refused(
            "tool_call",
            json!({"tool": "task_create", "arguments": new_task()}),
        )
        .await;
    assert_eq!(refusal["code"], "ENVELOPE_REQUIRED");
    // A refusal's next_call can be passed unchanged.
    session.ok("tool_call", refusal["next_call"].clone()).await;
    let limited = json!({"limits": {"max_mutations": 1}});
    let envelope = relayed(&session, "envelope_open", limited).await["id"].clone();
    let mut call = new_task();
    call["envelope_id"] = envelope.clone();
    let made = session
        .call_raw("tool_call", json!({"tool": "task_create", "arguments": call}))
        .await;
    let meta = serde_json::to_value(&made.meta).unwrap();
    assert_eq!(
        meta["tollgate/budget"]["mutations"],
        json!({"used": 1, "limit": 1, "left": 0})
    );
    let refusal = session
        .refused("tool_call", json!({"tool": "task_create", "arguments": call}))
        .await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED");
    session.close().await;
    assert_eq!(
        place.sql("SELECT tool || ' ' || pack || ' ' || coalesce(envelope_id, '-') FROM core_operations ORDER BY seq LIMIT 1"),
        ["task_create task-store -"]
    );
}

#[tokio::test]
async fn what_cannot_be_called_is_refused_with_what_was_meant() {
    let place = Place::new();
    let session = place.serve(&["--compact"]).await;
    let refusal = session
        .refused("tool_call", json!({"tool": "task_creat", "arguments": {}}))
        .await;
    assert_eq!(refusal["code"], "UNKNOWN_TOOL");
    assert!(
        refusal["message"]
            .as_str()
            .unwrap()
            .contains("did you mean task_create"),
        "{refusal:#}"
    );
    let described = session
        .ok(
            refusal["next_call"]["tool"].as_str().unwrap(),
            refusal["next_call"]["arguments"].clone(),
        )
        .await;
    assert_eq!(described["tools"][0]["tool"], "task_create");
    for (arguments, code) in [
        (
            json!({"tool": "tool_call", "arguments": {"tool": "task_list"}}),
            "TOOL_CALL_NESTED",
        ),
        (
            json!({"tool": "task_list", "arguments": [1]}),
            "INVALID_ARGUMENTS",
        ),
        (
            json!({"tool": "task_list", "arguments": "[1]"}),
            "INVALID_ARGUMENTS",
        ),
        (
            json!({"tool": "task_list", "arguments": {}, "force": true}),
            "INVALID_ARGUMENTS",
        ),
        (json!({"tool": 7}), "INVALID_ARGUMENTS"),
        (json!({}), "INVALID_ARGUMENTS"),
        (
            json!({"tool": "task_get", "arguments": {"id": 1}}),
            "INVALID_ARGUMENTS",
        ),
        (json!({"tool": ""}), "UNKNOWN_TOOL"),
    ] {
        let refusal = session.refused("tool_call", arguments.clone()).await;
        assert_eq!(refusal["code"], code, "{arguments}");
    }
    let refusal = session
        .refused(
            "tool_describe",
            json!({"tools": ["task_get", "task_gte", "zzzzz"]}),
        )
        .await;
    let fields: Vec<&Value> = refusal["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|blocker| &blocker["field"])
        .collect();
    assert_eq!(fields, ["tools[1]", "tools[2]"]);
    let refusal = session.refused("tool_search", json!({"query": "zebra"})).await;
    assert_eq!(refusal["code"], "NO_TOOL_FITS");
    let all = session
        .ok("tool_search", refusal["next_call"]["arguments"].clone())
        .await;
    assert!(all["total"].as_u64().unwrap() > 50, "{}", all["total"]);
    session.close().await;
    let rows = place.ledger();
    assert_eq!(
        rows.first().map(String::as_str),
        Some("tool_call read UNKNOWN_TOOL")
    );
    assert!(
        rows.contains(&"task_get read INVALID_ARGUMENTS".to_owned()),
        "{rows:?}"
    );
}

#[tokio::test]
async fn what_does_not_exist_is_neither_found_nor_called() {
    let place = Place::new();
    let session = place
        .serve(&["--compact", "--read-only", "--exclude-tools", "task_list"])
        .await;
    let tools = session.client().list_all_tools().await.unwrap();
    let hints = tools[0].annotations.as_ref().unwrap();
    assert_eq!(
        (hints.read_only_hint, hints.destructive_hint),
        (Some(true), Some(false))
    );
    for tool in ["task_create", "task_list"] {
        let refusal = session
            .refused("tool_call", json!({"tool": tool, "arguments": {}}))
            .await;
        assert_eq!(refusal["code"], "UNKNOWN_TOOL", "{tool}");
        let found = session
            .ok("tool_search", json!({"query": tool, "limit": 50}))
            .await;
        let found: Vec<&str> = found["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["tool"].as_str().unwrap())
            .collect();
        assert!(!found.contains(&tool), "{found:?}");
    }
    session.close().await;
    // Whoever names one of the three can do without it.
    let session = place.serve(&["--compact", "--exclude-tools", "tool_call"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let tools: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["tool_describe", "tool_search"]);
    session.close().await;
    // Where all tools are listed the three do not exist.
    let session = place.serve(&["--tier", "full"]).await;
    assert!(
        session
            .client()
            .call_tool(params("tool_call", json!({"tool": "task_list"})))
            .await
            .is_err()
    );
    session.close().await;
}

#[tokio::test]
async fn it_is_the_same_over_http() {
    let place = Place::with("[server]\ncompact = true\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    assert_eq!(session.client().list_all_tools().await.unwrap().len(), 3);
    let made = relayed(&session, "task_create", new_task()).await;
    let got = relayed(&session, "task_get", json!({"task_id": made["task"]["id"]})).await;
    assert_eq!(got["task"]["title"], "T");
    session.close().await;
    // A read's row follows its reply.
    until(async || place.ledger().len() == 2).await;
    assert_eq!(place.ledger(), ["task_create write ok", "task_get read ok"]);
}
