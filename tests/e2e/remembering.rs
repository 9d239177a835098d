//! Memory of policies: committed with the row of the call whatever becomes of the call, as in the SDK's native judge.

use serde_json::{Value, json};
use tollgate_sdk::Effect;
use tollgate_sdk::native::Judge;
use tollgate_sdk::policy::{Outcome, Request, Review, Verdict};

use crate::harness::{Place, guest};

#[path = "../guests/src/policy_memory.rs"]
mod policy_memory;

/// A place with the policy in a mode, with a quota of 1 MiB.
fn place(mode: &str) -> Place {
    let source = guest("policy-memory").display().to_string();
    Place::with(&format!(
        "[policies.memory]\nsource = {source:?}\nmode = {mode:?}\ntools = [\"envelope_*\"]\n\
         limits = {{ storage_mib = 1, time_ms = 10000 }}\n"
    ))
}

/// A label of each call. Without one, `envelope_list` is called, which reads.
const SCENARIO: [&str; 11] = [
    "plain", "", "deny", "short", "deny", "fail", "withhold", "", "text", "withhold", "deny",
];

/// Reason of a refusal without the name of the policy.
fn reason(message: &str) -> String {
    let message = message.strip_prefix("policy `memory`: ").unwrap_or(message);
    if message.contains("reports that it cannot judge") || message.contains("not let through") {
        return "failed".to_owned();
    }
    message.to_owned()
}

fn on_a_host(place: &Place) -> Vec<String> {
    let calls = SCENARIO.iter().map(|label| {
        let (tool, arguments) = match *label {
            "" => ("envelope_list", json!({})),
            label => ("envelope_open", json!({ "label": label })),
        };
        let (_, printed) = place.call(tool, &arguments);
        let said = printed["error"]["message"].as_str();
        said.map_or_else(|| "pass".to_owned(), reason)
    });
    calls.collect()
}

fn natively() -> Vec<String> {
    let judge = Judge::<policy_memory::PolicyMemory>::new("{}").unwrap();
    let calls = SCENARIO.iter().map(|label| {
        let request = match *label {
            "" => Request {
                effect: Effect::Read,
                ..Request::of("envelope_list", "{}")
            },
            label => Request::of("envelope_open", &json!({ "label": label }).to_string()),
        };
        match judge.try_before(&request).map(|judged| judged.verdict) {
            Err(_) => return "failed".to_owned(),
            Ok(Verdict::Deny(denial)) => return denial.reason,
            Ok(_) => {}
        }
        let outcome = Outcome {
            success: true,
            error_code: None,
            body: json!({}),
            text: None,
            duration_ms: 0,
        };
        match judge.after(&request, &outcome).verdict {
            Review::Pass => "pass".to_owned(),
            Review::Deny(denial) => denial.reason,
        }
    });
    calls.collect()
}

#[test]
fn the_native_judge_remembers_what_a_host_does() {
    let place = place("enforce");
    let said = on_a_host(&place);
    assert_eq!(said, natively());
    let last = "after/envelope_list=2 after/envelope_open=5 before/envelope_list=2 before/envelope_open=8 denied=1 text=second";
    assert_eq!(said.last().map(String::as_str), Some(last));
}

#[test]
fn audit_mode_remembers_apart() {
    let place = place("audit");
    assert!(on_a_host(&place).iter().all(|said| said == "pass"));
    let count = |audit: u8| -> Vec<String> {
        place.sql(&format!(
            "SELECT key || ' ' || number FROM core_policy_memory WHERE audit = {audit} AND key LIKE '%open' ORDER BY key"
        ))
    };
    assert_eq!(count(1), ["after/envelope_open 9", "before/envelope_open 8"]);
    assert_eq!(count(0), [""; 0]);
}

#[test]
fn denials_fill_the_quota_and_no_more() {
    let place = place("enforce");
    let fill = || {
        let (_, printed) = place.call("envelope_open", &json!({"label": "fill"}));
        printed["error"]["code"].as_str().map(str::to_owned)
    };
    let codes: Vec<Option<String>> = (0..8).map(|_| fill()).collect();
    assert_eq!(codes.first(), Some(&Some("FILLED".to_owned())));
    assert_eq!(codes.last(), Some(&Some("FULL".to_owned())));
    let used = place.sql("SELECT CAST(sum(bytes) AS TEXT) FROM core_policy_memory_use");
    let rows = place.sql("SELECT CAST(sum(bytes) AS TEXT) FROM core_policy_memory");
    assert_eq!(used, rows);
    assert!(used[0].parse::<u64>().unwrap() <= 1 << 20, "{used:?}");
}

#[test]
fn an_answer_holds_though_the_text_of_its_question_changed() {
    let place = place("enforce");
    let mut wire = place.wire(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let mut call = |id: u32, label: &str, allow: bool| -> Value {
        let question = wire.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "envelope_open", "arguments": {"label": label}}}));
        assert_eq!(question["method"], "elicitation/create", "{question:#}");
        let answer = json!({"action": "accept", "content": {"allow": allow}});
        wire.ask(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))["result"].clone()
    };
    assert_eq!(call(1, "ask", true)["isError"], json!(false));
    let refused = call(2, "ask", false);
    assert_eq!(refused["structuredContent"]["error"]["code"], "NOT_ALLOWED");
    assert_eq!(call(3, "propose", true)["isError"], json!(false));
    drop(wire);
    let labels = place.sql("SELECT label FROM core_envelopes ORDER BY opened_at");
    assert_eq!(labels, ["ask", "agreed"]);
}
