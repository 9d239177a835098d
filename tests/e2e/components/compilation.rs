//! Starts: replies before components are compiled, and the cache of compiled components.
#![allow(clippy::disallowed_methods, reason = "the tests make and look at files")]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Place, Wire, conformance_pack, field_of_each, guest, policy_component, until};
use crate::transport::http::{NEWEST, post, stateless};

/// Folder of the built-in components.
fn components() -> PathBuf {
    guest("sql-access").parent().unwrap().with_file_name("")
}

/// A built-in pack as an external one: the same component with an additional empty section.
fn foreign(pack: &str, place: &Path) -> PathBuf {
    let mut bytes = std::fs::read(components().join(format!("{pack}.wasm"))).unwrap();
    bytes.extend(b"\0\x05\x04note");
    let file = place.join(format!("{pack}.wasm"));
    std::fs::write(&file, bytes).unwrap();
    file
}

/// A data directory without compiled components.
fn empty() -> Place {
    let place = Place::new();
    for dir in ["cache", "manifests"] {
        let _ = std::fs::remove_dir_all(place.data().join(dir));
    }
    place
}

/// A data directory without compiled components, with an external pack in place of a built-in one.
fn empty_with(pack: &str) -> Place {
    let place = empty();
    let file = foreign(pack, place.path());
    // A busy machine takes its time to compile.
    let settings = "grants.artifacts = true\ngrants.ledger = true\nlimits.run_ms = 600_000\n";
    let config = format!("[packs.{pack}]\nsource = {file:?}\n{settings}");
    std::fs::write(place.config(), config).unwrap();
    place
}

fn entries(place: &Path, ending: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place.join("cache")) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

