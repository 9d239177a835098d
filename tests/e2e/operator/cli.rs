//! Commands of the command line.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Place, field_of_each};

const CREATE: &str = r##"{"title":"T","spec_markdown":"# Goal\ng","workspace":"w","initial_phase":"spec_draft","actor":"a","actor_role":"orchestrator"}"##;

/// Exit code of a command.
fn code(place: &Place, arguments: &[&str]) -> Option<i32> {
    place.run(arguments).status.code()
}

#[test]
fn call_takes_arguments_from_all_three_places() {
    let place = Place::new();
    let file = place.path().join("create.json");
    std::fs::write(&file, CREATE).unwrap();
    assert!(place.run(&["call", "task_create", CREATE]).status.success());
    assert!(
        place
            .run(&["call", "task_create", &format!("@{}", file.display())])
            .status
            .success()
    );
    let mut child = place
        .command(&["call", "task_create", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(CREATE.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let (code, listed) = place.call("task_list", &json!({}));
    assert_eq!(code, 0);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 3);
    // Reads are in the ledger too once the process is over.
    assert_eq!(place.ledger().last().unwrap(), "task_list read ok");
}

#[test]
fn call_exits_with_one_on_a_refusal_and_two_on_nonsense() {
    let place = Place::new();
    assert_eq!(code(&place, &["call", "task_get", r#"{"task_id":"x"}"#]), Some(1));
    assert_eq!(code(&place, &["call", "task_got"]), Some(2));
    assert_eq!(code(&place, &["call", "task_get", "{"]), Some(2));
}

#[test]
fn tools_shows_every_tool_with_its_tier() {
    let place = Place::new();
    let output = place.run(&["tools"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("TOOL"), "{text}");
    assert!(text.contains("task_events"), "{text}");
    let output = place.run(&["--json", "tools", "--tier", "core"]);
    let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tiers = field_of_each(&tools, "tier");
    assert!(tiers.iter().all(|tier| **tier == "core"));
}

#[test]
fn packs_list_shows_where_a_pack_came_from() {
    let place = Place::with_guests(&["sql-access"]);
    let output = place.run(&["--json", "packs", "list"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["packs"][0]["source"], "builtin");
    let sql_access = listed["packs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pack| pack["name"] == "sql-access");
    assert!(
        sql_access.unwrap()["source"]
            .as_str()
            .unwrap()
            .ends_with("sql_access.wasm")
    );
}

#[test]
fn a_configuration_with_mistakes_starts_nothing_and_names_them_all() {
    let place = Place::with("[server]\nteir = \"core\"\n[packs.task-store]\nenabld = true\n");
    let output = place.run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(":2:1: there is no key server.teir; did you mean tier?"),
        "{said}"
    );
    assert!(said.contains("did you mean enabled?"), "{said}");
    assert!(!place.data().join("tollgate.db").exists());
}

#[test]
fn flags_win_over_environment_and_file() {
    let place = Place::with("[server]\ntier = \"full\"\n");
    let count = |flags: &[&str], variable: Option<&str>| {
        let mut command = place.command(&["--json", "tools"]);
        command.args(flags);
        if let Some(tier) = variable {
            command.env("TOLLGATE_TIER", tier);
        }
        let output = command.output().unwrap();
        let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
        tools.as_array().unwrap().len()
    };
    let (core, standard, full) = (
        count(&["--tier", "core"], None),
        count(&[], Some("standard")),
        count(&[], None),
    );
    assert!(core < standard && standard <= full, "{core} {standard} {full}");
    assert_eq!(count(&["--tier", "core"], Some("full")), core);
}

#[test]
fn the_ledger_can_be_read_and_verified() {
    let place = Place::in_file("");
    assert!(place.run(&["call", "task_create", CREATE]).status.success());
    assert_eq!(code(&place, &["call", "task_get", r#"{"task_id":"x"}"#]), Some(1));
    let print = |arguments: &[&str]| String::from_utf8(place.run(arguments).stdout).unwrap();
    let tail = print(&["ledger", "tail"]);
    assert!(
        tail.contains("task_create") && tail.contains("NOT_FOUND"),
        "{tail}"
    );
    let failed = print(&["ledger", "query", "--failed"]);
    assert!(!failed.contains("task_create"), "{failed}");
    let exported = print(&["ledger", "export"]);
    let head: Value = serde_json::from_str(exported.lines().last().unwrap()).unwrap();
    let head = format!(
        "{}:{}",
        head["head"]["seq"],
        head["head"]["hash"].as_str().unwrap()
    );
    assert!(place.run(&["ledger", "verify", "--head", &head]).status.success());
    assert_eq!(place.ledger().len(), 2, "looking leaves no row");

    place.sql("DROP TRIGGER core_operations_no_update");
    place.sql("UPDATE core_operations SET tool = 'task_get' WHERE seq = 1 RETURNING seq");
    let output = place.run(&["ledger", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("row 1: the row was changed"));
}

#[test]
fn envelopes_are_shown() {
    let place = Place::new();
    place.call(
        "envelope_open",
        &json!({"label": "mine", "limits": {"max_mutations": 3}}),
    );
    let shown = String::from_utf8(place.run(&["envelopes"]).stdout).unwrap();
    assert!(shown.contains("mine") && shown.contains("0/3"), "{shown}");
}
