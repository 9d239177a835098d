//! Fairness: one identity takes everything it can get, while another one makes calls.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{HttpServer, Session, guest, params, until};
use crate::transport::http_auth::{ADA, BOB, initialize, place_with_tokens, request};

const TOKENS: &str = "[server.auth]\ntoken_file = \"tokens\"\n";

/// A place with the guest `call-limits` under these limits, for Ada and Bob.
fn spinning(limits: &str) -> crate::harness::Place {
    place_with_tokens(&format!(
        "{TOKENS}[packs.call-limits]\nsource = {:?}\nlimits = {{ {limits} }}\n",
        guest("call-limits")
    ))
}

/// Makes calls without waiting for their replies.
fn begin(session: &Session, calls: usize, tool: &'static str) {
    for _ in 0..calls {
        let client = session.client().peer().clone();
        tokio::spawn(async move {
            let _ = client.call_tool(params(tool, json!({}))).await;
        });
    }
}

/// Sends a message in a session.
async fn send(server: &HttpServer, token: &str, session: &str, message: &Value) -> reqwest::Response {
    request(server, reqwest::Method::POST, token)
        .header("mcp-session-id", session)
        .body(message.to_string())
        .send()
        .await
        .unwrap()
}

/// Status of a `tools/list` request in a session.
async fn list(server: &HttpServer, token: &str, session: &str) -> u16 {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    send(server, token, session, &message).await.status().as_u16()
}

#[tokio::test]
async fn sessions_of_one_identity_make_room_for_another_and_for_that_alone() {
    let place = place_with_tokens(&format!("[server.limits]\nmax_sessions = 4\n{TOKENS}"));
    let server = place.serve_http(&[]);
    let mut hers = Vec::new();
    for _ in 0..4 {
        let (status, id) = initialize(&server, ADA).await;
        assert_eq!(status, 200);
        hers.push(id.unwrap());
    }
    assert_eq!(
        initialize(&server, ADA).await.0,
        503,
        "none makes room for its own"
    );
    for id in hers.iter().skip(1) {
        assert_eq!(list(&server, ADA, id).await, 200);
    }
    let (status, his) = initialize(&server, BOB).await;
    assert_eq!(status, 200);
    assert_eq!(list(&server, BOB, &his.unwrap()).await, 200);
    // The one that she used last goes last.
    assert_eq!(list(&server, ADA, &hers[0]).await, 404);
    for id in hers.iter().skip(1) {
        assert_eq!(list(&server, ADA, id).await, 200);
    }
    assert_eq!(initialize(&server, BOB).await.0, 200);
    assert_eq!(initialize(&server, BOB).await.0, 503, "half is his");
}

#[tokio::test]
async fn a_rate_holds_for_an_identity_however_many_sessions_it_has() {
    let place = place_with_tokens(&format!("[server.limits]\nrequests_per_sec = 5\n{TOKENS}"));
    let server = place.serve_http(&[]);
    let mut sessions = Vec::new();
    until(async || {
        let (status, id) = initialize(&server, ADA).await;
        sessions.extend(id);
        status == 429
    })
    .await;
    let session = sessions.first().unwrap();
    until(async || list(&server, ADA, session).await == 429).await;
    assert_eq!(initialize(&server, BOB).await.0, 200);
}

#[tokio::test]
async fn requests_in_flight_are_counted_over_all_sessions_of_an_identity() {
    let place = place_with_tokens(&format!(
        "[server.limits]\nmax_in_flight_per_client = 4\n{TOKENS}[packs.call-limits]\nsource = {:?}\nlimits = {{ run_ms = 600000 }}\n",
        guest("call-limits")
    ));
    let server = place.serve_http(&[]);
    let mut held = Vec::new();
    for _ in 0..4 {
        let (status, id) = initialize(&server, ADA).await;
        assert_eq!(status, 200);
        let id = id.unwrap();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(send(&server, ADA, &id, &initialized).await.status().as_u16(), 202);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "call_limits_spin_running", "arguments": {}}});
        let response = send(&server, ADA, &id, &call).await;
        assert_eq!(response.status().as_u16(), 200);
        held.push(response);
    }
    assert_eq!(initialize(&server, ADA).await.0, 429);
    let bob = Session::over_http_as(&server, BOB).await;
    assert_eq!(bob.ok("call_limits_answer", json!({})).await["result"], "here");
}

#[tokio::test]
async fn stalled_reads_of_one_identity_keep_nobody_elses_waiting() {
    let place = spinning("read_ms = 600000");
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    begin(&ada, 60, "call_limits_spin");
    begin(&ada, 3, "call_limits_spin_in_sql");
    let started = Instant::now();
    for _ in 0..20 {
        assert_eq!(bob.ok("call_limits_answer", json!({})).await["result"], "here");
    }
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "hers take ten minutes"
    );
}

#[tokio::test]
async fn long_runs_of_one_identity_leave_room_for_anothers_run() {
    let place = spinning("run_ms = 600000");
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    begin(&ada, 40, "call_limits_spin_running");
    let started = |who: &str| {
        let count = format!("SELECT count(*) FROM core_intents WHERE operation LIKE '%token:{who}%'");
        place.sql(&count)[0].parse::<usize>().unwrap()
    };
    until(async || started("ada") == 8).await;
    begin(&bob, 1, "call_limits_spin_running");
    until(async || started("bob") == 1).await;
    assert_eq!(started("ada"), 8);
}

