//! Input and output of the command line: mistakes are reported, and failures never look like success.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{Place, Wire};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let place = Place::new();
    assert_eq!(place.call("envelope_open", &json!({})).0, 0);
    for arguments in [
        vec!["ledger", "export", "--sign"],
        vec!["ledger", "tail"],
        vec!["--json", "ledger", "query"],
        vec!["tools"],
        vec!["call", "task_list"],
        vec!["init", "--print"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(&arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            said(&output).contains("could not be written"),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new();
    let mut child = place
        .command(&["tools"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{}",
        said(&output)
    );
}

#[test]
fn a_time_that_nobody_can_read_finds_nothing_else() {
    let place = Place::new();
    assert_eq!(place.call("task_list", &json!({})).0, 0);
    for command in ["ledger query", "stats", "policies backtest cel"] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend(["--since", "yesterday"]);
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(said(&output).contains("24h"), "{}", said(&output));
    }
    assert_eq!(
        place.run(&["ledger", "query", "--until", "banana"]).status.code(),
        Some(2)
    );
    let lines = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    assert_eq!(lines(&["--json", "ledger", "query", "--since", "24h"]), 1);
    assert_eq!(lines(&["--json", "ledger", "query", "--until", "1h"]), 0);
    let (code, refused) = place.call(
        "ledger_query",
        &json!({ "since": "yesterday", "until": "banana" }),
    );
    assert_eq!(
        (code, &refused["error"]["code"]),
        (1, &json!("INVALID_ARGUMENTS"))
    );
    assert_eq!(refused["error"]["blockers"].as_array().unwrap().len(), 2);
    let (code, page) = place.call("ledger_query", &json!({ "since": "2h", "tool": "task_list" }));
    assert_eq!((code, page["operations"].as_array().unwrap().len()), (0, 1));
}

#[test]
fn mistakes_are_named_and_helped() {
    let place = Place::new();
    let file = place.path().join("notes.txt");
    std::fs::write(&file, "0123 just text\n").unwrap();
    let file = file.to_str().unwrap();
    assert!(place.run(&["init"]).status.code() == Some(2));
    for (arguments, help) in [
        (vec!["packs", "accept", "foo"], "unknown pack foo"),
        (vec!["packs", "inspect", file], "its header is missing"),
        (vec!["--log", "verbose", "tools"], "is not a log level"),
        (vec!["serve", "--packs", "taskstore"], "did you mean task-store?"),
        (vec!["serve", "--http", "localhost"], "localhost:8765"),
        (vec!["serve", "--http", ":99999"], "65535"),
        (vec!["ledger", "verify", "--head", "5:446f"], "64 hex digits"),
        (
            vec!["policies", "inspect", "nowhere"],
            "no built-in component has this name",
        ),
        (vec!["init"], "already exists"),
        (
            vec!["call", "task_list", "[1]"],
            "the input is a list; write a JSON object such as",
        ),
        (vec!["call", "task_list", "{bad"], "in quotes for the shell"),
        (vec!["call", "task_list", "@nofile.json"], "the file nofile.json"),
        (
            vec!["call", "no_such_tool_at_all"],
            "`tollgate tools` lists the tools",
        ),
        (
            vec!["call", "envelope_open", r#"{"limits": 3}"#],
            "the object has the fields",
        ),
        (
            vec!["call", "envelope_open", r#"{"limits": {"max_mutation": 3}}"#],
            "did you mean max_mutations?",
        ),
        (
            vec!["packs", "inspect", "http://example.com/a.wasm"],
            "write https://",
        ),
        (
            vec!["policies", "add", "ftp://example.com/a.wasm"],
            "write https://",
        ),
        (vec!["policies", "add", "celx"], "did you mean the built-in cel?"),
        (vec!["policies", "accept", "nobody"], "none exist"),
        (vec!["packs", "remove", "nobody"], "none exist"),
    ] {
        let output = place.run(&arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let said = said(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(help), "{arguments:?}: {said}");
        // A refusal of a tool is an object in lines of its own.
        assert!(
            arguments[0] == "call" || said.lines().count() < 8,
            "{arguments:?}: {said}"
        );
    }
    for (arguments, help) in [
        (&["--data-dir", r"C:\Users\me", "tools"][..], "a Windows path"),
        (
            &["--config", "/nowhere.toml", "tools"],
            "`tollgate --config /nowhere.toml init`",
        ),
        (&["--config", "/", "tools"], "is a folder; name a file"),
        (
            &["--data-dir", file, "tools"],
            "because a file already has that name",
        ),
        (
            &["--data-dir", "/nowhere/at/all", "ledger", "verify"],
            "there is no ledger in",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command
            .args(arguments)
            .env("HOME", place.path())
            .env_remove("TOLLGATE_LOG");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(help), "{arguments:?}: {}", said(&output));
    }
    let bare = Command::new(env!("CARGO_BIN_EXE_tollgate")).output().unwrap();
    let shown = said(&bare);
    assert!(
        shown.contains("Commands:") && !shown.contains("supervise"),
        "{shown}"
    );
}

#[test]
fn a_value_from_a_variable_is_blamed_on_the_variable() {
    let place = Place::new();
    for (name, value, arguments) in [
        ("TOLLGATE_TIER", "ful", &["tools"][..]),
        ("TOLLGATE_HTTP", "nonsense", &["serve"]),
        ("TOLLGATE_WORKSPACE", "app", &["tools"]),
        ("TOLLGATE_PACKS", "taskstore", &["tools"]),
        (
            "TOLLGATE_TOKEN_FILE",
            "/nowhere/token",
            &["serve", "--http", "127.0.0.1:0"],
        ),
    ] {
        let output = place.command(arguments).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(
            said(&output).contains(&format!("comes from the environment variable {name}")),
            "{}",
            said(&output)
        );
    }
    // What was typed is nobody else's.
    let typed = place
        .command(&["tools", "--tier", "ful"])
        .env("TOLLGATE_TIER", "full")
        .output()
        .unwrap();
    assert!(!said(&typed).contains("variable"), "{}", said(&typed));
    let doctor = place
        .command(&["doctor"])
        .env("TOLLGATE_CONIFG", "x")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        told.contains("if you mean TOLLGATE_CONFIG, set that variable"),
        "{told}"
    );
}

#[test]
fn a_damaged_or_empty_ledger_and_a_taken_port_come_with_what_to_do() {
    let place = Place::in_file("");
    assert!(place.run(&["tools"]).status.success());
    let verified = place.run(&["ledger", "verify"]);
    let told = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        verified.status.success() && told.contains("is empty: no call has been recorded yet"),
        "{told}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = place.run(&["serve", "--http", &address]);
    assert!(
        said(&output).contains("another program listens there"),
        "{}",
        said(&output)
    );
    for entry in std::fs::read_dir(place.data()).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains("tollgate.db") {
            std::fs::write(path, "garbage".repeat(1000)).unwrap();
        }
    }
    for command in [&["ledger", "tail"][..], &["call", "task_list"], &["doctor"]] {
        let output = place.run(command);
        let all = said(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(
            !output.status.success() && all.contains("tollgate restore BACKUP"),
            "{command:?}: {all}"
        );
    }
}

#[test]
fn a_policy_is_added_without_code_of_any_pack() {
    let place = Place::new();
    std::fs::remove_dir_all(place.data()).unwrap();
    let added = place.run(&["policies", "add", "secret-scan"]);
    assert!(added.status.success(), "{}", said(&added));
    let cached = std::fs::read_dir(place.data().join("cache"))
        .unwrap()
        .filter_map(Result::ok);
    let code = cached.filter(|entry| entry.path().extension().is_some_and(|ext| ext == "cwasm"));
    assert_eq!(code.count(), 1);
}

#[test]
fn built_in_policies_are_found_by_their_names() {
    let place = Place::new();
    let listed = place.run(&["policies", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("no policy is configured; 9 are built in"));
    let inspected = place.run(&["policies", "inspect", "cel"]);
    assert!(inspected.status.success(), "{}", said(&inspected));
    assert!(String::from_utf8_lossy(&inspected.stdout).contains("SETTING"));
    let added = place.run(&["policies", "add", "secret-scan"]);
    assert!(added.status.success(), "{}", said(&added));
    let config = std::fs::read_to_string(place.config()).unwrap();
    assert!(config.contains("builtin:secret-scan"), "{config}");
}

#[test]
fn a_call_finds_the_tools_that_only_the_compact_list_has() {
    let place = Place::new();
    let output = place.run(&[
        "--json",
        "call",
        "tool_search",
        r#"{"query":"claim a task"}"#,
        "--packs",
        "tasks",
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["total"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn a_call_has_the_tools_that_a_server_would_have() {
    let place = Place::with("[server]\nread_only = true\n");
    let create = r##"{"title":"T","spec_markdown":"# Goal\ng","workspace":"w","initial_phase":"spec_draft","actor":"a","actor_role":"orchestrator"}"##;
    let output = place.run(&["call", "task_create", create]);
    assert!(
        !output.status.success() && said(&output).contains("there is no tool"),
        "{}",
        said(&output)
    );
    assert_eq!(place.call("task_list", &json!({})).0, 0);
    let output = place.run(&["call", "task_list", "--exclude-tools", "task_list"]);
    assert!(said(&output).contains("there is no tool"), "{}", said(&output));
}

#[test]
fn envelopes_are_numbers_for_programs() {
    let place = Place::new();
    place.call("envelope_open", &json!({ "limits": { "max_mutations": 7 } }));
    let output = place.run(&["--json", "envelopes"]);
    let envelopes: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&envelopes[0]["mutations"], &envelopes[0]["max_mutations"]),
        (&json!(0), &json!(7))
    );
}

#[test]
fn shells_and_readers_of_manuals_get_theirs() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && script.contains("policies"),
            "{shell}: {script}"
        );
    }
    let folder = place.path().join("pages");
    assert!(place.run(&["man", folder.to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(folder.join("tollgate-ledger-query.1")).unwrap();
    assert!(
        page.contains("ledger query") && page.contains("Examples"),
        "{page}"
    );
    let pages = std::fs::read_dir(&folder).unwrap().count();
    assert!(pages > 30, "{pages}");
}

#[test]
fn a_closed_standard_error_neither_ends_nor_deafens_a_server() {
    let place = Place::with("[server]\ntier = \"core\"\n");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(&["--log", "trace", "serve"]);
    command.stderr(writer);
    let mut wire = Wire::of(command);
    wire.initialize("2025-06-18");
    // Each has something to log for the thread that takes it over.
    for (tier, port) in [("full", 1), ("core", 2), ("full", 3)] {
        let config = format!("[server]\ntier = \"{tier}\"\nhttp = \"127.0.0.1:{port}\"\n");
        std::fs::write(place.config(), config).unwrap();
        while wire.receive()["method"] != "notifications/tools/list_changed" {}
    }
    wire.close_stdin();
    assert!(wire.wait().success());
}

#[test]
fn a_server_on_a_name_says_where_and_in_the_log_s_own_form() {
    let place = Place::new();
    let mut child = place
        .command(&["--log-format", "json", "serve", "--http", "localhost:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let message = line["fields"]["message"].as_str().unwrap();
    assert!(message.starts_with("serving http://127.0.0.1:"), "{line}");
}

#[test]
fn what_policies_said_is_shown_where_operations_are() {
    let deny = r#"config = { when = "true", code = "CLOSED", message = "no" }"#;
    let place = Place::with(&format!(
        "[policies.gate]\nsource = \"builtin:cel\"\ntools = [\"task_get\"]\n{deny}\n\
         [policies.watch]\nsource = \"builtin:cel\"\nmode = \"audit\"\ntools = [\"task_list\"]\n{deny}\n"
    ));
    assert_eq!(place.call("task_get", &json!({ "task_id": "x" })).0, 1);
    assert_eq!(place.call("task_list", &json!({})).0, 0);
    assert_eq!(place.call("envelope_list", &json!({})).0, 0);
    let shown = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let tail = shown(&["ledger", "tail"]);
    assert!(
        tail.contains("gate: deny CLOSED") && tail.contains("watch: deny CLOSED (audit)"),
        "{tail}"
    );
    let watched = shown(&["--json", "ledger", "query", "--policy", "watch"]);
    let row: Value = serde_json::from_str(&watched).unwrap();
    assert_eq!(row["tool"], "task_list", "{row}");
    assert_eq!(
        (&row["verdicts"][0]["mode"], &row["verdicts"][0]["verdict"]),
        (&json!("audit"), &json!("deny"))
    );
    let (_, page) = place.call("ledger_query", &json!({ "tool": "task_get" }));
    assert_eq!(page["operations"][0]["verdicts"][0]["policy"], "gate", "{page}");
}
