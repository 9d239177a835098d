//! Memory of policies: committed with the row of the call whatever becomes of the call, as in the SDK's native judge.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};
use tollgate_sdk::Effect;
use tollgate_sdk::native::Judge;
use tollgate_sdk::policy::{Outcome, Request, Review, Verdict};

use crate::harness::{Place, Session, guest, hang_up, until};

#[path = "../../guests/src/policy_memory.rs"]
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
    if message.contains("reports that it cannot judge") || message.contains("so the call was refused") {
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

/// The policy before the tools that match a pattern, with more of the configuration.
fn before(tools: &str, mode: &str, more: &str) -> String {
    let source = guest("policy-memory").display().to_string();
    format!(
        "{more}[policies.memory]\nsource = {source:?}\nmode = {mode:?}\ntools = [{tools:?}]\nlimits = {{ time_ms = 10000 }}\n"
    )
}

/// Keys and numbers of what is remembered in enforce mode.
fn remembered(place: &Place) -> Vec<String> {
    place.sql("SELECT key || ' ' || number FROM core_policy_memory WHERE audit = 0 ORDER BY key")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_add_to_one_memory() {
    let place = Place::with(&before("envelope_*", "enforce", ""));
    let (one, other) = (place.serve(&[]).await, place.serve(&[]).await);
    let calls = async |session: &Session| {
        for _ in 0..20 {
            session.ok("envelope_open", json!({"label": "plain"})).await;
            session.ok("envelope_list", json!({})).await;
        }
    };
    tokio::join!(calls(&one), calls(&other));
    one.close().await;
    other.close().await;
    assert_eq!(
        remembered(&place),
        [
            "after/envelope_list 40",
            "after/envelope_open 40",
            "before/envelope_list 40",
            "before/envelope_open 40"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_forgets_nothing() {
    let place = Place::with(&before("envelope_*", "enforce", ""));
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    session.refused("envelope_open", json!({"label": "deny"})).await;
    std::fs::write(place.config(), before("envelope_*", "audit", "")).unwrap();
    // Without it, no server takes over a configuration that protects less.
    hang_up(server.pid());
    // Audit mode lets the call through as soon as it holds, with a memory of its own.
    let is_denied = async || {
        let result = session.call_raw("envelope_open", json!({"label": "deny"})).await;
        result.is_error == Some(true)
    };
    until(async || !is_denied().await).await;
    let before_reload = remembered(&place);
    assert!(
        before_reload.iter().any(|line| line.starts_with("denied ")),
        "{before_reload:?}"
    );
    session.ok("envelope_open", json!({"label": "plain"})).await;
    assert_eq!(remembered(&place), before_reload);
    std::fs::write(place.config(), before("envelope_*", "enforce", "")).unwrap();
    until(async || is_denied().await).await;
    session.close().await;
    let count = |lines: &[String]| -> u32 {
        let line = lines.iter().find_map(|line| line.strip_prefix("denied "));
        line.unwrap().parse().unwrap()
    };
    assert_eq!(count(&remembered(&place)), count(&before_reload) + 1);
}

#[tokio::test]
async fn each_call_of_a_batch_is_remembered_and_a_refused_batch_too() {
    let place = Place::with(&before("tasks_*", "enforce", ""));
    let session = place.serve(&[]).await;
    let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
    let bootstrap = json!({"tool": "tasks_bootstrap", "args": {"plan_title": "P", "task_title": "T",
        "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["cargo test"]}]}});
    let batch = |operations: Value| json!({"workspace": "w", "atomic": true, "operations": operations});
    session
        .ok("tasks_batch", batch(json!([bootstrap, note, note])))
        .await;
    assert!(
        remembered(&place).contains(&"before/tasks_note 2".to_owned()),
        "{:?}",
        remembered(&place)
    );
    let missing = json!({"tool": "tasks_note", "args": {"task": "TASK-009", "note": "n"}});
    session
        .refused("tasks_batch", batch(json!([note, missing])))
        .await;
    session.close().await;
    let kept = remembered(&place);
    for line in [
        "before/tasks_note 4",
        "before/tasks_bootstrap 1",
        "before/tasks_batch 2",
    ] {
        assert!(kept.contains(&line.to_owned()), "{line}: {kept:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_remembered() {
    let pack = format!(
        "[workspaces.main]\npath = \"main\"\n[packs.workspace-access]\nsource = {:?}\ngrants = {{ workspaces = [\"*\"], process = [\"*\"] }}\n",
        guest("workspace-access")
    );
    let place = Place::with(&before("workspace_access_run", "enforce", &pack));
    std::fs::create_dir(place.path().join("main")).unwrap();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    let arguments = json!({"program": "sh", "arguments": ["-c", "echo x >started; sleep 1000"]});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "workspace_access_run", "arguments": arguments}});
    wire.send(call.to_string().as_bytes());
    until(async || place.path().join("main/started").exists()).await;
    let cancelled = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    wire.send(cancelled);
    until(async || place.ledger() == ["workspace_access_run run CANCELLED"]).await;
    wire.close_stdin();
    assert!(wire.wait().success());
    assert_eq!(remembered(&place), ["before/workspace_access_run 1"]);
}

#[test]
fn stats_count_verdicts_by_policy_and_mode() {
    let place = place("enforce");
    on_a_host(&place);
    let output = place.run(&["--json", "stats"]);
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let policy = &stats["policies"][0];
    assert_eq!(
        (&policy["policy"], &policy["mode"], &policy["failed"]),
        (&json!("memory"), &json!("enforce"), &json!(1)),
        "{stats:#}"
    );
    // Three denials of calls, two of results.
    assert_eq!(policy["denied"], json!(5), "{stats:#}");
    let said = String::from_utf8_lossy(&place.run(&["stats"]).stdout).into_owned();
    assert!(said.contains("POLICY") && said.contains("memory"), "{said}");
}