#[tokio::test]
async fn slow_writes_of_one_identity_take_turns_with_anothers() {
    let place = spinning("write_ms = 500");
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    begin(&ada, 50, "call_limits_spin_writing");
    let hers = || {
        let count = "SELECT count(*) FROM core_operations WHERE actor = 'token:ada'";
        place.sql(count)[0].parse::<usize>().unwrap()
    };
    until(async || hers() >= 1).await;
    let before = hers();
    for number in 0..3 {
        bob.ok("task_create", task(&format!("T{number}"))).await;
    }
    let between = hers() - before;
    // Each of his waits for the one of hers that runs, and for no second one.
    assert!(between <= 4, "{between} of hers came before three of his");
}

/// Number of Ada's rows that exceeded their deadline, and of all her rows.
fn ran(place: &crate::harness::Place) -> (usize, usize) {
    let rows = place.sql(
        "SELECT error_code FROM core_operations WHERE actor = 'token:ada' AND tool = 'call_limits_spin_writing'",
    );
    let ran = rows
        .iter()
        .filter(|code| code.as_str() == "DEADLINE_EXCEEDED")
        .count();
    (ran, rows.len())
}

/// Waits until a server has that many calls. How many of them share a commit is nobody's choice, so rows do not say that one is running.
async fn until_in_flight(server: &HttpServer, calls: f64) {
    let in_flight = async || {
        let figures = crate::operator::metrics::scrape(server, ADA).await;
        crate::operator::metrics::value(&figures, "tollgate_http_requests_in_flight")
    };
    until(async || in_flight().await >= calls).await;
}

/// Checks that few of Ada's calls ran, and that the others were cancelled in the queue.
fn assert_cancelled(place: &crate::harness::Place, most_ran: usize, least_cancelled: usize) {
    let (ran, all) = ran(place);
    let cancelled = "SELECT count(*) FROM core_operations WHERE error_code = 'CANCELLED'";
    let cancelled: usize = place.sql(cancelled)[0].parse().unwrap();
    assert!(ran <= most_ran, "{ran} of {all} ran");
    assert!(
        cancelled >= least_cancelled,
        "{cancelled} of {all} were cancelled"
    );
    assert_eq!(ran + cancelled, all);
}

#[tokio::test]
async fn calls_of_a_client_that_left_leave_the_line_without_running() {
    let place = spinning("write_ms = 1000");
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Session::over_http_as(&server, ADA).await;
    // It loads the component.
    ada.call_raw("call_limits_spin_writing", json!({})).await;
    begin(&ada, 40, "call_limits_spin_writing");
    // Those that come first may be over before the last ones come.
    until_in_flight(&server, 30.0).await;
    // It ends its session, and its connections with it.
    drop(ada);
    // One that comes after them ends after them.
    let ada = Session::over_http_as(&server, ADA).await;
    ada.call_raw("call_limits_spin_writing", json!({})).await;
    assert_cancelled(&place, 15, 15);
}

#[tokio::test]
async fn calls_whose_requests_are_given_up_leave_the_line_without_running() {
    let place = spinning("write_ms = 1000");
    let server = std::sync::Arc::new(place.serve_http(&["--tier", "full"]));
    let call = |server: std::sync::Arc<HttpServer>| async move {
        let params = json!({"name": "call_limits_spin_writing", "arguments": {}});
        let authorization = format!("Bearer {ADA}");
        let headers = [
            crate::transport::http::NEWEST,
            ("mcp-method", "tools/call"),
            ("mcp-name", "call_limits_spin_writing"),
            ("authorization", authorization.as_str()),
        ];
        crate::transport::http::post(
            &server,
            &headers,
            crate::transport::http::stateless("tools/call", params),
        )
        .await
    };
    // It loads the component.
    call(std::sync::Arc::clone(&server)).await;
    let calls: Vec<_> = (0..20)
        .map(|_| tokio::spawn(call(std::sync::Arc::clone(&server))))
        .collect();
    until_in_flight(&server, 15.0).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    // One that comes after them ends after them.
    call(std::sync::Arc::clone(&server)).await;
    assert_cancelled(&place, 10, 5);
}

fn task(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "bob", "actor_role": "orchestrator"})
}

#[tokio::test]
async fn artifacts_never_take_twice_what_they_may_and_the_calls_say_so() {
    let place = place_with_tokens(&format!(
        "{TOKENS}[artifacts]\nenabled = true\nmax_mib = 8\n[packs.artifact-limits]\nsource = {:?}\ngrants.artifacts = true\n",
        guest("artifact-limits")
    ));
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    let size = || place.content_bytes();
    let mut was_refused = false;
    for number in 0..20 {
        // Content of its own in each call.
        let sizes: Vec<usize> = (0..8).map(|_| (1 << 20) - number).collect();
        let result = ada
            .call_raw("artifact_limits_write", json!({"sizes": sizes}))
            .await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        let meta = result.meta.unwrap();
        if let Some(why) = meta.0.get("tollgate/not_kept") {
            assert_eq!(why["error"]["code"], "ARTIFACTS_FULL");
            was_refused = true;
        }
        assert!(size() <= 16 << 20, "{} bytes", size());
    }
    assert!(was_refused, "there was room for all of it");
    let his = bob
        .call_raw("artifact_limits_write", json!({"sizes": [100]}))
        .await;
    assert!(!his.meta.unwrap().0.contains_key("tollgate/not_kept"));
    until(async || size() <= 8 << 20).await;
    let left = "SELECT count(*) FROM core_artifacts WHERE collected = 0 AND holder = 'token:bob'";
    assert_eq!(place.sql(left), ["1"], "it is the least, and stays");
}
