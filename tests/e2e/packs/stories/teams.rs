//! Stories of several at work: agents that share an envelope, a CI job that closes one, an orchestrator after a crash, an
//! approval that takes days.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use serde_json::{Value, json};

use super::SPEC;
use crate::envelopes::observed_edits::{place, write};
use crate::harness::{Place, Session, until};

#[tokio::test]
async fn two_agents_on_two_hosts_see_that_they_undo_each_other() {
    let place = place("");
    let (one, other) = (
        place.serve(&["--tier", "full"]).await,
        place.serve(&["--tier", "full"]).await,
    );
    let limits = json!({"max_mutations": 5});
    let opened = one
        .ok("envelope_open", json!({"workspace": "default", "limits": limits}))
        .await;
    let envelope = json!({"envelope_id": opened["envelope_id"]});
    let mut told = Vec::new();
    for (session, value) in [
        (&one, "a * b"),
        (&other, "a - b"),
        (&one, "a * b"),
        (&other, "a * b"),
    ] {
        write(&place, "value", value);
        let recorded = session.ok("mutation_record", envelope.clone()).await;
        told.push((recorded["oscillation"] == true, recorded["no_op"] == true));
    }
    assert_eq!(
        told,
        [(false, false), (false, false), (true, false), (false, true)]
    );
    // Whoever opened it leaves, and the other goes on with what is left.
    one.close().await;
    other.ok("mutation_record", envelope.clone()).await;
    let refusal = other.refused("mutation_record", envelope.clone()).await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED");
    let report = other.ok("ledger_report", envelope.clone()).await;
    let text = report["text"].as_str().unwrap();
    assert!(
        text.contains("5 of 5 mutations") && text.contains("via rmcp"),
        "{text}"
    );
    let shown = other.ok("envelope_get", envelope).await;
    assert_eq!(shown["counters"]["observed_edits"], 3, "{shown:#}");
    other.close().await;
}

#[tokio::test]
async fn a_ci_job_that_closes_an_envelope_during_a_test_is_heard() {
    let place = place("");
    write(
        &place,
        "run.sh",
        "touch ../started\nwhile ! [ -e ../go ]; do sleep 0.02; done\nexit 1\n",
    );
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
    let envelope = json!({"envelope_id": opened["envelope_id"]});
    let closing = async {
        until(async || place.path().join("started").exists()).await;
        let arguments =
            json!({"envelope_id": opened["envelope_id"], "outcome": "failed", "note": "the build is red"});
        let (code, closed) = place.call("envelope_close", &arguments);
        assert_eq!(code, 0, "{closed:#}");
        std::fs::write(place.path().join("go"), "").unwrap();
        closed
    };
    let (ran, closed) = tokio::join!(session.ok("test_run", envelope.clone()), closing);
    assert_eq!(ran["passed"], false);
    // What is still running is in the report of the end.
    assert_eq!(closed["running"], json!(["test_run"]), "{closed:#}");
    let summary = closed["summary"].as_str().unwrap();
    assert!(summary.contains("test_run"), "{summary}");
    let refusal = session.refused("test_run", envelope.clone()).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("the build is red") && message.contains("tollgate call"),
        "{message}"
    );
    assert_eq!(refusal["context"]["note"], "the build is red");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

fn lead(mut arguments: Value) -> Value {
    arguments["actor"] = "boss".into();
    arguments["actor_role"] = "orchestrator".into();
    arguments
}

fn transition(task: &Value, from: &str, to: &str) -> Value {
    lead(json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "next"}))
}

fn review(task: &Value, attempt: Option<&Value>, kind: &str) -> Value {
    let mut review = json!({"task_id": task, "review_type": kind, "reviewer_ref": "eye", "verdict": "approved",
        "findings": [], "actor": "eye", "actor_role": format!("{kind}_reviewer")});
    if let Some(attempt) = attempt {
        review["attempt_id"] = attempt.clone();
    }
    review
}

/// A task in `executing` with its running attempt.
async fn executing(session: &Session) -> (Value, Value) {
    let created =
        json!({"title": "t", "spec_markdown": SPEC, "workspace": "w", "initial_phase": "spec_review"});
    let created = session.ok("task_create", lead(created)).await;
    let task = created["task"]["task_id"].clone();
    session
        .ok("task_append_review", review(&task, None, "spec"))
        .await;
    session
        .ok(
            "task_transition",
            transition(&task, "spec_review", "execution_ready"),
        )
        .await;
    let start =
        json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"});
    let started = session.ok("task_start_attempt", lead(start)).await;
    session
        .ok(
            "task_transition",
            transition(&task, "execution_ready", "executing"),
        )
        .await;
    (task, started["attempt"]["attempt_id"].clone())
}

