//! The pack `task-store` on several hosts: workers that are gone, approvals of all tasks, and their budget.

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};

fn lead(mut arguments: Value) -> Value {
    arguments["actor_role"] = "orchestrator".into();
    arguments
}

/// Creates a task in `executing`, and returns the ids of the task and its running attempt.
pub(crate) async fn executing(session: &Session) -> (Value, Value) {
    let created = json!({"title": "t", "spec_markdown": "# Acceptance\n- it works", "workspace": "w", "initial_phase": "spec_review"});
    let created = session.ok("task_create", lead(created)).await;
    let task = created["task"]["task_id"].clone();
    let review = json!({"task_id": task, "review_type": "spec", "reviewer_ref": "r", "verdict": "approved", "findings": [],
        "actor_role": "spec_reviewer"});
    session.ok("task_append_review", review).await;
    let moved = |from: &str, to: &str| {
        lead(json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "next"}))
    };
    session
        .ok("task_transition", moved("spec_review", "execution_ready"))
        .await;
    let start =
        json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"});
    let started = session.ok("task_start_attempt", lead(start)).await;
    session
        .ok("task_transition", moved("execution_ready", "executing"))
        .await;
    (task, started["attempt"]["attempt_id"].clone())
}

#[tokio::test]
async fn an_attempt_of_a_killed_host_is_named_and_costs_nothing() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let opened = session.ok("envelope_open", json!({"label": "work"})).await;
    let (task, attempt) = executing(&session).await;
    let recover = json!({"task_id": task});
    let there = session.ok("task_recover", recover.clone()).await;
    assert_eq!(there["worker"]["state"], "active", "{there}");
    assert_eq!(there["worker"]["envelope_id"], opened["id"], "{there}");
    session.kill();

    let session = place.serve(&[]).await;
    until(async || session.ok("task_recover", recover.clone()).await["worker"]["state"] == "gone").await;
    let gone = session.ok("task_recover", recover).await;
    let next = &gone["worker"]["next_call"];
    assert_eq!(next["arguments"]["attempt_id"], attempt, "{gone}");
    let ended = session.follow(next).await;
    assert_eq!(
        (&ended["attempts_left"], ended.get("next_retry_at")),
        (&json!(3), None)
    );
    let start =
        json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"});
    let started = session.ok("task_start_attempt", lead(start)).await;
    assert_eq!(
        (&started["attempt"]["ordinal"], &started["attempts_left"]),
        (&json!(2), &json!(2))
    );
    session.close().await;
}

pub(crate) fn request(task: &Value, attempt: &Value, key: &str) -> Value {
    json!({"task_id": task, "attempt_id": attempt, "requested_action": "put it online", "side_effect_kind": "deploy",
        "idempotency_key": key, "actor_role": "gateway"})
}

#[tokio::test]
async fn requests_for_approval_take_from_the_budget_of_the_envelope() {
    let place = Place::with("[envelope]\nbudgets = { approvals = 2 }\n");
    let session = place.serve(&[]).await;
    let (task, attempt) = executing(&session).await;
    // Outside of envelopes there is no budget.
    session
        .ok("task_request_approval", request(&task, &attempt, "v0"))
        .await;
    session.ok("envelope_open", json!({})).await;
    for key in ["v1", "v2", "v1"] {
        session
            .ok("task_request_approval", request(&task, &attempt, key))
            .await;
    }
    let refused = session
        .refused("task_request_approval", request(&task, &attempt, "v3"))
        .await;
    assert_eq!(refused["code"], "BUDGET_EXHAUSTED", "{refused}");
    let named = refused["context"]["envelope_id"].as_str();
    assert!(named.is_some_and(|id| id.starts_with("env_")), "{refused}");
    session.close().await;

    let session = place.serve(&[]).await;
    let pending = session.ok("task_list_approvals", json!({"limit": 2})).await;
    let keys: Vec<&Value> = (0..2)
        .map(|at| &pending["approvals"][at]["idempotency_key"])
        .collect();
    assert_eq!(
        (keys, &pending["has_more"]),
        (vec![&json!("v0"), &json!("v1")], &json!(true))
    );
    session.close().await;
}

