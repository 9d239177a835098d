//! Clients over HTTP.

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session};
use crate::transport::stdio::complete_a_task;

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

/// Status, content type and text of a request, in a session or without one.
async fn ask(
    server: &HttpServer,
    method: reqwest::Method,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, String) {
    let mut request = reqwest::Client::new().request(method, &server.url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.body(body.to_owned()).send().await.unwrap();
    let kind = response.headers().get("content-type");
    let kind = kind.map_or(String::new(), |kind| kind.to_str().unwrap().to_owned());
    (response.status().as_u16(), kind, response.text().await.unwrap())
}

const JSON: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

#[tokio::test]
async fn a_session_that_is_ended_answers_204_and_is_gone() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let mut request = reqwest::Client::new().post(&server.url);
    for (name, value) in JSON {
        request = request.header(name, value);
    }
    let response = request.body(begin.to_string()).send().await.unwrap();
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let session = ("mcp-session-id", id.as_str());
    let (status, _, text) = ask(&server, reqwest::Method::DELETE, &[session], "").await;
    assert_eq!((status, text.as_str()), (204, ""));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let headers = [JSON[0], JSON[1], session];
    let (status, kind, text) = ask(&server, reqwest::Method::POST, &headers, list).await;
    assert_eq!((status, kind.as_str()), (404, "application/json"));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["error"]["data"]["error"]["code"], "SESSION_NOT_FOUND");
}

#[tokio::test]
async fn what_is_no_message_gets_an_error_of_json_rpc() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    for (body, code) in [
        (r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"initialize"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"notifications/initialized"}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        ("[]", -32600),
        ("7", -32600),
        ("{", -32700),
        ("", -32700),
    ] {
        let (status, kind, text) = ask(&server, reqwest::Method::POST, &JSON, body).await;
        assert_eq!(
            (status, kind.as_str()),
            (400, "application/json"),
            "{body}: {text}"
        );
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_eq!(answer["error"]["code"], code, "{body}: {text}");
    }
    // Whatever else the transport refuses has that shape too.
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (headers, wanted) in [
        (
            vec![("content-type", "text/plain"), JSON[1]],
            "CONTENT_TYPE_NOT_JSON",
        ),
        (vec![JSON[0], ("accept", "application/json")], "NOT_ACCEPTABLE"),
    ] {
        let (_, kind, text) = ask(&server, reqwest::Method::POST, &headers, list).await;
        assert_eq!(kind, "application/json");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["error"]["data"]["error"]["code"], wanted);
    }
}

#[tokio::test]
async fn a_browser_gets_a_page() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    for path in ["/", "/mcp"] {
        let response = reqwest::Client::new()
            .get(server.at(path))
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/html"), "{kind}");
        let text = response.text().await.unwrap();
        assert!(text.contains("/mcp") && text.contains("docs/http.md"), "{text}");
    }
    let (status, kind, _) = ask(
        &server,
        reqwest::Method::GET,
        &[("accept", "text/event-stream")],
        "",
    )
    .await;
    assert!(status >= 400 && kind == "application/json", "{status} {kind}");
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_told_the_key() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let headers = [JSON[0], JSON[1], ("host", "tollgate:8765")];
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (status, _, text) = ask(&server, reqwest::Method::POST, &headers, list).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 403);
    let said = answer["error"]["data"]["error"]["remediation"].as_str().unwrap();
    assert!(said.contains("server.allowed_hosts = [\"tollgate\"]"), "{said}");
}

#[tokio::test]
async fn another_path_is_told_where_mcp_is() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let client = reqwest::Client::new();
    for request in [client.post(server.at("/nope")), client.get(server.at("/mcp/x"))] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 404);
        let said = answer.text().await.unwrap();
        assert!(said.contains("PATH_UNKNOWN") && said.contains("/mcp"), "{said}");
    }
}
