//! One client over stdio.

use serde_json::{Value, json};

use crate::harness::{Place, Session, Wire, terminate};

/// Drives a task from its spec to completed, and checks the replies.
pub(crate) async fn complete_a_task(session: &Session) -> String {
    let orchestrator = |mut arguments: Value| {
        arguments["actor"] = "lead".into();
        arguments["actor_role"] = "orchestrator".into();
        arguments
    };
    let created = session
        .ok(
            "task_create",
            orchestrator(json!({
                "title": "Ship it",
                "spec_markdown": "# Goal\nShip.\n# Acceptance\n- it ships\n",
                "workspace": "default",
                "initial_phase": "spec_review",
            })),
        )
        .await;
    let id = created["task"]["id"].as_str().unwrap().to_owned();
    let step = async |from: &str, to: &str| {
        let arguments = json!({"task_id": id, "from_phase": from, "to_phase": to, "reason": "next"});
        session.ok("task_transition", orchestrator(arguments)).await
    };
    let refused = session
        .refused(
            "task_transition",
            orchestrator(json!({"task_id": id, "from_phase": "spec_review", "to_phase": "execution_ready", "reason": "early"})),
        )
        .await;
    assert!(!refused["blockers"].as_array().unwrap().is_empty(), "{refused:#}");

    let review = async |kind: &str, attempt: Option<&str>| {
        let mut arguments = json!({
            "task_id": id, "review_type": kind, "reviewer_ref": "r", "verdict": "approved", "findings": [],
            "actor": "r", "actor_role": format!("{kind}_reviewer"),
        });
        if let Some(attempt) = attempt {
            arguments["attempt_id"] = attempt.into();
        }
        session.ok("task_append_review", arguments).await
    };
    review("spec", None).await;
    step("spec_review", "execution_ready").await;
    let started = session
        .ok(
            "task_start_attempt",
            orchestrator(
                json!({"task_id": id, "phase": "executing", "runtime": "local", "executor_kind": "builder"}),
            ),
        )
        .await;
    let attempt = started["attempt"]["id"].as_str().unwrap().to_owned();
    step("execution_ready", "executing").await;
    session
        .ok(
            "task_finish_attempt",
            json!({"attempt_id": attempt, "status": "succeeded", "actor": "e", "actor_role": "executor"}),
        )
        .await;
    step("executing", "spec_gate").await;
    review("spec", Some(&attempt)).await;
    step("spec_gate", "quality_gate").await;
    review("quality", Some(&attempt)).await;
    step("quality_gate", "completed").await;
    let task = session.ok("task_get", json!({"task_id": id})).await;
    assert_eq!(task["task"]["phase"], "completed", "{task:#}");
    id
}

#[tokio::test]
async fn a_task_goes_from_spec_to_completed() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    complete_a_task(&session).await;
    session.close().await;
    let ledger = place.ledger();
    assert_eq!(ledger.len(), 13, "{ledger:#?}");
    assert_eq!(
        ledger.iter().filter(|row| !row.ends_with(" ok")).count(),
        1,
        "{ledger:#?}"
    );
}

