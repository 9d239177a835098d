//! The operator's tokens: created, used, expired and revoked while a server runs.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, hang_up, until};
use crate::transport::http_auth::{
    ADA, BOB, initialize, knock, knock_while_tokens_change, place_with_tokens, request,
};

const AUTH: &str = "[server.auth]\ntoken_file = \"tokens\"\n";

/// Creates a token on the command line.
fn add(place: &Place, name: &str, flags: &[&str]) -> String {
    let output = place.run(&[&["tokens", "add", name], flags].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert!(!said.contains(&token), "only standard output has it");
    token
}

fn revoke(place: &Place, name: &str) {
    let output = place.run(&["tokens", "revoke", name]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn until_it_gets(server: &HttpServer, token: &str, expected: &str) {
    let knock = async || knock_while_tokens_change(server, Some(token)).await;
    until(async || knock().await.is_ok_and(|said| said.starts_with(expected))).await;
}

/// A stream that waits for notifications of its own session, as an older client opens it.
async fn listen(server: &HttpServer, token: &str) -> reqwest::Response {
    let session = initialize(server, token).await.1.unwrap();
    let stream = request(server, reqwest::Method::GET, token)
        .header("mcp-session-id", session)
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    stream
}

/// Number of a server's sessions.
async fn sessions(server: &HttpServer, token: &str) -> usize {
    let request = reqwest::Client::new().get(server.at("/metrics"));
    let response = request
        .header("authorization", format!("Bearer {token}"))
        .send()
        .await;
    let figures = response.unwrap().text().await.unwrap();
    let line = figures
        .lines()
        .find_map(|line| line.strip_prefix("tollgate_sessions "));
    line.unwrap().parse().unwrap()
}

/// Reads a stream until it ends or breaks.
async fn end(mut stream: reqwest::Response) {
    while let Ok(Some(_)) = stream.chunk().await {}
}

#[tokio::test]
async fn a_revoked_token_stops_at_once_with_its_streams_and_a_new_one_works_without_a_restart() {
    let place = Place::with(AUTH);
    let (ada, bob) = (add(&place, "ada", &[]), add(&place, "bob", &[]));
    let file = place.path().join("tokens");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&ada) && text.contains("ada sha256:"), "{text}");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let server = place.serve_http(&[]);
    let stays = Session::over_http_as(&server, &bob).await;
    let hers = Session::over_http_as(&server, &ada).await;
    hers.ok("task_list", json!({})).await;
    let (her_stream, his_stream) = (listen(&server, &ada).await, listen(&server, &bob).await);
    let mut his_end = tokio::spawn(end(his_stream));

    let before = sessions(&server, &bob).await;
    let eve = add(&place, "eve", &[]);
    until_it_gets(&server, &eve, "200").await;
    revoke(&place, "ada");
    tokio::time::timeout(std::time::Duration::from_secs(30), end(her_stream))
        .await
        .expect("her stream ends with her token");
    assert_eq!(knock(&server, Some(&ada)).await.split(' ').next(), Some("401"));
    // The hash that the file holds is no token.
    let stored = text.split_whitespace().nth(1).unwrap();
    assert!(knock(&server, Some(stored)).await.starts_with("401"));
    // Another token of the same name does not continue the session of the one before.
    let again = add(&place, "ada", &[]);
    until_it_gets(&server, &again, "200").await;
    stays.ok("task_list", json!({})).await;
    let poll = tokio::time::timeout(std::time::Duration::from_millis(1), &mut his_end).await;
    assert!(poll.is_err(), "his stream goes on");
    // Hers are over, and his are not: both had as many.
    until(async || sessions(&server, &bob).await * 2 == before).await;
    let log = server.stop();
    assert!(!log.contains(&ada) && !log.contains(&eve), "{log}");
}

#[tokio::test]
async fn plain_tokens_go_on_working_and_a_file_that_breaks_lets_nobody_new_in() {
    let place = place_with_tokens(AUTH);
    let server = place.serve_http(&[]);
    let file = place.path().join("tokens");
    until_it_gets(&server, ADA, "200").await;
    let eve = "eve-0123456789abcdef0123456789abcdef";
    std::fs::write(&file, format!("bob {BOB}\neve {eve}\nbroken line of words\n")).unwrap();
    hang_up(server.pid());
    until_it_gets(&server, ADA, "401").await;
    assert!(knock(&server, Some(BOB)).await.starts_with("200"));
    assert!(knock(&server, Some(eve)).await.starts_with("401"));
    // Whatever becomes of the configuration, tokens are looked at.
    std::fs::write(place.config(), "[server\n").unwrap();
    std::fs::write(&file, format!("eve {eve}\n")).unwrap();
    hang_up(server.pid());
    until_it_gets(&server, eve, "200").await;
    assert!(knock(&server, Some(BOB)).await.starts_with("401"));
    let log = server.stop();
    assert!(log.contains("tokens:3: "), "{log}");
}

#[tokio::test]
async fn a_token_expires_by_itself() {
    let place = Place::with(AUTH);
    let (short, long) = (
        add(&place, "short", &["--expires", "4s"]),
        add(&place, "long", &["--expires", "90d"]),
    );
    let server = place.serve_http(&[]);
    let stream = listen(&server, &short).await;
    until_it_gets(&server, &short, "401 TOKEN_EXPIRED").await;
    tokio::time::timeout(std::time::Duration::from_secs(30), end(stream))
        .await
        .expect("a stream ends with its token");
    assert!(knock(&server, Some(&long)).await.starts_with("200"));
    let listed = place.run(&["--json", "tokens", "list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["tokens"][0]["expired"], true, "{listed}");
    assert_eq!(listed["tokens"][1]["expired"], false, "{listed}");
}

#[tokio::test]
async fn a_scope_bounds_what_a_token_may_do() {
    let place = Place::with(AUTH);
    let tokens = ["read", "write", "metrics", "see-all"].map(|scope| add(&place, scope, &["--scope", scope]));
    let [read, write, metrics, sees] = &tokens;
    let server = place.serve_http(&["--compact"]);
    assert_eq!(
        knock(&server, Some(metrics))
            .await
            .split(' ')
            .take(2)
            .collect::<Vec<_>>(),
        ["403", "SCOPE_MISSING"]
    );
    for token in &tokens {
        let request = reqwest::Client::new().get(server.at("/metrics"));
        let response = request
            .header("authorization", format!("Bearer {token}"))
            .send()
            .await;
        assert_eq!(response.unwrap().status().as_u16(), 200);
    }
    let task = json!({"title": "x"});
    for token in [read, sees] {
        let session = Session::over_http_as(&server, token).await;
        session.ok("task_list", json!({})).await;
        for (tool, arguments) in [
            ("task_create", task.clone()),
            ("envelope_open", json!({})),
            ("tool_call", json!({"tool": "task_create", "arguments": task})),
            ("test_run", json!({})),
        ] {
            let refused = session.refused(tool, arguments).await;
            assert_eq!(refused["code"], "SCOPE_MISSING", "{tool}: {refused}");
        }
    }
    assert_eq!(
        place.sql("SELECT count(*) FROM core_operations WHERE error_code = 'SCOPE_MISSING'"),
        ["8"]
    );

    // Whoever sees all looks at the work of others, and does not touch it.
    let owner = Session::over_http_as(&server, write).await;
    let envelope = owner.ok("envelope_open", json!({"label": "theirs"})).await;
    let theirs = json!({"envelope_id": envelope["id"]});
    let lead = Session::over_http_as(&server, sees).await;
    for tool in ["envelope_get", "ledger_report"] {
        lead.ok(tool, theirs.clone()).await;
    }
    assert_eq!(
        lead.ok("envelope_list", json!({})).await["envelopes"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let of_owner = lead.ok("ledger_query", json!({"actor": "token:write"})).await;
    assert_eq!(of_owner["operations"][0]["tool"], "envelope_open", "{of_owner}");
    assert_eq!(
        lead.refused("task_list", theirs.clone()).await["code"],
        "UNKNOWN_ENVELOPE"
    );
    let both = add(&place, "both", &["--scope", "see-all,write"]);
    until_it_gets(&server, &both, "200").await;
    let both = Session::over_http_as(&server, &both).await;
    both.ok("envelope_get", theirs.clone()).await;
    let mut closing = theirs.clone();
    closing["outcome"] = "failed".into();
    assert_eq!(
        both.refused("envelope_close", closing).await["code"],
        "UNKNOWN_ENVELOPE"
    );
    let reader = Session::over_http_as(&server, read).await;
    assert_eq!(
        reader.refused("envelope_get", theirs).await["code"],
        "UNKNOWN_ENVELOPE"
    );
}

#[tokio::test]
async fn limits_are_taken_over_live_or_named_as_waiting() {
    let place = place_with_tokens(AUTH);
    let server = place.serve_http(&[]);
    until_it_gets(&server, ADA, "200").await;
    let limits = "[server.limits]\nrequests_per_sec = 1\nbody_kib = 8\n";
    std::fs::write(place.config(), format!("{AUTH}{limits}")).unwrap();
    until(async || {
        knock(&server, Some(ADA))
            .await
            .starts_with("429 TOO_MANY_REQUESTS")
    })
    .await;
    std::fs::write(place.config(), AUTH).unwrap();
    hang_up(server.pid());
    until(async || server.log().matches("the configuration was loaded again").count() >= 2).await;
    for _ in 0..5 {
        assert!(knock(&server, Some(ADA)).await.starts_with("200"));
    }
    let log = server.stop();
    assert!(
        log.contains("a change of server.limits.body_kib takes effect at the next start"),
        "{log}"
    );
    assert!(!log.contains("requests_per_sec"), "{log}");
}

#[tokio::test]
async fn a_token_file_that_is_a_pipe_for_a_while_lets_nobody_in_and_stalls_nothing() {
    let place = Place::with(AUTH);
    let (ada, bob) = (add(&place, "ada", &[]), add(&place, "bob", &[]));
    let (file, aside) = (place.path().join("tokens"), place.path().join("aside"));
    let server = place.serve_http(&[]);
    until_it_gets(&server, &ada, "200").await;
    std::fs::copy(&file, &aside).unwrap();
    let (pipe, mode) = (
        place.path().join("pipe"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    );
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // The pipe takes the file's place in one step: the server never finds the path empty.
    std::fs::rename(&pipe, &file).unwrap();
    until_it_gets(&server, &ada, "401").await;
    until(async || server.log().contains("it is a pipe or a device")).await;
    std::fs::rename(&aside, &file).unwrap();
    revoke(&place, "ada");
    until_it_gets(&server, &ada, "401").await;
    until_it_gets(&server, &bob, "200").await;
    server.stop();
}

#[test]
fn commands_of_tokens_refuse_what_would_not_hold() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        run(&["tokens", "add", "ada"]).contains("[server.auth]"),
        "no file is named"
    );
    std::fs::write(place.config(), AUTH).unwrap();
    assert!(run(&["tokens", "revoke", "ada"]).contains("ada has no token"));
    add(&place, "ada", &[]);
    assert!(run(&["tokens", "add", "ada"]).contains("tollgate tokens revoke ada"));
    assert!(run(&["tokens", "add", "a b"]).contains("a name consists of"));
    assert!(run(&["tokens", "add", "bob", "--scope", "admin"]).contains("see-all"));
    assert!(run(&["tokens", "add", "bob", "--expires", "2001-01-01T00:00:00Z"]).contains("future"));
    let file = place.path().join("tokens");
    std::fs::write(&file, "eve nineteen-characters\n").unwrap();
    let short = run(&["serve", "--http", "127.0.0.1:0"]);
    assert!(
        short.contains("tokens:1:") && short.contains("tollgate tokens add"),
        "{short}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run(&["tokens", "list"]).contains("chmod 600"));
}
