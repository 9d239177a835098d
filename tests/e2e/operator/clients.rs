//! `tollgate clients`: adding Tollgate to clients' configurations, in temporary home directories.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{Place, field_of_each, succeeded};

fn clients(place: &Place, arguments: &[&str]) -> Output {
    command(place, arguments).output().unwrap()
}

/// `tollgate clients` in the folder `project`, with a temporary home and no client installed.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(&["clients"]);
    let project = place.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    command
        .args(arguments)
        .current_dir(project)
        .env("HOME", place.path())
        .env("PATH", "/usr/bin:/bin");
    for name in [
        "XDG_CONFIG_HOME",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "TOLLGATE_HTTP",
        "TOLLGATE_TOKEN",
    ] {
        command.env_remove(name);
    }
    command
}

fn warned(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// A client's file as the client parses it: the other settings, and the entry.
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
        let path = place.path().join("project").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &before).unwrap();
        assert!(
            clients(
                &place,
                &["add", client, "--project", "--no-check", "--", "--tier", "full"]
            )
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
        let output = Command::new(entry["command"].as_str().unwrap())
            .args(["--json", "tools"])
            .args(&args[1..])
            .output()
            .unwrap();
        let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
        let names = field_of_each(&tools, "name");
        assert!(names.iter().any(|name| **name == "task_events"), "{client}");
    }
}

#[test]
fn every_clients_file_is_made_for_user_and_project_and_goes_again() {
    let place = Place::new();
    let listed: Value = serde_json::from_str(&succeeded(&clients(&place, &["list", "--json"]))).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["client"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 17, "{names:?}");
    for client in names {
        for scope in [&[][..], &["--project"]] {
            let place = Place::new();
            let run = |words: &[&str]| clients(&place, &[words, scope].concat());
            let added = run(&["add", client, "--no-check"]);
            if !added.status.success() {
                assert!(
                    warned(&added).contains("has no project configuration file"),
                    "{client}"
                );
                continue;
            }
            let file = succeeded(&added)
                .lines()
                .find_map(|line| Some(line.split_once("added to ")?.1.to_owned()));
            let file = Path::new(&file.unwrap()).to_owned();
            assert!(file.starts_with(place.path()), "{client}");
            let once = read(&file);
            assert!(
                succeeded(&run(&["add", client, "--no-check"])).contains("already has this entry"),
                "{client}"
            );
            assert_eq!(read(&file), once, "{client}");
            let printed = succeeded(&run(&["print", client]));
            assert_eq!(printed, once, "{client}");
            let other = ["add", client, "--no-check", "--http", "http://127.0.0.1:8765/mcp"];
            let refused = run(&other);
            assert_eq!(refused.status.code(), Some(2), "{client}");
            assert_eq!(read(&file), once, "{client}");
            succeeded(&run(&["remove", client]));
            assert!(!file.exists() || read(&file).is_empty(), "{client}");
            assert_eq!(run(&["remove", client]).status.code(), Some(1), "{client}");
        }
    }
}

