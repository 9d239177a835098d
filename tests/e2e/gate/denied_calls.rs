//! Rows of denied calls: the call is recorded, and none of its content.
#![allow(clippy::disallowed_methods, reason = "tests look at files")]

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Place, Session};

const KEEPS_ALL: &str = "[artifacts]\nenabled = true\narguments = true\nresults = true\n";

/// A secret, assembled at run time so that no source file contains it.
fn token() -> String {
    ["ghp", "0123456789abcdefghijklmnopqrstuvwxyz"].join("_")
}

fn has(folder: &Path, words: &str) -> bool {
    std::fs::read_dir(folder)
        .unwrap()
        .map(Result::unwrap)
        .any(|entry| {
            if entry.file_type().unwrap().is_dir() {
                return has(&entry.path(), words);
            }
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes
                .windows(words.len())
                .any(|window| window == words.as_bytes())
        })
}

async fn refuse(session: &Session, tool: &str, arguments: Value, code: &str) {
    let refused = session.refused(tool, arguments).await;
    assert_eq!(refused["code"], code, "{refused:#}");
}

fn task(actor: &str) -> Value {
    json!({"title": "T", "spec_markdown": "S", "workspace": "w", "actor": actor, "actor_role": "orchestrator",
        "initial_phase": "spec_review"})
}

#[tokio::test]
async fn nothing_that_a_denied_call_says_stays() {
    let config = format!("{KEEPS_ALL}[policies.secret-scan]\nlimits.time_ms = 10000\n");
    let place = Place::with(&config);
    let session = place.serve(&["--tier", "full"]).await;
    let token = token();
    // A policy denies it.
    refuse(&session, "task_create", task(&token), "SECRET_IN_ARGUMENTS").await;
    // It never got to a policy.
    let mut odd = task(&token);
    odd["priority"] = json!({"no": token});
    odd["title"] = json!(7);
    refuse(&session, "task_create", odd, "INVALID_ARGUMENTS").await;
    let operations = json!([{"tool": "no_such", "args": {"note": token}}]);
    let batch = json!({"workspace": "w", "operations": operations});
    refuse(&session, "tasks_batch", batch, "MEMBERS_REFUSED").await;
    // What names an envelope is no id.
    let mut elsewhere = task("ada");
    elsewhere["envelope_id"] = json!(token);
    refuse(&session, "task_create", elsewhere, "UNKNOWN_ENVELOPE").await;
    session.ok("task_create", task("ada")).await;
    session.close().await;
    assert!(!has(&place.data(), &token), "the token is on disk");
    assert_eq!(
        place.sql("SELECT coalesce(actor, '-') || ' ' || coalesce(envelope_id, '-') FROM core_operations ORDER BY seq"),
        ["- -", "- -", "- -", "- -", "claimed:ada -"]
    );
    assert_eq!(place.sql("SELECT DISTINCT op_id FROM core_artifacts").len(), 1);
}

#[tokio::test]
async fn nothing_stays_of_a_call_that_nobody_agreed_to() {
    let config = format!(
        "{KEEPS_ALL}[policies.first-ask]\nsource = \"builtin:cel\"\nlimits.time_ms = 10000\ntools = [\"task_create\"]\n\
         config = {{ when = \"true\", then = \"ask\", code = \"ASK_FIRST\", message = \"Create it?\" }}\n"
    );
    let place = Place::with(&config);
    let session = place.serve(&["--tier", "full"]).await;
    refuse(&session, "task_create", task("words-of-somebody"), "ASK_FIRST").await;
    session.close().await;
    assert!(!has(&place.data(), "words-of-somebody"));
    assert_eq!(
        place.sql("SELECT coalesce(actor, '-') FROM core_operations"),
        ["-"]
    );
}
