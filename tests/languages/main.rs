//! Components in JavaScript, Python and C in the real host. `cargo xtask languages` builds them and runs these tests.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

#[allow(dead_code, reason = "the end-to-end tests use all of it")]
#[path = "../e2e/harness.rs"]
mod harness;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use harness::Place;

/// Languages of the components.
const LANGUAGES: [&str; 2] = ["javascript", "python"];
/// Number of calls of which the median is reported.
const CALLS: usize = 101;

fn component(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/languages");
    let path = folder.join(format!("{name}.wasm"));
    assert!(
        path.exists(),
        "{} is missing; run `cargo xtask languages`",
        path.display()
    );
    path
}

/// A configuration with both packs, and the memory limit of a policy.
fn greeters() -> String {
    let packs = LANGUAGES.map(|language| {
        let source = component(&format!("greeter-{language}"));
        format!("[packs.greeter-{language}]\nsource = {source:?}\nlimits.memory_mib = 16\n")
    });
    packs.concat()
}

/// Median duration of a tool's calls in the ledger, in milliseconds.
fn middle(place: &Place, tool: &str) -> f64 {
    let sql = format!(
        "SELECT cast(duration_ms AS TEXT) FROM core_operations WHERE tool = '{tool}' ORDER BY duration_ms"
    );
    let mut durations: Vec<f64> = place.sql(&sql).iter().map(|text| text.parse().unwrap()).collect();
    durations.sort_by(f64::total_cmp);
    durations[durations.len() / 2]
}

/// A configuration with the same policy in three languages, each for every call.
fn judges() -> String {
    let judge = |name: &str, source: String| {
        format!("[policies.{name}]\nsource = {source:?}\nlimits.time_ms = 10000\n")
    };
    let rust = judge("rust", "builtin:require-actor".to_owned());
    let others = LANGUAGES.map(|language| {
        let file = component(&format!("require-actor-{language}"));
        judge(language, file.display().to_string())
    });
    rust + &others.concat()
}

#[tokio::test]
async fn policies_judge_in_every_language() {
    let place = Place::with(&judges());
    let listed = place.run(&["policies", "list"]);
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let session = place.serve(&[]).await;
    let refusal = session.refused("envelope_open", json!({})).await;
    let told = refusal["blockers"].as_array().unwrap().iter();
    let told: Vec<&str> = told.map(|blocker| blocker["message"].as_str().unwrap()).collect();
    for policy in ["rust", "javascript", "python"] {
        let message = format!("policy `{policy}`: the call has no actor");
        assert!(told.iter().any(|told| told.starts_with(&message)), "{told:#?}");
    }
    assert_eq!(refusal["code"], "ACTOR_REQUIRED");
    for _ in 0..CALLS {
        session.ok("task_list", json!({})).await;
    }
    session.close().await;
    // A note in settings that none of them takes is told by each in its own words.
    for language in LANGUAGES {
        let mut settings = judges();
        settings.push_str(&format!("[policies.{language}.config]\ncolour = 1\n"));
        std::fs::write(place.config(), settings).unwrap();
        let listed = place.run(&["policies", "list"]);
        let said = String::from_utf8_lossy(&listed.stderr).into_owned();
        assert!(said.contains(&format!("[policies.{language}.config]")), "{said}");
    }
    let mut costs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for verdicts in place.sql("SELECT verdicts FROM core_operations WHERE tool = 'task_list'") {
        let verdicts: Vec<Value> = serde_json::from_str(&verdicts).unwrap();
        for verdict in verdicts {
            assert_eq!(verdict["verdict"], "pass");
            let name = verdict["policy"].as_str().unwrap().to_owned();
            costs
                .entry(name)
                .or_default()
                .push(verdict["us"].as_u64().unwrap());
        }
    }
    assert_eq!(costs.len(), 3, "{costs:?}");
    for (policy, mut costs) in costs {
        costs.sort_unstable();
        let middle = costs[costs.len() / 2];
        writeln!(std::io::stderr(), "{policy}: {middle} µs a judgement").unwrap();
    }
}

#[tokio::test]
async fn packs_answer_and_refuse_in_every_language() {
    let place = Place::with(&greeters());
    // Compiles them, which takes longer than a client waits.
    let listed = place.run(&["packs", "list"]);
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let session = place.serve(&[]).await;
    for language in LANGUAGES {
        let tool = format!("{language}_greet");
        let reply = session.ok(&tool, json!({"name": "Ada ❤"})).await;
        assert_eq!(reply, json!({"text": "Hello, Ada ❤"}));
        let refusal = session.refused(&tool, json!({"name": " "})).await;
        assert_eq!(
            (&refusal["code"], &refusal["message"]),
            (&json!("NAMELESS"), &json!("the name is empty"))
        );
        let refusal = session.refused(&tool, json!({"nam": 1})).await;
        assert_eq!(refusal["code"], "INVALID_ARGUMENTS");
        for _ in 0..CALLS {
            session.ok(&tool, json!({"name": "Ada"})).await;
        }
    }
    let reply = session.ok("python_reach", json!({})).await;
    assert_eq!(reply, json!({"reached": []}));
    session.close().await;
    for language in LANGUAGES {
        let cost = middle(&place, &format!("{language}_greet"));
        writeln!(std::io::stderr(), "{language}: {cost:.2} ms a call").unwrap();
    }
}

/// Calls of tools and of the policy, which are in C. `cargo xtask languages` leaves tests of this name out where there is no compiler.
#[tokio::test]
async fn packs_answer_and_policies_judge_in_c() {
    let config = format!(
        "[packs.words]\nsource = {:?}\nlimits.memory_mib = 1\n[policies.c]\nsource = {:?}\nlimits.memory_mib = 1\n",
        component("words-c"),
        component("require-actor-c")
    );
    let place = Place::with(&config);
    let session = place.serve(&[]).await;
    let text = json!({"text": "  one \"two\"\n drei\u{301} \u{1f600} "});
    assert_eq!(session.ok("words_count", text).await, json!({"words": 4}));
    let refusal = session.refused("words_count", json!({"text": " "})).await;
    assert_eq!(
        (&refusal["code"], &refusal["message"]),
        (&json!("NO_WORDS"), &json!("the text has no words"))
    );
    let refusal = session.refused("words_keep", json!({"word": "toll"})).await;
    assert_eq!(refusal["code"], "ACTOR_REQUIRED");
    let envelope = session.refused("envelope_open", json!({"actor": " "})).await;
    assert_eq!(envelope["code"], "ACTOR_REQUIRED");
    session.ok("envelope_open", json!({"actor": "\u{e4}da"})).await;
    session.close().await;
    let place = Place::with(config.split("[policies").next().unwrap());
    let session = place.serve(&[]).await;
    for (word, kept) in [("toll", 1), ("\u{e4}\"\\\n\u{1f600}", 2), ("toll", 2)] {
        let reply = session.ok("words_keep", json!({"word": word})).await;
        assert_eq!(reply, json!({"kept": kept}));
    }
    session.close().await;
    assert_eq!(
        place.sql("SELECT word FROM words_kept ORDER BY word DESC"),
        ["\u{e4}\"\\\n\u{1f600}", "toll"]
    );
    // Settings that are not there are refused in the component's own words.
    std::fs::write(
        place.config(),
        format!("{config}[policies.c.config]\n\"a b\" = {{ c = [1] }}\nd = 1\n"),
    )
    .unwrap();
    let listed = place.run(&["policies", "list"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(
        said.contains("there is no such setting") && said.contains("[policies.c.config]"),
        "{said}"
    );
}
