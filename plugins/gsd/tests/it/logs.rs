//! Entries of a call in the two logs.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::Operation;
use tollgate_sdk::native::{EPOCH_MS, Session};

use crate::harness::{PLANNED, check, refusal, reply, run};

#[test]
fn every_change_names_its_actor_and_its_cause() {
    check(
        "- gsd_plan_milestone {\"milestone_id\": \"M01\", \"title\": \"t\", \"actor_name\": \"planner\", \"trigger_reason\": \"user asked\"}
         - plan M01
         gsd_events
         gsd_audit_log",
        expect![[r#"
            ok {"events":[{"id":1,"workspace":"app","cmd":"plan-milestone","unit":"M01","params":{"milestone_id":"M01","title":"t"},"ts":"2026-01-01T00:00:01.000Z","hash":"b7e25376c73ee15d","actor":"agent","actor_name":"planner","trigger_reason":"user asked","session_id":"00000000-0000-7000-8000-000000000000"},{"id":2,"workspace":"app","cmd":"plan-milestone","unit":"M01","params":{"milestone_id":"M01","title":"milestone M01"},"ts":"2026-01-01T00:00:02.000Z","hash":"a6e9ae418c5da090","actor":"agent","actor_name":"agent","session_id":"00000000-0000-7000-8000-000000000000"}],"has_more":false}
            ok {"entries":[{"id":1,"workspace":"app","ts":"2026-01-01T00:00:01.000Z","severity":"info","tool":"gsd_plan_milestone","unit":"M01","message":"M01 is active","actor_name":"planner","trigger_reason":"user asked","session_id":"00000000-0000-7000-8000-000000000000","op_id":""},{"id":2,"workspace":"app","ts":"2026-01-01T00:00:02.000Z","severity":"info","tool":"gsd_plan_milestone","unit":"M01","message":"M01 is active","actor_name":"agent","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}],"has_more":false}
        "#]],
    );
}

#[test]
fn a_refusal_leaves_an_entry_and_nothing_else() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    let before = session.sql("SELECT count(id) FROM gsd_events")[0]
        .get::<i64>(0)
        .unwrap();
    run(
        &session,
        "gsd_slice_complete {\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"one_liner\": \"x\", \"narrative\": \"y\", \"verification\": \"z\", \"uat_content\": \"u\", \"actor_name\": \"bob\", \"trigger_reason\": \"in a hurry\"}",
    );
    let after = session.sql("SELECT count(id) FROM gsd_events")[0]
        .get::<i64>(0)
        .unwrap();
    assert_eq!(before, after);
    let entries = reply(&session, "gsd_audit_log {\"unit\": \"M01/S01\", \"cursor\": 2}");
    expect![[r#"{"entries":[{"id":3,"workspace":"app","ts":"2026-01-01T00:00:03.000Z","severity":"error","tool":"gsd_slice_complete","unit":"M01/S01","code":"TASKS_OPEN","message":"Task T01 is not complete: it is pending (M01/S01/T01); Task T02 is not complete: it is pending (M01/S01/T02)","actor_name":"bob","trigger_reason":"in a hurry","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}],"has_more":false}"#]].assert_eq(&entries.to_string());
}

fn hash_of(session: &Session, line: &str) -> Value {
    reply(session, line)["hash"].clone()
}

#[test]
fn a_hash_covers_command_and_arguments_alone() {
    let complete = |extra: Value| {
        let mut arguments = json!({"milestone_id": "M01", "slice_id": "S01", "task_id": "T01", "one_liner": "x",
            "narrative": "y", "verification": "z"});
        for (name, value) in extra.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let session = Session::new(&gsd::PACK);
        run(&session, PLANNED);
        hash_of(&session, &format!("gsd_task_complete {arguments}"))
    };
    let plain = complete(json!({}));
    // printf '%s' '{"cmd":"complete-task","params":{"milestone_id":"M01","narrative":"y","one_liner":"x","slice_id":"S01","task_id":"T01","verification":"z"}}' | sha256sum
    assert_eq!(plain, "8cac855b266528cb");
    assert_eq!(
        plain,
        complete(json!({"actor": "ada", "trigger_reason": "because"}))
    );
    assert_eq!(plain, complete(json!({"actor_name": "ada"})));
    assert_eq!(
        plain,
        complete(json!({"verification_evidence": [], "key_files": []}))
    );
    assert_ne!(plain, complete(json!({"one_liner": "other"})));
}

#[test]
fn logs_are_read_in_pages() {
    let session = Session::new(&gsd::PACK);
    run(&session, "- plan M01\n- plan M02\n- plan M03\n- plan M11");
    let first = reply(&session, "gsd_events {\"limit\": 2}");
    assert_eq!(first["events"].as_array().unwrap().len(), 2);
    let rest = reply(
        &session,
        &format!("gsd_events {{\"cursor\": {}}}", first["next_cursor"]),
    );
    // The earlier name is still accepted.
    let earlier = format!("gsd_events {{\"after\": {}}}", first["next_cursor"]);
    assert_eq!(reply(&session, &earlier), rest);
    assert_eq!(rest["events"].as_array().unwrap().len(), 2);
    assert_eq!(rest.get("next_cursor"), None);
    let one = reply(&session, "gsd_events {\"unit\": \"M01\", \"workspace\": \"app\"}");
    assert_eq!(one["events"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&first["has_more"], &rest["has_more"]),
        (&json!(true), &json!(false))
    );
    let err = refusal(&session, "gsd_audit_log {\"workspace\": \"elsewhere\"}");
    assert_eq!(err.code, "WORKSPACE_UNKNOWN");
}

#[test]
fn a_large_plan_does_not_fill_a_page() {
    let session = Session::new(&gsd::PACK);
    let slices: Vec<Value> = (1..100)
        .map(|number| json!({"slice_id": format!("S{number:02}"), "title": "x", "goal": "g".repeat(8_000)}))
        .collect();
    let plan = json!({"milestone_id": "M01", "title": "t", "slices": slices});
    run(&session, &format!("- gsd_plan_milestone {plan}\n- plan M02"));
    let events = reply(&session, "gsd_events");
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    assert_eq!(events["events"][0]["params"]["title"], "t");
    assert!(events["events"][0]["params"]["omitted_bytes"].as_u64().unwrap() > 700_000);
    assert_eq!(events["next_cursor"], 1);
}

/// A refused call in the host's ledger.
fn refused(seq: u64, seconds: i64, tool: &str, code: &str, op_id: &str) -> Operation {
    Operation {
        seq,
        op_id: op_id.to_owned(),
        pack: "gsd".to_owned(),
        tool: tool.to_owned(),
        at_ms: EPOCH_MS + seconds * 1_000,
        success: Some(false),
        error_code: Some(code.to_owned()),
        ..Operation::default()
    }
}

#[test]
fn what_the_host_refused_is_in_the_audit_log_once_and_in_its_time() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    run(&session, "done M01/S07/T01");
    let other = Operation {
        pack: "tasks".to_owned(),
        ..refused(3, 2, "tasks_done", "X", "op_4")
    };
    session.set_operations(vec![
        refused(1, 1, "gsd_task_start", "INVALID_ARGUMENTS", "op_1"),
        // The pack refused this one, and has it.
        refused(2, 3, "gsd_task_complete", "NOT_FOUND", ""),
        other,
        // These too, though its reads leave no entries.
        refused(5, 4, "gsd_show", "NOT_FOUND", "op_5"),
        refused(6, 5, "gsd_plan_slice", "LOG_AHEAD", "op_6"),
        refused(4, 60, "gsd_plan_slice", "MUTATION_BUDGET_EXHAUSTED", "op_3"),
    ]);
    let codes = |line: &str| -> Vec<String> {
        let audit = reply(&session, line);
        let refused = audit["refused_by_host"].as_array().cloned().unwrap_or_default();
        refused
            .iter()
            .map(|call| call["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        codes("gsd_audit_log"),
        ["INVALID_ARGUMENTS", "MUTATION_BUDGET_EXHAUSTED"]
    );
    assert_eq!(
        codes("gsd_audit_log {\"limit\": 1}"),
        ["INVALID_ARGUMENTS"],
        "up to the page's end"
    );
    assert_eq!(
        codes("gsd_audit_log {\"cursor\": 2}"),
        ["MUTATION_BUDGET_EXHAUSTED"]
    );
    assert_eq!(codes("gsd_audit_log {\"unit\": \"M01\"}"), [""; 0]);
    assert_eq!(codes("gsd_events"), [""; 0]);
}
