//! Repeated request ids, and hostile text in output and logs.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::PermissionsExt as _;

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

use crate::harness::{Place, Wire, params};
use crate::transport::http::post;

fn call(id: &Value, title: &str) -> Value {
    let task = json!({"title": title, "spec_markdown": "S", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "ada", "actor_role": "orchestrator"});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "task_create", "arguments": task}})
}

fn code(wire: &mut Wire, id: &Value) -> String {
    let reply = wire.ask(&call(id, "T"));
    assert_eq!(reply["id"], *id);
    let error = &reply["result"]["structuredContent"]["error"]["code"];
    error.as_str().unwrap_or("ok").to_owned()
}

#[test]
fn a_request_id_runs_once_in_a_session() {
    let place = Place::new();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    for (id, outcome) in [
        (json!(7), "ok"),
        (json!(7), "REQUEST_ID_REPEATED"),
        (json!("7"), "ok"),
        (json!("7"), "REQUEST_ID_REPEATED"),
        (json!(8), "ok"),
        (json!(7), "REQUEST_ID_REPEATED"),
    ] {
        assert_eq!(code(&mut wire, &id), outcome, "{id}");
    }
    // Each left its row, and three wrote something.
    assert_eq!(
        place
            .sql("SELECT op_id FROM core_operations WHERE tool = 'task_create'")
            .len(),
        6
    );
    assert_eq!(place.sql("SELECT id FROM task_store_tasks").len(), 3);
    // Another session has ids of its own.
    drop(wire);
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    assert_eq!(code(&mut wire, &json!(7)), "ok");
}