#[test]
fn every_revision_is_spoken() {
    let place = Place::new();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut wire = place.wire(&[]);
        let reply = wire.initialize(version);
        assert_eq!(reply["result"]["protocolVersion"], version);
        assert!(
            reply["result"]["instructions"]
                .as_str()
                .unwrap()
                .contains("task-store")
        );
        let tools = wire.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        assert!(!tools["result"]["tools"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let ask = |wire: &mut Wire, id: u32, method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        wire.ask(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let discovered = ask(&mut wire, 1, "server/discover", json!({}));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&"2026-07-28".into()), "{discovered:#}");
    let tools = ask(&mut wire, 2, "tools/list", json!({}));
    assert!(tools["result"]["ttlMs"].is_u64(), "{tools:#}");
    let listed = ask(
        &mut wire,
        3,
        "tools/call",
        json!({"name": "task_list_ready", "arguments": {}}),
    );
    assert_eq!(listed["result"]["isError"], false, "{listed:#}");
    assert_eq!(
        place.sql("SELECT client FROM core_operations").len(),
        0,
        "a read's row may come later"
    );
    drop(wire);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_replies_at_once_all_arrive() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let created = session
        .ok(
            "task_create",
            json!({"title": "Large", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_review",
                   "actor": "a", "actor_role": "orchestrator"}),
        )
        .await;
    let id = &created["task"]["id"];
    for _ in 0..9 {
        let review = json!({"task_id": id, "review_type": "spec", "reviewer_ref": "r", "verdict": "approved",
            "findings": [], "summary": "long ".repeat(1600), "actor": "r", "actor_role": "spec_reviewer"});
        session.ok("task_append_review", review).await;
    }
    let calls = (0..200).map(|_| session.ok("task_get", json!({"task_id": id})));
    for task in futures::future::join_all(calls).await {
        assert!(task.to_string().len() > 64 << 10);
    }
    session.close().await;
    assert_eq!(place.ledger().len(), 210);
}

#[tokio::test]
async fn a_cancelled_call_stops_and_says_so_in_the_ledger() {
    let place = Place::with_guests(&["call-limits"]);
    let session = place.serve(&["--tier", "full"]).await;
    let handle = session.begin("call_limits_spin", json!({})).await;
    handle.cancel(Some("enough".to_owned())).await.unwrap();
    // The next call is answered, so the cancelled one holds nothing up.
    session.ok("call_limits_answer", json!({})).await;
    session.close().await;
    assert!(
        place
            .ledger()
            .contains(&"call_limits_spin read CANCELLED".to_owned()),
        "{:?}",
        place.ledger()
    );
}

#[test]
fn a_client_that_leaves_mid_call_leaves_a_row() {
    let place = Place::with_guests(&["call-limits"]);
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    wire.send(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_limits_spin_writing","arguments":{}}}"#);
    wire.send(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    // The answer shows that the call before it was taken up.
    assert_eq!(wire.receive()["id"], 2);
    wire.close_stdin();
    assert!(wire.wait().success());
    let ledger = place.ledger();
    assert_eq!(ledger.len(), 1, "{ledger:?}");
    assert!(
        ledger[0].starts_with("call_limits_spin_writing write"),
        "{ledger:?}"
    );
}

#[test]
fn calls_that_wait_when_standard_input_ends_leave_the_line_without_running() {
    let place = Place::with(&format!(
        "[packs.call-limits]\nsource = {:?}\nlimits = {{ write_ms = 1000 }}\n",
        crate::harness::guest("call-limits")
    ));
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    for id in 1..=12 {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"call_limits_spin_writing","arguments":{{}}}}}}"#
        );
        wire.send(call.as_bytes());
    }
    wire.close_stdin();
    assert!(wire.wait().success());
    let ledger = place.ledger();
    let count = |code: &str| ledger.iter().filter(|row| row.ends_with(code)).count();
    assert_eq!(count("CANCELLED") + count("DEADLINE_EXCEEDED"), 12, "{ledger:?}");
    assert!(count("DEADLINE_EXCEEDED") <= 3, "{ledger:?}");
}

#[test]
fn calls_that_are_piped_in_are_made_and_answered() {
    let place = Place::new();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    let arguments = r#"{"title":"T","spec_markdown":"S","workspace":"w","initial_phase":"spec_draft","actor":"ada","actor_role":"orchestrator"}"#;
    for id in 1..=20 {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"task_create","arguments":{arguments}}}}}"#
        );
        wire.send(call.as_bytes());
    }
    wire.close_stdin();
    let mut answered: Vec<i64> = (1..=20).map(|_| wire.receive()["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..=20).collect::<Vec<_>>());
    assert!(wire.wait().success());
}

#[test]
fn a_line_that_is_no_message_is_answered_and_ends_nothing() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    wire.initialize("2025-06-18");
    for (line, code, id) in [
        (&b"rubbish"[..], -32_700, Value::Null),
        (b"[]", -32_600, Value::Null),
        (
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            -32_600,
            Value::Null,
        ),
        (br#"{"jsonrpc":"2.0","id":5}"#, -32_600, json!(5)),
    ] {
        wire.send(line);
        let answer = wire.receive();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{answer}"
        );
    }
    let answer = wire.ask(&json!({ "jsonrpc": "2.0", "id": 6, "method": "ping" }));
    assert_eq!((&answer["id"], &answer["result"]), (&json!(6), &json!({})));
}

#[test]
fn a_signal_before_the_session_has_begun_ends_the_server_in_order() {
    let place = Place::new();
    let mut wire = place.wire(&["--packs", "core"]);
    wire.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    terminate(wire.pid());
    let ended = wire.wait();
    assert!(ended.success(), "{ended}");
}

#[test]
fn what_comes_before_initialize_is_told_to_send_that_first_and_spoils_nothing() {
    let place = Place::new();
    let mut wire = place.wire(&["--packs", "core"]);
    let asked = |wire: &mut Wire, message: Value| {
        wire.send(message.to_string().as_bytes());
        wire.receive()
    };
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, method) in ["tools/list", "tools/call", "nope"].iter().enumerate() {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "task_list"}});
        let refused = asked(&mut wire, message);
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(
            text.starts_with("send initialize first") && !text.contains("_meta"),
            "{refused}"
        );
        assert_eq!(refused["id"], id);
    }
    let bare = asked(
        &mut wire,
        json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}),
    );
    assert!(
        bare["error"]["message"]
            .as_str()
            .unwrap()
            .contains("protocolVersion, capabilities"),
        "{bare}"
    );
    assert!(asked(&mut wire, json!({"jsonrpc": "2.0", "id": 8, "method": "ping"}))["result"].is_object());
    wire.initialize("2025-06-18");
    let unknown = asked(&mut wire, json!({"jsonrpc": "2.0", "id": 9, "method": "nope"}));
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("there is no method nope"),
        "{unknown}"
    );
    wire.close_stdin();
    assert!(wire.wait().success());
}
