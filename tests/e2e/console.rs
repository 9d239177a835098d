//! The console beside MCP: who gets in, what the door refuses, and that looking leaves no row.

use serde_json::json;

use crate::harness::{HttpServer, Place, Session};

/// Reply to a request.
struct Answer {
    status: u16,
    cookie: String,
    location: String,
    body: String,
}

async fn ask(server: &HttpServer, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let origin = server.url.trim_end_matches("/mcp");
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = client.build().unwrap().request(method, format!("{origin}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.body(body.to_owned()).send().await.unwrap();
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    Answer {
        status: response.status().as_u16(),
        cookie: header("set-cookie")
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned(),
        location: header("location"),
        body: response.text().await.unwrap(),
    }
}

async fn log_in(server: &HttpServer, token: &str) -> Answer {
    let origin = server.url.trim_end_matches("/mcp");
    let headers = [
        ("origin", origin),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    ask(
        server,
        "POST",
        "/console/login",
        &headers,
        &format!("token={token}"),
    )
    .await
}

/// The address that `tollgate console` prints, and the token in it.
fn invited(place: &Place) -> (String, String) {
    let output = place.command(&["console"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (address, token) = said.trim().split_once('#').unwrap();
    (address.to_owned(), token.to_owned())
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the test writes the configuration")]
async fn a_server_serves_the_console_beside_mcp_and_the_owner_logs_in_once() {
    let place = Place::new();
    std::fs::write(place.config(), "[server.console]\nenabled = true\n").unwrap();
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    session
        .ok("envelope_open", json!({"label": "look <b>here</b>"}))
        .await;
    let (address, token) = invited(&place);
    assert_eq!(
        address,
        format!("{}/console/login", server.url.trim_end_matches("/mcp"))
    );
    let home = ask(&server, "GET", "/", &[("accept", "text/html")], "").await;
    assert_eq!((home.status, home.location.as_str()), (303, "/console/"));
    let cookie = log_in(&server, &token).await.cookie;
    assert_eq!(log_in(&server, &token).await.status, 403, "the token was used");
    let page = async |path: &str| ask(&server, "GET", path, &[("cookie", &cookie)], "").await;
    let live = page("/console/").await;
    assert_eq!(live.status, 200, "{}", live.body);
    assert!(
        live.body.contains("envelope_open") && live.body.contains("look &lt;b&gt;here"),
        "{}",
        live.body
    );
    let host = page("/console/host?check").await.body;
    assert!(
        host.contains("task-store") && host.contains("rows hold together"),
        "{host}"
    );
    let rows = session.ok("ledger_stats", json!({"since": "1h", "by": []})).await;
    assert_eq!(rows["calls"][0]["calls"], 1, "looking leaves no row: {rows}");
    let nobody = ask(&server, "GET", "/console/", &[], "").await;
    assert_eq!((nobody.status, nobody.location.as_str()), (303, "/console/login"));
    for header in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let refused = ask(&server, "GET", "/console/", &[("cookie", &cookie), header], "").await;
        assert_eq!(refused.status, 403, "{header:?}");
    }
    session.close().await;
}

#[tokio::test]
async fn the_console_is_off_unless_it_is_wanted() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    for path in ["/console/", "/console/login", "/console/assets/console.js"] {
        assert_eq!(ask(&server, "GET", path, &[], "").await.status, 404, "{path}");
    }
}
