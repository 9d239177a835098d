//! The surface for clients: tiers, filters, definitions and pages.

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
    assert_eq!(refusal["code"], "NOT_FOUND");
}

#[tokio::test]
async fn filters_decide_what_exists() {
    let place = Place::new();
    let session = place.serve(&["--tools", "task_get,task_li*"]).await;
    assert_eq!(
        names(&session).await,
        ["task_get", "task_list", "task_list_approvals", "task_list_ready"]
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
    let place = Place::with_guests(&["sql-access", "call-limits"]);
    let session = place.serve(&["--tier", "full", "--packs", "call-limits"]).await;
    assert!(
        names(&session)
            .await
            .iter()
            .all(|name| name.starts_with("call_limits_"))
    );
    session.close().await;
    let output = place.run(&["serve", "--packs", "nonesuch"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no pack nonesuch"));
}

#[tokio::test]
async fn definitions_are_complete_and_replies_keep_to_them() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full", "--output-schemas"]).await;
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

/// Length of a value as JSON, in characters.
fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).unwrap().chars().count()
}

#[tokio::test]
async fn the_default_list_is_small_and_leads_to_everything() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    assert!(tools.len() <= 30, "{}", tools.len());
    // A token is four characters. What a model reads, and what a client gets.
    let read: usize = tools
        .iter()
        .map(|tool| {
            tool.name.len() + tool.description.as_ref().unwrap().chars().count() + size(&tool.input_schema)
        })
        .sum();
    assert!(read <= 4 * 6_000, "{read} characters");
    assert!(size(&tools) <= 4 * 10_000, "{} characters", size(&tools));
    let told = session.instructions();
    assert!(
        told.chars().count() <= 4 * 400 && told.contains("envelope_open"),
        "{told}"
    );

    // The rest of a schema, of a guide and of the tools is a call away.
    let brief = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap();
    assert!(
        brief("conductor_init").input_schema["properties"]["policies"]
            .get("properties")
            .is_none()
    );
    let described = session
        .ok(
            "tool_describe",
            json!({"tools": ["conductor_init"], "output": true}),
        )
        .await;
    let whole = &described["tools"][0];
    assert!(whole["input_schema"]["properties"]["policies"]["properties"].is_object());
    assert!(size(&whole["output_schema"]) > size(brief("conductor_init").output_schema.as_ref().unwrap()));
    let found = session.ok("tool_search", json!({"pack": "conductor"})).await;
    assert!(
        found["guide"]
            .as_str()
            .unwrap()
            .contains("job_submit_step_result")
    );
    session.close().await;

    let session = place.serve(&["--output-schemas"]).await;
    let all = session.client().list_all_tools().await.unwrap();
    assert!(size(&all) > 2 * size(&tools));
    session.close().await;
}

#[tokio::test]
async fn what_a_refusal_suggests_can_be_called_by_what_is_listed() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let listed = names(&session).await;
    // A role that may not, a task that nobody knows, a milestone without slices: each is told what to call instead.
    let refusals = [
        ("task_recover", json!({"task_id": "nobody"})),
        (
            "tasks_close_step",
            json!({"workspace": "w", "step_id": "STEP-1", "checkpoints": {}}),
        ),
        (
            "gsd_slice_complete",
            json!({"milestone_id": "M01", "slice_id": "S01", "workspace": "w"}),
        ),
        ("job_start", json!({"job_id": "JOB-1"})),
        ("envelope_close", json!({"envelope_id": "nobody"})),
    ];
    let mut followed = 0;
    for (tool, arguments) in refusals {
        assert!(listed.contains(&tool.to_owned()), "{tool}");
        let refusal = session.refused(tool, arguments).await;
        let Some(next) = refusal.get("next_call").filter(|next| next.is_object()) else {
            continue;
        };
        let relayed = if listed.contains(&next["tool"].as_str().unwrap().to_owned()) {
            session
                .call_raw(next["tool"].as_str().unwrap(), next["arguments"].clone())
                .await
        } else {
            session.call_raw("tool_call", next.clone()).await
        };
        assert_ne!(relayed.is_error, Some(true), "{tool}: {next} → {relayed:?}");
        followed += 1;
    }
    assert!(followed >= 3, "{followed}");
}

/// Names of the tools that suggestions name, in replies and refusals.
fn suggested(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for key in ["next_call", "next_calls", "next"] {
                let calls = fields.get(key).into_iter();
                // A list at `next` has work that can be done, with calls inside.
                let calls = calls.flat_map(|calls| match calls {
                    Value::Array(calls) if key == "next_calls" => calls.iter().collect(),
                    call => vec![call],
                });
                found.extend(calls.filter_map(|call| Some(call["tool"].as_str()?.to_owned())));
            }
            fields.values().for_each(|value| suggested(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| suggested(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn no_suggested_call_is_of_a_tool_that_its_reader_cannot_call() {
    let place = Place::new();
    let all = place.serve(&["--tier", "full"]).await;
    let step = json!({"title": "s", "success_criteria": ["c"], "tests": ["t"]});
    let plan = json!({"workspace": "w", "plan_title": "P", "task_title": "T", "steps": [step]});
    all.ok("tasks_bootstrap", plan).await;
    let item = json!({"title": "make", "exit_code": 0});
    let evidence = json!({"workspace": "w", "task": "TASK-001", "path": "s:0", "items": [item]});
    all.ok("tasks_evidence_capture", evidence.clone()).await;
    let milestone = json!({"workspace": "w", "milestone_id": "M01", "title": "M", "slices": [
        {"slice_id": "S01", "title": "S"}]});
    all.ok("gsd_plan_milestone", milestone).await;
    let tasks = json!({"workspace": "w", "unit": "M01/S01", "tasks": [{"task_id": "T01", "title": "T"}]});
    all.ok("gsd_plan_slice", tasks).await;
    let questions = [
        ("tasks_radar", json!({"workspace": "w", "task": "TASK-001"})),
        ("tasks_next", json!({"workspace": "w"})),
        ("tasks_lint", json!({"workspace": "w", "task": "TASK-001"})),
        ("gsd_status", json!({"workspace": "w"})),
    ];
    let mut told = Vec::new();
    for (tool, arguments) in &questions {
        suggested(&all.ok(tool, arguments.clone()).await, &mut told);
    }
    assert!(told.iter().any(|tool| tool == "tasks_close_step"), "{told:?}");
    assert!(told.iter().any(|tool| tool == "gsd_task_start"), "{told:?}");
    all.close().await;

    let reader = place.serve(&["--tier", "full", "--read-only"]).await;
    let known = names(&reader).await;
    let mut told = Vec::new();
    for (tool, arguments) in &questions {
        suggested(&reader.ok(tool, arguments.clone()).await, &mut told);
    }
    let unknown = json!({"workspace": "elsewhere", "task": "TASK-001"});
    suggested(&reader.refused("tasks_radar", unknown).await, &mut told);
    assert!(told.iter().all(|tool| known.contains(tool)), "{told:?}");
    reader.close().await;

    let without = place
        .serve(&["--tier", "full", "--exclude-tools", "tasks_close_step"])
        .await;
    let mut told = Vec::new();
    suggested(&without.ok("tasks_evidence_capture", evidence).await, &mut told);
    let verify = json!({"workspace": "w", "task": "TASK-001", "path": "s:0"});
    suggested(&without.refused("tasks_done", verify).await, &mut told);
    assert!(told.iter().all(|tool| tool != "tasks_close_step"), "{told:?}");
    assert!(!told.is_empty());
}
