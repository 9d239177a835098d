//! Configurations that are removed, emptied, or read during a write: their protections of calls remain in force.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::path::Path;

use serde_json::json;

use crate::harness::{HttpServer, Place, Session, hang_up, until};

/// A configuration with read-only mode, a policy that denies `task_get`, and a policy in audit mode.
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
        ("has disappeared", &|| remove(&config)),
        ("is empty", &|| write(&place, "")),
        ("is empty", &|| write(&place, " \n\n")),
        ("no longer a file", &|| {
            remove(&config);
            std::fs::create_dir(&config).unwrap();
        }),
        ("has disappeared", &|| {
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
        ("policies.closed.mode = \"enforce\"", &|| {
            write(&place, &without_mode)
        }),
        ("policies.closed.fail_open = false", &|| {
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
async fn a_command_or_a_signal_of_the_operator_removes_policies() {
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
    until(async || server.log().contains("has disappeared")).await;
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
            said(&refused).contains("policies closed, nights, which an earlier run applied"),
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

/// Runs a command with another environment and in another directory.
fn elsewhere(
    place: &Place,
    arguments: &[&str],
    set: &[(&str, &str)],
    unset: &[&str],
    cwd: &Path,
) -> std::process::Output {
    // Not as `Place` runs it, which names its own configuration.
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .arg("--data-dir")
        .arg(place.data())
        .args(arguments)
        .envs(set.iter().copied())
        .current_dir(cwd);
    for name in unset {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[test]
fn no_other_configuration_on_a_data_directory_protects_less() {
    let place = Place::with(WHOLE);
    drop(place.serve_http(&[]));
    let at = |name: &str| place.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    std::fs::write(at("weak.toml"), "[policies.closed]\nsource = \"builtin:cel\"\nconfig = { when = \"true\", code = \"C\", message = \"no\" }\n").unwrap();
    std::fs::write(at("empty.toml"), "").unwrap();
    // All of the policies, and no more that protects.
    std::fs::write(at("half.toml"), WHOLE.replace("[server]\nread_only = true\n", "")).unwrap();
    std::fs::create_dir(at("other")).unwrap();
    std::os::unix::fs::symlink(at("empty.toml"), at("link.toml")).unwrap();
    let relative = ["../empty.toml".to_owned(), "./../other/../weak.toml".to_owned()];
    // All keys, saying less.
    std::fs::write(at("other-words.toml"), WHOLE.replacen("\"true\"", "\"false\"", 1)).unwrap();
    std::fs::write(
        at("writing.toml"),
        WHOLE.replace("read_only = true", "read_only = false"),
    )
    .unwrap();
    let named = [
        "other-words.toml",
        "writing.toml",
        "weak.toml",
        "empty.toml",
        "half.toml",
        "link.toml",
        "gone.toml",
    ]
    .map(text);
    let mut configs: Vec<&str> = relative.iter().chain(&named).map(String::as_str).collect();
    configs.push("/dev/null");
    for config in configs {
        for command in [
            &["serve", "--http", "127.0.0.1:0"][..],
            &["call", "task_get", "{}"],
        ] {
            let set = [("TOLLGATE_CONFIG", config)];
            let refused = elsewhere(&place, command, &set, &[], &at("other"));
            let said = said(&refused);
            assert_eq!(refused.status.code(), Some(2), "{config}: {said}");
            assert!(
                said.contains("policies accept --missing") || config.ends_with("gone.toml"),
                "{config}: {said}"
            );
        }
    }
    // The user's own file, which is not there.
    let home = at("other");
    let set = [
        ("HOME", home.to_str().unwrap()),
        ("XDG_CONFIG_HOME", home.to_str().unwrap()),
    ];
    let refused = elsewhere(&place, &["serve"], &set, &["TOLLGATE_CONFIG"], &home);
    assert!(
        said(&refused).contains("policies accept --missing"),
        "{}",
        said(&refused)
    );
    // Another spelling of the same file, and a copy of it, have everything.
    std::fs::copy(place.config(), at("copy.toml")).unwrap();
    std::os::unix::fs::symlink(place.config(), at("same.toml")).unwrap();
    for config in ["copy.toml", "same.toml"] {
        let done = elsewhere(
            &place,
            &["call", "task_get", "{}"],
            &[("TOLLGATE_CONFIG", &text(config))],
            &[],
            &home,
        );
        assert_eq!(done.status.code(), Some(1), "{config}: {}", said(&done));
    }
}

#[test]
fn a_link_or_another_spelling_does_not_hide_what_is_remembered() {
    let place = Place::with(WHOLE);
    drop(place.serve_http(&[]));
    std::fs::create_dir(place.path().join("sub")).unwrap();
    std::os::unix::fs::symlink(place.config(), place.path().join("link.toml")).unwrap();
    write(&place, "[server]\nread_only = true\n");
    for config in ["link.toml", "sub/../link.toml"] {
        let config = place.path().join(config);
        let set = [("TOLLGATE_CONFIG", config.to_str().unwrap())];
        let refused = elsewhere(&place, &["serve"], &set, &[], place.path());
        assert!(
            said(&refused).contains("no longer has the policies closed, nights"),
            "{}",
            said(&refused)
        );
    }
}

/// Whoever has a shell beside the server makes a copy of its file that lets everybody approve.
#[test]
fn no_other_configuration_names_other_approvers_or_has_other_limits() {
    let own = "[approvals]\napprovers = [\"token:linus\"]\n[envelope]\nrequire = \"writes\"\nceiling = { max_mutations = 5 }\n";
    let place = Place::with(own);
    drop(place.serve_http(&[]));
    for (strict, weak) in [
        ("token:linus", "local"),
        ("\"writes\"", "\"never\""),
        ("max_mutations = 5", "max_mutations = 500"),
    ] {
        let copy = place.path().join("copy.toml");
        std::fs::write(&copy, own.replace(strict, weak)).unwrap();
        let refused = elsewhere(
            &place,
            &["approvals", "allow", "apv_none"],
            &[("TOLLGATE_CONFIG", copy.to_str().unwrap())],
            &[],
            place.path(),
        );
        let said = said(&refused);
        assert_eq!(refused.status.code(), Some(2), "{weak}: {said}");
        assert!(said.contains("policies accept --missing"), "{weak}: {said}");
    }
}

#[test]
fn a_configuration_that_protects_less_is_accepted_by_a_command() {
    let place = Place::with(WHOLE);
    drop(place.serve_http(&[]));
    let other = place.path().join("other.toml");
    std::fs::write(&other, "").unwrap();
    let run = |arguments: &[&str]| {
        elsewhere(
            &place,
            arguments,
            &[("TOLLGATE_CONFIG", other.to_str().unwrap())],
            &[],
            place.path(),
        )
    };
    let doctor = run(&["doctor"]);
    assert!(said(&doctor).contains("→ add these keys"), "{}", said(&doctor));
    let accepted = run(&["policies", "accept", "--missing"]);
    assert!(
        said(&accepted).contains("policies.closed, policies.nights, server.read_only"),
        "{}",
        said(&accepted)
    );
    assert_eq!(
        run(&["call", "task_get", "{}"]).status.code(),
        Some(1),
        "the tool itself refuses"
    );
    // The first one is what it was.
    assert!(
        said(&run(&["policies", "accept", "--missing"]))
            .contains("has all protections that other configurations set")
    );
    write(&place, "");
    let refused = place.run(&["serve"]);
    assert!(
        said(&refused).contains("policies closed, nights"),
        "{}",
        said(&refused)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leads_to_a_weaker_file_is_not_followed_by_a_server() {
    let place = Place::with("");
    let known = place.path().join("known.toml");
    std::fs::write(&known, "[server]\nread_only = true\n").unwrap();
    let whole = place.path().join("whole.toml");
    std::fs::write(&whole, WHOLE).unwrap();
    let follow = |file: &Path| {
        remove(&place.config());
        std::os::unix::fs::symlink(file, place.config()).unwrap();
    };
    // A file that servers know, and that never had the policies.
    follow(&known);
    drop(place.serve_http(&[]));
    follow(&whole);
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    let before = server.log().len();
    follow(&known);
    until(async || server.log()[before..].contains("no longer has policies.closed")).await;
    assert!(is_closed(&session).await);
}

/// The stored protections.
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
    assert!(first.contains("read_only") && first.contains("closed"), "{first}");
    // What is gone is remembered, though a start with it gone is only warned of.
    let without = WHOLE.replace("read_only = true\n", "");
    assert!(start(&without).contains("read_only"));
    // What is new is remembered beside it.
    let more = format!("{without}[policies.more]\nsource = \"builtin:secret-scan\"\n");
    let both = start(&more);
    assert!(both.contains("read_only") && both.contains("more"), "{both}");
    // So the next start without it is none.
    write(&place, &without);
    let refused = place.run(&["serve"]);
    assert!(
        !refused.status.success() && said(&refused).contains("more"),
        "{}",
        said(&refused)
    );
}
