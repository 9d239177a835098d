//! The built-in policies that evaluate earlier calls, over a real ledger. Their time limits are longer than usual, for
//! busy machines.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Place, Session, until};

fn create(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\ng\n# Acceptance\n- it is\n", "workspace": "w", "initial_phase": "spec_review", "actor": "a",
           "actor_role": "orchestrator"})
}

#[tokio::test]
async fn the_rate_holds_over_hosts_and_restarts() {
    let place = Place::with(
        "[policies.rate-limit]\nlimits.time_ms = 10000\ntools = [\"task_create\"]\nconfig = { calls = 3, seconds = 3600 }\n",
    );
    let one = place.serve(&[]).await;
    one.ok("task_create", create("1")).await;
    one.ok("task_create", create("2")).await;
    one.close().await;
    let other = place.serve(&[]).await;
    other.ok("task_create", create("3")).await;
    let refused = other.refused("task_create", create("4")).await;
    assert_eq!(refused["code"], "RATE_LIMITED", "{refused:#}");
    let wait = refused["remediation"].as_str().unwrap();
    assert!(
        wait.starts_with("Call again in 3") && wait.ends_with(" s."),
        "{wait}"
    );
    other.ok("task_list", json!({})).await;
    other.close().await;
}

/// Calls a tool and waits until policies can see its row, which follows a read's reply.
async fn settled(place: &Place, session: &Session, tool: &str, arguments: Value) -> String {
    let rows = || {
        place.sql("SELECT count(*) FROM core_operations")[0]
            .parse::<u32>()
            .unwrap()
    };
    let before = rows();
    let result = session.call_raw(tool, arguments).await;
    until(async || rows() > before).await;
    let body = result.structured_content.unwrap();
    body["error"]["code"].as_str().unwrap_or("ok").to_owned()
}

#[tokio::test]
async fn circles_are_broken_and_progress_is_not() {
    let place = Place::with("[policies.loop-breaker]\nlimits.time_ms = 10000\n");
    let session = place.serve(&["--tier", "full"]).await;
    let mut log = String::new();
    // `n` and the like stand for reads of tasks that are not there, `+` for a new task, `l` for the list.
    for word in "n n n n n l p q p q p q p l + + + +".split_whitespace() {
        let code = match word {
            "+" => settled(&place, &session, "task_create", create("t")).await,
            "l" => settled(&place, &session, "task_list", json!({})).await,
            id => settled(&place, &session, "task_get", json!({"task_id": id})).await,
        };
        log += &format!("{word} {code}\n");
    }
    session.close().await;
    expect![[r#"
        n NOT_FOUND
        n NOT_FOUND
        n NOT_FOUND
        n LOOP_DETECTED
        n LOOP_DETECTED
        l ok
        p NOT_FOUND
        q NOT_FOUND
        p NOT_FOUND
        q NOT_FOUND
        p NOT_FOUND
        q NOT_FOUND
        p LOOP_DETECTED
        l ok
        + ok
        + ok
        + ok
        + LOOP_DETECTED
    "#]]
    .assert_eq(&log);
}

async fn attempt(session: &Session) -> Value {
    let lead = |mut arguments: Value| {
        arguments["actor"] = "a".into();
        arguments["actor_role"] = "orchestrator".into();
        arguments
    };
    let created = session.ok("task_create", create("t")).await;
    let id = &created["task"]["id"];
    let review = json!({"task_id": id, "review_type": "spec", "reviewer_ref": "r", "verdict": "approved",
        "findings": [], "actor": "r", "actor_role": "spec_reviewer"});
    session.ok("task_append_review", review).await;
    let ready =
        json!({"task_id": id, "from_phase": "spec_review", "to_phase": "execution_ready", "reason": "next"});
    session.ok("task_transition", lead(ready)).await;
    let start = json!({"task_id": id, "phase": "executing", "runtime": "local", "executor_kind": "builder"});
    let started = session.ok("task_start_attempt", lead(start)).await;
    json!({"task_id": id, "attempt_id": started["attempt"]["id"]})
}

#[tokio::test]
async fn a_side_effect_waits_for_its_approval() {
    let config = r#"
        [policies.side-effect-approval]
        limits.time_ms = 10000
        tools = ["envelope_open", "task_resolve_approval"]
        config = { approvers = ["grace"] }
    "#;
    let place = Place::with(config);
    let session = place.serve(&["--tier", "full"]).await;
    let work = attempt(&session).await;
    let open = || json!({"label": "deploy"});
    let refused = session.refused("envelope_open", open()).await;
    assert_eq!(refused["code"], "APPROVAL_REQUIRED", "{refused:#}");
    let told = refused["remediation"].as_str().unwrap();
    let key = told.split('`').nth(5).unwrap();
    let mut asked = work.clone();
    for (name, value) in [
        ("requested_action", "open"),
        ("side_effect_kind", "envelope_open"),
        ("idempotency_key", key),
        ("actor", "a"),
        ("actor_role", "orchestrator"),
    ] {
        asked[name] = value.into();
    }
    let approval = session.ok("task_request_approval", asked).await;
    let resolve = |by: &str| {
        json!({"task_id": work["task_id"], "approval_id": approval["approval"]["id"],
        "resolution": "approved", "resolved_by": by, "actor": by, "actor_role": "human"})
    };
    let refused = session.refused("task_resolve_approval", resolve("mallory")).await;
    assert_eq!(refused["code"], "APPROVER_UNKNOWN", "{refused:#}");
    assert_eq!(
        session.refused("envelope_open", open()).await["code"],
        "APPROVAL_REQUIRED"
    );
    session.ok("task_resolve_approval", resolve("grace")).await;
    session.close().await;
    let session = place.serve(&[]).await;
    session.ok("envelope_open", open()).await;
    let again = session.refused("envelope_open", open()).await;
    assert_eq!(again["code"], "APPROVAL_REQUIRED", "{again:#}");
    session.close().await;
}
