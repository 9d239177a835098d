//! Closing an envelope as a success, depending on the current state of the work tree.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use serde_json::json;

use crate::envelopes::closing::{close, open, place, run};
use crate::envelopes::observed_edits::{git, write};
use crate::harness::until;

#[tokio::test]
async fn an_edit_that_was_taken_back_is_no_reason() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    write(&place, "value", "good");
    let id = open(&session, json!({"workspace": "shop"})).await;
    run(&session, "default", &id).await;
    write(&place, "value", "bad");
    session.ok("mutation_record", json!({"workspace": "shop"})).await;
    write(&place, "value", "good");
    assert_eq!(close(&session, &id).await.0, "");

    // The state in which it failed is back.
    write(&place, "value", "bad");
    let id = open(&session, json!({"workspace": "shop"})).await;
    run(&session, "default", &id).await;
    write(&place, "value", "good");
    run(&session, "default", &id).await;
    write(&place, "value", "bad");
    assert_eq!(
        close(&session, &id).await.0,
        "test default did not pass in its last run on the current state of the work tree of shop (#N): failed 1 of 1: \
         adds."
    );
    session.close().await;
}

#[tokio::test]
async fn files_that_a_test_writes_and_git_tracks_are_named() {
    let place = place();
    let lint = "date +%N > stamp; printf 'TAP version 13\\n1..1\\nok 1 - adds\\n'\n";
    write(&place, "lint.sh", lint);
    write(&place, "stamp", "0");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "stamp"]);
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"workspace": "shop"})).await;
    for _ in 0..2 {
        run(&session, "lint", &id).await;
    }
    assert_eq!(
        close(&session, &id).await.0,
        "files of shop changed while test lint ran (#N): stamp; let Git ignore files that tests write, or have the tests \
         restore them."
    );
    let id = open(&session, json!({"workspace": "shop"})).await;
    run(&session, "lint", &id).await;
    write(&place, "value", "good");
    let doubts = close(&session, &id).await.0;
    assert!(
        doubts.starts_with("test lint was not run again after "),
        "{doubts}"
    );
    session.close().await;
}

#[tokio::test]
async fn only_its_own_test_settles_a_run_whose_host_died() {
    let place = place();
    write(&place, "value", "good");
    write(&place, "lint.sh", "touch ../began; exec sleep 60\n");
    let session = place.serve(&["--tier", "full"]).await;
    let limits = json!({"max_duration_sec": 600});
    let id = open(
        &session,
        json!({"workspace": "shop", "detached": true, "limits": limits}),
    )
    .await;
    let began = place.path().join("began");
    let arguments = json!({"workspace": "shop", "test": "lint", "envelope_id": id});
    tokio::select! {
        _ = session.client().call_tool(crate::harness::params("test_run", arguments)) => panic!("the test sleeps"),
        () = until(async || began.exists()) => session.kill(),
    }
    let session = place.serve(&["--tier", "full"]).await;
    run(&session, "default", &id).await;
    assert_eq!(
        close(&session, &id).await.0,
        "the newest run of test lint in shop (#N) did not pass: outcome unknown."
    );
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}
