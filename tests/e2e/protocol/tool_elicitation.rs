//! Elicitation by tools, together with elicitation by policies.
#![allow(clippy::disallowed_methods, reason = "tests make folders")]

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, conformance_pack, guest, until};
use crate::protocol::policy_elicitation::request;

/// A tool that asks twice, behind a policy that asks once.
const TOOL: &str = "test_input_required_result_multi_round";

fn place() -> Place {
    let place = Place::with(&format!(
        r#"
        {}
        [policies.ask]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["{TOOL}"]
        config = {{ when = "true", then = "ask", message = "Really?", code = "NOT_ALLOWED", remediation = "Get a yes." }}
        "#,
        conformance_pack(),
    ));
    std::fs::create_dir(place.path().join("work")).unwrap();
    place
}

/// Configuration of a tool that acts before it asks, behind a policy that asks.
pub(crate) fn acting() -> String {
    format!(
        r#"
        [packs.side-effects]
        source = {:?}
        grants = {{ workspaces = ["*"], process = ["*"] }}
        [policies.ask]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["side_effects_run"]
        config = {{ when = "true", then = "ask", message = "Really?", code = "NOT_ALLOWED", remediation = "Get a yes." }}
        "#,
        guest("side-effects")
    )
}

/// Arguments of a call that acts, then asks.
pub(crate) fn acts(actions: &[&str]) -> Value {
    json!({"actions": actions, "code": "ANSWER_NEEDED", "asks": true})
}

fn rows(place: &Place) -> Vec<String> {
    place.sql(
        "SELECT coalesce(error_code, 'ok') || ' ' || json_extract(verdicts, '$[0].answer') FROM core_operations
         WHERE verdicts IS NOT NULL ORDER BY seq",
    )
}

/// Answer of the user to each question.
fn answer(question: &str) -> Value {
    match question {
        "allow" => json!({"action": "accept", "content": {"allow": true}}),
        "step1" => json!({"action": "accept", "content": {"name": "Ada"}}),
        "go_on" => json!({"action": "accept", "content": {"go_on": true}}),
        _ => json!({"action": "accept", "content": {"color": "blue"}}),
    }
}

/// Makes a call and answers every question. Returns the questions' keys in order, and the result.
async fn answered(server: &HttpServer, tool: &str, arguments: &Value) -> (Vec<String>, Value) {
    let can = json!({"elicitation": {}});
    let mut added = json!({});
    let mut asked = Vec::new();
    loop {
        let reply = request(server, &[], &can, (tool, arguments.clone()), &added).await;
        let result = reply["result"].clone();
        if result["resultType"] != "input_required" {
            return (asked, result);
        }
        let questions = result["inputRequests"].as_object().unwrap();
        let answers: serde_json::Map<String, Value> =
            questions.keys().map(|key| (key.clone(), answer(key))).collect();
        asked.extend(questions.keys().cloned());
        added = json!({"requestState": result["requestState"], "inputResponses": answers});
    }
}

#[tokio::test]
async fn a_yes_to_a_policy_holds_while_the_tool_asks() {
    let place = place();
    let server = place.serve_http(&[]);
    let (asked, said) = answered(&server, TOOL, &json!({})).await;
    assert_eq!(asked, ["allow", "step1", "step2"]);
    assert_eq!(said["structuredContent"]["said"], "Ada likes blue.", "{said:#}");
    let expected = [
        "NOT_ALLOWED none",
        "ANSWER_NEEDED yes",
        "ANSWER_NEEDED yes",
        "ok yes",
    ];
    until(async || rows(&place) == expected).await;
}

/// Cases of a tool that asks: its actions before, and the questions of policy and tool.
pub(crate) const ACTS: [(&[&str], &[&str]); 3] = [
    (&[], &["allow", "go_on"]),
    (&["look", "rolled_back"], &["allow", "go_on"]),
    (&["row"], &["allow", "go_on", "allow"]),
];

#[tokio::test]
async fn a_yes_to_a_policy_covers_one_call_that_has_effects() {
    let place = Place::with(&acting());
    let server = place.serve_http(&["--tier", "full"]);
    for (actions, expected) in ACTS {
        let (asked, said) = answered(&server, "side_effects_run", &acts(actions)).await;
        assert_eq!(asked, expected, "{actions:?}");
        // The answer to the tool outlasts the policy's question.
        assert_eq!(said["structuredContent"]["result"], "done", "{said:#}");
    }
    assert_eq!(place.sql("SELECT count(*) FROM side_effects_rows"), ["2"]);
}

