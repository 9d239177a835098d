//! MCP's tasks: calls that outlive their clients, and the hosts that ran them.

mod answers;
mod lost_hosts;
mod termination;

use serde_json::{Map, Value, json};

use crate::harness::{HttpServer, Place, guest, until};
use crate::transport::http::{NEWEST, post};
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

const TOKENS: &str = "[server.auth]\ntoken_file = \"tokens\"\n";

/// Configuration of a pack whose calls sleep.
fn sleeping() -> String {
    format!("[packs.limit-sleep]\nsource = {:?}\n", guest("limit-sleep"))
}

/// A client of the newest era over HTTP, without a connection.
struct Client<'a> {
    server: &'a HttpServer,
    token: Option<&'a str>,
    capabilities: Value,
}

impl<'a> Client<'a> {
    fn of(server: &'a HttpServer) -> Client<'a> {
        Client {
            server,
            token: None,
            capabilities: json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        }
    }

    fn bearing(server: &'a HttpServer, token: &'a str) -> Client<'a> {
        Client {
            token: Some(token),
            ..Client::of(server)
        }
    }

    /// The same with a user who answers questions.
    fn with_user(mut self) -> Client<'a> {
        self.capabilities["elicitation"] = json!({});
        self
    }

    async fn request(&self, method: &str, mut params: Value) -> Value {
        let name = ["name", "taskId"].into_iter().find_map(|key| params.get(key));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "post", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let bearer = self.token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![NEWEST, ("mcp-method", method), ("mcp-name", name.as_str())];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let (_, text) = post(self.server, &headers, body.to_string().into_bytes()).await;
        let json = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .rfind(|data| data.contains("\"jsonrpc\""))
            .unwrap_or(&text);
        serde_json::from_str(json).unwrap_or_else(|err| panic!("{err}: {text}"))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let mut said = self
            .request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        said["result"].take()
    }

    /// Id of the task that a call becomes.
    async fn start(&self, tool: &str, arguments: Value) -> String {
        let created = self.call(tool, arguments).await;
        assert_eq!(created["resultType"], "task", "{created:#}");
        created["taskId"].as_str().unwrap().to_owned()
    }

    async fn about(&self, method: &str, id: &str) -> Value {
        self.request(method, json!({ "taskId": id })).await
    }

    async fn get(&self, id: &str) -> Value {
        let mut said = self.about("tasks/get", id).await;
        assert!(said.get("error").is_none(), "{said:#}");
        said["result"].take()
    }

    /// The task once it is in a state.
    async fn once(&self, id: &str, status: &str) -> Value {
        let mut seen = Value::Null;
        until(async || {
            seen = self.get(id).await;
            let pause = std::time::Duration::from_millis(200);
            tokio::time::sleep(pause).await;
            seen["status"] == status
        })
        .await;
        seen
    }
}

