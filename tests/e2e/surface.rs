//! What clients see: tiers, filters, definitions, pages.

use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::harness::{Place, Session};

async fn names(session: &Session) -> Vec<String> {
    let tools = session.client().list_all_tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name.into_owned()).collect()
}

#[tokio::test]
async fn tiers_list_more_and_more() {
    let place = Place::new();
    let mut counts = Vec::new();
    for tier in ["core", "standard", "full"] {
        let session = place.serve(&["--tier", tier]).await;
        counts.push(names(&session).await.len());
        session.close().await;
    }
    assert!(counts[0] >= 1 && counts[0] <= 30, "{counts:?}");
    assert!(counts[0] < counts[1] && counts[1] <= counts[2], "{counts:?}");
    let session = place.serve(&[]).await;
    assert_eq!(names(&session).await.len(), counts[0], "core is the default");
    // Not listed is not absent.
    let refusal = session.refused("task_events", json!({"task_id": "x"})).await;
    assert_eq!(refusal["code"], "TASK_NOT_FOUND");
}

#[tokio::test]
async fn filters_decide_what_exists() {
    let place = Place::new();
    let session = place.serve(&["--tools", "task_get,task_li*"]).await;
    assert_eq!(
        names(&session).await,
        ["task_get", "task_list", "task_list_ready"]
    );
    let gone = session
        .client()
        .call_tool(crate::harness::params("task_create", json!({})))
        .await;
    assert!(gone.is_err());
    session.close().await;

    let session = place
        .serve(&["--tier", "full", "--exclude-tools", "task_list*"])
        .await;
    assert!(
        !names(&session)
            .await
            .iter()
            .any(|name| name.starts_with("task_list"))
    );
    session.close().await;

    let session = place.serve(&["--tier", "full", "--read-only"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    assert!(!tools.is_empty());
    assert!(
        tools
            .iter()
            .all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true))
    );
    session.close().await;
}

#[tokio::test]
async fn packs_can_be_chosen() {
    let place = Place::with_guests(&["prober", "spinner"]);
    let session = place.serve(&["--tier", "full", "--packs", "spinner"]).await;
    assert!(
        names(&session)
            .await
            .iter()
            .all(|name| name.starts_with("spinner_"))
    );
    session.close().await;
    let output = place.run(&["serve", "--packs", "nonesuch"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no enabled pack nonesuch"));
}

#[tokio::test]
async fn definitions_are_complete_and_replies_keep_to_them() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let tools: Vec<Tool> = session.client().list_all_tools().await.unwrap();
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        assert!(tool.title.is_some() && tool.description.is_some() && tool.output_schema.is_some());
        assert!(hints.read_only_hint.is_some() && hints.destructive_hint.is_some());
        assert!(hints.idempotent_hint.is_some() && hints.open_world_hint.is_some());
    }
    let created = session
        .call_raw(
            "task_create",
            json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
                   "actor": "a", "actor_role": "orchestrator"}),
        )
        .await;
    let body = created.structured_content.clone().unwrap();
    let text = created.content[0].as_text().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text.text).unwrap(),
        body,
        "text and structured are the same"
    );
    let id = &body["task"]["id"];
    for (tool, arguments) in [
        ("task_get", json!({"task_id": id, "include_events_limit": 5})),
        ("task_list", json!({})),
        ("task_list_ready", json!({})),
        ("task_events", json!({"task_id": id})),
        ("task_recover", json!({"task_id": id})),
    ] {
        let definition = tools.iter().find(|known| known.name == tool).unwrap();
        let schema = Value::Object((**definition.output_schema.as_ref().unwrap()).clone());
        let reply = session.ok(tool, arguments).await;
        let problems: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&reply)
            .map(|err| format!("{}: {err}", err.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{tool}: {problems:#?}");
    }
    session.close().await;
}

#[tokio::test]
async fn a_cursor_that_was_never_given_is_a_protocol_error() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let request = rmcp::model::PaginatedRequestParams::default().with_cursor(Some("!".to_owned()));
    assert!(session.client().list_tools(Some(request)).await.is_err());
    session.close().await;
}
