//! Configurations that vanish, are emptied, or are read while somebody writes them: what protects calls stays.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::path::Path;

use serde_json::json;

use crate::harness::{HttpServer, Place, Session, hang_up, until};

/// A policy that denies `task_get`, with time enough on a busy machine, and what else protects.
const WHOLE: &str = "[server]\nread_only = true\n[policies.closed]\nsource = \"builtin:cel\"\nlimits.time_ms = 10000\n\
                     tools = [\"task_get\"]\nconfig = { when = \"true\", code = \"CLOSED\", message = \"no\" }\n\
                     [policies.nights]\nsource = \"builtin:quiet-hours\"\nmode = \"audit\"\n\
                     config = { from = \"22:00\", to = \"07:00\" }\n";

fn write(place: &Place, config: &str) {
    std::fs::write(place.config(), config).unwrap();
}

async fn is_taken(server: &HttpServer) {
    let line = "tollgate_reloads_total{outcome=\"taken\"} 1\n";
    let look = async || {
        reqwest::get(server.at("/metrics"))
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    until(async || look().await.contains(line)).await;
}

async fn is_closed(session: &Session) -> bool {
    session.refused("task_get", json!({"task_id": "x"})).await["code"] == "CLOSED"
}

fn said(output: &std::process::Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_lost_keeps_its_policies() {
    let place = Place::with(WHOLE);
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    assert!(is_closed(&session).await);
    let config = place.config();
    let without_mode = WHOLE.replace("limits.time_ms", "mode = \"audit\"\nlimits.time_ms");
    let failing_open = WHOLE.replace("limits.time_ms", "fail_open = true\nlimits.time_ms");
    let losses: [(&str, &dyn Fn()); 10] = [
        ("was there and is not", &|| remove(&config)),
        ("is empty", &|| write(&place, "")),
        ("is empty", &|| write(&place, " \n\n")),
        ("not a file", &|| {
            remove(&config);
            std::fs::create_dir(&config).unwrap();
        }),
        ("was there and is not", &|| {
            remove(&config);
            std::os::unix::fs::symlink("/nowhere/at/all", &config).unwrap();
        }),
        ("problem", &|| {
            remove(&config);
            write(&place, &WHOLE[..WHOLE.find("builtin:cel").unwrap()]);
        }),
        ("policies.closed, policies.nights", &|| {
            write(&place, "[server]\nread_only = true\n")
        }),
        ("server.read_only", &|| {
            write(&place, &WHOLE.replace("read_only = true\n", ""))
        }),
        ("policies.closed mode enforce", &|| write(&place, &without_mode)),
        ("policies.closed fail_open false", &|| {
            write(&place, &failing_open)
        }),
    ];
    for (why, lose) in &losses {
        let before = server.log().len();
        lose();
        until(async || server.log()[before..].contains(why)).await;
        assert!(is_closed(&session).await, "{why}");
    }
    // Another process sees it as well.
    write(&place, "[server]\nread_only = true\n");
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(
        said(&doctor).contains("no longer has the policies closed, nights"),
        "{}",
        said(&doctor)
    );
    // Whole again, it is what it was, and taken.
    write(&place, &format!("{WHOLE}[packs.gsd]\nenabled = false\n"));
    is_taken(&server).await;
    assert!(is_closed(&session).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_it_takes_policies_away() {
    let place = Place::with(WHOLE);
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    // The command says what goes, and no more goes with it.
    let removed = place.run(&["policies", "remove", "nights"]);
    assert!(removed.status.success(), "{}", said(&removed));
    is_taken(&server).await;
    assert!(is_closed(&session).await);
    write(&place, "[server]\nread_only = true\n");
    hang_up(server.pid());
    until(async || !is_closed(&session).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_to_a_file_that_was_lost_takes_nothing_away() {
    let place = Place::with(WHOLE);
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    remove(&place.config());
    until(async || server.log().contains("was there and is not")).await;
    let added = place.run(&["policies", "add", "builtin:secret-scan"]);
    assert!(added.status.success(), "{}", said(&added));
    until(async || {
        server
            .log()
            .contains("no longer has policies.closed, policies.nights")
    })
    .await;
    assert!(is_closed(&session).await);
}

#[test]
fn a_server_does_not_begin_without_policies_that_judged_before() {
    let place = Place::with(WHOLE);
    drop(place.serve_http(&[]));
    for lost in ["", "[server]\nread_only = true\n"] {
        write(&place, lost);
        let refused = place.run(&["serve", "--http", "127.0.0.1:0"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            said(&refused).contains("policies closed, nights, which judged calls here"),
            "{}",
            said(&refused)
        );
    }
    for name in ["closed", "nights"] {
        let removed = place.run(&["policies", "remove", name]);
        assert!(removed.status.success(), "{}", said(&removed));
    }
    let none = place.run(&["policies", "remove", "nights"]);
    assert!(
        said(&none).contains("has no [policies.nights]"),
        "{}",
        said(&none)
    );
    drop(place.serve_http(&[]));
}

/// The protections that are remembered.
fn remembered(place: &Place) -> String {
    let records = std::fs::read_dir(place.data().join("protections")).unwrap();
    let mut text: Vec<String> = records
        .map(|record| std::fs::read_to_string(record.unwrap().path()).unwrap())
        .collect();
    text.sort();
    text.concat()
}

#[test]
fn a_start_remembers_what_is_new_and_forgets_nothing_that_is_gone() {
    let place = Place::with(WHOLE);
    let start = |config: &str| {
        write(&place, config);
        let mut server = place.wire(&[]);
        server.initialize("2025-11-25");
        drop(server);
        remembered(&place)
    };
    let first = start(WHOLE);
    assert!(
        first.contains("read_only") && first.contains("closed"),
        "{first}"
    );
    // What is gone is remembered, though a start with it gone is only warned of.
    let without = WHOLE.replace("read_only = true\n", "");
    assert!(start(&without).contains("read_only"));
    // What is new is remembered beside it.
    let more = format!("{without}[policies.more]\nsource = \"builtin:secret-scan\"\n");
    let both = start(&more);
    assert!(
        both.contains("read_only") && both.contains("more"),
        "{both}"
    );
    // So the next start without it is none.
    write(&place, &without);
    let refused = place.run(&["serve"]);
    assert!(
        !refused.status.success() && said(&refused).contains("more"),
        "{}",
        said(&refused)
    );
}
