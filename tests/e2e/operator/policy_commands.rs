//! The operator's commands for policies: inspecting, adding and removing them, and notices of changed ones.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::altered_component::altered;
use crate::harness::{Place, guest};
use crate::https;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn config(place: &Place) -> String {
    std::fs::read_to_string(place.config()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A policy of another author that requests access to the ledger: a built-in policy under another name.
fn limit(place: &Place) -> PathBuf {
    let bytes = tollgate_components::builtin::policy("rate-limit").unwrap();
    let file = place.path().join("limit.wasm");
    std::fs::copy(altered(bytes, "rate-limit", "their-rate").path(), &file).unwrap();
    file
}

fn inspect(place: &Place, command: &str, file: &Path) -> (Value, String) {
    let output = place.run(&["--json", command, "inspect", path(file)]);
    let seen = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (seen, text(&place.run(&[command, "inspect", path(file)]).stdout))
}

#[test]
fn a_policy_shows_what_it_judges_and_wants_before_it_is_added() {
    let place = Place::new();
    let file = limit(&place);
    for command in ["policies", "packs"] {
        let (seen, said) = inspect(&place, command, &file);
        assert_eq!((&seen["kind"], &seen["problems"]), (&json!("policy"), &json!([])));
        assert_eq!(seen["bytes"], std::fs::metadata(&file).unwrap().len());
        assert_eq!(seen["anatomy"]["host_api"], "0.1.0");
        let manifest = &seen["manifest"];
        assert_eq!(
            (&manifest["name"], &manifest["phase"]),
            (&json!("their-rate"), &json!("request"))
        );
        assert_eq!(
            manifest["wants"],
            json!([{"what": "query the ledger", "line": "grants.ledger = true"}])
        );
        assert!(manifest["config_schema"]["properties"]["calls"].is_object());
        for line in [
            "kind      policy",
            "evaluates calls before they run",
            "grants.ledger = true",
            "Length of the time window in seconds",
            seen["sha256"].as_str().unwrap(),
        ] {
            assert!(said.contains(line), "{line}: {said}");
        }
    }
    let (seen, said) = inspect(&place, "policies", &guest("sql-access"));
    assert_eq!(seen["kind"], "pack");
    assert!(said.contains("sql_access_query"), "{said}");
    let describe_trap = place.run(&["policies", "inspect", path(&guest("describe-trap"))]);
    assert_eq!(describe_trap.status.code(), Some(1));
    assert!(text(&describe_trap.stderr).contains("it does not describe itself"));
}

fn add(place: &Place, file: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["policies", "add", path(file)];
    arguments.extend(more);
    place.run(&arguments)
}

#[test]
fn a_policy_asks_and_the_operator_grants() {
    let place = Place::with("# mine\n[server]\ntier = \"full\" # all\n");
    let before = config(&place);
    let file = limit(&place);
    let settings = ["--settings", r#"{"calls": 1, "seconds": 60}"#];
    let refused = add(&place, &file, &settings);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("policies add") && text(&refused.stderr).contains("--grant ledger")
    );
    for (more, why) in [
        (&["--grant", "all"][..], "calls"),
        (&["--grant", "all", "--settings", "[1]"], "not a JSON object"),
        (&["--grant", "process=git"], "does not ask for process=git"),
        (&["--grant", "all", "--tools", "["], "list of globs"),
    ] {
        let output = add(&place, &file, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(
            text(&output.stderr).contains(why),
            "{why}: {}",
            text(&output.stderr)
        );
        assert_eq!(config(&place), before, "{more:?}");
    }
    let wrong = place.run(&["packs", "add", path(&file)]);
    assert!(
        text(&wrong.stderr).contains("tollgate policies add"),
        "{}",
        text(&wrong.stderr)
    );
    let wrong = add(&place, &guest("sql-access"), &[]);
    assert!(
        text(&wrong.stderr).contains("tollgate packs add"),
        "{}",
        text(&wrong.stderr)
    );

    let more = [
        "--grant", "ledger", "--name", "limit", "--tools", "task_*", "--order", "5", "--audit",
    ];
    let added = add(&place, &file, &[&settings[..], &more[..]].concat());
    assert!(added.status.success(), "{}", text(&added.stderr));
    let after = config(&place);
    assert!(after.starts_with(before.trim_end()), "{after}");
    for line in [
        "[policies.limit]",
        "sha256 = ",
        "tools = [\"task_*\"]",
        "order = 5",
        "mode = \"audit\"",
        "config = { calls = 1, seconds = 60 }",
        "grants.ledger = true",
    ] {
        assert!(after.contains(line), "{line}: {after}");
    }
    let listed = place.run(&["--json", "policies", "list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let limit = &listed["policies"][0];
    assert_eq!(
        (&limit["loaded"], &limit["mode"]),
        (&json!(true), &json!("audit")),
        "{listed:#}"
    );
    let again = add(&place, &file, &[&settings[..], &more[..]].concat());
    assert!(
        text(&again.stderr).contains("--replace"),
        "{}",
        text(&again.stderr)
    );
    assert!(place.run(&["policies", "remove", "limit"]).status.success());
    assert_eq!(config(&place).trim_end(), before.trim_end());
    assert_eq!(place.run(&["policies", "remove", "limit"]).status.code(), Some(2));

    let builtin = place.run(&["policies", "add", "builtin:require-actor", "--settings", "{}"]);
    assert!(builtin.status.success(), "{}", text(&builtin.stderr));
    assert!(config(&place).contains("[policies.require-actor]\nsource = \"builtin:require-actor\""));
    let none = place.run(&["policies", "add", "builtin:none"]);
    assert!(
        text(&none.stderr).contains("the built-in policies are cel,"),
        "{}",
        text(&none.stderr)
    );
}

#[test]
fn a_policy_that_became_another_is_told_until_it_is_accepted() {
    let place = Place::new();
    let file = place.path().join("policy_faults.wasm");
    std::fs::copy(guest("policy-faults"), &file).unwrap();
    std::fs::write(place.config(), format!("[policies.mine]\nsource = {file:?}\n")).unwrap();
    let list = || text(&place.run(&["policies", "list"]).stderr);
    assert_eq!(list(), "");
    let other = altered(&std::fs::read(&file).unwrap(), "Judges badly.", "Judges worse.");
    std::fs::copy(other.path(), &file).unwrap();
    for _ in 0..2 {
        let said = list();
        assert!(
            said.contains("policy `mine` is a different component: it has a different sha256"),
            "{said}"
        );
        assert!(said.contains("tollgate policies accept mine"), "{said}");
    }
    let doctor = text(&place.run(&["doctor"]).stdout);
    assert!(
        doctor.contains("policy mine: policy `mine` is a different component"),
        "{doctor}"
    );
    assert!(doctor.contains("pin the hash in [policies.mine]"), "{doctor}");
    assert!(place.run(&["policies", "accept", "mine"]).status.success());
    assert_eq!(list(), "");
    assert_eq!(
        place.run(&["policies", "accept", "nobody"]).status.code(),
        Some(2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_from_another_machine_is_pinned_and_kept() {
    let place = Place::new();
    let server = https::serve(std::fs::read(guest("policy-faults")).unwrap()).await;
    let run = |arguments: Vec<String>| {
        let mut command = place.command(&["policies"]);
        command.args(arguments).env("SSL_CERT_FILE", server.certificate());
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let unpinned = run(vec!["add".to_owned(), server.url()]).await.unwrap();
    let said = text(&unpinned.stderr);
    let hash = said.split("--sha256 ").nth(1).unwrap_or_else(|| panic!("{said}"))[..64].to_owned();
    assert_eq!(config(&place), "");
    let add = ["add", &server.url(), "--sha256", &hash, "--name", "far"].map(str::to_owned);
    let added = run(add.to_vec()).await.unwrap();
    assert!(added.status.success(), "{}", text(&added.stderr));
    let asked = server.requests();
    // From now on the server is not needed.
    assert!(place.run(&["policies", "list"]).status.success());
    assert_eq!(server.requests(), asked);
    let kept = || {
        std::fs::read_dir(place.data().join("components"))
            .unwrap()
            .count()
    };
    assert_eq!(kept(), 1);
    let removed = run(vec!["remove".to_owned(), "far".to_owned()]).await.unwrap();
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    assert_eq!(kept(), 0);
}
