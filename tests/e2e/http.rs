//! Clients over HTTP.

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session};
use crate::stdio::complete_a_task;

#[tokio::test]
async fn a_task_goes_from_spec_to_completed() {
    let place = Place::new();
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    complete_a_task(&session).await;
    session.close().await;
}

#[tokio::test]
async fn two_clients_share_one_state() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let one = Session::over_http(&server).await;
    let other = Session::over_http(&server).await;
    let id = complete_a_task(&one).await;
    let task = other.ok("task_get", json!({"task_id": id})).await;
    assert_eq!(task["task"]["phase"], "completed");
}

pub(crate) async fn post(server: &HttpServer, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, String) {
    let mut request = reqwest::Client::new()
        .post(&server.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.body(body).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

pub(crate) fn stateless(method: &str, params: Value) -> Vec<u8> {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "post", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        .to_string()
        .into_bytes()
}

pub(crate) const NEWEST: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let body = || stateless("tools/list", json!({}));
    let method = ("mcp-method", "tools/list");
    let (status, text) = post(&server, &[NEWEST, method], body()).await;
    assert_eq!(status, 200, "{text}");
    let (status, _) = post(&server, &[NEWEST, method, ("host", "evil.example")], body()).await;
    assert_eq!(status, 403);
    let (status, _) = post(
        &server,
        &[NEWEST, method, ("origin", "http://evil.example")],
        body(),
    )
    .await;
    assert_eq!(status, 403);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_refused_call() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let mut body = stateless(
        "tools/call",
        json!({"name": "task_get", "arguments": {"task_id": "x"}}),
    );
    let at = body.windows(3).position(|window| window == br#""x""#).unwrap();
    body[at + 1] = 0xff;
    let headers = [NEWEST, ("mcp-method", "tools/call"), ("mcp-name", "task_get")];
    let (status, text) = post(&server, &headers, body).await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("MALFORMED_ARGUMENTS"), "{text}");
    let row = place.ledger();
    assert_eq!(row, ["task_get read MALFORMED_ARGUMENTS"]);
}

#[test]
fn only_loopback_addresses_are_served() {
    let place = Place::new();
    let output = place.run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not a loopback address"), "{said}");
}
