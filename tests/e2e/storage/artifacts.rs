//! Artifacts: content that is kept for a while, and read back in slices.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};

const ALL: &str = "[artifacts]\nenabled = true\narguments = true\nresults = true\n";

fn task(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
           "actor": "ada", "actor_role": "orchestrator"})
}

/// The artifacts of the newest call of a tool, as the ledger names them.
async fn artifacts(session: &Session, tool: &str) -> Vec<String> {
    let mut ids = Vec::new();
    until(async || {
        let found = session
            .ok("ledger_query", json!({"tool": tool, "limit": 1}))
            .await;
        ids = found["operations"][0]["artifact_ids"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        !ids.is_empty()
    })
    .await;
    ids
}

#[tokio::test]
async fn arguments_and_results_are_kept_and_come_back_in_slices() {
    let place = Place::with(ALL);
    let session = place.serve(&["--tier", "full"]).await;
    let title = "é".repeat(60);
    let created = session.ok("task_create", task(&title)).await;
    let ids = artifacts(&session, "task_create").await;
    let mut kept = Vec::new();
    for id in &ids {
        let (mut content, mut offset) = (String::new(), json!(0));
        while !offset.is_null() {
            let slice = session
                .ok(
                    "artifact_get",
                    json!({"artifact_id": id, "offset": offset, "limit": 25}),
                )
                .await;
            assert_eq!(slice["encoding"], "text");
            content.push_str(slice["content"].as_str().unwrap());
            offset = slice["next_offset"].clone();
        }
        kept.push(serde_json::from_str::<Value>(&content).unwrap());
    }
    assert_eq!(kept, [task(&title), created]);
    session.refused("task_get", json!({"task_id": "tsk_none"})).await;
    let ids = artifacts(&session, "task_get").await;
    let error = session.ok("artifact_get", json!({"artifact_id": ids[1]})).await;
    assert!(error["content"].as_str().unwrap().contains("NOT_FOUND"));
    assert_eq!(error["kind"], "result");
    session.close().await;

    let folder = place.data().join("artifacts");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(
            entry.unwrap().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn what_is_gone_and_what_never_was_are_told_apart() {
    let place = Place::with(ALL);
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("T")).await;
    let ids = artifacts(&session, "task_create").await;
    let get = async |id: &str| session.refused("artifact_get", json!({"artifact_id": id})).await;
    assert_eq!(get("art_none").await["code"], "ARTIFACT_NOT_FOUND");
    // Content that is missing is as good as expired, and no harm to the ledger.
    let hash = &place.sql(&format!(
        "SELECT hash FROM core_artifacts WHERE id = '{}'",
        ids[0]
    ))[0];
    place.remove_content(hash);
    let refusal = get(&ids[0]).await;
    assert_eq!(refusal["code"], "ARTIFACT_EXPIRED");
    assert_eq!(&refusal["context"]["sha256"], hash);
    place.sql("UPDATE core_artifacts SET expires_at = '2020-01-01T00:00:00.000Z' RETURNING id");
    assert_eq!(get(&ids[1]).await["code"], "ARTIFACT_EXPIRED");
    let invalid = session
        .refused("artifact_get", json!({"artifact_id": ids[1], "limit": 0}))
        .await;
    assert_eq!(invalid["code"], "INVALID_ARGUMENTS");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn content_that_was_tampered_with_is_not_told() {
    let place = Place::with(ALL);
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("T")).await;
    let id = artifacts(&session, "task_create").await[0].clone();
    let hash = &place.sql(&format!("SELECT hash FROM core_artifacts WHERE id = '{id}'"))[0];
    place.change_content(hash);
    for offset in [0, 5] {
        let slice = json!({"artifact_id": id, "offset": offset});
        let refusal = session.refused("artifact_get", slice).await;
        assert_eq!(refusal["code"], "ARTIFACT_CHANGED", "{refusal:#}");
        assert_eq!(&refusal["context"]["sha256"], hash);
    }
    session.close().await;
}

#[tokio::test]
async fn a_host_takes_away_what_expired_even_when_the_store_is_off() {
    let place = Place::with(ALL);
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("one")).await;
    session.ok("task_create", task("other")).await;
    session.close().await;
    assert_eq!(place.contents().len(), 4);
    place.sql(
        "UPDATE core_artifacts SET expires_at = '2020-01-01T00:00:00.000Z'
         WHERE op_id = (SELECT min(op_id) FROM core_operations WHERE tool = 'task_create') RETURNING id",
    );
    fs::write(place.config(), "").unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    until(async || place.contents().len() == 2).await;
    // Rows that went before the ledger's own are forgotten with them.
    until(async || place.sql("SELECT count(*) FROM core_artifacts") == ["2"]).await;
    session.ok("task_create", task("third")).await;
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM core_artifacts"), ["2"]);
}

#[tokio::test]
async fn without_the_store_nothing_is_kept() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("T")).await;
    let refusal = session
        .refused("artifact_get", json!({"artifact_id": "art_1"}))
        .await;
    assert_eq!(refusal["code"], "ARTIFACT_NOT_FOUND");
    assert!(
        refusal["remediation"]
            .as_str()
            .unwrap()
            .contains("enabled = true")
    );
    session.close().await;
    assert!(!place.data().join("artifacts").exists());
}

/// A second host of the same data directory reads what the first one stored, through the database if that is on a server.
#[tokio::test]
async fn a_host_reads_what_another_one_stored() {
    let place = Place::with(ALL);
    let [one, other] = [
        place.serve(&["--tier", "full"]).await,
        place.serve(&["--tier", "full"]).await,
    ];
    let title = "large ".repeat(30_000);
    one.ok(
        "task_create",
        json!({"title": "T", "spec_markdown": title, "workspace": "w", "initial_phase": "spec_draft",
            "actor": "ada", "actor_role": "orchestrator"}),
    )
    .await;
    let id = &artifacts(&other, "task_create").await[0];
    let slice = json!({"artifact_id": id, "offset": 100_000, "limit": 60});
    let found = other.ok("artifact_get", slice).await;
    assert!(
        found["content"].as_str().unwrap().contains("large large"),
        "{found:#}"
    );
    if !place.is_in_file() {
        // Nothing is left in the directory of the host that stored it.
        let files = fs::read_dir(place.data().join("artifacts")).unwrap();
        assert_eq!(files.count(), 0);
    }
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn the_place_of_content_can_be_chosen_where_there_is_a_server() {
    let place = Place::with(&format!("{ALL}store = \"database\"\n"));
    if place.is_in_file() {
        let said = place.run(&["call", "task_list", "{}"]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.contains("artifacts.store is \"database\", but the database is a file"),
            "{said}"
        );
        return;
    }
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("one")).await;
    let in_rows = artifacts(&session, "task_create").await;
    session.close().await;
    let before = place.contents();
    assert!(!before.is_empty());
    fs::write(place.config(), format!("{ALL}store = \"files\"\n")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("other")).await;
    let in_files = artifacts(&session, "task_create").await;
    assert_eq!(place.contents(), before, "new content went to files");
    for id in in_rows.iter().chain(&in_files) {
        session.ok("artifact_get", json!({"artifact_id": id})).await;
    }
    session.close().await;
}