#[test]
fn the_ledger_has_no_character_of_a_request_id_that_nobody_sees() {
    let place = Place::new();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    let hidden = json!("7\0\u{1b}[31m\u{202e}8");
    assert_eq!(code(&mut wire, &hidden), "ok");
    // What the ledger shows is no more than a name for it.
    assert_eq!(code(&mut wire, &json!("7[31m8")), "ok");
    let ids = place.sql("SELECT request_id FROM core_operations WHERE tool = 'task_create' ORDER BY seq");
    assert_eq!(ids, ["7[31m8", "7[31m8"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_runs_once_in_a_session_over_http() {
    let place = Place::new();
    let server = place.serve_http(&["--tier", "full"]);
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let begun = reqwest::Client::new()
        .post(&server.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(message.to_string())
        .send()
        .await
        .unwrap();
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(&server, &headers, ready.to_string().into_bytes()).await;
    let ask = async || {
        post(&server, &headers, call(&json!(5), "T").to_string().into_bytes())
            .await
            .1
    };
    let first = ask().await;
    assert!(
        !first.contains("REQUEST_ID_REPEATED") && first.contains("spec_draft"),
        "{first}"
    );
    let second = ask().await;
    assert!(second.contains("REQUEST_ID_REPEATED"), "{second}");
    assert_eq!(place.sql("SELECT id FROM task_store_tasks").len(), 1);
}

/// Text that controls a terminal, reverses its direction, or is visible to models only.
const HOSTILE: &str = "a\u{9b}31mb\u{202e}c\u{7f}d\u{e0041}e\u{61c}f\u{2028}g\u{1b}[2Jh";

fn is_safe(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    let hidden = ['\u{202e}', '\u{e0041}', '\u{61c}', '\u{2028}'];
    text.chars().all(|c| is_plain(c) && !hidden.contains(&c))
}

#[test]
fn nothing_that_is_printed_steers_a_terminal() {
    let place = Place::new();
    let task = |title: &str| call(&json!(1), title)["params"]["arguments"].clone();
    let (_, refused) = place.call("task_create", &task(HOSTILE));
    assert!(refused["error"].is_object(), "{refused:#}");
    let (exit, created) = place.call("task_create", &task("a title"));
    assert_eq!(exit, 0, "{created:#}");
    // As an earlier version may have stored it.
    place.sql(&format!(
        "UPDATE task_store_tasks SET title = '{HOSTILE}' RETURNING 1"
    ));
    let envelope = json!({"label": HOSTILE, "workspace": HOSTILE});
    place.call("envelope_open", &envelope);
    let unknown = place.call("task_get", &json!({"task_id": HOSTILE})).1;
    assert!(unknown["error"].is_object(), "{unknown:#}");
    let get = json!({"task_id": created["task"]["id"]}).to_string();
    let hostile_get = json!({"task_id": HOSTILE}).to_string();
    let path = format!("/nowhere/{HOSTILE}");
    let commands: &[&[&str]] = &[
        &["--json", "call", "task_get", &get],
        &["call", "task_get", &get],
        &["--json", "call", "task_get", &hostile_get],
        &["call", "task_list", "{}"],
        &["call", HOSTILE, "{}"],
        &["--json", "ledger", "tail"],
        &["ledger", "tail"],
        &["--json", "ledger", "query"],
        &["ledger", "query", "--since", HOSTILE],
        &["ledger", "export"],
        &["ledger", "report", HOSTILE],
        &["envelopes"],
        &["--json", "envelopes"],
        &["stats"],
        &["tools", "--tools", HOSTILE],
        &["packs", "list"],
        &["packs", "inspect", &path],
        &["packs", "add", &path],
        &["packs", "remove", HOSTILE],
        &["policies", "list"],
        &["policies", "remove", HOSTILE],
        &["policies", "inspect", &path],
        &["doctor"],
    ];
    for command in commands {
        let output = place.run(command);
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            assert!(is_safe(&text), "{command:?}: {text:?}");
        }
    }
    // Escaped, it is the same to whoever reads it as JSON.
    let got = place
        .call("task_get", &json!({"task_id": created["task"]["id"]}))
        .1;
    assert_eq!(got["task"]["title"], HOSTILE);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_nothing_that_calls_hold() {
    let place = Place::new();
    for flags in [
        ["--log", "trace"],
        ["--log", "rmcp=trace,hyper=trace,tollgate=trace"],
    ] {
        let server = place.serve_http(&flags);
        let session = crate::harness::Session::over_http(&server).await;
        let task = call(&json!(1), "words-of-an-argument")["params"]["arguments"].clone();
        let created = session.ok("task_create", task).await;
        session
            .ok("task_get", json!({"task_id": created["task"]["id"]}))
            .await;
        session
            .refused("task_get", json!({"task_id": "words-of-an-argument"}))
            .await;
        // What the client library reports as an error of the host, with what was asked for in it.
        let client = session.client();
        let unknown = client
            .call_tool(params(
                "words-of-an-argument",
                json!({"x": "words-of-an-argument"}),
            ))
            .await;
        assert!(unknown.is_err(), "{unknown:?}");
        let uri = "words-of-an-argument://nowhere";
        let resource = client.read_resource(ReadResourceRequestParams::new(uri)).await;
        assert!(resource.is_err(), "{resource:?}");
        let prompt = client
            .get_prompt(GetPromptRequestParams::new("words-of-an-argument"))
            .await;
        assert!(prompt.is_err(), "{prompt:?}");
        session.close().await;
        let log = server.stop();
        assert!(!log.contains("words-of-an-argument"), "{log}");
    }
}

#[test]
fn a_data_directory_that_others_can_write_in_is_refused() {
    let place = Place::new();
    let chmod = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, mode) in [
        (place.data(), 0o777),
        (place.data(), 0o770),
        (place.path().to_owned(), 0o777),
    ] {
        chmod(&path, mode);
        for command in [
            &["ledger", "verify"][..],
            &["call", "task_list"],
            &["serve", "--http", "127.0.0.1:0"],
        ] {
            let output = place.run(command);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && said.contains("chmod go-"),
                "{command:?}: {said}"
            );
        }
        let doctor = place.run(&["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert!(!doctor.status.success() && said.contains("chmod go-"), "{said}");
        chmod(&path, 0o700);
    }
    assert!(place.run(&["call", "task_list"]).status.success());
}
