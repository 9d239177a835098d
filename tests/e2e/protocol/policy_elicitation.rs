//! Elicitation by policies, in both eras of the protocol.

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, until};
use crate::transport::http::{NEWEST, post, stateless};
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

const ASKING: &str = r#"
    [policies.ask]
    source = "builtin:cel"
    limits.time_ms = 10000
    tools = ["task_list", "envelope_open"]
    config = { when = "true", then = "ask", message = "Really look?", code = "NOT_ALLOWED", remediation = "Get a yes." }
"#;

fn answers(place: &Place) -> Vec<String> {
    place.sql(
        "SELECT tool || ' ' || coalesce(error_code, 'ok') || ' ' || json_extract(verdicts, '$[0].answer')
         FROM core_operations ORDER BY seq",
    )
}

#[test]
fn a_client_of_the_older_era_is_asked_meanwhile() {
    let place = Place::with(ASKING);
    let mut wire = place.wire(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, (tool, answer, code)) in [
        (
            "task_list",
            json!({"action": "accept", "content": {"allow": true}}),
            None,
        ),
        (
            "envelope_open",
            json!({"action": "accept", "content": {"allow": true}}),
            None,
        ),
        (
            "task_list",
            json!({"action": "accept", "content": {"allow": false}}),
            Some("NOT_ALLOWED"),
        ),
        ("task_list", json!({"action": "accept"}), Some("NOT_ALLOWED")),
        ("task_list", json!({"action": "decline"}), Some("NOT_ALLOWED")),
    ]
    .into_iter()
    .enumerate()
    {
        let call = json!({"jsonrpc": "2.0", "id": id + 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
        let question = wire.ask(&call);
        assert_eq!(question["method"], "elicitation/create", "{question:#}");
        assert_eq!(question["params"]["message"], "Really look?");
        let reply = wire.ask(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let error = &reply["result"]["structuredContent"]["error"]["code"];
        assert_eq!(error.as_str(), code, "{tool} {answer}: {reply:#}");
    }
    drop(wire);
    assert_eq!(
        answers(&place),
        [
            "task_list NOT_ALLOWED none",
            "task_list ok yes",
            "envelope_open NOT_ALLOWED none",
            "envelope_open ok yes",
            "task_list NOT_ALLOWED none",
            "task_list NOT_ALLOWED no",
            "task_list NOT_ALLOWED none",
            "task_list NOT_ALLOWED no",
            "task_list NOT_ALLOWED none",
            "task_list NOT_ALLOWED no",
        ]
    );
}

/// Makes one request of the newer era with added parameters, and returns its result.
async fn call(server: &HttpServer, capabilities: &Value, arguments: Value, added: &Value) -> Value {
    let reply = send(server, &[], capabilities, arguments, added).await;
    assert!(reply["error"].is_null(), "{reply:#}");
    reply["result"].clone()
}

/// Makes the request with more headers, and returns the whole reply.
async fn send(
    server: &HttpServer,
    headers: &[(&str, &str)],
    capabilities: &Value,
    arguments: Value,
    added: &Value,
) -> Value {
    request(server, headers, capabilities, ("task_list", arguments), added).await
}

/// Makes the request for any tool.
pub(crate) async fn request(
    server: &HttpServer,
    headers: &[(&str, &str)],
    capabilities: &Value,
    (tool, arguments): (&str, Value),
    added: &Value,
) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments});
    for (name, value) in added.as_object().into_iter().flatten() {
        params[name.as_str()] = value.clone();
    }
    let mut body: Value = serde_json::from_slice(&stateless("tools/call", params)).unwrap();
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let headers = [
        headers,
        &[NEWEST, ("mcp-method", "tools/call"), ("mcp-name", tool)],
    ]
    .concat();
    let (status, text) = post(server, &headers, body.to_string().into_bytes()).await;
    assert_eq!(status, 200, "{text}");
    let json = text
        .lines()
        .find_map(|line| line.strip_prefix("data: ").filter(|data| data.starts_with('{')));
    serde_json::from_str(json.unwrap_or(&text)).unwrap()
}

fn with_answer(question: &Value, answer: Value) -> Value {
    json!({"requestState": question["requestState"], "inputResponses": {"allow": answer}})
}

fn is_question(reply: &Value) -> bool {
    reply["resultType"] == "input_required"
}

#[tokio::test]
async fn a_client_of_the_newer_era_asks_and_comes_again() {
    let place = Place::with(ASKING);
    let server = place.serve_http(&[]);
    let can = json!({"elicitation": {"form": {}}});
    let (nothing, yes) = (json!({}), json!({"action": "accept", "content": {"allow": true}}));
    let question = call(&server, &can, json!({}), &nothing).await;
    assert!(is_question(&question), "{question:#}");
    let form = &question["inputRequests"]["allow"];
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(form["params"]["message"], "Really look?");
    let agreed = call(&server, &can, json!({}), &with_answer(&question, yes.clone())).await;
    assert_ne!(agreed["isError"], true, "{agreed:#}");
    assert!(agreed["structuredContent"]["tasks"].is_array(), "{agreed:#}");
    // A yes is to one call with these arguments.
    let answered = with_answer(&question, yes.clone());
    let other = send(&server, &[], &can, json!({"limit": 1}), &answered).await;
    assert_eq!(other["error"]["code"], -32602, "{other:#}");
    let mut forged = question.clone();
    let state = question["requestState"].as_str().unwrap();
    let flipped = if state.ends_with('A') { "B" } else { "A" };
    forged["requestState"] = format!("{}{flipped}", &state[..state.len() - 1]).into();
    let forged = send(&server, &[], &can, json!({}), &with_answer(&forged, yes.clone())).await;
    assert_eq!(forged["error"]["code"], -32602, "{forged:#}");
    // An answer to what was never asked is none.
    let unasked = call(
        &server,
        &can,
        json!({}),
        &json!({"inputResponses": {"allow": yes}}),
    )
    .await;
    assert!(is_question(&unasked), "{unasked:#}");
    // And it counts once: whoever brings it again is asked again, and so is who brings another answer to it.
    for answer in [&yes, &json!({"action": "decline"})] {
        let again = call(&server, &can, json!({}), &with_answer(&question, answer.clone())).await;
        assert!(is_question(&again), "{again:#}");
    }
    let question = call(&server, &can, json!({}), &nothing).await;
    let declined = call(
        &server,
        &can,
        json!({}),
        &with_answer(&question, json!({"action": "decline"})),
    )
    .await;
    assert_eq!(
        declined["structuredContent"]["error"]["code"], "NOT_ALLOWED",
        "{declined:#}"
    );
}

