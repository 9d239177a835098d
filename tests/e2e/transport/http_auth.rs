//! Authentication over HTTP, and isolation of identities.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::os::unix::fs::OpenOptionsExt as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, until};
use crate::transport::http::{NEWEST, stateless};
use crate::transport::issuer::{Issuer, forged, now};

pub(crate) const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
pub(crate) const BOB: &str = "bob-0123456789abcdef0123456789abcdef";

/// A place whose token file knows Ada and Bob.
pub(crate) fn place_with_tokens(config: &str) -> Place {
    let place = Place::with(config);
    let mut file = std::fs::OpenOptions::new();
    let mut file = file
        .write(true)
        .create(true)
        .mode(0o600)
        .open(place.path().join("tokens"))
        .unwrap();
    std::io::Write::write_all(&mut file, format!("ada {ADA}\nbob {BOB}\n").as_bytes()).unwrap();
    place
}

/// Request of a client without a library.
pub(crate) fn request(server: &HttpServer, method: reqwest::Method, token: &str) -> reqwest::RequestBuilder {
    reqwest::Client::new()
        .request(method, &server.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("authorization", format!("Bearer {token}"))
}

/// Begins a session of the revisions before 2026-07-28. Returns the status, and the session's id if there is one.
pub(crate) async fn initialize(server: &HttpServer, token: &str) -> (u16, Option<String>) {
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let response = request(server, reqwest::Method::POST, token)
        .body(message.to_string())
        .send()
        .await
        .unwrap();
    let id = response.headers().get("mcp-session-id");
    let id = id.map(|id| id.to_str().unwrap().to_owned());
    (response.status().as_u16(), id)
}

/// Response to a request with or without a token: status, challenge, and error code.
pub(crate) async fn knock(server: &HttpServer, token: Option<&str>) -> String {
    knock_while_tokens_change(server, token).await.unwrap()
}

/// The same response, or an error if the token is revoked and the connection breaks.
pub(crate) async fn knock_while_tokens_change(
    server: &HttpServer,
    token: Option<&str>,
) -> reqwest::Result<String> {
    let mut request = reqwest::Client::new()
        .post(&server.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header(NEWEST.0, NEWEST.1)
        .header("mcp-method", "tools/list");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = request.body(stateless("tools/list", json!({}))).send().await?;
    let status = response.status().as_u16();
    let challenge = response.headers().get("www-authenticate");
    let challenge = challenge.map_or(String::new(), |value| format!(" {}", value.to_str().unwrap()));
    let body: Value = serde_json::from_str(&response.text().await?).unwrap_or_default();
    let code = body["error"]["data"]["error"]["code"].as_str().unwrap_or("-");
    let challenge = challenge.replace(&server.at(""), "SERVER");
    Ok(format!("{status} {code}{challenge}"))
}

#[tokio::test]
async fn only_bearers_of_a_token_get_in() {
    let place = place_with_tokens("[server.auth]\ntoken_file = \"tokens\"\n");
    let server = place.serve_http(&[]);
    let mut said = String::new();
    for token in [None, Some("wrong"), Some(&ADA[1..]), Some(ADA)] {
        said += &knock(&server, token).await;
        said += "\n";
    }
    expect![[r#"
        401 TOKEN_REQUIRED Bearer realm="tollgate"
        401 TOKEN_INVALID Bearer realm="tollgate", error="invalid_token"
        401 TOKEN_INVALID Bearer realm="tollgate", error="invalid_token"
        200 -
    "#]]
    .assert_eq(&said);
    let metadata = server.at("/.well-known/oauth-protected-resource");
    assert_eq!(reqwest::get(metadata).await.unwrap().status().as_u16(), 404);
    // Whether it lives is nobody's secret.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            reqwest::get(server.at(path)).await.unwrap().status().as_u16(),
            200
        );
    }
}

#[tokio::test]
async fn a_token_file_is_made_and_an_exposed_one_refused() {
    let place = Place::new();
    let path = place.path().join("new-token");
    let flags = ["--token-file", path.to_str().unwrap()];
    let server = place.serve_http(&flags);
    let token = std::fs::read_to_string(&path).unwrap();
    assert_eq!(knock(&server, Some(token.trim())).await, "200 -");
    drop(server);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, open).unwrap();
    let output = place.run(&[&["serve", "--http", "127.0.0.1:0"], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("can be read by others; run `chmod 600"), "{said}");
    assert!(!said.contains(token.trim()), "{said}");
}

#[tokio::test]
async fn envelopes_and_operations_exist_for_their_owner_alone() {
    let place = place_with_tokens("[server.auth]\ntoken_file = \"tokens\"\n");
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    let opened = ada.ok("envelope_open", json!({"label": "Ada's"})).await;
    let id = opened["id"].as_str().unwrap();
    let mine = json!({"envelope_id": id});
    ada.ok("task_list", mine.clone()).await;

    let mut answers = String::new();
    for (tool, arguments) in [
        ("envelope_get", mine.clone()),
        ("envelope_close", json!({"envelope_id": id, "outcome": "failed"})),
        ("ledger_report", mine.clone()),
        ("task_list", mine.clone()),
        ("task_create", task(id)),
    ] {
        let foreign = bob.refused(tool, arguments.clone()).await;
        let mut missing = arguments;
        missing["envelope_id"] = "env_none".into();
        let missing = bob.refused(tool, missing).await;
        let foreign = foreign.to_string().replace(id, "env_none");
        assert_eq!(foreign, missing.to_string(), "{tool}: as if it did not exist");
        answers += &format!("{tool} {}\n", missing["code"]);
    }
    expect![[r#"
        envelope_get "UNKNOWN_ENVELOPE"
        envelope_close "UNKNOWN_ENVELOPE"
        ledger_report "UNKNOWN_ENVELOPE"
        task_list "UNKNOWN_ENVELOPE"
        task_create "UNKNOWN_ENVELOPE"
    "#]]
    .assert_eq(&answers);

    // Nor does he write into her envelope by calls that are refused before anybody looks at it.
    let unread = bob
        .refused("task_list", json!({"envelope_id": id, "limit": "x"}))
        .await;
    assert_eq!(unread["code"], "INVALID_ARGUMENTS");
    let his = "FROM core_operations WHERE actor = 'token:bob'";
    until(async || {
        place.sql(&format!(
            "SELECT count(*) {his} AND error_code = 'INVALID_ARGUMENTS'"
        )) == ["1"]
    })
    .await;
    let named = place.sql(&format!("SELECT tool {his} AND envelope_id IS NOT NULL"));
    assert_eq!(named, Vec::<String>::new());

    let listed = bob.ok("envelope_list", json!({})).await;
    assert_eq!(listed["envelopes"], json!([]));
    let operations = bob.ok("ledger_query", json!({})).await;
    for operation in operations["operations"].as_array().unwrap() {
        assert_eq!(operation["actor"], "token:bob", "{operation}");
    }
    let hers = bob.ok("ledger_query", json!({"actor": "token:ada"})).await;
    assert_eq!(hers["operations"], json!([]));
    assert_eq!(ada.ok("envelope_list", json!({})).await["envelopes"][0]["id"], id);
    ada.ok("task_create", task(id)).await;
    ada.ok("envelope_close", json!({"envelope_id": id, "outcome": "success"}))
        .await;
}

fn task(envelope: &str) -> Value {
    json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "somebody", "actor_role": "orchestrator", "envelope_id": envelope})
}

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let place = place_with_tokens("[server.auth]\ntoken_file = \"tokens\"\n");
    let server = place.serve_http(&[]);
    let id = initialize(&server, ADA).await.1.unwrap();
    let answer = async |method: reqwest::Method, token: &str, session: &str| {
        let response = request(&server, method, token)
            .header("mcp-session-id", session)
            .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#)
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        // A stream has no end.
        let text = if status == 200 {
            String::new()
        } else {
            response.text().await.unwrap()
        };
        (status, text)
    };
    for method in [
        reqwest::Method::POST,
        reqwest::Method::GET,
        reqwest::Method::DELETE,
    ] {
        let foreign = answer(method.clone(), BOB, &id).await;
        let missing = answer(method.clone(), BOB, "00000000-0000-4000-8000-000000000000").await;
        assert_eq!(foreign, missing, "{method}");
    }
    let still_there = answer(reqwest::Method::POST, ADA, &id).await;
    assert_eq!(still_there.0, 200, "{}", still_there.1);
}

#[tokio::test]
async fn tokens_of_an_issuer_are_checked_in_every_way() {
    let issuer = Issuer::start().await;
    let place = Place::with(&format!(
        "[server.auth]\nissuer = {:?}\nresource = \"https://tollgate.example/mcp\"\nscopes = [\"tools\"]\n",
        issuer.url
    ));
    let server = place.serve_http(&[]);
    let good = issuer.claims("ada", "https://tollgate.example/mcp");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        issuer.token(&claims)
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        issuer.token(&claims)
    };
    let mut said = String::new();
    for (what, token) in [
        ("good", issuer.token(&good)),
        (
            "one of several audiences",
            with("aud", json!(["x", "https://tollgate.example/mcp"])),
        ),
        ("scopes as a list", with("scope", json!(["tools"]))),
        (
            "another audience",
            with("aud", json!("https://other.example/mcp")),
        ),
        ("no audience", without("aud")),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("no issuer", without("iss")),
        ("expired", with("exp", json!(now() - 60))),
        ("expiry of the wrong type", with("exp", json!("never"))),
        ("no expiry", without("exp")),
        ("not valid yet", with("nbf", json!(now() + 600))),
        ("no subject", without("sub")),
        ("a subject that is no name", with("sub", json!("a\u{202e}b"))),
        ("too few scopes", with("scope", json!("other"))),
        ("no scopes", without("scope")),
        ("forged", forged(&good)),
        ("unsigned", unsigned(&good)),
        ("no token at all", "a.b.c".to_owned()),
    ] {
        said += &format!("{what}: {}\n", knock(&server, Some(&token)).await);
    }
    expect![[r#"
        good: 200 -
        one of several audiences: 200 -
        scopes as a list: 200 -
        another audience: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        no audience: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        another issuer: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        no issuer: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        expired: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        expiry of the wrong type: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        no expiry: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        not valid yet: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        no subject: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        a subject that is no name: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        too few scopes: 403 SCOPE_MISSING Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="insufficient_scope"
        no scopes: 403 SCOPE_MISSING Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="insufficient_scope"
        forged: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        unsigned: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
        no token at all: 401 TOKEN_INVALID Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools", error="invalid_token"
    "#]].assert_eq(&said);
    let without_token = knock(&server, None).await;
    expect![[r#"401 TOKEN_REQUIRED Bearer resource_metadata="https://tollgate.example/.well-known/oauth-protected-resource/mcp", scope="tools""#]].assert_eq(&without_token);
    let actors = place.sql("SELECT DISTINCT actor FROM core_operations");
    assert_eq!(actors, Vec::<String>::new(), "listing is no call");
}

/// A token with `alg: none`.
fn unsigned(claims: &Value) -> String {
    use base64::Engine as _;
    let part = |value: &Value| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!(
        "{}.{}.",
        part(&json!({"alg": "none", "typ": "JWT"})),
        part(claims)
    )
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_fetched_and_its_subject_is_the_actor() {
    let issuer = Issuer::start().await;
    let place = Place::with(&format!("[server.auth]\nissuer = {:?}\n", issuer.url));
    let server = place.serve_http(&["--tier", "full"]);
    // The default audience is the server's own address.
    issuer.rotate("second");
    let token = issuer.token(&issuer.claims("ada", &server.url));
    let ada = Session::over_http_as(&server, &token).await;
    ada.ok("envelope_open", json!({})).await;
    ada.close().await;
    // The end of the session leaves a row of the host's own.
    let actors = place.sql("SELECT DISTINCT actor FROM core_operations WHERE tool = 'envelope_open'");
    assert_eq!(actors, [format!("{}#ada", issuer.url)]);
    let metadata: Value = {
        let address = server.at("/.well-known/oauth-protected-resource/mcp");
        let text = reqwest::get(address).await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(
        metadata,
        json!({"resource": server.url, "resource_name": "Tollgate", "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"]})
    );
}

#[tokio::test]
async fn without_its_keys_a_host_is_not_ready_and_says_so() {
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let place = Place::with(&format!("[server.auth]\nissuer = \"http://{gone}\"\n"));
    let server = place.serve_http(&[]);
    let response = reqwest::get(server.at("/readyz")).await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    assert_eq!(
        response.text().await.unwrap(),
        "the issuer's keys cannot be fetched\n"
    );
    let claims =
        json!({"iss": format!("http://{gone}"), "sub": "ada", "aud": server.url, "exp": now() + 600});
    assert_eq!(
        knock(&server, Some(&forged(&claims))).await,
        "503 ISSUER_UNAVAILABLE"
    );
}
