//! The console beside MCP: access, refusals, and pages that leave no rows in the ledger.

use serde_json::{Value, json};

use crate::gate::approvals::{POLICY, denied, task};
use crate::gate::person::waiting_in;
use crate::harness::{HttpServer, Place, Session};
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

/// Reply to a request.
pub(crate) struct Answer {
    status: u16,
    pub(crate) cookie: String,
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

pub(crate) async fn log_in(server: &HttpServer, token: &str) -> Answer {
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
        host.contains("task-store") && host.contains("verified; the head is"),
        "{host}"
    );
    let rows = session.ok("ledger_stats", json!({"since": "1h", "by": []})).await;
    assert_eq!(rows["calls"][0]["calls"], 1, "looking leaves no row: {rows}");
    let nobody = ask(&server, "GET", "/console/", &[], "").await;
    let login = "/console/login?to=%2Fconsole%2F";
    assert_eq!((nobody.status, nobody.location.as_str()), (303, login));
    // A login leads to pages of the console alone.
    for (wanted, leads_to) in [
        (
            "/console/envelopes%3Fstate%3Dopen",
            "/console/envelopes?state=open",
        ),
        ("https%3A%2F%2Fevil.example%2Fconsole%2F", "/console/"),
        ("%2F%2Fevil.example%2Fconsole%2F", "/console/"),
        (
            "/console/%0D%0ALocation%3A+https%3A%2F%2Fevil.example",
            "/console/",
        ),
    ] {
        let (_, token) = invited(&place);
        let there = log_in(&server, &format!("{token}&to={wanted}")).await;
        assert_eq!((there.status, there.location.as_str()), (303, leads_to));
    }
    for header in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let refused = ask(&server, "GET", "/console/", &[("cookie", &cookie), header], "").await;
        assert_eq!(refused.status, 403, "{header:?}");
    }
    session.close().await;
}

/// Puts programs in place of the browser, which write down what they were given.
#[allow(clippy::disallowed_methods, reason = "the test makes the programs")]
fn browsers(place: &Place) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = place.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["xdg-open", "open"] {
        let program = folder.join(name);
        let script =
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$OPENED.part\" && mv \"$OPENED.part\" \"$OPENED\"\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the test looks at files")]
async fn a_browser_is_opened_with_a_private_file_that_leads_to_the_login() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    std::fs::write(place.config(), "[server.console]\nenabled = true\n").unwrap();
    let server = place.serve_http(&[]);
    let opened = place.path().join("opened");
    let path = format!("{}:/usr/bin:/bin", browsers(&place).display());
    let output = place
        .command(&["console", "--open"])
        .env("PATH", path)
        .env("OPENED", &opened)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let address = said.trim().to_owned();
    crate::harness::until(async || opened.exists()).await;
    let given = std::fs::read_to_string(&opened).unwrap();
    let file = given.trim();
    let token = address.split_once('#').unwrap().1;
    assert!(
        !given.contains(token),
        "everybody sees a program's arguments: {given}"
    );
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains(&format!("0;url={address}")), "{page}");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(log_in(&server, token).await.status, 303);
}

#[tokio::test]
async fn the_console_is_off_unless_it_is_wanted() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    for path in ["/console/", "/console/login", "/console/assets/console.js"] {
        assert_eq!(ask(&server, "GET", path, &[], "").await.status, 404, "{path}");
    }
}

