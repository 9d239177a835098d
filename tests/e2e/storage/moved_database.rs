//! A database that somebody moves away while a host runs.
#![allow(clippy::disallowed_methods, reason = "the tests move files")]

use serde_json::json;

use crate::harness::Place;

#[tokio::test]
async fn no_write_is_acknowledged_after_the_database_was_moved_away() {
    let place = Place::in_file("");
    let session = place.serve(&[]).await;
    session.ok("envelope_open", json!({"label": "before"})).await;
    let database = place.data().join("tollgate.db");
    let aside = place.data().join("aside.db");
    std::fs::rename(&database, &aside).unwrap();
    let refusal = session.refused("envelope_open", json!({"label": "lost"})).await;
    assert_eq!(refusal["code"], "STORAGE_MOVED", "{refusal:#}");
    // No other host begins an empty one meanwhile.
    let other = place.run(&["call", "envelope_list", "{}"]);
    assert!(!other.status.success());
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(said.contains("tollgate.db is missing from"), "{said}");
    assert!(!database.exists());
    std::fs::rename(&aside, &database).unwrap();
    session.ok("envelope_open", json!({"label": "after"})).await;
    session.close().await;
    let labels = place.sql("SELECT label FROM core_envelopes ORDER BY opened_at");
    assert_eq!(labels, ["before", "after"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}
