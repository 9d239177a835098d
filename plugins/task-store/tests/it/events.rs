//! The log: one event for each change, and no way to change it afterwards.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::Host as _;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, check_after, reply, run};

#[test]
fn each_change_is_one_event_with_before_and_after() {
    check_after(
        EXECUTING,
        r#"
        - task_record_checkpoint {"task_id": "tsk_1", "checkpoint_type": "note", "payload": {"n": 1}, "actor": "hand", "actor_role": "executor"}
        - ask tsk_1 att_1 v1
        - ask tsk_1 att_1 v1
        - answer tsk_1 apr_1 approved
        - finish att_1 failed
        - open tsk_1
        - move tsk_1 circuit_open execution_ready
        task_events {"task_id": "tsk_1", "cursor": 4}
        task_events {"limit": 2}
        task_events {"cursor": 1000}
        "#,
        expect![[r#"
            ok {"events":[{"id":5,"event_id":5,"task_id":"tsk_1","attempt_id":"att_1","event_type":"attempt.started","actor":"boss","actor_role":"orchestrator","payload":{"after":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:05.000Z"}},"created_at":"2026-01-01T00:00:05.000Z"},{"id":6,"event_id":6,"task_id":"tsk_1","attempt_id":"att_1","event_type":"task.transitioned","actor":"boss","actor_role":"orchestrator","payload":{"before":{"phase":"execution_ready","circuit_status":"closed","attempts_used":1},"after":{"phase":"executing","circuit_status":"closed","attempts_used":1},"reason":"because"},"created_at":"2026-01-01T00:00:06.000Z"},{"id":7,"event_id":7,"task_id":"tsk_1","event_type":"attempt.checkpoint","actor":"hand","actor_role":"executor","payload":{"checkpoint_type":"note","payload":{"n":1}},"created_at":"2026-01-01T00:00:07.000Z"},{"id":8,"event_id":8,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.requested","actor":"gate","actor_role":"gateway","payload":{"after":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:08.000Z"}},"created_at":"2026-01-01T00:00:08.000Z"},{"id":9,"event_id":9,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.resolved","actor":"ada","actor_role":"human","payload":{"before":{"status":"pending"},"after":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"approved","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:08.000Z","resolved_at":"2026-01-01T00:00:10.000Z"}},"created_at":"2026-01-01T00:00:10.000Z"},{"id":10,"event_id":10,"task_id":"tsk_1","attempt_id":"att_1","event_type":"attempt.finished","actor":"hand","actor_role":"executor","payload":{"before":{"status":"running"},"after":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"failed","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:11.000Z","next_retry_at":"2026-01-01T00:00:41.000Z"}},"created_at":"2026-01-01T00:00:11.000Z"},{"id":11,"event_id":11,"task_id":"tsk_1","attempt_id":"att_1","event_type":"circuit.opened","actor":"boss","actor_role":"orchestrator","payload":{"before":{"phase":"executing","circuit_status":"closed","attempts_used":1},"after":{"phase":"circuit_open","circuit_status":"open","attempts_used":1},"reason":"it burns"},"created_at":"2026-01-01T00:00:12.000Z"},{"id":12,"event_id":12,"task_id":"tsk_1","attempt_id":"att_1","event_type":"task.transitioned","actor":"boss","actor_role":"orchestrator","payload":{"before":{"phase":"circuit_open","circuit_status":"open","attempts_used":1},"after":{"phase":"execution_ready","circuit_status":"closed","attempts_used":0,"circuit_resets":1},"reason":"because"},"created_at":"2026-01-01T00:00:13.000Z"}],"has_more":false}
            ok {"events":[{"id":1,"event_id":1,"task_id":"tsk_1","event_type":"task.created","actor":"boss","actor_role":"orchestrator","payload":{"after":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"spec_draft","labels":[],"circuit_status":"closed","attempt_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:01.000Z","spec":{"goal":"Ship it.","scope_in":["the server"],"scope_out":["the client"],"inputs":["the source"],"outputs":["a binary"],"acceptance":["it runs","it stops"],"risks":["none"]}}},"created_at":"2026-01-01T00:00:01.000Z"},{"id":2,"event_id":2,"task_id":"tsk_1","event_type":"task.transitioned","actor":"boss","actor_role":"orchestrator","payload":{"before":{"phase":"spec_draft","circuit_status":"closed","attempts_used":0},"after":{"phase":"spec_review","circuit_status":"closed","attempts_used":0},"reason":"because"},"created_at":"2026-01-01T00:00:02.000Z"}],"has_more":true,"next_cursor":2,"next_after_id":2}
            ok {"events":[],"has_more":false}
        "#]],
    );
}

#[test]
fn pages_of_the_log_neither_skip_nor_repeat() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    run(&session, "- create two");
    for size in [10, 20_000, 30_000, 50_000, 10, 60_000, 10] {
        let arguments = json!({"task_id": "tsk_1", "checkpoint_type": "note", "payload": {"text": "x".repeat(size)},
            "actor": "hand", "actor_role": "executor"});
        reply(&session, &format!("task_record_checkpoint {arguments}"));
    }
    for task in [Some("tsk_1"), Some("tsk_2"), None] {
        for limit in [1, 3, 200] {
            let mut ids = Vec::new();
            let mut cursor = json!(0);
            loop {
                // The earlier names are still accepted.
                let name = ["cursor", "after", "after_id"][ids.len() % 3];
                let mut arguments = json!({name: cursor, "limit": limit});
                if let Some(task) = task {
                    arguments["task_id"] = json!(task);
                }
                let page = reply(&session, &format!("task_events {arguments}"));
                let events = page["events"].as_array().unwrap();
                let size = page.to_string().len();
                assert!(
                    size < 40_000 || events.len() == 1,
                    "{size} bytes in {} events",
                    events.len()
                );
                ids.extend(events.iter().map(|event| event["id"].as_i64().unwrap()));
                assert!(ids.len() < 1_000, "the pages never end");
                assert_eq!(page.get("next_after_id"), page.get("next_cursor"));
                match page.get("next_cursor") {
                    Some(next) => cursor = next.clone(),
                    None => break,
                }
            }
            let wanted: Vec<i64> = match task {
                Some("tsk_1") => (1..=6).chain(8..=14).collect(),
                Some(_) => vec![7],
                None => (1..=14).collect(),
            };
            assert_eq!(ids, wanted, "{task:?} by {limit}");
        }
    }
}