/// Status and page of an answer that somebody gives on the page of a request.
pub(crate) async fn answered(server: &HttpServer, cookie: &str, id: &str, decision: &str) -> (u16, String) {
    let path = format!("/console/approvals/{id}");
    let page = ask(server, "GET", &path, &[("cookie", cookie)], "").await.body;
    let form = page.split("class=\"answer\"").nth(1).unwrap_or(&page);
    let token = form.split("name=\"form\" value=\"").nth(1).unwrap();
    let body = format!(
        "form={}&decision={decision}&note=seen",
        token.split('"').next().unwrap()
    );
    let headers = [
        ("cookie", cookie),
        ("origin", server.url.trim_end_matches("/mcp")),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let answer = ask(server, "POST", &path, &headers, &body).await;
    (answer.status, answer.body)
}

/// Id of the conductor's newest request that waits.
async fn step_of(session: &Session, job: &Value) -> String {
    let waiting = session
        .ok("approval_list", json!({"component": "conductor"}))
        .await;
    let all = waiting["approvals"].as_array().unwrap();
    let found = all.iter().find(|one| one["detail"]["job_id"] == *job);
    let found = found.unwrap_or_else(|| panic!("{job} is not in {waiting:#}"));
    found["approval_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn approvers_answer_on_the_console_under_their_proven_identity() {
    let place = place_with_tokens(&format!(
        "{POLICY}[server.auth]\ntoken_file = \"tokens\"\n[server.console]\nenabled = true\n\
         approvers = [\"token:ada\", \"token:bob\"]\n"
    ));
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let id = denied(&ada, "deploy").await;
    let (own, bob) = (
        log_in(&server, ADA).await.cookie,
        log_in(&server, BOB).await.cookie,
    );
    // Who asked is told so, and has no form to answer with.
    let path = format!("/console/approvals/{id}");
    let page = ask(&server, "GET", &path, &[("cookie", &own)], "").await.body;
    assert!(page.contains("somebody else must answer it"), "{page}");
    assert_eq!(answered(&server, &own, &id, "approve").await.0, 403);
    assert_eq!(answered(&server, &bob, &id, "approve").await.0, 303);
    assert_eq!(
        answered(&server, &bob, &id, "approve").await.0,
        403,
        "an answered request has no form"
    );
    ada.ok("task_create", task("deploy")).await;

    // A step of the conductor wants a person: an approver is one, the owner's session is none.
    let step = waiting_in(&ada).await;
    ada.ok("job_next_step_prompt", json!({"job_id": step["job_id"]}))
        .await;
    let request = step_of(&ada, &step["job_id"]).await;
    let owner = log_in(&server, &invited(&place).1).await.cookie;
    let (status, page) = answered(&server, &owner, &request, "approve").await;
    assert!(
        status == 403 && page.contains("PERSON_REQUIRED"),
        "{status} {page}"
    );
    assert_eq!(answered(&server, &own, &request, "approve").await.0, 403);
    let (status, page) = answered(&server, &bob, &request, "approve").await;
    assert_eq!(status, 303, "{page}");
    let job = ada.ok("job_get", json!({"job_id": step["job_id"]})).await;
    assert_eq!(job["steps"][0]["approved"], true, "{job:#}");
    let rows = place.sql(
        "SELECT tool || ' ' || actor || ' ' || client FROM core_operations
         WHERE tool IN ('approval_resolve', 'step_approve') AND success = 1 ORDER BY seq",
    );
    assert_eq!(
        rows,
        [
            "approval_resolve token:bob tollgate console",
            "step_approve token:bob tollgate console"
        ]
    );

    // Who does the conductor's work approves none of it.
    let working = Session::over_http_as(&server, BOB).await;
    working
        .ok("conductor_init", json!({"title": "t", "goal": "g"}))
        .await;
    let step = waiting_in(&ada).await;
    ada.ok("job_next_step_prompt", json!({"job_id": step["job_id"]}))
        .await;
    let request = step_of(&ada, &step["job_id"]).await;
    let (status, page) = answered(&server, &bob, &request, "approve").await;
    assert!(
        status == 403 && page.contains("APPROVER_EXECUTES"),
        "{status} {page}"
    );
    for session in [ada, working] {
        session.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_packs_are_calls_of_the_viewer_and_their_keys_are_in_no_list() {
    let place = place_with_tokens(
        "[server.auth]\ntoken_file = \"tokens\"\n[server.console]\nenabled = true\nviewers = [\"token:bob\"]\n",
    );
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let job = ada
        .ok("conductor_init", json!({"title": "Ship <b>it</b>", "goal": "g"}))
        .await["job_id"]
        .clone();
    let tools = ada.client().list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "gsd_status"));
    let listed = serde_json::to_string(&tools).unwrap();
    assert!(!listed.contains("x-views") && !listed.contains("ui://"));
    let described = ada.ok("tool_describe", json!({"tools": ["job_get"]})).await;
    assert!(!described.to_string().contains("x-views"), "{described:#}");

    let cookie = log_in(&server, BOB).await.cookie;
    let page = async |path: &str| ask(&server, "GET", path, &[("cookie", &cookie)], "").await;
    let jobs = page("/console/views/job_list").await.body;
    let id = job.as_str().unwrap();
    assert!(
        jobs.contains("Ship &lt;b&gt;it") && jobs.contains(&format!("job_get?job_id={id}")),
        "{jobs}"
    );
    let one = page(&format!("/console/views/job_get?job_id={id}")).await;
    assert_eq!(one.status, 200);
    for tool in ["gsd_status", "task_list", "tasks_workspaces"] {
        assert_eq!(
            page(&format!("/console/views/{tool}")).await.status,
            200,
            "{tool}"
        );
    }
    assert_eq!(page("/console/views/job_delete").await.status, 404);
    // The row of a read follows its reply.
    let seen = "SELECT DISTINCT tool FROM core_operations WHERE actor = 'token:bob' AND client = 'tollgate console' \
                AND effect = 'read' ORDER BY tool";
    let tools = [
        "gsd_status",
        "job_get",
        "job_list",
        "task_list",
        "tasks_workspaces",
    ];
    crate::harness::until(async || place.sql(seen) == tools).await;
    ada.close().await;
}
