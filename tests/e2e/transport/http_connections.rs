//! Idle and unread connections, and requests from foreign hosts and web pages.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, until};
use crate::transport::http::{NEWEST, post, stateless};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A place that requires authentication.
fn guarded(limits: &str) -> Place {
    let place = Place::with(&format!(
        "[server.auth]\ntoken_file = \"tokens\"\n[server.limits]\n{limits}"
    ));
    let mut file = std::fs::OpenOptions::new();
    let file = file
        .write(true)
        .create(true)
        .mode(0o600)
        .open(place.path().join("tokens"));
    file.unwrap()
        .write_all(format!("ada {TOKEN}\n").as_bytes())
        .unwrap();
    place
}

fn address(server: &HttpServer) -> String {
    server.at("").replace("http://", "")
}

fn connect(server: &HttpServer) -> TcpStream {
    TcpStream::connect(address(server)).unwrap()
}

/// Status of a `tools/list` request of an authenticated client.
async fn list(server: &HttpServer) -> u16 {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        NEWEST,
        ("mcp-method", "tools/list"),
        ("authorization", bearer.as_str()),
    ];
    post(server, &headers, stateless("tools/list", json!({}))).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_shut_the_door_for_who_is_known() {
    let place = guarded("max_connections = 4\n");
    let server = place.serve_http(&[]);
    let mut silent: Vec<TcpStream> = Vec::new();
    for round in 0..5 {
        silent.extend((0..8).map(|_| connect(&server)));
        // One that sends its head byte by byte, and one that asks for something and stays.
        let mut dripping = connect(&server);
        write!(dripping, "GET /healthz HTTP/1.1\r\nhost: loc").unwrap();
        let mut asking = connect(&server);
        write!(asking, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        silent.extend([dripping, asking]);
        assert_eq!(list(&server).await, 200, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_hold_no_connection() {
    let place = guarded("max_connections = 2\nrequest_sec = 1\n");
    let server = place.serve_http(&[]);
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2_000);
    let mut deaf = Vec::new();
    for _ in 0..2 {
        let mut connection = connect(&server);
        connection
            .set_write_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        // Until neither side takes any more.
        while connection.write_all(request.as_bytes()).is_ok() {}
        deaf.push(connection);
    }
    assert_eq!(list(&server).await, 200);
    // Each is closed in the end, whether its place was needed or not.
    for mut connection in deaf {
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut rest = Vec::new();
        let end = connection.read_to_end(&mut rest);
        assert!(
            end.as_ref()
                .map_or_else(|err| err.kind() == std::io::ErrorKind::ConnectionReset, |_| true),
            "{end:?}"
        );
    }
}

/// Status and code of a hand-written request.
fn ask(server: &HttpServer, request: &str) -> (u16, String) {
    let mut connection = connect(server);
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let code = body["error"]["data"]["error"]["code"].as_str().unwrap_or("-");
    (status, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_answers_for_a_foreign_host_or_page() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let at = address(&server);
    let metadata = "/.well-known/oauth-protected-resource";
    for path in [
        "/metrics",
        "/healthz",
        "/readyz",
        "/mcp",
        "/nothing",
        "/",
        "//metrics",
        "/mcp/",
        metadata,
    ] {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let ask = |target: &str, headers: &str| {
                let request = format!("{method} {target} HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
                let (status, code) = ask(&server, &request);
                format!("{status} {code}")
            };
            let own = format!("host: {at}");
            assert_eq!(
                ask(path, "host: evil.example"),
                "403 HOST_NOT_ALLOWED",
                "{method} {path}"
            );
            let page = format!("{own}\r\norigin: http://evil.example");
            assert_eq!(ask(path, &page), "403 ORIGIN_NOT_ALLOWED", "{method} {path}");
            let twice = format!("{own}\r\nhost: evil.example");
            assert!(ask(path, &twice).starts_with("400"), "{method} {path}");
            let absolute = format!("http://evil.example{path}");
            assert_eq!(ask(&absolute, &own), "403 HOST_NOT_ALLOWED", "{method} {path}");
            assert_eq!(ask(path, "x: y"), "400 HOST_UNCLEAR", "{method} {path}");
        }
    }
    for path in ["/metrics", "/healthz", "/readyz"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: LOCALHOST\r\nconnection: close\r\n\r\n");
        assert_eq!(ask(&server, &request).0, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_stand_alone_are_one_connection_for_each_identity() {
    let place = Place::with(
        "[policies.limit]\nsource = \"builtin:rate-limit\"\nlimits.time_ms = 10000\n\
         config = { calls = 1, seconds = 3600, of = \"connection\" }\n",
    );
    let server = place.serve_http(&["--tier", "full"]);
    let open = async || {
        let task = json!({"title": "T", "spec_markdown": "S", "workspace": "w", "initial_phase": "spec_draft",
            "actor": "ada", "actor_role": "orchestrator"});
        let body = stateless("tools/call", json!({"name": "task_create", "arguments": task}));
        let headers = [NEWEST, ("mcp-method", "tools/call"), ("mcp-name", "task_create")];
        post(&server, &headers, body).await.1
    };
    let first = open().await;
    assert!(!first.contains("RATE_LIMITED"), "{first}");
    let second = open().await;
    assert!(second.contains("RATE_LIMITED"), "{second}");
    until(async || place.sql("SELECT connection FROM core_operations").len() == 2).await;
    assert_eq!(
        place.sql("SELECT DISTINCT connection FROM core_operations").len(),
        1
    );
}