#[test]
fn a_client_of_the_older_era_is_asked_again_after_a_call_that_has_effects() {
    let place = Place::with(&acting());
    let mut wire = place.wire(&["--tier", "full"]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, (actions, expected)) in ACTS.into_iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": id + 1, "method": "tools/call",
            "params": {"name": "side_effects_run", "arguments": acts(actions)}});
        let mut reply = wire.ask(&call);
        for question in expected {
            assert_eq!(reply["method"], "elicitation/create", "{question}: {reply:#}");
            let form = &reply["params"]["requestedSchema"]["properties"];
            assert!(form.get(question).is_some(), "{question}: {reply:#}");
            reply = wire.ask(&json!({"jsonrpc": "2.0", "id": reply["id"], "result": answer(question)}));
        }
        let said = &reply["result"]["structuredContent"]["result"];
        assert_eq!(said, "done", "{actions:?}: {reply:#}");
    }
}

#[test]
fn a_client_of_the_older_era_is_asked_by_both() {
    let place = place();
    let mut wire = place.wire(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": TOOL, "arguments": {}}});
    let mut reply = wire.ask(&call);
    for question in ["allow", "step1", "step2"] {
        assert_eq!(reply["method"], "elicitation/create", "{question}: {reply:#}");
        reply = wire.ask(&json!({"jsonrpc": "2.0", "id": reply["id"], "result": answer(question)}));
    }
    assert_eq!(
        reply["result"]["structuredContent"]["said"], "Ada likes blue.",
        "{reply:#}"
    );
    // What the client cannot answer is refused.
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "test_missing_capability", "arguments": {}}});
    let reply = wire.ask(&call);
    assert_eq!(
        reply["result"]["structuredContent"]["error"]["code"], "ANSWER_NEEDED",
        "{reply:#}"
    );
}

#[tokio::test]
async fn a_client_is_asked_only_what_it_can_answer() {
    let place = place();
    let server = place.serve_http(&[]);
    let tool = "test_input_required_result_capabilities";
    let nothing = json!({});
    for (can, asked) in [
        (json!({"elicitation": {}}), vec!["user_name"]),
        (json!({"sampling": {}}), vec!["name"]),
        (
            json!({"sampling": {}, "elicitation": {}}),
            vec!["name", "user_name"],
        ),
    ] {
        let reply = request(&server, &[], &can, (tool, json!({})), &nothing).await;
        let questions = reply["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(questions.keys().collect::<Vec<_>>(), asked, "{reply:#}");
    }
    let body = crate::transport::http::stateless("tools/call", json!({"name": tool, "arguments": {}}));
    let headers = [
        crate::transport::http::NEWEST,
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let (status, reply) = crate::transport::http::post(&server, &headers, body).await;
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(
        (status, &reply["error"]["code"]),
        (400, &json!(-32021)),
        "{reply:#}"
    );
    let required = &reply["error"]["data"]["requiredCapabilities"];
    assert_eq!(
        *required,
        json!({"elicitation": {"form": {}}, "sampling": {}}),
        "{reply:#}"
    );
    assert_eq!(
        reply["error"]["data"]["error"]["code"], "ANSWER_NEEDED",
        "{reply:#}"
    );
}

#[tokio::test]
async fn answers_to_a_tool_count_once() {
    let place = place();
    let server = place.serve_http(&[]);
    let can = json!({"elicitation": {}});
    let tool = "test_input_required_result_request_state";
    let asked = request(&server, &[], &can, (tool, json!({})), &json!({})).await["result"].clone();
    let questions = asked["inputRequests"]
        .as_object()
        .unwrap_or_else(|| panic!("{asked:#}"));
    let accept = |key: &String| {
        let yes = json!({"action": "accept", "content": {"ok": true}});
        (key.clone(), yes)
    };
    let answers: serde_json::Map<String, Value> = questions.keys().map(accept).collect();
    let added = json!({"requestState": asked["requestState"], "inputResponses": answers});
    let first = request(&server, &[], &can, (tool, json!({})), &added).await;
    assert!(first["result"]["structuredContent"].is_object(), "{first:#}");
    let again = request(&server, &[], &can, (tool, json!({})), &added).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again:#}");
}
