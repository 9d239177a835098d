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

const USER_VSCODE: &str = if cfg!(target_os = "macos") {
    "Library/Application Support/Code/User/mcp.json"
} else {
    ".config/Code/User/mcp.json"
};

/// A client's file as it reads it: what is there beside the entry, and the entry.
fn read_back(text: &str, servers: &str, is_toml: bool) -> (Value, Value) {
    let mut file: Value = if is_toml {
        toml::from_str(text).unwrap()
    } else {
        serde_json::from_str(text).unwrap()
    };
    let entry = file[servers].as_object_mut().unwrap().remove("tollgate").unwrap();
    (file, entry)
}

#[test]
fn what_was_added_to_a_file_in_use_starts_the_server_and_leaves_the_rest() {
    let json = r#"{"SERVERS": {"other": {"command": "x", "args": []}}, "theme": {"name": "dark"}, "list": [1, 2.5, null]}"#;
    let toml = "model = \"x\"\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\ntheme = \"dark\"\n";
    for (client, file, servers) in [
        ("claude-code", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
        ("codex", ".codex/config.toml", "mcp_servers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ] {
        let place = Place::new();
        let is_toml = client == "codex";
        let before = if is_toml {
            toml.to_owned()
        } else {
            json.replace("SERVERS", servers)
        };
        let path = place.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &before).unwrap();
        assert!(
            clients(&place, &["add", client, "--", "--tier", "full"])
                .status
                .success(),
            "{client}"
        );
        let (rest, entry) = read_back(&std::fs::read_to_string(&path).unwrap(), servers, is_toml);
        let (expected, _) = read_back(&before.replace("other", "tollgate"), servers, is_toml);
        let mut others = rest.clone();
        assert!(
            others[servers].as_object_mut().unwrap().remove("other").is_some(),
            "{client}"
        );
        assert_eq!(others, expected, "{client}");
        let args = entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap());
        let args: Vec<&str> = args.collect();
        assert_eq!(
            (args[0], &args[args.len() - 2..]),
            ("serve", &["--tier", "full"][..]),
            "{client}"
        );
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
                .any(|tool| tool["name"] == "task_events"),
            "{client}"
        );
    }
}

#[test]
fn every_clients_file_is_made_for_project_and_user_and_stays_the_same() {
    for (client, file, user) in [
        ("claude-code", ".mcp.json", ".claude.json"),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json", USER_VSCODE),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
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
        assert!(for_user.status.success(), "{client}");
        assert_eq!(
            std::fs::read_to_string(place.path().join(user)).unwrap(),
            once,
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
