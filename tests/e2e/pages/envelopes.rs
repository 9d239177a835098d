//! The session of docs/envelopes.md, run as it is written there.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::process::Command;

use serde_json::Value;

use crate::harness::{Place, until};

const PAGE: &str = include_str!("../../../docs/envelopes.md");

/// The text of the first block of a kind.
fn block(kind: &str) -> &'static str {
    let (_, rest) = PAGE
        .split_once(&format!("\n```{kind}\n"))
        .expect("the page has the block");
    rest.split_once("\n```").expect("the block ends").0
}

/// True if everything expected is there. Additional values are permitted.
fn holds(there: &Value, expected: &Value) -> bool {
    match (there, expected) {
        (Value::Object(there), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| there.get(name).is_some_and(|there| holds(there, expected))),
        (Value::Array(there), Value::Array(expected)) => {
            there.len() == expected.len()
                && there
                    .iter()
                    .zip(expected)
                    .all(|(there, expected)| holds(there, expected))
        }
        _ => there == expected,
    }
}

fn repository(place: &Place) {
    let shop = place.path().join("shop");
    std::fs::create_dir(&shop).unwrap();
    std::fs::write(
        shop.join("run-tests.sh"),
        "echo 'not ok 1 - parses'\necho 1..1\nexit 1\n",
    )
    .unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git").current_dir(&shop).args(arguments).status();
        assert!(status.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    let (name, email) = ("user.name=Ada", "user.email=ada@example.org");
    git(&["-c", name, "-c", email, "commit", "-qm", "first"]);
}

#[tokio::test]
async fn the_session_of_the_page_runs_into_each_limit() {
    let place = Place::with(block("toml shop"));
    repository(&place);
    let session = place.serve(&["--tier", "full"]).await;
    let mut ids: Vec<(String, String)> = Vec::new();
    let mut lines = block("session").lines();
    while let (Some(call), Some(reply)) = (lines.next(), lines.next()) {
        let known = |text: &str| {
            ids.iter()
                .fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
        };
        let (tool, arguments) = call.split_once(' ').unwrap();
        let arguments: Value = serde_json::from_str(&known(arguments)).unwrap();
        let mut expected: Value = serde_json::from_str(&known(reply.strip_prefix("→ ").unwrap())).unwrap();
        let name = expected.as_object_mut().unwrap().shift_remove("id");
        let mut there = Value::Null;
        // What only reads is read until it says so: time goes by between two lines of the page.
        until(async || {
            let result = session.call_raw(tool, arguments.clone()).await;
            there = result.structured_content.unwrap();
            !tool.ends_with("_get") || holds(&there, &expected)
        })
        .await;
        assert!(holds(&there, &expected), "{call}\n{expected:#}\n{there:#}");
        if let Some(Value::String(name)) = name {
            ids.push((name, there["id"].as_str().unwrap().to_owned()));
        }
    }
    assert_eq!(ids.len(), 2);
    session.close().await;
}