#[tokio::test]
async fn a_yes_survives_a_restart() {
    let place = Place::with(ASKING);
    let can = json!({"elicitation": {"form": {}}});
    let question = {
        let server = place.serve_http(&[]);
        call(&server, &can, json!({}), &json!({})).await
    };
    let server = place.serve_http(&[]);
    let yes = with_answer(&question, json!({"action": "accept", "content": {"allow": true}}));
    let agreed = call(&server, &can, json!({}), &yes).await;
    assert_ne!(agreed["isError"], true, "{agreed:#}");
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_refusal_says_what_to_do() {
    let place = Place::with(ASKING);
    let server = place.serve_http(&[]);
    for can in [json!({}), json!({"elicitation": {"url": {}}})] {
        let refused = call(&server, &can, json!({}), &json!({})).await;
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "NOT_ALLOWED", "{refused:#}");
        assert_eq!(error["remediation"], "Get a yes.");
    }
    let (code, printed) = place.call("task_list", &json!({}));
    assert_eq!((code, &printed["error"]["code"]), (1, &json!("NOT_ALLOWED")));
}

#[tokio::test]
async fn nobody_answers_what_somebody_else_was_asked() {
    let place = place_with_tokens(&format!("[server.auth]\ntoken_file = \"tokens\"\n{ASKING}"));
    let server = place.serve_http(&[]);
    let can = json!({"elicitation": {"form": {}}});
    let [ada, bob] = [ADA, BOB].map(|token| format!("Bearer {token}"));
    let [ada, bob] = [&ada, &bob].map(|token| ("authorization", token.as_str()));
    let asked = send(&server, &[ada], &can, json!({}), &json!({})).await;
    let yes = with_answer(
        &asked["result"],
        json!({"action": "accept", "content": {"allow": true}}),
    );
    let stolen = send(&server, &[bob], &can, json!({}), &yes).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen:#}");
    let agreed = send(&server, &[ada], &can, json!({}), &yes).await;
    assert!(
        agreed["result"]["structuredContent"]["tasks"].is_array(),
        "{agreed:#}"
    );
    let rows = ["task_list NOT_ALLOWED none", "task_list ok yes"];
    until(async || answers(&place) == rows).await;
}

#[tokio::test]
async fn of_many_at_once_on_two_hosts_one_call_has_the_yes() {
    let place = Place::with(ASKING);
    let servers = [place.serve_http(&[]), place.serve_http(&[])];
    let can = json!({"elicitation": {"form": {}}});
    let yes = json!({"action": "accept", "content": {"allow": true}});
    for tool in ["task_list", "envelope_open"] {
        let asked = request(&servers[0], &[], &can, (tool, json!({})), &json!({})).await;
        let answered = with_answer(&asked["result"], yes.clone());
        let calls = (0..12).map(|place| {
            let server = &servers[place % 2];
            request(server, &[], &can, (tool, json!({})), &answered)
        });
        let replies = futures::future::join_all(calls).await;
        let ran = replies
            .iter()
            .filter(|reply| reply["result"]["structuredContent"].is_object());
        assert_eq!(ran.count(), 1, "{tool}: {replies:#?}");
        let asked_again = replies.iter().filter(|reply| is_question(&reply["result"]));
        assert_eq!(asked_again.count(), 11, "{tool}: {replies:#?}");
    }
    let opened = place.sql("SELECT count(*) FROM core_envelopes");
    assert_eq!(opened, ["1"]);
}

#[tokio::test]
async fn a_yes_is_to_one_envelope() {
    let place = Place::with(ASKING);
    let server = place.serve_http(&[]);
    let can = json!({"elicitation": {"form": {}}});
    let asked = call(&server, &can, json!({}), &json!({})).await;
    let yes = with_answer(&asked, json!({"action": "accept", "content": {"allow": true}}));
    let mut body: Value = serde_json::from_slice(&stateless(
        "tools/call",
        json!({"name": "task_list", "arguments": {}, "requestState": yes["requestState"],
            "inputResponses": yes["inputResponses"]}),
    ))
    .unwrap();
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can.clone();
    body["params"]["_meta"]["tollgate/envelope_id"] = json!("env_another");
    let headers = [NEWEST, ("mcp-method", "tools/call"), ("mcp-name", "task_list")];
    let (_, text) = post(&server, &headers, body.to_string().into_bytes()).await;
    assert!(text.contains("-32602"), "{text}");
    // It was not used up by that.
    let agreed = call(&server, &can, json!({}), &yes).await;
    assert!(agreed["structuredContent"]["tasks"].is_array(), "{agreed:#}");
}