#[tokio::test]
async fn the_start_after_the_last_opens_the_circuit_for_good() {
    let place = Place::with("[packs.task-store.config.retry]\nmax_attempts = 1\n");
    let session = place.serve(&[]).await;
    let (task, attempt) = executing(&session).await;
    let failed = json!({"attempt_id": attempt, "status": "failed", "actor_role": "executor"});
    session.ok("task_finish_attempt", failed).await;
    let start =
        lead(json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"}));
    let refused = session.refused("task_start_attempt", start.clone()).await;
    assert_eq!(
        (&refused["code"], &refused["context"]["phase"]),
        (&json!("RETRIES_EXHAUSTED"), &json!("circuit_open"))
    );
    session.close().await;

    let session = place.serve(&[]).await;
    assert_eq!(
        session.refused("task_start_attempt", start).await["code"],
        "CIRCUIT_OPEN"
    );
    let events = place.sql("SELECT event_type FROM task_store_events ORDER BY id DESC LIMIT 1");
    assert_eq!(events, ["circuit.opened"]);
    let changed =
        place.sql("SELECT changed_paths FROM core_operations WHERE error_code = 'RETRIES_EXHAUSTED'");
    let name = format!("task_store/{}", task.as_str().unwrap());
    assert!(changed[0].contains(&name), "{changed:?}");
    session.close().await;
}

#[tokio::test]
async fn former_names_of_arguments_are_accepted_and_not_listed() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    for (tool, former, name) in [
        ("task_list", "after", "cursor"),
        ("task_list_ready", "after", "cursor"),
        ("task_events", "after_id", "cursor"),
        ("tasks_show", "after", "cursor"),
        ("tasks_delta", "since", "cursor"),
        ("gsd_events", "after", "cursor"),
        ("tasks_step_claim", "owner", "actor"),
        ("tasks_done", "owner", "actor"),
        ("gsd_plan_task", "actor_name", "actor"),
    ] {
        let listed = tools.iter().find(|listed| listed.name == tool);
        let listed = listed.unwrap_or_else(|| panic!("{tool} is not listed"));
        let properties = &listed.input_schema["properties"];
        assert!(properties.get(name).is_some(), "{tool}: {properties:#}");
        assert!(properties.get(former).is_none(), "{tool}: {properties:#}");
    }
    let created = async |title: &str| {
        let arguments = json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft"});
        session.ok("task_create", lead(arguments)).await["task"]["task_id"].clone()
    };
    let (older, newer) = (created("one").await, created("two").await);
    for name in ["cursor", "after"] {
        let mut page = json!({"limit": 1});
        page[name] = newer.clone();
        let listed = session.ok("task_list", page).await;
        assert_eq!(listed["tasks"][0]["task_id"], older, "{name}: {listed:#}");
    }
    session.close().await;
}

/// Suggestions of tools that this server is without are taken out, and what else the replies say stays.
#[tokio::test]
async fn replies_suggest_what_can_be_called() {
    let place = Place::with("[packs.task-store.config.retry]\nbackoff_ms = []\n");
    let session = place.serve(&["--tier", "full"]).await;
    let (task, attempt) = executing(&session).await;
    let failed = json!({"attempt_id": attempt, "status": "aborted", "actor_role": "executor"});
    session.ok("task_finish_attempt", failed).await;
    let back =
        json!({"task_id": task, "from_phase": "executing", "to_phase": "execution_ready", "reason": "next"});
    session.ok("task_transition", lead(back)).await;
    let ready = session.ok("task_list_ready", json!({})).await;
    assert_eq!(
        ready["ready"][0]["next_call"]["tool"], "task_start_attempt",
        "{ready:#}"
    );
    let recovered = session.ok("task_recover", json!({"task_id": task})).await;
    assert_eq!(
        recovered["transitions"][0]["next_call"]["tool"], "task_transition",
        "{recovered:#}"
    );
    session.close().await;

    let without = [
        "--tier",
        "full",
        "--exclude-tools",
        "task_start_attempt,task_transition",
    ];
    let session = place.serve(&without).await;
    let ready = session.ok("task_list_ready", json!({})).await;
    assert_eq!(ready["ready"][0]["task"]["task_id"], task, "{ready:#}");
    assert_eq!(ready["ready"][0].get("next_call"), None, "{ready:#}");
    let recovered = session.ok("task_recover", json!({"task_id": task})).await;
    let moves = recovered["transitions"].as_array().unwrap();
    assert!(
        moves.len() == 2 && moves.iter().all(|legal| legal.get("next_call").is_none()),
        "{recovered:#}"
    );
    session.close().await;
}

/// Lists show one form of arguments that take two, and the description of the tool both.
#[tokio::test]
async fn both_forms_of_inputs_are_described() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let described = session
        .ok("tool_describe", json!({"tools": ["task_create"]}))
        .await;
    let schema = &described["tools"][0]["input_schema"];
    let inputs = schema
        .pointer("/properties/spec/properties/inputs")
        .unwrap_or_else(|| panic!("{schema:#}"));
    assert_eq!(
        inputs["anyOf"][1],
        json!({"type": ["array", "object"]}),
        "{inputs:#}"
    );
    let tools = session.client().list_all_tools().await.unwrap();
    let listed = tools.iter().find(|tool| tool.name == "task_create").unwrap();
    let listed = serde_json::to_string(&*listed.input_schema).unwrap();
    assert!(!listed.contains(r#"["array","object"]"#), "{listed}");
    session.close().await;
}
