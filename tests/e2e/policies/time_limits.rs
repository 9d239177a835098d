//! Time limits of policies: their own work counts, longer input gets more time, and load by others does not count.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::harness::Place;

/// Text like a log, with words that begin like secrets.
fn text(bytes: usize) -> String {
    "password of nobody, sk- and AKIA but no key: tasks/01 done=true; ".repeat(bytes / 65 + 1)
}

#[test]
fn a_large_call_and_a_large_result_are_judged_within_the_default_time() {
    let place = Place::new();
    let large = text(900 << 10);
    let cases = format!(
        r#"
        [[case]]
        name = "a large call"
        tool = "task_create"
        arguments = {{ spec = {large:?} }}
        expect = "pass"

        [[case]]
        name = "a large result"
        tool = "task_get"
        phase = "after"
        result = {{ body = {{ spec = {large:?} }}, text = {large:?} }}
        expect = "pass"

        [[case]]
        name = "a secret at the end of a large result"
        tool = "task_get"
        phase = "after"
        result = {{ body = {{ spec = {large:?}, key = "AKIA0123456789ABCDEF" }} }}
        expect = {{ deny = "SECRET_IN_RESULT" }}
        "#
    );
    let file = place.path().join("large.toml");
    std::fs::write(&file, cases).unwrap();
    let tested = place.run(&[
        "policies",
        "test",
        "secret-scan",
        "--case",
        file.to_str().unwrap(),
    ]);
    let shown = String::from_utf8_lossy(&tested.stdout);
    let shown: String = shown.chars().take(2_000).collect();
    assert!(tested.status.success(), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_machine_makes_no_policy_fail() {
    let config = r#"
        [policies.require-actor]
        config = { effects = ["read", "write", "run"] }
        [policies.secret-scan]
        [policies.loop-breaker]
        config = { repeats = 0, turns = 50 }
    "#;
    let place = Place::with(config);
    let session = place.serve(&["--tier", "full"]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let busy: Vec<_> = (0..8 * cores)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        })
        .collect();
    let task = json!({"title": "T", "spec_markdown": "S", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "ada", "actor_role": "orchestrator"});
    let calls = (0..40).map(|_| session.call_raw("task_create", task.clone()));
    let results = futures::future::join_all(calls).await;
    stop.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    for result in results {
        assert_ne!(result.is_error, Some(true), "{result:?}");
    }
    session.close().await;
}
