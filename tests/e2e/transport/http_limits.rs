//! Limits of HTTP requests and connections, and graceful shutdown.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, guest, params, terminate, until};
use crate::transport::http::{NEWEST, post, stateless};
use crate::workspace_access::Meddling;

fn code(text: &str) -> String {
    let body: Value = serde_json::from_str(text).unwrap();
    body["error"]["data"]["error"]["code"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn address(server: &HttpServer) -> String {
    server.at("").replace("http://", "")
}

fn call(tool: &str, arguments: Value) -> (Vec<u8>, [(&'static str, String); 2]) {
    let body = stateless("tools/call", json!({"name": tool, "arguments": arguments}));
    (
        body,
        [
            ("mcp-method", "tools/call".to_owned()),
            ("mcp-name", tool.to_owned()),
        ],
    )
}

async fn post_call(server: &HttpServer, tool: &str, arguments: Value) -> (u16, String) {
    let (body, [method, name]) = call(tool, arguments);
    let headers = [NEWEST, (method.0, method.1.as_str()), (name.0, name.1.as_str())];
    post(server, &headers, body).await
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_whether_it_says_its_length_or_not() {
    let place = Place::with("[server.limits]\nbody_kib = 1\n");
    let server = place.serve_http(&[]);
    let (status, text) = post(&server, &[NEWEST], vec![b' '; 1025]).await;
    assert_eq!((status, code(&text).as_str()), (413, "BODY_TOO_LARGE"));
    let mut connection = TcpStream::connect(address(&server)).unwrap();
    write!(
        connection,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n401\r\n{}\r\n",
        " ".repeat(1025)
    )
    .unwrap();
    // The answer is there before the client has said all, and is not lost by that.
    connection.peek(&mut [0]).unwrap();
    write!(connection, "100000\r\n{}\r\n0\r\n\r\n", " ".repeat(1 << 20)).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("BODY_TOO_LARGE"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_refused() {
    let place = Place::with("[server.limits]\nheader_kib = 8\n");
    let server = place.serve_http(&[]);
    let mut connection = TcpStream::connect(address(&server)).unwrap();
    write!(
        connection,
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "x".repeat(9 << 10)
    )
    .unwrap();
    // The answer is there before the client has said all, and is not lost by that.
    connection.peek(&mut [0]).unwrap();
    connection.write_all(&[b'x'; 1 << 20]).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_head_that_comes_at_once_is_held_to_the_same_limit() {
    let place = Place::with("");
    let server = place.serve_http(&[]);
    for (length, status) in [
        (31 << 10, "200"),
        (33 << 10, "431"),
        (40_000, "431"),
        (60_000, "431"),
    ] {
        let mut connection = TcpStream::connect(address(&server)).unwrap();
        let head = format!(
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: {}\r\n\r\n",
            "x".repeat(length)
        );
        // An answer that comes early may close the connection while the rest is written.
        let _ = connection.write_all(head.as_bytes());
        let mut answer = String::new();
        let _ = connection.read_to_string(&mut answer);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{length}: {answer}"
        );
    }
}

#[tokio::test]
async fn who_dawdles_over_a_request_is_cut_off() {
    let place = Place::with("[server.limits]\nrequest_sec = 1\n");
    let server = place.serve_http(&[]);
    let mut answer = String::new();
    let mut slow_head = TcpStream::connect(address(&server)).unwrap();
    write!(slow_head, "GET /healthz HTTP/1.1\r\nhost:").unwrap();
    slow_head.read_to_string(&mut answer).unwrap();
    assert!(!answer.contains("200"), "{answer}");
    answer.clear();
    let mut slow_body = TcpStream::connect(address(&server)).unwrap();
    write!(
        slow_body,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{{"
    )
    .unwrap();
    slow_body.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("BODY_TOO_SLOW"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_connection_too_many_is_told_and_one_that_closes_makes_room() {
    let place = Place::with("[server.limits]\nmax_connections = 1\n");
    let server = place.serve_http(&[]);
    let ask = |connection: &mut TcpStream| {
        write!(connection, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut answer = vec![0; 4096];
        let length = connection.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    let mut first = TcpStream::connect(address(&server)).unwrap();
    assert!(ask(&mut first).starts_with("HTTP/1.1 200"));
    let mut second = TcpStream::connect(address(&server)).unwrap();
    let answer = ask(&mut second);
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("TOO_MANY_CONNECTIONS"),
        "{answer}"
    );
    drop((first, second));
    until(async || {
        let mut next = TcpStream::connect(address(&server)).unwrap();
        ask(&mut next).starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test]
async fn sessions_are_counted_and_idle_ones_end() {
    let place = Place::with("[server.limits]\nmax_sessions = 1\nidle_session_sec = 1\n");
    let server = place.serve_http(&[]);
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let begin = async || post(&server, &[], message.to_string().into_bytes()).await;
    assert_eq!(begin().await.0, 200);
    let (status, text) = begin().await;
    assert_eq!((status, code(&text).as_str()), (503, "TOO_MANY_SESSIONS"));
    // Nobody uses the first, so that it ends and makes room.
    until(async || begin().await.0 == 200).await;
}

/// A place with the guest `call-limits`, whose calls run until they are cancelled.
fn spinning(limits: &str) -> Place {
    Place::with(&format!(
        "[server.limits]\n{limits}[packs.call-limits]\nsource = {:?}\nlimits.run_ms = 600000\n",
        guest("call-limits")
    ))
}

#[tokio::test]
async fn requests_in_flight_are_counted_by_client_and_given_back() {
    let place = spinning("max_in_flight_per_client = 1\n");
    let server = place.serve_http(&[]);
    let address = server.url.clone();
    let (body, [method, name]) = call("call_limits_spin_running", json!({}));
    let spinning = tokio::spawn(async move {
        let client = reqwest::Client::new();
        loop {
            let request = client.post(&address).body(body.clone());
            let request = request
                .header(NEWEST.0, NEWEST.1)
                .header(method.0, &method.1)
                .header(name.0, &name.1);
            let accept = "application/json, text/event-stream";
            let response = request
                .header("content-type", "application/json")
                .header("accept", accept)
                .send()
                .await
                .unwrap();
            // One of the others may have been in flight just then.
            if response.status() != 429 {
                return response.text().await;
            }
        }
    });
    until(async || {
        let (status, text) = post_call(&server, "call_limits_answer", json!({})).await;
        status == 429 && code(&text) == "TOO_MANY_IN_FLIGHT"
    })
    .await;
    spinning.abort();
    until(async || post_call(&server, "call_limits_answer", json!({})).await.0 == 200).await;
    until(async || {
        place
            .ledger()
            .contains(&"call_limits_spin_running run CANCELLED".to_owned())
    })
    .await;
}

#[tokio::test]
async fn requests_that_come_too_fast_are_refused() {
    let place = Place::with("[server.limits]\nrequests_per_sec = 1\n");
    let server = place.serve_http(&[]);
    until(async || {
        let (status, text) = post_call(&server, "envelope_list", json!({})).await;
        status == 429 && code(&text) == "TOO_MANY_REQUESTS"
    })
    .await;
    until(async || post_call(&server, "envelope_list", json!({})).await.0 == 200).await;
}

#[tokio::test]
async fn what_was_admitted_is_finished_before_the_end() {
    let meddling = Meddling::new();
    let mut server = meddling.place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    let go = meddling.main().join("go");
    let script = "echo > out/started; while [ ! -e go ]; do sleep 0.05; done; echo went";
    std::fs::create_dir(meddling.main().join("out")).unwrap();
    let arguments = json!({"program": "sh", "arguments": ["-c", script]});
    let client = session.client().peer().clone();
    let running =
        tokio::spawn(async move { client.call_tool(params("workspace_access_run", arguments)).await });
    until(async || meddling.main().join("out/started").exists()).await;

    terminate(server.pid());
    until(async || {
        let ready = reqwest::get(server.at("/readyz")).await.unwrap();
        ready.status().as_u16() == 503 && ready.text().await.unwrap() == "stopping\n"
    })
    .await;
    assert_eq!(
        reqwest::get(server.at("/healthz"))
            .await
            .unwrap()
            .status()
            .as_u16(),
        200
    );
    let (status, text) = post_call(&server, "envelope_list", json!({})).await;
    assert_eq!((status, code(&text).as_str()), (503, "HOST_STOPPING"));

    std::fs::write(go, "").unwrap();
    let result = running.await.unwrap().unwrap().structured_content.unwrap();
    assert!(result["result"].as_str().unwrap().contains("went"), "{result}");
    assert!(server.wait().success());
    assert_eq!(meddling.place.ledger(), ["workspace_access_run run ok"]);
}

#[tokio::test]
async fn a_load_balancer_hears_of_the_end_before_any_request_is_refused() {
    let place = Place::with("[server.limits]\nshutdown_delay_sec = 600\n");
    let mut server = place.serve_http(&[]);
    terminate(server.pid());
    until(async || {
        let ready = reqwest::get(server.at("/readyz")).await.unwrap();
        ready.status().as_u16() == 503 && ready.text().await.unwrap() == "stopping\n"
    })
    .await;
    let (status, text) = post_call(&server, "envelope_list", json!({})).await;
    assert_eq!(status, 200, "{text}");
    // Somebody who does not want to wait.
    terminate(server.pid());
    assert!(server.wait().success());
}

#[tokio::test]
async fn what_is_not_finished_in_time_is_cancelled() {
    let place = spinning("drain_sec = 1\n");
    let mut server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    let client = session.client().peer().clone();
    let running = tokio::spawn(async move {
        client
            .call_tool(params("call_limits_spin_running", json!({})))
            .await
    });
    // It has started once its intent is there.
    until(async || place.sql("SELECT op_id FROM core_intents").len() == 1).await;
    terminate(server.pid());
    assert!(server.wait().success());
    assert_eq!(place.ledger(), ["call_limits_spin_running run CANCELLED"]);
    // Its client looks for the server for ever.
    running.abort();
}
