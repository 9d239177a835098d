//! Artifacts that components keep with their operations: limits, access and removal.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};

use crate::harness::{Place, Session, guest};

fn place(artifacts: &str) -> Place {
    Place::with(&format!(
        "[artifacts]\n{artifacts}\n[packs.artifact-limits]\nsource = {:?}\ngrants = {{ artifacts = true }}\n",
        guest("artifact-limits")
    ))
}

/// Keeps artifacts, and returns the result for each.
async fn keep(session: &Session, tool: &str, arguments: Value) -> Vec<String> {
    let done = session.ok(tool, arguments).await;
    let said = done["result"].as_str().unwrap();
    said.lines().map(str::to_owned).collect()
}

fn rows(place: &Place) -> Vec<String> {
    place.sql("SELECT kind || ' ' || size FROM core_artifacts ORDER BY size")
}

fn files(place: &Place) -> usize {
    place.contents().len()
}

#[tokio::test]
async fn content_is_kept_with_the_row_and_read_back() {
    let place = place("enabled = true");
    let session = place.serve(&["--tier", "full"]).await;
    let logs = keep(&session, "artifact_limits_write", json!({"sizes": [3, 4]})).await;
    let diffs = keep(
        &session,
        "artifact_limits_run",
        json!({"sizes": [5], "diff": true}),
    )
    .await;
    assert_eq!(rows(&place), ["log 3", "log 4", "diff 5"]);
    assert_eq!(files(&place), 3);
    let found = session.ok("artifact_get", json!({"artifact_id": logs[1]})).await;
    assert_eq!(
        (&found["content"], &found["kind"]),
        (&json!("bbbb"), &json!("log"))
    );
    let found = session.ok("artifact_get", json!({"artifact_id": diffs[0]})).await;
    assert_eq!(found["kind"], "diff");
    let named = place.sql("SELECT artifact_ids FROM core_operations WHERE tool = 'artifact_limits_write'");
    assert_eq!(named, [json!(logs).to_string()]);
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn a_call_that_is_taken_back_keeps_nothing() {
    let place = place("enabled = true");
    let session = place.serve(&["--tier", "full"]).await;
    for ending in ["fail", "trap"] {
        session
            .refused("artifact_limits_write", json!({"sizes": [3, 4], ending: true}))
            .await;
    }
    assert_eq!((rows(&place).len(), files(&place)), (0, 0));
    assert_eq!(
        place.sql("SELECT count(*) FROM core_operations WHERE artifact_ids IS NULL"),
        ["2"]
    );
    // What a call that runs things did stays, and so does what it kept.
    session
        .refused("artifact_limits_run", json!({"sizes": [3], "fail": true}))
        .await;
    assert_eq!((rows(&place).len(), files(&place)), (1, 1));
    session.close().await;
}

#[tokio::test]
async fn what_a_call_kept_goes_with_its_result() {
    let place = place(
        "enabled = true\n[policies.secret-scan]\nlimits.time_ms = 10000\nphase = \"response\"\n\
         config = { patterns = [\"art_[0-9a-z]+\"] }\ntools = [\"artifact_limits_*\"]",
    );
    let session = place.serve(&["--tier", "full"]).await;
    for tool in ["artifact_limits_write", "artifact_limits_run"] {
        let refused = session.refused(tool, json!({"sizes": [3, 4]})).await;
        assert_eq!(refused["code"], "SECRET_IN_RESULT", "{tool}: {refused:#}");
    }
    session.close().await;
    assert_eq!((rows(&place).len(), files(&place)), (0, 0));
    assert_eq!(
        place.sql("SELECT count(*) FROM core_operations WHERE artifact_ids IS NULL"),
        ["2"]
    );
}

#[tokio::test]
async fn too_large_too_much_and_too_many_are_refused_and_the_rest_is_kept() {
    let place = place("enabled = true\nmax_artifact_mib = 2");
    let session = place.serve(&["--tier", "full"]).await;
    let mib = 1 << 20;
    let said = keep(
        &session,
        "artifact_limits_write",
        json!({"sizes": [mib + 1, mib, 9]}),
    )
    .await;
    assert_eq!(
        said[0],
        "artifact is too large: 1048577 bytes; at most 1048576 are allowed"
    );
    assert_eq!(rows(&place), ["log 9", "log 1048576"]);
    let said = keep(&session, "artifact_limits_write", json!({"sizes": vec![mib; 9]})).await;
    let why =
        "artifact is too large: 9437184 bytes in all artifacts of the call; at most 8388608 are allowed";
    assert_eq!(said[8], why);
    assert_eq!(rows(&place).len(), 10);
    let said = keep(&session, "artifact_limits_write", json!({"sizes": vec![1; 33]})).await;
    assert_eq!(
        said[32],
        "the call already has 32 artifacts; at most 32 are allowed"
    );
    assert_eq!(rows(&place).len(), 42);
    let said = keep(&session, "artifact_limits_read", json!({"sizes": [1]})).await;
    assert_eq!(said, ["this tool is read-only"]);
    // The host is as well as before.
    assert!(keep(&session, "artifact_limits_write", json!({"sizes": [1]})).await[0].starts_with("art_"));
    session.close().await;
}

#[tokio::test]
async fn nobody_reaches_what_others_keep() {
    let place = place("enabled = true\narguments = true");
    let session = place.serve(&["--tier", "full"]).await;
    session
        .ok(
            "tasks_create",
            json!({"workspace": "w", "kind": "plan", "title": "private"}),
        )
        .await;
    let before = place.sql("SELECT id || hash || op_id || expires_at FROM core_artifacts ORDER BY id");
    assert_eq!(before.len(), 1);
    for sql in [
        "SELECT id FROM core_artifacts",
        "UPDATE core_artifacts SET expires_at = '2000'",
        "DELETE FROM core_artifacts",
        "SELECT hash FROM core_contents",
        "DELETE FROM core_content_puts",
        "INSERT INTO core_artifacts SELECT id || 'x', hash, kind, size, total_size, op_id, created_at, expires_at, collected FROM core_artifacts",
    ] {
        let said = keep(&session, "artifact_limits_sql", json!({"sql": sql}))
            .await
            .join(" ");
        assert!(said.contains("no such table or no access"), "{sql}: {said}");
    }
    let after = place.sql("SELECT id || hash || op_id || expires_at FROM core_artifacts ORDER BY id LIMIT 1");
    assert_eq!(after, before);
    session.close().await;
}

#[tokio::test]
async fn logs_are_kept_only_if_the_configuration_enables_it() {
    let place = place("enabled = true\nlogs = false");
    let session = place.serve(&["--tier", "full"]).await;
    let said = keep(&session, "artifact_limits_write", json!({"sizes": [1]})).await;
    assert_eq!(said, ["nothing"]);
    session.close().await;

    let off = self::place("enabled = false");
    let session = off.serve(&["--tier", "full"]).await;
    let said = keep(&session, "artifact_limits_write", json!({"sizes": [1]})).await;
    assert_eq!(said, ["nothing"]);
    session.close().await;
    assert!(!off.data().join("artifacts").exists());
}
