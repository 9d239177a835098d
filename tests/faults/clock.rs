//! A wall clock that jumps: durations and deadlines use a clock that nobody can set.
#![allow(clippy::disallowed_methods, reason = "the test sets a clock of its own")]

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Place, guest};
use crate::load::{Load, consistent, texts};

/// Paths of libfaketime on common distributions.
const LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

fn library() -> PathBuf {
    let found = LIBRARIES.iter().map(Path::new).find(|path| path.exists());
    found
        .expect("the test needs libfaketime (Debian: apt-get install libfaketime)")
        .to_owned()
}

#[tokio::test]
async fn a_start_with_the_clock_ahead_removes_no_row_and_ends_no_envelope() {
    let place = Place::with("[ledger]\nretention_days = 1\n");
    let session = place.serve(&[]).await;
    let mut load = Load::default();
    load.create_many(&session, 3).await;
    session.close().await;
    let opened = place.run(&["envelopes", "open", "--for", "2h", "--label", "night"]);
    assert!(opened.status.success());
    let rows = place.ledger().len();
    let preload = format!("LD_PRELOAD={}", library().display());
    let ahead = ["env", &preload, "FAKETIME=+30d", "DONT_FAKE_MONOTONIC=1"];
    for _ in 0..2 {
        let session = place.serve_by(&ahead).await;
        load.create_many(&session, 1).await;
        session.close().await;
    }
    assert!(place.ledger().len() > rows);
    let database = place.data().join("tollgate.db");
    assert_eq!(
        texts(&database, "SELECT 1 FROM core_anchors"),
        Vec::<String>::new()
    );
    assert_eq!(
        texts(
            &database,
            "SELECT state FROM core_envelopes WHERE label = 'night'"
        ),
        ["OPEN"]
    );
    consistent(&database);
}

#[tokio::test]
async fn a_clock_that_jumps_a_year_changes_no_duration_and_no_deadline() {
    let call_limits = guest("call-limits");
    let place = Place::with(&format!(
        "[packs.call-limits]\nsource = {call_limits:?}\nlimits = {{ read_ms = 500 }}\n"
    ));
    let clock = place.path().join("clock");
    let set = |offset: &str| std::fs::write(&clock, offset).unwrap();
    set("+0");
    let environment = [
        format!("LD_PRELOAD={}", library().display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "DONT_FAKE_MONOTONIC=1".to_owned(),
    ];
    let mut starter = vec!["env"];
    starter.extend(environment.iter().map(String::as_str));
    let session = place.serve_by(&starter).await;
    let limits = json!({"max_duration_sec": 3600});
    let opened = session.ok("envelope_open", json!({"limits": limits})).await;
    let mut load = Load::default();
    for offset in ["+0", "+1y", "-1y", "+0"] {
        set(offset);
        load.create_many(&session, 2).await;
        let refusal = session.refused("call_limits_spin", json!({})).await;
        assert_eq!(refusal["code"], "DEADLINE_EXCEEDED", "{offset}: {refusal:#}");
    }
    let envelope = session
        .ok("envelope_get", json!({"envelope_id": opened["id"]}))
        .await;
    assert_eq!(envelope["state"], "OPEN", "{envelope:#}");
    session.close().await;
    load.check(&place.data());
    let database = place.data().join("tollgate.db");
    let years = texts(
        &database,
        "SELECT DISTINCT substr(timestamp, 1, 4) FROM core_operations ORDER BY 1",
    );
    assert_eq!(years.len(), 3, "the clock did jump: {years:?}");
    let odd = "SELECT op_id FROM core_operations WHERE duration_ms < 0 OR duration_ms > 600000";
    assert_eq!(texts(&database, odd), Vec::<String>::new());
    // And without any help, hosts go on after it.
    let session = place.serve(&[]).await;
    load.create_many(&session, 2).await;
    session.close().await;
    consistent(&database);
}
