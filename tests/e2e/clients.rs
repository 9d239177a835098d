//! Adding Tollgate to clients' configurations, in homes of their own.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::process::Output;

use serde_json::Value;

use crate::harness::Place;

fn clients(place: &Place, arguments: &[&str]) -> Output {
    let mut command = place.command(&["clients"]);
    command
        .args(arguments)
        .current_dir(place.path())
        .env("HOME", place.path());
    command.output().unwrap()
}

#[test]
fn what_was_added_starts_the_server_it_names() {
    let place = Place::new();
    assert!(
        clients(&place, &["add", "claude-code", "--", "--tier", "full"])
            .status
            .success()
    );
    let text = std::fs::read_to_string(place.path().join(".mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let entry = &file["mcpServers"]["tollgate"];
    let args: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap())
        .collect();
    assert_eq!(args.first(), Some(&"serve"));
    assert_eq!(args[args.len() - 2..], ["--tier", "full"]);
    // `tools` takes the same flags as `serve` and ends.
    let output = std::process::Command::new(entry["command"].as_str().unwrap())
        .args(["--json", "tools"])
        .args(&args[1..])
        .output()
        .unwrap();
    let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "task_events")
    );
}

#[test]
fn every_clients_file_is_made_for_project_and_user_and_stays_the_same() {
    for (client, file, user) in [
        ("claude-code", ".mcp.json", Some(".claude.json")),
        ("cursor", ".cursor/mcp.json", Some(".cursor/mcp.json")),
        ("vscode", ".vscode/mcp.json", None),
        ("codex", ".codex/config.toml", Some(".codex/config.toml")),
        ("gemini", ".gemini/settings.json", Some(".gemini/settings.json")),
    ] {
        let place = Place::new();
        let path = place.path().join(file);
        assert!(clients(&place, &["add", client]).status.success(), "{client}");
        let once = std::fs::read_to_string(&path).unwrap();
        assert!(clients(&place, &["add", client]).status.success(), "{client}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "{client}");
        let printed = clients(&place, &["print", client]);
        assert_eq!(String::from_utf8_lossy(&printed.stdout), once, "{client}");
        let other = clients(&place, &["add", client, "--http", "http://127.0.0.1:8765/mcp"]);
        assert_eq!(other.status.code(), Some(2), "{client}");
        assert!(
            String::from_utf8_lossy(&other.stderr).contains("--force"),
            "{client}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "{client}");
        let for_user = clients(&place, &["add", client, "--user"]);
        assert_eq!(for_user.status.success(), user.is_some(), "{client}");
        assert!(
            user.is_none_or(|file| place.path().join(file).exists()),
            "{client}"
        );
    }
}

#[test]
fn a_file_with_comments_is_left_alone() {
    let place = Place::new();
    let path = place.path().join(".vscode/mcp.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\n  // mine\n}\n").unwrap();
    let output = clients(&place, &["add", "vscode"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("by hand"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  // mine\n}\n");
}