#[test]
fn comments_links_and_modes_of_a_file_stay_and_removal_gives_it_back() {
    let place = Place::new();
    let text = "// mine\n{\n  \"theme\": \"dark\", // why\n}\n";
    let dotfile = place.path().join("dotfiles/zed.json");
    write(&dotfile, text);
    std::fs::set_permissions(&dotfile, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = place.path().join(".config/zed/settings.json");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink("../../dotfiles/zed.json", &link).unwrap();
    succeeded(&clients(&place, &["add", "zed", "--no-check"]));
    let added = read(&dotfile);
    assert!(
        added.starts_with("// mine\n{\n  \"theme\": \"dark\", // why\n  \"context_servers\""),
        "{added}"
    );
    assert!(link.is_symlink());
    assert_eq!(dotfile.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    succeeded(&clients(&place, &["remove", "zed"]));
    assert_eq!(read(&dotfile), text);
    // A link to a file that is not there yet stays one, too.
    let cursor = place.path().join(".cursor/mcp.json");
    std::fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    symlink("../dotfiles/cursor.json", &cursor).unwrap();
    succeeded(&clients(&place, &["add", "cursor", "--no-check"]));
    assert!(cursor.is_symlink());
    assert!(json(&place.path().join("dotfiles/cursor.json"))["mcpServers"]["tollgate"].is_object());
    succeeded(&clients(&place, &["remove", "cursor"]));
    assert!(cursor.is_symlink());
}

#[test]
fn a_file_that_cannot_be_kept_whole_is_left_alone_and_the_entry_is_shown() {
    let place = Place::new();
    let path = place.path().join(".config/goose/config.yaml");
    let text = "extensions: {other: {enabled: true}}\n";
    write(&path, text);
    let output = clients(&place, &["add", "goose"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(warned(&output).contains("by hand"), "{}", warned(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("  tollgate:\n    type: \"stdio\""));
    assert_eq!(read(&path), text);
}

#[test]
fn without_a_name_the_installed_clients_are_added_and_the_last_lines_say_what_they_see() {
    let place = Place::new();
    assert!(warned(&clients(&place, &["add"])).contains("name one of: claude-code, cursor"));
    for folder in [".cursor", ".codex"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    let output = succeeded(&clients(&place, &["add", "--packs", "core,task-store"]));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines.iter().filter(|line| line.contains("added to")).count(),
        2,
        "{output}"
    );
    for (line, title) in lines[lines.len() - 2..].iter().zip(["Cursor", "Codex"]) {
        let tools = line.strip_prefix(&format!("✔ {title} sees ")).unwrap();
        assert!(
            tools.split(' ').next().unwrap().parse::<usize>().unwrap() > 5,
            "{line}"
        );
    }
    let checked = succeeded(&clients(&place, &["check"]));
    assert_eq!(checked.matches('✔').count(), 2, "{checked}");
    assert_eq!(clients(&place, &["check", "zed"]).status.code(), Some(1));
}

#[test]
fn a_check_says_why_a_client_sees_nothing() {
    let place = Place::new();
    let path = place.path().join(".cursor/mcp.json");
    for (entry, why) in [
        (r#"{"command": "/nowhere/tollgate", "args": []}"#, "cannot start"),
        (
            r#"{"command": "sh", "args": ["-c", "echo nonsense >&2; exit 3"]}"#,
            "ended before it answered: nonsense",
        ),
        (
            r#"{"url": "http://127.0.0.1:1/mcp"}"#,
            "`tollgate serve` must run there",
        ),
        (
            r#"{"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${env:NOT_SET}"}}"#,
            "NOT_SET",
        ),
        (r#"{"command": "tollgate", "disabled": true}"#, "switched off"),
        ("1", "neither a program nor an address"),
    ] {
        write(&path, &format!(r#"{{"mcpServers": {{"tollgate": {entry}}}}}"#));
        let output = clients(&place, &["check", "cursor"]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            printed.starts_with("✘ Cursor") && printed.contains(why),
            "{entry}: {printed}"
        );
        assert_eq!(output.status.code(), Some(1), "{entry}");
    }
}

#[test]
fn a_check_starts_the_program_without_variables_that_clients_do_not_hand_on() {
    let place = Place::new();
    let path = place.path().join(".cursor/mcp.json");
    let script = "env >$0; exit 1";
    let env = place.path().join("env.txt");
    let entry = serde_json::json!({"mcpServers": {"tollgate": {
        "command": "sh", "args": ["-c", script, env], "env": {"MINE": "yes"}}}});
    write(&path, &entry.to_string());
    command(&place, &["check", "cursor"])
        .env("SECRET_OF_THE_SHELL", "x")
        .output()
        .unwrap();
    let seen = read(&env);
    assert!(
        seen.contains("MINE=yes") && seen.contains("HOME=") && !seen.contains("SECRET_OF_THE_SHELL"),
        "{seen}"
    );
}

#[test]
fn what_a_projects_file_names_is_started_only_when_asked() {
    let place = Place::new();
    let started = place.path().join("started");
    let entry = serde_json::json!({"mcpServers": {"tollgate": {"command": "touch", "args": [started]}}});
    write(&place.path().join("project/.cursor/mcp.json"), &entry.to_string());
    assert_eq!(clients(&place, &["check"]).status.code(), Some(1));
    clients(&place, &["list"]);
    assert!(!started.exists());
    clients(&place, &["check", "--project"]);
    assert!(started.exists());
    // Neither are variables that somebody wrote beside what was added.
    std::fs::remove_file(&started).unwrap();
    let path = place.path().join("project/.cursor/mcp.json");
    let add = ["add", "cursor", "--project", "--force", "--packs", "core"];
    succeeded(&clients(&place, &add));
    let mut file = json(&path);
    file["mcpServers"]["tollgate"]["env"] = serde_json::json!({"TOLLGATE_READ_ONLY": "nonsense"});
    write(&path, &file.to_string());
    assert!(succeeded(&clients(&place, &add)).contains("already has this entry"));
}

#[test]
fn a_configured_http_server_is_connected_to_and_not_started_again() {
    let place = Place::with("[server]\nhttp = \"0.0.0.0:8765\"\n[server.auth]\ntoken_file = \"tokens\"\n");
    let output = clients(&place, &["add", "claude-code", "--no-check"]);
    succeeded(&output);
    assert!(warned(&output).contains("TOLLGATE_TOKEN"), "{}", warned(&output));
    let entry = &json(&place.path().join(".claude.json"))["mcpServers"]["tollgate"];
    assert_eq!(entry["url"], "http://127.0.0.1:8765/mcp");
    assert_eq!(entry["headers"]["Authorization"], "Bearer ${TOLLGATE_TOKEN}");
    succeeded(&clients(
        &place,
        &["add", "codex", "--no-check", "--bearer-env", "MINE"],
    ));
    assert!(read(&place.path().join(".codex/config.toml")).contains("bearer_token_env_var = \"MINE\""));
    let desktop = clients(&place, &["add", "claude-desktop", "--no-check"]);
    assert_eq!(desktop.status.code(), Some(2));
    assert!(
        warned(&desktop).contains("only starts programs"),
        "{}",
        warned(&desktop)
    );
    let arguments = clients(&place, &["add", "cursor", "--no-check", "--", "--tier", "full"]);
    assert_eq!(arguments.status.code(), Some(2));
    // An entry that starts a program would start a second server.
    write(
        &place.path().join(".cursor/mcp.json"),
        r#"{"mcpServers": {"tollgate": {"command": "/bin/sh", "args": ["serve"]}}}"#,
    );
    let mut doctor = place.command(&["doctor"]);
    let found = doctor
        .current_dir(place.path())
        .env("HOME", place.path())
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains("where server.http = 0.0.0.0:8765"), "{found}");
    let free = Place::with("[server]\nhttp = \"127.0.0.1:0\"\n");
    assert!(warned(&clients(&free, &["add", "cursor", "--no-check"])).contains("picks a free port"));
    let variable = Place::new();
    succeeded(
        &command(&variable, &["add", "cursor", "--no-check"])
            .env("TOLLGATE_HTTP", "127.0.0.1:9")
            .output()
            .unwrap(),
    );
    let entry = &json(&variable.path().join(".cursor/mcp.json"))["mcpServers"]["tollgate"];
    assert_eq!(entry["url"], "http://127.0.0.1:9/mcp");
}

#[test]
fn a_client_over_http_sends_its_token() {
    let place = Place::new();
    let tokens = place.path().join("tokens");
    let token = "3b0c5f6f6a4be1a2c07b8d93f0a4e5d6";
    write(&tokens, &format!("ada {token}\n"));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = place.serve_http(&["--packs", "core", "--token-file", tokens.to_str().unwrap()]);
    let add = ["add", "cursor", "--http", &server.url, "--force"];
    let refused = clients(&place, &add);
    assert!(
        String::from_utf8_lossy(&refused.stdout).contains("--bearer-env"),
        "{refused:?}"
    );
    let add = [&add[..], &["--bearer-env", "MINE"]].concat();
    let unset = clients(&place, &add);
    assert!(
        String::from_utf8_lossy(&unset.stdout).contains("MINE is not set"),
        "{unset:?}"
    );
    let seen = succeeded(&command(&place, &add).env("MINE", token).output().unwrap());
    assert!(seen.contains("✔ Cursor sees "), "{seen}");
    let wrong = command(&place, &["check"]).env("MINE", "other").output().unwrap();
    assert!(
        String::from_utf8_lossy(&wrong.stdout).contains("does not accept this token"),
        "{wrong:?}"
    );
    let with_file = |file: &Path| {
        let add = ["add", "opencode", "--http", &server.url, "--token-file"];
        clients(&place, &[&add[..], &[file.to_str().unwrap()]].concat())
    };
    // A file with more than a token is not sent whole.
    assert!(warned(&with_file(&tokens)).contains("must contain only a token"));
    // A file of its own: the server reads its own file again whenever that changes.
    let alone = place.path().join("alone");
    write(&alone, &format!("{token}\n"));
    std::fs::set_permissions(&alone, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(succeeded(&with_file(&alone)).contains("✔ opencode sees "));
}

#[test]
fn flags_for_the_server_are_kept_in_the_entry() {
    let place = Place::new();
    let mut add = place.command(&[
        "--workspace",
        "app=code",
        "--cache-dir",
        "cache",
        "clients",
        "add",
        "cursor",
        "--no-check",
    ]);
    add.args(["--packs", "core,tasks", "--", "--tier", "full"]);
    add.env("HOME", place.path()).current_dir(place.path());
    succeeded(&add.output().unwrap());
    let entry = &json(&place.path().join(".cursor/mcp.json"))["mcpServers"]["tollgate"];
    let path = |rest: &str| format!("{}/{rest}", place.path().canonicalize().unwrap().display());
    let args: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap();
    assert_eq!(args[..2], ["serve", "--config"]);
    assert_eq!(
        args[5..],
        [
            "--cache-dir",
            &path("cache"),
            "--workspace",
            &format!("app={}", path("code")),
            "--packs",
            "core,tasks",
            "--tier",
            "full"
        ]
    );
}

#[test]
fn a_file_to_be_committed_names_the_program_alone_where_it_is_on_the_path() {
    let place = Place::new();
    let bin = place.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let real = place.command(&[]).get_program().to_owned();
    let add = |words: &[&str], path: &Path| {
        let all = [&["add", "cursor", "--no-check", "--force"], words].concat();
        command(&place, &all).env("PATH", path).output().unwrap()
    };
    let entry = |file: &str| json(&place.path().join(file))["mcpServers"]["tollgate"]["command"].clone();
    let shared = place.path().join("project/.cursor/mcp.json");
    let without = add(&["--project"], &bin);
    assert!(
        warned(&without).contains("not on the PATH"),
        "{}",
        warned(&without)
    );
    assert!(Path::new(entry("project/.cursor/mcp.json").as_str().unwrap()).is_absolute());
    std::fs::remove_file(&shared).unwrap();
    symlink(&real, bin.join("tollgate")).unwrap();
    succeeded(&add(&["--project"], &bin));
    assert_eq!(entry("project/.cursor/mcp.json"), "tollgate");
    // Others on the project's machine read it; a user's file may hold secrets.
    assert_eq!(shared.metadata().unwrap().permissions().mode() & 0o600, 0o600);
    succeeded(&add(&[], &bin));
    assert_eq!(entry(".cursor/mcp.json"), bin.join("tollgate").to_str().unwrap());
    assert_eq!(
        place
            .path()
            .join(".cursor/mcp.json")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    std::fs::remove_file(bin.join("tollgate")).unwrap();
    std::fs::copy("/bin/sh", bin.join("tollgate")).unwrap();
    let other = add(&["--project"], &bin);
    assert!(
        warned(&other).contains("is another program"),
        "{}",
        warned(&other)
    );
}

#[test]
fn a_dry_run_and_a_clients_own_command_change_nothing() {
    let place = Place::new();
    let dry = succeeded(&clients(&place, &["add", "cursor", "codex", "--dry-run"]));
    assert!(
        dry.contains("would be added to") && dry.contains("[mcp_servers.tollgate]"),
        "{dry}"
    );
    let line = succeeded(&clients(&place, &["add", "claude-code", "codex", "--command"]));
    assert!(
        line.contains("claude mcp add-json --scope user tollgate '{\"type\":\"stdio\""),
        "{line}"
    );
    assert!(line.contains("codex mcp add tollgate -- /"), "{line}");
    let none = clients(&place, &["add", "zed", "--command"]);
    assert!(warned(&none).contains("omit --command"), "{}", warned(&none));
    assert!(!place.path().join(".cursor").exists() && !place.path().join(".codex").exists());
    // Run, it is the client's own program that changes things.
    let bin = place.path().join("bin");
    let args = place.path().join("args.txt");
    write(
        &bin.join("codex"),
        &format!("#!/bin/sh\necho \"$@\" >{}\n", args.display()),
    );
    std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = ["add", "codex", "--command=run", "--no-check"];
    succeeded(
        &command(&place, &run)
            .env("PATH", format!("{}:/bin", bin.display()))
            .output()
            .unwrap(),
    );
    assert!(
        read(&args).starts_with("mcp add tollgate -- /"),
        "{}",
        read(&args)
    );
}

/// Runs a program from a runner's folder, beside a file that the runner writes there.
fn run_from(place: &Place, program: &str, file: &str, text: &str, arguments: &[&str]) -> Output {
    let program = place.path().join(program);
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let real = place.command(&[]).get_program().to_owned();
    if std::fs::hard_link(&real, &program).is_err() {
        std::fs::copy(&real, &program).unwrap();
    }
    write(&place.path().join(file), text);
    let mut command = Command::new(&program);
    let like = command_of(place, arguments);
    command
        .args(like.get_args())
        .current_dir(like.get_current_dir().unwrap());
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Runners put their own folder first.
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    command
        .env("PATH", path)
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap()
}

fn command_of(place: &Place, arguments: &[&str]) -> Command {
    command(place, arguments)
}

#[test]
fn an_entry_names_the_runner_and_never_a_path_in_its_cache() {
    let npm = r#"{"dependencies": {"tollgate": "^0.1.0"}, "_npx": {"packages": ["tollgate@0.1.0"]}}"#;
    for (program, file, text, expected) in [
        (
            ".npm/_npx/1a2b/node_modules/@tollgate/linux-x64-gnu/bin/tollgate",
            ".npm/_npx/1a2b/package.json",
            npm,
            &["npx", "-y", "tollgate@0.1.0", "serve"][..],
        ),
        (
            ".cache/uv/archive-v0/xFqn-iy0T9/bin/tollgate",
            ".cache/uv/archive-v0/xFqn-iy0T9/lib/python3.12/site-packages/tollgate_mcp-0.1.0.dist-info/METADATA",
            "",
            &["uvx", "tollgate-mcp", "serve"],
        ),
    ] {
        for scope in [&[][..], &["--project"]] {
            let place = Place::new();
            let add = [&["add", "cursor", "--no-check"], scope].concat();
            let output = run_from(&place, program, file, text, &add);
            succeeded(&output);
            let folder = if scope.is_empty() { "" } else { "project" };
            let entry = &json(&place.path().join(folder).join(".cursor/mcp.json"))["mcpServers"]["tollgate"];
            let args: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap();
            let words: Vec<&str> = entry["command"]
                .as_str()
                .into_iter()
                .chain(args.iter().map(String::as_str))
                .collect();
            assert_eq!(words[..expected.len()], *expected);
            assert!(
                !words
                    .iter()
                    .any(|word| word.contains("_npx") || word.contains(".cache")),
                "{words:?}"
            );
        }
    }
    let place = Place::new();
    let other = run_from(
        &place,
        ".cache/other/tollgate",
        "x",
        "",
        &["add", "cursor", "--no-check"],
    );
    assert!(warned(&other).contains("may be emptied"), "{}", warned(&other));
}

#[test]
fn what_has_to_be_compiled_is_compiled_and_told_and_nothing_of_it_fails_the_entry() {
    let place = Place::with(&format!(
        "[packs.sql-access]\nsource = {:?}\n[packs.broken]\nsource = \"/nowhere.wasm\"\n",
        crate::harness::guest("sql-access")
    ));
    std::fs::remove_dir_all(place.data()).unwrap();
    let output = clients(&place, &["add", "cursor"]);
    succeeded(&output);
    let told = warned(&output);
    assert!(told.contains("compiled pack sql-access in"), "{told}");
    assert!(
        told.contains("pack `broken` (/nowhere.wasm) was not loaded"),
        "{told}"
    );
    let again = clients(&place, &["add", "cursor"]);
    assert!(!warned(&again).contains("compiled"), "{}", warned(&again));
}
