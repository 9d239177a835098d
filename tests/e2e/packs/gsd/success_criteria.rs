//! The seven points of GSD single-writer v3's “What Success Looks Like”, in its own sentences.

use serde_json::{Value, json};

use super::{at, completion, place, plan, slice_completion, with};

#[tokio::test]
async fn success_1_completing_twice_is_refused() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let error = client
        .refused("gsd_task_complete", completion("M01/S01/T01"))
        .await;
    assert_eq!(error["code"], "ALREADY_COMPLETE");
    assert_eq!(error["message"], "Task T01 is already complete");
    assert_eq!(error["context"]["same_content"], true);
    let other = with(completion("M01/S01/T01"), "narrative", "Something else.");
    let error = client.refused("gsd_complete_task", other).await;
    assert_eq!(error["context"]["same_content"], false);
}

#[tokio::test]
async fn success_2_a_slice_with_open_tasks_stays_open() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let error = client
        .refused("gsd_slice_complete", slice_completion("M01/S01"))
        .await;
    assert_eq!(error["code"], "TASKS_OPEN");
    assert_eq!(
        error["message"],
        "Task T02 is not complete: it is pending (M01/S01/T02)"
    );
    client.ok("gsd_task_complete", completion("M01/S01/T02")).await;
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let error = client
        .refused("gsd_slice_complete", slice_completion("M01/S01"))
        .await;
    assert_eq!(error["message"], "Slice S01 is already complete");
}

#[tokio::test]
async fn success_3_closed_work_is_not_planned_again() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    let task = at("M01/S01/T01", json!({"title": "Another schema"}));
    let error = client.refused("gsd_plan_task", task).await;
    assert_eq!(error["message"], "Cannot re-plan: task T01 is already complete");
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let tasks = json!({"tasks": [{"task_id": "T03", "title": "More"}]});
    let error = client.refused("gsd_plan_slice", at("M01/S01", tasks)).await;
    assert_eq!(error["message"], "Cannot re-plan: slice S01 is already complete");
}

#[tokio::test]
async fn success_4_the_wrong_agent_is_refused() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let claim = at("M01/S01/T01", json!({"actor_name": "executor-01"}));
    client.ok("gsd_claim", claim).await;
    let other = with(completion("M01/S01/T01"), "actor_name", "executor-02");
    let error = client.refused("gsd_task_complete", other).await;
    assert_eq!(error["code"], "NOT_CLAIM_OWNER");
    assert_eq!(
        error["message"],
        "Unit M01/S01/T01 is owned by executor-01, not executor-02"
    );
    let error = client
        .refused("gsd_task_complete", completion("M01/S01/T01"))
        .await;
    assert_eq!(error["code"], "ACTOR_REQUIRED");
    let owner = with(completion("M01/S01/T01"), "actor_name", "executor-01");
    client.ok("gsd_task_complete", owner).await;
    assert_eq!(client.ok("gsd_claims", json!({})).await["claims"], json!([]));
}

#[tokio::test]
async fn success_5_the_audit_log_outlives_processes() {
    let (place, app) = place();
    let named = |arguments: Value, actor: &str, reason: &str| {
        with(with(arguments, "actor_name", actor), "trigger_reason", reason)
    };
    let first = place.serve(&[]).await;
    plan(&first, "M01").await;
    let call = named(completion("M01/S01/T01"), "executor-01", "plan-phase complete");
    first.ok("gsd_task_complete", call).await;
    first.close().await;
    let second = place.serve(&[]).await;
    let call = named(slice_completion("M01/S01"), "executor-02", "user asked");
    second.refused("gsd_slice_complete", call).await;
    second.close().await;
    let text = std::fs::read_to_string(app.join(".gsd/audit-log.jsonl")).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [planned, _, done, refused] = entries.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(done["severity"], "info");
    assert_eq!(done["actor_name"], "executor-01");
    assert_eq!(done["trigger_reason"], "plan-phase complete");
    assert_eq!(refused["severity"], "error");
    assert_eq!(refused["code"], "TASKS_OPEN");
    assert_eq!(refused["actor_name"], "executor-02");
    assert_eq!(refused["trigger_reason"], "user asked");
    // One process is one session; another is another.
    assert_eq!(planned["session_id"], done["session_id"]);
    assert_ne!(planned["session_id"], refused["session_id"]);
    // What the file says is what is stored, and the ledger knows the operation.
    let third = place.serve(&[]).await;
    let stored = third.ok("gsd_audit_log", json!({"workspace": "app"})).await;
    assert_eq!(stored["entries"].as_array().unwrap().len(), 4);
    let operation = refused["op_id"].as_str().unwrap();
    let row = place.sql(&format!(
        "SELECT error_code FROM core_operations WHERE op_id = '{operation}'"
    ));
    assert_eq!(row, ["TASKS_OPEN"]);
}

#[tokio::test]
async fn success_6_mistakes_are_taken_back() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    let why = json!({"reason": "the tests never ran", "actor_name": "eve"});
    client.ok("gsd_task_reopen", at("M01/S01/T01", why)).await;
    let started = client.ok("gsd_task_start", at("M01/S01/T01", json!({}))).await;
    assert_eq!(started["reopened"][0]["reason"], "the tests never ran");
    assert_eq!(started["reopened"][0]["by"], "eve");
    let plan = std::fs::read_to_string(app.join(".gsd/milestones/M01/slices/S01/S01-PLAN.md")).unwrap();
    assert!(plan.contains("- [ ] **T01: Schema**"), "{plan}");
    assert!(plan.contains("Reopened by eve at "), "{plan}");
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let reopened = client
        .ok(
            "gsd_slice_reopen",
            at("M01/S01", json!({"reason": "rows are lost"})),
        )
        .await;
    assert_eq!(reopened["status"], "in_progress");
    assert_eq!(
        reopened["also"],
        json!([{"unit": "M01/S01/T01", "status": "pending"}, {"unit": "M01/S01/T02", "status": "pending"}])
    );
}

#[tokio::test]
async fn success_7_a_milestone_waits_for_those_it_depends_on() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let second = at(
        "M02",
        json!({"title": "Grow it", "depends_on": ["M01"],
        "slices": [{"slice_id": "S01", "title": "More"}]}),
    );
    let error = client.refused("gsd_plan_milestone", second.clone()).await;
    assert_eq!(error["code"], "DEPENDENCY_INCOMPLETE");
    assert_eq!(
        error["message"],
        "Milestone M02 depends on milestone M01, which is active, not complete"
    );
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let finish = at(
        "M01",
        json!({"one_liner": "Did it", "narrative": "All.", "verification_passed": true}),
    );
    let error = client.refused("gsd_milestone_complete", finish.clone()).await;
    assert_eq!(error["code"], "VALIDATION_MISSING");
    let verdict = at("M01", json!({"verdict": "pass", "rationale": "Looked at it."}));
    client.ok("gsd_validate_milestone", verdict).await;
    client.ok("gsd_milestone_complete", finish).await;
    client.ok("gsd_plan_milestone", second).await;
}
