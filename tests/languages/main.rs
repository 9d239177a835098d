//! Components in JavaScript and Python in the real host. `cargo xtask languages` makes them and runs this.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

#[allow(dead_code, reason = "the end-to-end tests use all of it")]
#[path = "../e2e/harness.rs"]
mod harness;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use harness::Place;

/// Languages that components are made of here.
const LANGUAGES: [&str; 2] = ["javascript", "python"];
/// Calls whose middle one is told.
const CALLS: usize = 101;

fn component(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components/languages");
    let path = folder.join(format!("{name}.wasm"));
    assert!(
        path.exists(),
        "{} is missing; run `cargo xtask languages`",
        path.display()
    );
    path
}

/// A configuration with both packs, in as little memory as a policy gets.
fn greeters() -> String {
    let packs = LANGUAGES.map(|language| {
        let source = component(&format!("greeter-{language}"));
        format!("[packs.greeter-{language}]\nsource = {source:?}\nlimits.memory_mib = 16\n")
    });
    packs.concat()
}

/// How long the middle one of some calls took, in milliseconds by the ledger.
fn middle(place: &Place, tool: &str) -> f64 {
    let sql = format!(
        "SELECT cast(duration_ms AS TEXT) FROM core_operations WHERE tool = '{tool}' ORDER BY duration_ms"
    );
    let mut durations: Vec<f64> = place.sql(&sql).iter().map(|text| text.parse().unwrap()).collect();
    durations.sort_by(f64::total_cmp);
    durations[durations.len() / 2]
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