#[test]
fn nothing_changes_the_log() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    let count = || -> i64 {
        session.sql("SELECT count(*) FROM task_store_events")[0]
            .get(0)
            .unwrap()
    };
    assert_eq!(count(), 6);
    let replacement = "(id, task_id, event_type, actor, actor_role, payload_json, created_at) \
        VALUES (6, 'tsk_1', 'task.created', 'x', 'human', '{}', 'now')";
    for statement in [
        "UPDATE task_store_events SET actor = 'x'",
        "UPDATE task_store_events SET actor = 'x' WHERE id = 6",
        "DELETE FROM task_store_events",
        "DELETE FROM task_store_events WHERE id = 6",
        &format!("INSERT INTO task_store_events {replacement} ON CONFLICT (id) DO UPDATE SET actor = 'x'"),
    ] {
        let result = session.backend().execute(statement, &[]);
        let err = result.expect_err(statement).to_string();
        assert!(err.contains("append-only"), "{statement}: {err}");
    }
    for statement in [
        &format!("INSERT INTO task_store_events {replacement}"),
        &format!("INSERT OR REPLACE INTO task_store_events {replacement}"),
        &format!("REPLACE INTO task_store_events {replacement}"),
        &format!("INSERT OR IGNORE INTO task_store_events {replacement}"),
    ] {
        session.backend().execute(statement, &[]).expect_err(statement);
    }
    assert_eq!(count(), 6);
}

#[test]
fn the_tables_refuse_what_the_tools_never_write() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    for statement in [
        "UPDATE task_store_tasks SET phase = 'done'",
        "UPDATE task_store_tasks SET phase = 'circuit_open'",
        "UPDATE task_store_tasks SET circuit_status = 'open'",
        "UPDATE task_store_attempts SET status = 'failed'",
        "INSERT INTO task_store_attempts (id, task_id, ordinal, phase, runtime, executor_kind, status, escalate, \
         started_at) VALUES ('att_2', 'tsk_1', 2, 'executing', 'local', 'builder', 'running', 0, 'now')",
        "INSERT INTO task_store_labels (label, task_id) VALUES ('x', 'tsk_2')",
        "DELETE FROM task_store_tasks",
    ] {
        session.backend().execute(statement, &[]).expect_err(statement);
    }
}
