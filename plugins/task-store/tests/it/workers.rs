//! Workers that are gone: named, and their attempts cost nothing.

use expect_test::expect;
use serde_json::json;
use tollgate_kit_test::changes;
use tollgate_sdk::native::{EPOCH_MS, Session, line_of};
use tollgate_sdk::{NextCall, Operation};

use crate::harness::{READY, reply, run};

fn closed(envelope: &str, at_ms: i64) -> Operation {
    Operation {
        envelope_id: Some(envelope.to_owned()),
        pack: "core".to_owned(),
        tool: "envelope_close".to_owned(),
        success: Some(true),
        at_ms: EPOCH_MS + at_ms,
        ..Operation::default()
    }
}

fn refused(envelope: &str, code: &str, at_ms: i64) -> Operation {
    Operation {
        success: Some(false),
        error_code: Some(code.to_owned()),
        tool: "task_create".to_owned(),
        ..closed(envelope, at_ms)
    }
}

/// A session whose `att_1` runs in `env_1`, seen from outside of it.
fn with_worker() -> Session {
    let session = Session::new(&task_store::PACK);
    session.set_client("coder");
    run(&session, READY);
    session.set_envelope(Some("env_1"));
    run(&session, "- start tsk_1\n- move tsk_1 execution_ready executing");
    session.set_envelope(None);
    session
}

#[test]
fn a_worker_is_gone_with_its_envelope() {
    let session = with_worker();
    let worker = || reply(&session, "recover tsk_1")["worker"].clone();
    expect![[r#"{"state":"active","envelope_id":"env_1","client":"coder","last_sign_at":"2026-01-01T00:00:05.000Z"}"#]]
        .assert_eq(&worker().to_string());
    session.set_operations(vec![
        refused("env_1", "TEST_BUDGET_EXHAUSTED", 20_000),
        closed("env_2", 20_000),
    ]);
    assert_eq!(worker()["state"], "active");
    session.set_operations(vec![
        refused("env_1", "MUTATION_BUDGET_EXHAUSTED", 20_000),
        refused("env_1", "ENVELOPE_CLOSED", 30_000),
    ]);
    assert_eq!(
        worker()["reason"],
        "its envelope env_1 ended at 2026-01-01T00:00:20.000Z"
    );
    session.set_operations(vec![closed("env_1", 9_000)]);
    let gone = reply(&session, "recover tsk_1");
    assert_eq!(gone["worker"]["state"], "gone");
    assert_eq!(gone["latest_attempt"]["envelope_id"], "env_1");
    assert_eq!(gone["pending"][0]["next_call"], gone["worker"]["next_call"]);
    let next: NextCall = serde_json::from_value(gone["worker"]["next_call"].clone()).unwrap();
    let ended = reply(&session, &line_of(&next));
    expect![[r#"{"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","envelope_id":"env_1","client":"coder","status":"aborted","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:11.000Z","lost":true},"attempts_left":3,"replayed":false}"#]].assert_eq(&ended.to_string());
    // The next attempt has neither to wait nor fewer after it.
    assert_eq!(reply(&session, "start tsk_1")["attempts_left"], 2);
}

#[test]
fn a_worker_that_records_something_after_the_end_goes_on_elsewhere() {
    let session = with_worker();
    session.set_operations(vec![closed("env_1", 6_000)]);
    run(&session, "+60000\n- note tsk_1 att_1");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "active");
    // A review of the spec is no sign of the worker.
    session.set_operations(vec![closed("env_1", 90_000)]);
    run(&session, "+60000\n- review tsk_1 none spec blocked");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "gone");
}

#[test]
fn a_worker_that_is_silent_for_long_is_gone() {
    let session = with_worker();
    run(&session, "+3590000");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "active");
    run(&session, "- note tsk_1 att_1\n+3590000");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "active");
    run(&session, "+20000");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "gone");
    let session = with_worker();
    let session = session.config(&json!({"retry": {"lost_after_ms": 0}}));
    run(&session, "+100000000");
    assert_eq!(reply(&session, "recover tsk_1")["worker"]["state"], "active");
}

#[test]
fn an_abort_costs_as_usual_while_the_worker_is_there() {
    let session = with_worker();
    let ended = reply(&session, "finish att_1 aborted");
    assert_eq!(
        (&ended["attempts_left"], ended["attempt"].get("lost")),
        (&json!(2), None)
    );
    assert!(ended["next_retry_at"].is_string(), "{ended}");
    // What failed has failed, whoever is gone.
    let session = with_worker();
    session.set_operations(vec![closed("env_1", 9_000)]);
    assert!(reply(&session, "finish att_1 failed")["next_retry_at"].is_string());
}

/// Whoever vanishes each time comes to an end as well.
#[test]
fn only_so_many_attempts_are_lost_for_nothing() {
    let session = Session::new(&task_store::PACK).config(&json!({"retry": {"backoff_ms": []}}));
    run(&session, READY);
    let mut started = 0;
    for attempt in 1..20 {
        if let Err(err) = crate::harness::script(&session).call("start tsk_1") {
            assert_eq!(err.code, "RETRIES_EXHAUSTED");
            break;
        }
        started = attempt;
        run(&session, &format!("+4000000\n- finish att_{attempt} aborted"));
    }
    assert_eq!(started, 6);
}

#[test]
fn a_task_that_ends_ends_its_attempt() {
    let session = with_worker();
    run(&session, "- move tsk_1 executing failed");
    let log = run(
        &session,
        "
        get tsk_1 ? task.phase latest_attempt.status latest_attempt.error_summary
        task_events {\"task_id\": \"tsk_1\", \"cursor\": 6} ? events.0.event_type events.1.event_type
        ",
    );
    expect![[r#"
        ok task.phase="failed" latest_attempt.status="aborted" latest_attempt.error_summary="the task moved to failed"
        ok events.0.event_type="attempt.finished" events.1.event_type="task.transitioned"
    "#]].assert_eq(&log);
}

/// Earlier versions left attempts of ended tasks running.
#[test]
fn an_attempt_that_outlived_its_task_can_be_ended() {
    let session = with_worker();
    session.sql("UPDATE task_store_tasks SET phase = 'completed'");
    session.set_operations(vec![closed("env_1", 9_000)]);
    let pending = reply(&session, "recover tsk_1")["pending"][0].clone();
    assert_eq!(pending["code"], "ATTEMPT_RUNNING", "{pending}");
    let next: NextCall = serde_json::from_value(pending["next_call"].clone()).unwrap();
    assert_eq!(reply(&session, &line_of(&next))["attempt"]["status"], "aborted");
    assert_eq!(reply(&session, "recover tsk_1")["pending"], json!([]));
}

/// The ledger names tasks and their parts instead of tables.
#[test]
fn changes_are_named_in_the_ledger() {
    let session = Session::new(&task_store::PACK);
    run(&session, "reach 10\n- ask tsk_1 att_1 v1\n- recover tsk_1");
    expect![[r#"
        task.created task_store/tsk_1
        task.transitioned task_store/tsk_1
        review.appended task_store/tsk_1 task_store/tsk_1/rev_1
        task.transitioned task_store/tsk_1
        attempt.started task_store/tsk_1 task_store/tsk_1/att_1
        task.transitioned task_store/tsk_1
        attempt.finished task_store/tsk_1 task_store/tsk_1/att_1
        task.transitioned task_store/tsk_1
        review.appended task_store/tsk_1 task_store/tsk_1/rev_2
        task.transitioned task_store/tsk_1
        approval.requested task_store/tsk_1 task_store/tsk_1/apr_1
    "#]]
    .assert_eq(&changes(&session));
}