fn slow(ms: u64) -> Value {
    json!({"how": "thread", "ms": ms})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_long_becomes_a_task_of_clients_that_have_tasks() {
    let place = Place::with(&sleeping());
    let server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let created = client.call("limit_sleep_run", slow(1_500)).await;
    assert_eq!(
        (&created["resultType"], &created["status"], &created["ttlMs"]),
        (&json!("task"), &json!("working"), &json!(86_400_000)),
        "{created:#}"
    );
    let id = created["taskId"].as_str().unwrap();
    let seen = client.get(id).await;
    assert_eq!(
        (&seen["status"], &seen["resultType"]),
        (&json!("working"), &json!("complete"))
    );
    let done = client.once(id, "completed").await;
    assert_eq!(done["result"]["structuredContent"]["result"], "awake", "{done:#}");
    assert_eq!(done["result"]["isError"], false, "{done:#}");
    let op_id = done["result"]["_meta"]["tollgate/op_id"].as_str().unwrap();
    assert_eq!(place.sql("SELECT op_id FROM core_tasks"), [op_id]);
    assert_eq!(place.ledger(), ["limit_sleep_run run ok"]);
    let tail = place.run(&["ledger", "tail"]);
    let tail = String::from_utf8_lossy(&tail.stdout).into_owned();
    assert!(tail.contains(&format!("ok; {id}")), "{tail}");
    let rows = place.run(&["--json", "ledger", "query"]);
    let row: Value = serde_json::from_slice(&rows.stdout).unwrap();
    assert_eq!(row["task_id"], id, "{row:#}");

    // A quick one is answered at once, and so is everybody who has no tasks.
    let mut quick = client.call("limit_sleep_run", slow(1)).await;
    // On a busy machine even this takes long.
    if let Some(id) = quick["taskId"].as_str().map(str::to_owned) {
        quick = client.once(&id, "completed").await["result"].clone();
    }
    assert_eq!(quick["structuredContent"]["result"], "awake", "{quick:#}");
    let plain = Client {
        capabilities: json!({}),
        ..Client::of(&server)
    };
    let waited = plain.call("limit_sleep_run", slow(700)).await;
    assert_eq!(waited["structuredContent"]["result"], "awake", "{waited:#}");
    let refused = plain.about("tasks/get", id).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_revisions_with_tasks_are_told_of_them() {
    let place = Place::with(&sleeping());
    let server = place.serve_http(&[]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let (_, text) = post(&server, &[], begin.to_string().into_bytes()).await;
    assert!(
        text.contains("2025-11-25") && text.contains("\"tools\"") && !text.contains("extensions"),
        "{text}"
    );
    let found = Client::of(&server).request("server/discover", json!({})).await;
    let extensions = &found["result"]["capabilities"]["extensions"];
    assert!(
        extensions["io.modelcontextprotocol/tasks"].is_object(),
        "{found:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_say_whether_their_calls_become_tasks() {
    let place = Place::with(&sleeping());
    let server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let plain = Client {
        capabilities: json!({}),
        ..Client::of(&server)
    };
    let id = client.start("limit_sleep_required", slow(700)).await;
    client.once(&id, "completed").await;
    let attended = client.call("limit_sleep_attended", slow(700)).await;
    assert_eq!(attended["structuredContent"]["result"], "awake", "{attended:#}");
    // By name or by the tool that calls others, whose host began just now.
    let compact = place.serve_http(&["--tier", "full", "--compact"]);
    let relaying = Client {
        capabilities: json!({}),
        ..Client::of(&compact)
    };
    let named = json!({"tool": "limit_sleep_required", "arguments": slow(1)});
    for (client, tool, arguments) in [
        (&relaying, "tool_call", named),
        (&relaying, "limit_sleep_required", slow(1)),
        (&plain, "limit_sleep_required", slow(1)),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let refused = client.request("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused:#}");
    }
    let mut expected = vec!["limit_sleep_required run ok", "limit_sleep_attended run ok"];
    expected.extend(["limit_sleep_required run TASKS_REQUIRED"; 3]);
    assert_eq!(place.ledger(), expected);
    // The operator at the terminal waits.
    let arguments = slow(1).to_string();
    let called = place.run(&["call", "limit_sleep_required", &arguments]);
    let said = String::from_utf8_lossy(&called.stdout);
    assert!(said.contains("awake"), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_exists_for_its_owner_alone() {
    let place = place_with_tokens(&[TOKENS, &sleeping()].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let (ada, bob) = (Client::bearing(&server, ADA), Client::bearing(&server, BOB));
    let id = ada.start("limit_sleep_run", slow(60_000)).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = |id: &str| {
            let mut params = Map::from_iter([("taskId".to_owned(), json!(id))]);
            params.extend((method == "tasks/update").then(|| ("inputResponses".to_owned(), json!({}))));
            Value::Object(params)
        };
        let foreign = bob.request(method, params(&id)).await["error"].to_string();
        let unknown = bob.request(method, params("tsk_none")).await["error"].to_string();
        assert_eq!(foreign.replace(&id, "tsk_none"), unknown, "{method}");
        assert!(
            unknown.contains("UNKNOWN_TASK") && unknown.contains("-32602"),
            "{unknown}"
        );
    }
    let lacking = ada.about("tasks/update", &id).await;
    assert_eq!(
        (
            &lacking["error"]["code"],
            &lacking["error"]["data"]["error"]["code"]
        ),
        (&json!(-32602), &json!("PARAMS_INVALID")),
        "{lacking:#}"
    );
    assert_eq!(ada.get(&id).await["status"], "working");
    let ended = ada.about("tasks/cancel", &id).await;
    assert_eq!(ended["result"]["resultType"], "complete", "{ended:#}");
    ada.once(&id, "cancelled").await;
    assert_eq!(place.ledger(), ["limit_sleep_run run CANCELLED"]);
    // The same again changes nothing.
    let again = ada.about("tasks/cancel", &id).await;
    assert_eq!(again["result"]["resultType"], "complete", "{again:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_polls_too_fast_is_told_to_wait() {
    let place = Place::with(&sleeping());
    let server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let id = client.start("limit_sleep_run", slow(60_000)).await;
    // Faster than ten a second, on any machine that runs this.
    let mut refused = None;
    until(async || {
        let looks = (0..20).map(|_| client.about("tasks/get", &id));
        let looks = futures::future::join_all(looks).await;
        refused = looks.into_iter().find(|seen| seen.get("error").is_some());
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(
        refused["error"]["data"]["error"]["code"], "POLLING_TOO_FAST",
        "{refused:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_envelope_ends_its_tasks() {
    let place = Place::with(&sleeping());
    let server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let opened = client.call("envelope_open", json!({"label": "night"})).await;
    let envelope = &opened["structuredContent"]["id"];
    let mut arguments = slow(60_000);
    arguments["envelope_id"] = envelope.clone();
    let id = client.start("limit_sleep_run", arguments).await;
    let closed = json!({"envelope_id": envelope, "outcome": "failed"});
    client.call("envelope_close", closed).await;
    let ended = client.once(&id, "cancelled").await;
    let why = ended["statusMessage"].as_str().unwrap_or_default();
    let closed = format!(
        "envelope `{}` was closed by its owner; ",
        envelope.as_str().unwrap()
    );
    assert!(why.starts_with(&closed), "{ended:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_and_ends_tasks_of_everybody() {
    let place = place_with_tokens(&[TOKENS, &sleeping()].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    let id = ada.start("limit_sleep_run", slow(60_000)).await;
    let said = |arguments: &[&str]| {
        let output = place.run(&[&["--json", "tasks"], arguments].concat());
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, listed) = said(&["list", "--state", "working"]);
    let listed = &listed["tasks"][0];
    assert_eq!(
        (code, &listed["task_id"], &listed["owner"], &listed["tool"]),
        (
            Some(0),
            &json!(id),
            &json!("token:ada"),
            &json!("limit_sleep_run")
        ),
        "{listed:#}"
    );
    let (code, ended) = said(&["cancel", &id]);
    assert_eq!((code, &ended["cancelled"]), (Some(0), &json!(true)), "{ended:#}");
    ada.once(&id, "cancelled").await;
    let (_, shown) = said(&["show", &id]);
    assert_eq!(shown["error"]["code"], "CANCELLED", "{shown:#}");
    let (_, again) = said(&["cancel", &id]);
    assert_eq!(again["cancelled"], false, "{again:#}");
    let (code, unknown) = said(&["show", "tsk_none"]);
    assert_eq!(
        (code, &unknown["error"]["code"]),
        (Some(1), &json!("UNKNOWN_TASK"))
    );
}
