//! A policy on results sees every output of a call: nothing of a denied result is sent, stored or logged.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::harness::{Place, Wire, guest};

const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
/// Beginning of the secret in base64.
const ENCODED: &str = "Z2hwXzAxMjM0";

fn place() -> Place {
    let place = Place::with(&format!(
        r#"
        [artifacts]
        enabled = true
        [workspaces.main]
        path = "work"
        write = ["."]
        [packs.secret-output]
        source = {:?}
        grants = {{ workspaces = ["main"], artifacts = true }}
        [policies.secret-scan]
        tools = ["leak_*"]
        limits.time_ms = 10000
        "#,
        guest("secret-output")
    ));
    std::fs::create_dir(place.path().join("work")).unwrap();
    place
}

/// A client that receives all log messages and supports elicitation.
fn curious(place: &Place) -> Wire {
    let mut wire = place.wire(&["--tier", "full"]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let level =
        json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}});
    wire.ask(&level);
    wire
}

/// Sends a request and returns every message up to and including its reply. Questions are declined.
fn heard(wire: &mut Wire, method: &str, mut params: Value) -> Vec<Value> {
    static NEXT: AtomicU64 = AtomicU64::new(2);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    params["_meta"] = json!({"progressToken": "p"});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    wire.send(request.to_string().as_bytes());
    let mut heard = Vec::new();
    loop {
        let message = wire.receive();
        let is_answer = message["id"] == id && message.get("method").is_none();
        if message["method"] == "elicitation/create" {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}});
            wire.send(answer.to_string().as_bytes());
        }
        heard.push(message);
        if is_answer {
            return heard;
        }
    }
}

fn call(wire: &mut Wire, tool: &str, way: &str, harmless: bool) -> Vec<Value> {
    let arguments = json!({"way": way, "harmless": harmless});
    heard(wire, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn holds_secret(heard: &[Value]) -> bool {
    let all = Value::from(heard.to_vec()).to_string();
    all.contains(SECRET) || all.contains(ENCODED)
}

fn code(heard: &[Value]) -> &str {
    let answer = heard.last().unwrap();
    let error = &answer["result"]["structuredContent"]["error"]["code"];
    error.as_str().unwrap_or("ok")
}

/// Leftovers of a denied call: files, artifacts, or texts in the ledger.
fn left(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.path().join("work")).unwrap();
    let mut left: Vec<String> = files
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let said = "SELECT tool FROM core_operations WHERE events LIKE '%ghp_%' OR changed_paths LIKE '%ghp_%'";
    left.extend(place.sql(said));
    left.extend(place.sql("SELECT id FROM core_artifacts"));
    left
}

#[test]
fn a_policy_on_results_sees_every_way_out_of_a_call() {
    let place = place();
    let mut wire = curious(&place);
    for (tool, ways) in [
        (
            "leak_read",
            &[
                "structured",
                "text",
                "content",
                "resource",
                "address",
                "image",
                "audio",
                "base64",
                "line",
                "message",
                "context",
                "question",
                "form",
                "memory",
            ][..],
        ),
        (
            "leak_write",
            &["file", "bytes", "path", "kept", "note", "changed", "artifact"],
        ),
        ("leak_run", &["line"]),
    ] {
        for way in ways {
            let heard = call(&mut wire, tool, way, false);
            assert!(!holds_secret(&heard), "{tool} {way}: {heard:#?}");
            assert_eq!(code(&heard), "SECRET_IN_RESULT", "{tool} {way}: {heard:#?}");
            assert_eq!(left(&place), Vec::<String>::new(), "{tool} {way}");
        }
    }
}

#[test]
fn what_nobody_minds_leaves_after_it_was_judged() {
    let place = place();
    let mut wire = curious(&place);
    for way in ["content", "resource", "image", "base64"] {
        let heard = call(&mut wire, "leak_read", way, true);
        assert_eq!(code(&heard), "ok", "{way}: {heard:#?}");
    }
    for tool in ["leak_read", "leak_run"] {
        let heard = call(&mut wire, tool, "line", true);
        let line = heard
            .iter()
            .find(|message| message["method"] == "notifications/message");
        let line = line.unwrap_or_else(|| panic!("{tool} told no line: {heard:#?}"));
        assert_eq!(line["params"]["data"], "nothing to hide");
    }
    assert_eq!(code(&call(&mut wire, "leak_write", "file", true)), "ok");
    assert_eq!(left(&place), ["one.txt"]);
}

#[test]
fn progress_of_a_judged_call_is_percent_and_no_words() {
    let place = place();
    let mut wire = curious(&place);
    let heard = call(&mut wire, "leak_run", "progress", false);
    assert_eq!(code(&heard), "ok", "{heard:#?}");
    assert!(!holds_secret(&heard), "{heard:#?}");
    let note = heard
        .iter()
        .find(|message| message["method"] == "notifications/progress");
    let params = &note.unwrap_or_else(|| panic!("no progress: {heard:#?}"))["params"];
    assert_eq!(
        (&params["progress"], &params["total"]),
        (&json!(25.0), &json!(100.0)),
        "{params:#}"
    );
    assert!(params["message"].is_null(), "{params:#}");
}

#[test]
fn a_judged_call_that_the_host_ends_tells_nothing_of_its_own() {
    let place = place();
    let mut wire = curious(&place);
    let heard = call(&mut wire, "leak_run", "trap", false);
    assert_eq!(code(&heard), "GUEST_TRAPPED", "{heard:#?}");
    assert!(!holds_secret(&heard), "{heard:#?}");
    assert_eq!(left(&place), Vec::<String>::new());
}

#[test]
fn resources_and_prompts_are_judged_like_the_calls_that_they_are() {
    let place = place();
    let mut wire = curious(&place);
    for way in ["text", "structured", "base64"] {
        let uri = format!("tollgate://secret-output/said/{way}.txt");
        let heard = heard(&mut wire, "resources/read", json!({ "uri": uri }));
        assert!(!holds_secret(&heard), "{way}: {heard:#?}");
        let error = &heard.last().unwrap()["error"]["data"]["error"]["code"];
        assert_eq!(error, "SECRET_IN_RESULT", "{way}: {heard:#?}");
    }
    let heard = heard(&mut wire, "prompts/get", json!({"name": "leak_prompt"}));
    assert!(!holds_secret(&heard), "{heard:#?}");
    let error = &heard.last().unwrap()["error"]["data"]["error"]["code"];
    assert_eq!(error, "SECRET_IN_RESULT", "{heard:#?}");
}
