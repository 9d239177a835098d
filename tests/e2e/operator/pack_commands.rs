//! The operator's commands: inspecting, adding and removing components, creating a configuration and checking
//! everything.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::{Place, guest};
use crate::https;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

fn config(place: &Place) -> String {
    std::fs::read_to_string(place.config()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_component_shows_what_it_wants_before_it_is_added() {
    let place = Place::new();
    let file = guest("grant-missing");
    let seen = json_of(&place.run(&["--json", "packs", "inspect", path(&file)]));
    assert_eq!(seen["bytes"], std::fs::metadata(&file).unwrap().len());
    assert_eq!(seen["anatomy"]["host_api"], "0.1.0");
    assert_eq!(seen["anatomy"]["exports"], json!(["pack"]));
    assert_eq!(
        seen["manifest"]["wants"],
        json!([
            {"what": "run `cargo`", "line": "grants.process = [\"cargo\"]"},
            {"what": "query the ledger", "line": "grants.ledger = true"},
            {"what": "keep artifacts", "line": "grants.artifacts = true"},
        ])
    );
    assert_eq!(seen["manifest"]["tools"][0]["name"], "grant_missing_hello");
    assert_eq!(seen["manifest"]["tools"][0]["effect"], "read");

    let output = place.run(&["packs", "inspect", "--static", path(&file)]);
    let said = text(&output.stdout);
    assert!(output.status.success());
    assert!(said.contains(seen["sha256"].as_str().unwrap()), "{said}");
    assert!(!said.contains("grant_missing_hello"), "{said}");
}

#[test]
fn what_cannot_be_a_pack_says_why_and_is_not_run() {
    let place = Place::new();
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(200 << 20).unwrap();
    let output = place.run(&["packs", "inspect", path(large.path())]);
    let said = text(&output.stderr);
    assert!(
        said.contains("it has 209715200 bytes; at most 67108864 are allowed"),
        "{said}"
    );

    let manifest_invalid = guest("manifest-invalid");
    let output = place.run(&["packs", "inspect", path(&manifest_invalid)]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("no title") && said.contains("no description"),
        "{said}"
    );
}

#[test]
fn a_component_asks_and_the_operator_grants() {
    let place = Place::with("# mine\n[server]\ntier = \"full\" # all\n");
    let before = config(&place);
    let file = guest("grant-missing");
    let refused = place.run(&["packs", "add", path(&file)]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(config(&place), before);
    let said = text(&refused.stderr);
    assert!(
        said.contains("--grant process=cargo --grant ledger --grant artifacts"),
        "{said}"
    );

    let wrong = place.run(&[
        "packs",
        "add",
        path(&file),
        "--grant",
        "process=git,cargo",
        "--grant",
        "colour=red",
    ]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = text(&wrong.stderr);
    assert!(
        said.contains("colour=red") && said.contains("does not ask for process=git"),
        "{said}"
    );
    assert_eq!(config(&place), before);

    let added = place.run(&[
        "packs",
        "add",
        path(&file),
        "--grant",
        "process=cargo",
        "--grant",
        "ledger",
        "--grant",
        "artifacts",
    ]);
    assert!(added.status.success(), "{}", text(&added.stderr));
    let after = config(&place);
    assert!(after.starts_with(before.trim_end()), "{after}");
    assert!(
        after.contains("sha256 = ") && after.contains("grants.process = [\"cargo\"]"),
        "{after}"
    );
    assert_eq!(place.call("grant_missing_hello", &json!({})).0, 0);

    let again = place.run(&["packs", "add", path(&file), "--grant", "all"]);
    assert!(text(&again.stderr).contains("--replace"));
    let again = place.run(&["packs", "add", path(&file), "--replace"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(config(&place), after);

    assert!(place.run(&["packs", "remove", "grant-missing"]).status.success());
    assert_eq!(config(&place).trim_end(), before.trim_end());
    let unknown = place.run(&["packs", "remove", "grant-missing"]);
    assert_eq!(unknown.status.code(), Some(2));
    let builtin = place.run(&["packs", "remove", "gsd"]);
    assert!(text(&builtin.stderr).contains("[packs.gsd]\nenabled = false"));
}

#[test]
fn what_would_not_load_is_not_added() {
    let place = Place::new();
    for (name, why) in [
        ("name-taken", "tool `task_get` also belongs to"),
        (
            "migration-foreign",
            "cannot run its migrations: step 0001_init, statement 2",
        ),
    ] {
        let output = place.run(&["packs", "add", path(&guest(name)), "--grant", "all"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
        assert_eq!(config(&place), "", "{name}");
    }
    let pin = "1".repeat(64);
    let output = place.run(&["packs", "add", path(&guest("sql-access")), "--sha256", &pin]);
    assert!(text(&output.stderr).contains("which differs from --sha256"));
    assert_eq!(config(&place), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_from_another_machine_is_pinned_and_kept() {
    let place = Place::new();
    let bytes = std::fs::read(guest("sql-access")).unwrap();
    let server = https::serve(bytes.clone()).await;
    let run = |arguments: Vec<String>| {
        let mut command = place.command(&["packs"]);
        command.args(arguments).env("SSL_CERT_FILE", server.certificate());
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let add = |more: &[&str]| {
        let mut arguments = vec!["add".to_owned(), server.url()];
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        arguments
    };
    let unpinned = run(add(&[])).await.unwrap();
    let said = text(&unpinned.stderr);
    let hash = said.split("--sha256 ").nth(1).unwrap_or_else(|| panic!("{said}"))[..64].to_owned();
    let wrong = run(add(&["--sha256", &"2".repeat(64)])).await.unwrap();
    let said = text(&wrong.stderr);
    assert!(
        said.contains(&hash) && said.contains("but the pinned one is 2222"),
        "{said}"
    );
    assert_eq!(config(&place), "");
    let added = run(add(&["--sha256", &hash])).await.unwrap();
    assert!(added.status.success(), "{}", text(&added.stderr));
    let asked = server.requests();
    // From now on the server is not needed.
    assert_eq!(place.call("sql_access_query", &json!({"sql": "SELECT 1"})).0, 0);
    assert_eq!(server.requests(), asked);
    assert!(
        run(vec!["remove".to_owned(), "sql-access".to_owned()])
            .await
            .unwrap()
            .status
            .success()
    );
    let kept = std::fs::read_dir(place.data().join("components"))
        .unwrap()
        .count();
    assert_eq!(kept, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_servers_and_small_enough_answers_count() {
    let place = Place::new();
    let server = https::serve(vec![0; (64 << 20) + 1]).await;
    let url = server.url();
    let clear = url.replace("https://", "http://");
    for (source, certificate, why) in [
        (url.clone(), None, "cannot download"),
        (url.clone(), Some(server.certificate()), "larger than"),
        (
            format!("{url}/nothing"),
            Some(server.certificate()),
            "returned 404",
        ),
        (clear, Some(server.certificate()), "cannot be downloaded"),
    ] {
        let mut command = place.command(&["packs", "add", &source]);
        if let Some(certificate) = certificate {
            command.env("SSL_CERT_FILE", certificate);
        }
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{source}");
        assert!(
            text(&output.stderr).contains(why),
            "{source}: {}",
            text(&output.stderr)
        );
        assert_eq!(config(&place), "");
    }
}

#[test]
fn a_configuration_to_start_from_loads_and_never_replaces_one() {
    let place = Place::new();
    let fresh = place.path().join("fresh/tollgate.toml");
    let init = || {
        let mut command = place.command(&["init"]);
        command.args(["--config", path(&fresh)]);
        command
    };
    assert!(init().output().unwrap().status.success());
    let written = std::fs::read_to_string(&fresh).unwrap();
    assert!(init().args(["packs", "list"]).output().is_ok());
    std::fs::write(&fresh, "[server]\n").unwrap();
    let again = init().output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&fresh).unwrap(), "[server]\n");
    let printed = place.run(&["init", "--print"]);
    assert_eq!(text(&printed.stdout).trim_end(), written.trim_end());
    std::fs::write(place.config(), written).unwrap();
    assert!(place.run(&["packs", "list"]).status.success());
}

fn findings(place: &Place) -> (i32, Vec<Value>) {
    let mut command = place.command(&["--json", "doctor"]);
    let output = command
        .current_dir(place.path())
        .env("HOME", place.path())
        .output()
        .unwrap();
    let found = json_of(&output)["findings"].as_array().unwrap().clone();
    (output.status.code().unwrap(), found)
}

fn about<'a>(found: &'a [Value], about: &str) -> Vec<&'a str> {
    let of = found.iter().filter(|finding| finding["about"] == about);
    of.map(|finding| finding["state"].as_str().unwrap()).collect()
}

#[test]
fn a_healthy_host_is_told_so() {
    let place = Place::with("[workspaces.main]\npath = \"work\"\n");
    std::fs::create_dir(place.path().join("work")).unwrap();
    let (code, found) = findings(&place);
    assert_eq!(code, 0, "{found:#?}");
    for thing in [
        "configuration",
        "workspaces",
        "data directory",
        "disk",
        "cache",
        "hosts",
        "database",
        "ledger",
    ] {
        assert_eq!(about(&found, thing), ["ok"], "{thing}: {found:#?}");
    }
    assert_eq!(about(&found, "pack task-store"), ["ok"]);
    assert_eq!(about(&found, "clients"), ["note"]);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let place = Place::with(&format!(
        "[workspaces.main]\npath = \".\"\n[workspaces.gone]\npath = \"gone\"\n\
         [packs.sql-access]\nsource = {:?}\ngrants.process = [\"no-such-program\"]\ngrants.workspaces = [\"nowhere\"]\n\
         [packs.grant-missing]\nsource = {:?}\n",
        guest("sql-access"),
        guest("grant-missing")
    ));
    let exposed = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.data(), exposed).unwrap();
    std::fs::write(
        place.path().join(".mcp.json"),
        r#"{"mcpServers": {"tollgate": {"command": "/nowhere/tollgate", "args": ["serve"]}}}"#,
    )
    .unwrap();
    let (code, found) = findings(&place);
    assert_eq!(code, 1);
    assert_eq!(about(&found, "data directory"), ["problem"], "{found:#?}");
    // One for the directory that holds the data directory, one for the one that is not there.
    assert_eq!(about(&found, "workspaces"), ["problem", "problem"]);
    assert_eq!(about(&found, "pack grant-missing"), ["problem"; 3]);
    // It is not pinned, and its grant names no workspace.
    assert_eq!(about(&found, "pack sql-access"), ["warning", "warning"]);
    assert_eq!(about(&found, "program no-such-program"), ["warning"]);
    let client = found
        .iter()
        .find(|finding| finding["about"].as_str().unwrap().starts_with("client "));
    assert_eq!(client.unwrap()["state"], "problem");
    for finding in found.iter().filter(|finding| finding["state"] == "warning") {
        assert!(finding["remedy"].is_string(), "{finding}");
    }
}

#[test]
fn ten_mistakes_are_told_at_once_and_nothing_starts() {
    let place = Place::with(
        "data_dir = 3\n[server]\nteir = 1\nhttp = \"here\"\ntier = \"all\"\n[ledger]\nmirror = 2\n\
         [packs.mine]\nexclude = [\"[\"]\n[packs.mine.limits]\nmemory_mib = 0\n[workspaces.a]\ngit = \"push\"\n\
         [packs.far]\nsource = \"https://example.org/a.wasm\"\n",
    );
    let output = place.run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("has 11 problems"), "{said}");
    for place_of_one in [
        ":1:", ":3:", ":4:", ":5:", ":7:", ":8:", ":9:", ":11:", ":12:", ":13:", ":15:",
    ] {
        assert!(
            said.contains(&format!("tollgate.toml{place_of_one}")),
            "{place_of_one} {said}"
        );
    }
    assert!(!place.data().join("tollgate.db").exists());
    let (code, found) = findings(&place);
    assert_eq!(code, 1);
    assert_eq!(
        about(&found, "configuration")
            .iter()
            .filter(|state| **state == "problem")
            .count(),
        11
    );
    assert_eq!(about(&found, "database"), ["ok"]);
}