fn tools(wire: &mut Wire, id: u32) -> Vec<String> {
    let listed = reply(wire, id, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The reply to a request. Skips notifications.
fn reply(wire: &mut Wire, id: u32, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    wire.send(request.to_string().as_bytes());
    answer(wire, id)
}

/// The reply to the request with this id. Skips all other messages.
fn answer(wire: &mut Wire, id: u32) -> Value {
    loop {
        let message = wire.receive();
        if message["id"] == id {
            return message;
        }
    }
}

/// Processes that compile for a data directory.
fn compilers(place: &Place) -> Vec<String> {
    let data = place.data().display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    numbers
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|number| {
            let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("compile-component") && line.contains(&data)
        })
        .collect()
}

#[test]
fn a_first_start_needs_no_compiler() {
    let place = empty();
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    assert_eq!(reply(&mut wire, 1, "ping", json!({}))["result"], json!({}));
    assert!(tools(&mut wire, 2).contains(&"conductor_init".to_owned()));
    let called = reply(
        &mut wire,
        3,
        "tools/call",
        json!({"name": "task_list", "arguments": {}}),
    );
    assert_eq!(
        called["result"]["structuredContent"]["tasks"],
        json!([]),
        "{called}"
    );
    drop(wire);
    let output = place.run(&["--json", "packs", "prepare"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let prepared = said["prepared"].as_array().unwrap();
    assert_eq!(prepared.len(), 5, "{said}");
    for component in prepared {
        assert!(
            component["code"] == "unpacked" || component["code"] == "cached",
            "{said}"
        );
    }
    let output = place.run(&["--json", "packs", "prepare"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let codes = field_of_each(&said["prepared"], "code");
    assert!(codes.iter().all(|code| **code == "cached"), "{said}");
    assert_eq!(entries(&place.data(), ".cwasm").len(), 5);
}

#[test]
fn a_call_waits_for_its_own_pack_and_is_told_why() {
    let place = empty_with("tasks");
    let mut wire = place.wire(&["--tools", "tasks_radar,task_list"]);
    wire.initialize("2025-11-25");
    let tool = "tasks_radar".to_owned();
    let request = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params":
        {"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}}});
    wire.send(request.to_string().as_bytes());
    let listing = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {}});
    wire.send(listing.to_string().as_bytes());
    let other = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params":
        {"name": "task_list", "arguments": {}}});
    wire.send(other.to_string().as_bytes());
    let (mut told, mut changed) = (false, false);
    let mut order = Vec::new();
    let called = loop {
        let message = wire.receive();
        told |= message["params"]["message"] == "preparing tasks, once";
        changed |= message["method"] == "notifications/tools/list_changed";
        order.extend(message["id"].as_i64());
        match message["id"].as_i64() {
            Some(3) => break message,
            Some(5) => {
                let tasks = &message["result"]["structuredContent"]["tasks"];
                assert_eq!(*tasks, json!([]), "{message}");
            }
            _ => {}
        }
    };
    // Another pack's tool does not wait for it, and a list only for a while.
    assert_eq!(order.first(), Some(&5), "{order:?}");
    if !order.contains(&4) {
        let listed = answer(&mut wire, 4);
        assert!(listed.to_string().contains(&tool), "{listed}");
    }
    assert!(told, "{called}");
    // Its arguments may be wrong, but it was there to say so.
    let code = called["result"]["structuredContent"]["error"]["code"].as_str();
    assert!(
        called["result"].is_object() && code != Some("PREPARING"),
        "{called}"
    );
    while !changed {
        changed = wire.receive()["method"] == "notifications/tools/list_changed";
    }
    assert!(tools(&mut wire, 6).contains(&tool));
    drop(wire);
    // What it said is remembered, also where its code has to be compiled again.
    for entry in entries(&place.data(), ".cwasm") {
        std::fs::remove_file(place.data().join("cache").join(entry)).unwrap();
    }
    let mut wire = place.wire(&["--tools", "tasks_radar,task_list"]);
    wire.initialize("2025-11-25");
    assert!(tools(&mut wire, 1).contains(&tool));
}

#[test]
fn no_call_passes_while_a_policy_is_being_compiled() {
    let place = empty();
    let mut bytes = std::fs::read(policy_component("cel")).unwrap();
    bytes.extend(b"\0\x05\x04note");
    let file = place.path().join("mine.wasm");
    // It may not call itself as the built-in one does, so it is not loaded, and what it judges is refused.
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(place.config(), format!("[policies.mine]\nsource = {file:?}\n")).unwrap();
    let mut wire = place.wire(&["--tools", "task_list"]);
    wire.initialize("2025-11-25");
    assert!(tools(&mut wire, 1).contains(&"task_list".to_owned()));
    let called = reply(
        &mut wire,
        2,
        "tools/call",
        json!({"name": "task_list", "arguments": {}}),
    );
    assert_eq!(called["result"]["isError"], true, "{called}");
}

/// A server in a process group of its own, as clients start and kill servers.
fn serve(place: &Place) -> Child {
    let mut command: Command = place.command(&["serve"]);
    command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    command.spawn().unwrap()
}

fn kill_group(mut server: Child) {
    let group = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    server.wait().unwrap();
}

#[tokio::test]
async fn a_client_that_gives_up_six_times_gets_there() {
    let place = empty_with("tasks");
    for _ in 0..6 {
        let server = serve(&place);
        // It has what it needs, or somebody else is at it.
        until(async || {
            !entries(&place.data(), ".turn").is_empty() || entries(&place.data(), ".cwasm").len() == 5
        })
        .await;
        kill_group(server);
        assert!(compilers(&place).len() <= 2, "whoever waits for nobody ends");
    }
    // Nobody serves any more, and what was begun is finished, once.
    until(async || compilers(&place).is_empty()).await;
    assert_eq!(entries(&place.data(), ".turn"), [""; 0]);
    let output = place.run(&["--json", "packs", "prepare"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut prepared = said["prepared"].as_array().unwrap().iter();
    let tasks = prepared.find(|one| one["name"] == "tasks").unwrap();
    assert_eq!(tasks["code"], "cached", "{said}");
}

#[tokio::test]
async fn two_hosts_compile_a_component_once() {
    let place = empty_with("tasks");
    let servers = [serve(&place), serve(&place)];
    let compiled = || async {
        let mut children = std::collections::BTreeSet::new();
        until(async || {
            for keeper in compilers(&place) {
                let path = format!("/proc/{keeper}/task/{keeper}/children");
                let own = std::fs::read_to_string(path).unwrap_or_default();
                children.extend(own.split_whitespace().map(str::to_owned));
            }
            !entries(&place.data(), ".cwasm").is_empty() && compilers(&place).is_empty()
        })
        .await;
        children.len()
    };
    assert!(compiled().await <= 1);
    servers.into_iter().for_each(kill_group);
}

#[test]
fn a_damaged_part_of_the_program_is_compiled_instead() {
    let place = empty();
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_tollgate")).unwrap();
    let ahead = std::fs::read(components().join("ahead/task-store.cwasm")).unwrap();
    let part = &ahead[ahead.len() / 2..ahead.len() / 2 + 64];
    let at = memchr::memmem::find(&program, part).unwrap();
    program[at] ^= 0x10;
    let damaged = place.path().join("tollgate");
    std::fs::write(&damaged, program).unwrap();
    std::fs::set_permissions(&damaged, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = Command::new(&damaged);
    command.args(place.command(&["--json", "packs", "prepare"]).get_args());
    let output = command.output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    for component in said["prepared"].as_array().unwrap() {
        let code = match component["name"].as_str() {
            Some("task-store") => "compiled",
            _ => "unpacked",
        };
        assert_eq!(component["code"], code, "{said}");
    }
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        log.contains("cannot use precompiled code, so compiling here"),
        "{log}"
    );
}

#[test]
fn a_cache_outside_of_the_data_directory_is_the_users_alone() {
    let place = empty();
    let cache = place.path().join("apart");
    let flags = [
        "--json",
        "--cache-dir",
        cache.to_str().unwrap(),
        "packs",
        "prepare",
    ];
    assert!(place.run(&flags).status.success());
    assert_eq!(entries(&cache, ".cwasm").len(), 5);
    assert_eq!(entries(&place.data(), ".cwasm"), [""; 0]);
    // Another data directory starts warm with it.
    let other = empty();
    let output = other.run(&flags);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let codes = field_of_each(&said["prepared"], "code");
    assert!(codes.iter().all(|code| **code == "cached"), "{said}");
    std::fs::write(other.config(), format!("cache_dir = {cache:?}\n")).unwrap();
    assert!(other.run(&["packs", "prepare"]).status.success());
    for (mode, below) in [(0o777, ""), (0o770, "cache")] {
        std::fs::set_permissions(cache.join(below), std::fs::Permissions::from_mode(mode)).unwrap();
        let output = place.run(&flags);
        assert_eq!(output.status.code(), Some(2), "{mode:o}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("chmod") && said.contains("apart"), "{said}");
        std::fs::set_permissions(cache.join(below), std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[tokio::test]
async fn headers_are_compared_with_arguments_before_a_pack_is_ready_too() {
    let place = empty();
    std::fs::write(place.config(), conformance_pack()).unwrap();
    std::fs::create_dir(place.path().join("work")).unwrap();
    let server = place.serve_http(&["--tier", "full"]);
    let call = async |region: &'static str| {
        let params = json!({"name": "test_x_mcp_header", "arguments": {"region": "eu"}});
        let headers = [
            NEWEST,
            ("mcp-method", "tools/call"),
            ("mcp-name", "test_x_mcp_header"),
            ("mcp-param-region", region),
        ];
        post(&server, &headers, stateless("tools/call", params)).await
    };
    // Nothing was compiled before, so the first call comes while nobody knows what the pack takes.
    let (status, said) = call("us").await;
    assert_eq!(status, 400, "{said}");
    assert!(said.contains("-32020"), "{said}");
    let (status, said) = call("eu").await;
    assert_eq!(status, 200, "{said}");
}
