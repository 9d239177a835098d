//! `tollgate storage`: moving a database from a file to a server and back, as an operator does.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::server::Server;
use crate::harness::{Place, Session};

/// A file with a workspace whose tests fail.
fn place() -> Place {
    let place = Place::in_file(
        "[workspaces.app]\npath = \"app\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n",
    );
    let folder = place.path().join("app");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.sh"), "echo 'test t ... FAILED'; exit 1\n").unwrap();
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ] {
        let git = Command::new("git").current_dir(&folder).args(arguments).status();
        assert!(git.unwrap().success());
    }
    place
}

/// Work with every built-in pack.
async fn work(session: &Session, number: u32) {
    let workspace = format!("w{number}");
    let step = json!({"title": "s", "success_criteria": ["c"], "tests": ["t"]});
    let plan = json!({"workspace": workspace, "plan_title": "Pläne 🦀", "task_title": "T", "steps": [step]});
    session.ok("tasks_bootstrap", plan).await;
    let milestone = json!({"workspace": workspace, "milestone_id": "M01", "title": "M", "slices": [
        {"slice_id": "S01", "title": "S"}]});
    session.ok("gsd_plan_milestone", milestone).await;
    let task = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": workspace, "initial_phase": "spec_draft",
        "actor": "a", "actor_role": "orchestrator"});
    session.ok("task_create", task).await;
    let job = json!({"title": "Job", "goal": "g", "repo_root": "app"});
    session.ok("conductor_init", job).await;
    session.ok("test_run", json!({"workspace": "app"})).await;
    let limits = json!({"max_mutations": 5});
    session
        .ok("envelope_open", json!({"label": workspace, "limits": limits}))
        .await;
}

/// Replies of the packs about the work.
async fn told(place: &Place) -> Vec<Value> {
    let session = place.serve(&["--tier", "full"]).await;
    let mut told = Vec::new();
    for (tool, arguments) in [
        ("tasks_radar", json!({"workspace": "w1", "task": "TASK-001"})),
        ("gsd_status", json!({"workspace": "w1"})),
        ("task_list", json!({})),
        ("convergence_status", json!({"workspace": "app"})),
    ] {
        told.push(session.ok(tool, arguments).await);
    }
    session.close().await;
    told
}

fn hashes(place: &Place) -> Vec<String> {
    place.sql("SELECT hash FROM core_operations ORDER BY seq")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}{text}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Fails unless a command was refused with these words.
fn assert_refused(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", said(output));
    assert!(said(output).contains(words), "{}", said(output));
}

#[test]
fn a_database_where_no_host_has_worked_is_not_verified_and_stays_empty() {
    let mut place = Place::new();
    if place.server().is_none() {
        return;
    }
    std::fs::create_dir_all(place.data()).unwrap();
    std::fs::set_permissions(place.data(), std::fs::Permissions::from_mode(0o700)).unwrap();
    for _ in 0..2 {
        assert_refused(&place.run(&["ledger", "verify"]), "has no Tollgate tables");
    }
}

