//! Cancelled calls that run programs: no process survives, and one row records the call.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Wire, guest, is_running, terminate, until};
use crate::transport::http::{NEWEST, post, stateless};

fn place() -> Place {
    let place = Place::new();
    let config = format!(
        "[server.limits]\ndrain_sec = 1\n[workspaces.main]\npath = \"main\"\n[packs.workspace-access]\nsource = {:?}\ngrants = {{ workspaces = [\"*\"], process = [\"*\"] }}\n",
        guest("workspace-access")
    );
    std::fs::write(place.config(), config).unwrap();
    std::fs::create_dir(place.path().join("main")).unwrap();
    place
}

/// A call whose program starts another one in a new session, and waits.
fn call(id: u32) -> Value {
    let script = "setsid sleep 1000 & echo $! >pids; echo $$ >>pids; echo seen by people; sleep 1000";
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "workspace_access_run",
        "arguments": {"program": "sh", "arguments": ["-c", script]},
        "_meta": {"progressToken": "p1"},
    }})
}

/// The ids of both processes, once they exist.
async fn pids(place: &Place) -> Vec<String> {
    let mut pids = Vec::new();
    until(async || {
        let text = std::fs::read_to_string(place.path().join("main/pids")).unwrap_or_default();
        pids = text.lines().map(str::to_owned).collect();
        pids.len() == 2 && text.ends_with('\n')
    })
    .await;
    pids
}

async fn gone(pids: &[String]) {
    until(async || !pids.iter().any(|pid| is_running(pid))).await;
}

/// Makes the call over HTTP.
fn ask(server: &Arc<HttpServer>) -> tokio::task::JoinHandle<(u16, String)> {
    let server = Arc::clone(server);
    let params = json!({"name": "workspace_access_run", "arguments": call(1)["params"]["arguments"]});
    tokio::spawn(async move {
        let headers = [
            NEWEST,
            ("mcp-method", "tools/call"),
            ("mcp-name", "workspace_access_run"),
        ];
        post(&server, &headers, stateless("tools/call", params)).await
    })
}

fn start(place: &Place) -> Wire {
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    wire
}

#[tokio::test]
async fn a_cancelled_call_is_told_of_and_leaves_no_process() {
    let place = place();
    let mut wire = start(&place);
    wire.send(call(1).to_string().as_bytes());
    let pids = pids(&place).await;
    let mut notes = Vec::new();
    while !notes.iter().any(|note: &Value| {
        note["message"]
            .as_str()
            .is_some_and(|text| text.contains("seen by people"))
    }) {
        let message = wire.receive();
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "p1");
        notes.push(message["params"].clone());
    }
    assert_eq!(notes[0]["message"], "about to run");
    assert!(
        notes.is_sorted_by(|one, next| one["progress"].as_f64() < next["progress"].as_f64()),
        "{notes:?}"
    );
    wire.send(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#,
    );
    gone(&pids).await;
    until(async || place.ledger() == ["workspace_access_run run CANCELLED"]).await;
    assert_eq!(place.sql("SELECT count(op_id) FROM core_intents"), ["0"]);
    wire.close_stdin();
    assert!(wire.wait().success());
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_programs_with_it() {
    let place = place();
    let mut wire = start(&place);
    wire.send(call(1).to_string().as_bytes());
    let pids = pids(&place).await;
    wire.close_stdin();
    assert!(wire.wait().success());
    gone(&pids).await;
    assert_eq!(place.ledger(), ["workspace_access_run run CANCELLED"]);
}

#[tokio::test]
async fn a_host_on_stdio_that_is_told_to_stop_ends_its_programs() {
    let place = place();
    let mut wire = start(&place);
    wire.send(call(1).to_string().as_bytes());
    let pids = pids(&place).await;
    terminate(wire.pid());
    gone(&[wire.pid().to_string()]).await;
    gone(&pids).await;
    assert_eq!(place.ledger(), ["workspace_access_run run CANCELLED"]);
}

#[tokio::test]
async fn a_host_over_http_that_is_told_to_stop_ends_its_programs() {
    let place = place();
    let server = Arc::new(place.serve_http(&["--tier", "full"]));
    let _asking = ask(&server);
    let pids = pids(&place).await;
    terminate(server.pid());
    gone(&[server.pid().to_string()]).await;
    gone(&pids).await;
    assert_eq!(place.ledger(), ["workspace_access_run run CANCELLED"]);
}

#[tokio::test]
async fn what_ends_in_the_line_is_refused_and_not_counted() {
    let place = place();
    let mut wire = start(&place);
    let opened = wire.ask(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "envelope_open", "arguments": {"limits": {"max_mutations": 100}}}}),
    );
    let envelope = opened["result"]["structuredContent"]["envelope_id"]
        .as_str()
        .unwrap();
    // More than may run at the same time.
    for id in 2..40 {
        let mut call = call(id);
        call["params"]["arguments"]["envelope_id"] = envelope.into();
        wire.send(call.to_string().as_bytes());
    }
    let charged = "SELECT mutation_count FROM core_envelopes";
    until(async || place.sql(charged) != ["0"] && place.sql("SELECT op_id FROM core_intents").len() > 3)
        .await;
    wire.close_stdin();
    assert!(wire.wait().success());
    let ended =
        place.sql("SELECT DISTINCT error_code FROM core_operations WHERE tool = 'workspace_access_run'");
    assert_eq!(ended, ["CANCELLED"]);
    let rows = |is: &str| {
        let counted = place.sql(&format!(
            "SELECT count(*) FROM core_operations WHERE tool = 'workspace_access_run' AND failure_class {is} 'refused'"
        ));
        counted[0].parse::<u32>().unwrap()
    };
    assert_eq!(place.sql(charged), [rows("<>").to_string()]);
    assert_eq!(rows("<>") + rows("="), 38);
    assert!(rows("=") > 0);
}

#[tokio::test]
async fn a_host_that_is_killed_takes_its_programs_with_it() {
    let place = place();
    let mut wire = start(&place);
    wire.send(call(1).to_string().as_bytes());
    let pids = pids(&place).await;
    drop(wire);
    gone(&pids).await;
    assert_eq!(place.ledger(), Vec::<String>::new());
    // The next host knows that the outcome of the call is unknown.
    place.run(&["packs", "list"]);
    assert_eq!(
        place.sql("SELECT failure_class FROM core_operations"),
        ["interrupted"]
    );
}

#[tokio::test]
async fn a_client_over_http_that_cancels_ends_its_program() {
    let place = place();
    let server = place.serve_http(&["--tier", "full"]);
    let session = crate::harness::Session::over_http(&server).await;
    let arguments = call(1)["params"]["arguments"].clone();
    let handle = session.begin("workspace_access_run", arguments).await;
    let pids = pids(&place).await;
    handle.cancel(Some("enough".to_owned())).await.unwrap();
    gone(&pids).await;
    until(async || place.ledger() == ["workspace_access_run run CANCELLED"]).await;
}

#[tokio::test]
async fn a_client_that_drops_its_request_over_http_ends_its_program() {
    let place = place();
    let server = Arc::new(place.serve_http(&["--tier", "full"]));
    let asking = ask(&server);
    let pids = pids(&place).await;
    asking.abort();
    gone(&pids).await;
    until(async || place.ledger() == ["workspace_access_run run CANCELLED"]).await;
}