#[tokio::test]
async fn a_fresh_orchestrator_finds_its_way_after_a_crash() {
    let place = place("");
    let session = place.serve(&[]).await;
    let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
    let (task, attempt) = executing(&session).await;
    session.ok("test_run", json!({})).await;
    session.kill();
    write(&place, "value", "8");

    let session = place.serve(&[]).await;
    let recover = json!({"task_id": task});
    until(async || session.ok("task_recover", recover.clone()).await["worker"]["state"] == "gone").await;
    let found = session.ok("task_recover", recover).await;
    assert_eq!(found["worker"]["envelope_id"], opened["envelope_id"], "{found:#}");
    let next = &found["pending"][0]["next_call"];
    assert_eq!(next["arguments"]["attempt_id"], attempt, "{found:#}");
    let ended = session.follow(next).await;
    assert_eq!(
        (&ended["attempts_left"], ended.get("next_retry_at")),
        (&json!(3), None)
    );
    // The next attempt starts at once, in an envelope that knows the failure.
    let fresh = session.ok("envelope_open", json!({"workspace": "default"})).await;
    assert_ne!(fresh["envelope_id"], opened["envelope_id"]);
    let start =
        json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"});
    session.ok("task_start_attempt", lead(start)).await;
    let ran = session.ok("test_run", json!({})).await;
    assert_eq!(ran["earlier_envelopes"], 1, "{ran:#}");
    // What was edited while no host was there is told with the old envelope.
    let old = json!({"tool": "envelope_get", "arguments": {"envelope_id": opened["envelope_id"]}});
    let moved = async || {
        let shown = session.ok("tool_call", old.clone()).await;
        shown["repo_snapshot"]["changed_before_restart"] == true
    };
    until(moved).await;
    session.close().await;
    let rows = place.sql("SELECT tool || ' ' || changed_paths FROM core_operations WHERE tool = 'restart'");
    assert_eq!(rows, ["restart [\"value\"]"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn an_approval_takes_days_and_another_orchestrator_goes_on() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let (task, attempt) = executing(&session).await;
    let ended =
        json!({"attempt_id": attempt, "status": "succeeded", "actor": "hand", "actor_role": "executor"});
    session.ok("task_finish_attempt", ended).await;
    session
        .ok("task_transition", transition(&task, "executing", "spec_gate"))
        .await;
    session
        .ok("task_append_review", review(&task, Some(&attempt), "spec"))
        .await;
    session
        .ok("task_transition", transition(&task, "spec_gate", "quality_gate"))
        .await;
    session
        .ok("task_append_review", review(&task, Some(&attempt), "quality"))
        .await;
    session
        .ok(
            "task_transition",
            transition(&task, "quality_gate", "awaiting_approval"),
        )
        .await;
    let asked = json!({"task_id": task, "attempt_id": attempt, "requested_action": "put it online",
        "side_effect_kind": "deploy", "idempotency_key": "v1", "actor": "gate", "actor_role": "gateway"});
    session.ok("task_request_approval", asked).await;
    session.close().await;

    // A person finds it from the shell, without the task's id, and answers.
    let (code, pending) = place.call("task_list_approvals", &json!({}));
    assert_eq!(code, 0, "{pending:#}");
    let pending = &pending["approvals"][0];
    assert_eq!(
        (&pending["task_id"], &pending["counts"]),
        (&task, &json!(true)),
        "{pending:#}"
    );
    let answer = json!({"task_id": pending["task_id"], "approval_id": pending["approval_id"], "resolution": "approved",
        "resolved_by": "ada", "actor": "ada", "actor_role": "human"});
    assert_eq!(place.call("task_resolve_approval", &answer).0, 0);

    let session = place.serve(&[]).await;
    let ready = session
        .ok("task_list_ready", lead(json!({"workspace": "w"})))
        .await;
    let answered = &ready["answered"][0];
    assert_eq!(answered["task"]["task_id"], task, "{ready:#}");
    let next = &answered["next_call"];
    let moved = session.follow(next).await;
    assert_eq!(moved["phase"], "ready_to_resume", "{moved:#}");
    session
        .ok(
            "task_transition",
            transition(&task, "ready_to_resume", "completed"),
        )
        .await;
    session.close().await;
}