#[tokio::test]
async fn a_database_moves_to_a_server_and_back() {
    let Some(server) = Server::of_tests() else {
        return;
    };
    let url = server.url();
    let to = ["--json", "storage", "copy", "--to", &url];
    let from = ["--json", "storage", "copy", "--from", &url];
    let mut place = place();
    assert_refused(&place.run(&to), "there is no tollgate.db");
    let session = place.serve(&["--tier", "full"]).await;
    work(&session, 1).await;
    assert_refused(&place.run(&to), "host hst_");
    // Gone without a word: an envelope is open.
    session.kill();
    session.close().await;
    let before = told(&place).await;

    let copied = printed(&place.run(&to));
    let chain = hashes(&place);
    assert_eq!(copied["head"]["hash"], json!(chain.last().unwrap()));
    let rows = |table: &str| {
        let tables = copied["tables"].as_array().unwrap();
        let found = tables.iter().find(|copied| copied["table"] == table);
        found.unwrap()["rows"].as_u64().unwrap()
    };
    for table in [
        "core_operations",
        "core_envelopes",
        "tasks_roots",
        "gsd_milestones",
        "task_store_tasks",
        "conductor_jobs",
    ] {
        assert!(rows(table) > 0, "{table}");
    }
    assert_refused(&place.run(&to), "the target database is in use");

    assert!(place.move_to(Some(server)).is_none());
    assert_eq!(hashes(&place), chain);
    assert!(place.run(&["ledger", "verify"]).status.success());
    assert_eq!(told(&place).await, before);
    let session = place.serve(&["--tier", "full"]).await;
    work(&session, 2).await;
    session.close().await;
    let verified = place.run(&["ledger", "verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    let (on_server, chain) = (told(&place).await, hashes(&place));

    assert_refused(&place.run(&from), "already contains a ledger");
    for name in ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"] {
        let file = place.data().join(name);
        if file.exists() {
            std::fs::rename(file, place.path().join(name)).unwrap();
        }
    }
    let back = printed(&place.run(&from));
    let server = place.move_to(None);
    assert_eq!(back["head"]["hash"], json!(chain.last().unwrap()));
    let kept = hashes(&place);
    assert_eq!(kept[..chain.len()], chain);
    assert!(place.is_whole());
    assert_eq!(told(&place).await, on_server);
    let session = place.serve(&["--tier", "full"]).await;
    work(&session, 3).await;
    session.close().await;
    let verified = place.run(&["ledger", "verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    // The old file is behind what was done since: it is no source any more.
    for name in ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"] {
        let _ = std::fs::remove_file(place.data().join(name));
        let old = place.path().join(name);
        if old.exists() {
            std::fs::rename(old, place.data().join(name)).unwrap();
        }
    }
    let another = Server::of_tests().unwrap();
    let stale = ["storage", "copy", "--to", &another.url()];
    assert_refused(
        &place.run(&stale),
        "the ledger of the source database failed verification",
    );
    drop(server);
}

#[test]
fn a_database_is_shown_and_checked_wherever_it_is() {
    let mut place = place();
    let status = ["--json", "storage", "status"];
    assert_refused(&place.run(&status), "no host has ever used");
    assert_eq!(place.call("envelope_open", &json!({})).0, 0);
    let shown = printed(&place.run(&status));
    assert_eq!(
        [&shown["engine"], &shown["works"], &shown["hosts"]],
        [&json!("SQLite"), &json!(true), &json!([])]
    );
    assert!(shown["bytes"].as_u64().unwrap() > 0 && shown["rows"].as_u64().unwrap() > 0);
    assert!(shown["migrations"].as_array().unwrap().len() > 4);
    let checked = printed(&place.run(&["--json", "storage", "check"]));
    assert_eq!(checked["ok"], json!(true), "{checked}");

    let nowhere = [
        "--json",
        "--database",
        "postgres://ada:secret@127.0.0.1:1/t",
        "storage",
    ];
    for command in ["status", "check"] {
        let output = place.run(&[&nowhere[..], &[command]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("127.0.0.1:1") && !text.contains("secret"), "{text}");
    }
    let Some(server) = Server::of_tests() else {
        return;
    };
    place.move_to(Some(server));
    let checked = printed(&place.run(&["--json", "storage", "check"]));
    let about = |about: &str| {
        let checks = checked["checks"].as_array().unwrap();
        checks.iter().find(|check| check["about"] == about).unwrap()["state"].clone()
    };
    assert_eq!([about("triggers"), about("fsync")], [json!("warn"), json!("ok")]);
    printed(&place.run(&["--json", "storage", "init"]));
    let output = place.run(&["--json", "storage", "check"]);
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    let about = |about: &str| {
        let checks = checked["checks"].as_array().unwrap();
        checks.iter().find(|check| check["about"] == about).unwrap()["state"].clone()
    };
    // The data directory knows an end of the ledger that this database does not have.
    assert_eq!([about("triggers"), about("ledger")], [json!("ok"), json!("fail")]);
    assert_eq!(output.status.code(), Some(1));
    let shown = printed(&place.run(&status));
    assert_eq!(
        (&shown["engine"], &shown["rows"]),
        (&json!("PostgreSQL"), &json!(0))
    );
}

#[test]
fn a_place_on_a_server_is_made_once_and_its_password_is_in_a_file() {
    let Some(server) = Server::of_tests() else {
        return;
    };
    let place = place();
    let url = server.url();
    let admin = url[..url.find("schema=").unwrap()].trim_end_matches(['?', '&']);
    let name = format!("tg-e2e-{}", std::process::id());
    let file = place.path().join("password");
    let file = file.to_str().unwrap();
    let mut init = vec![
        "storage", "init", "--admin", admin, "--role", &name, "--name", &name,
    ];
    assert_refused(&place.run(&init), "creating it needs a password");
    init.extend(["--password-file", file]);
    let first = place.run(&init);
    let second = place.run(&init);
    let password = std::fs::read_to_string(file).unwrap();
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    server.ask(&format!("DROP DATABASE \"{name}\" WITH (FORCE)"));
    server.ask(&format!("DROP ROLE \"{name}\""));
    for (output, says) in [(&first, "created"), (&second, "already exists")] {
        assert!(output.status.success(), "{}", said(output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(output);
        assert!(text.contains(&format!("database {name}: {says}")), "{text}");
        assert!(text.contains(&format!("postgres://{name}:PASSWORD@")), "{text}");
        assert!(!text.contains(password.trim()), "{text}");
    }
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(password.trim().len(), 64);
}
