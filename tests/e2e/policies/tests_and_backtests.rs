//! Policy tests: with written cases, and with recorded calls of the ledger.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::host::{Authority, HostContext};
use tollgate::sources;
use tollgate_components::loading::Loader;
use tollgate_sandbox::workspaces::Workspaces;

use crate::harness::{Place, Session, guest};

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

/// Runs `policies` with `--json`, and returns the exit code and the output.
fn policies(place: &Place, arguments: &[&str]) -> (i32, Value) {
    let mut all = vec!["--json", "policies"];
    all.extend(arguments);
    let output = place.run(&all);
    let printed = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), printed)
}

#[test]
fn every_built_in_policy_says_what_its_cases_expect() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/policies");
    for policy in tollgate_components::builtin::policies() {
        let cases = folder.join(policy).join("cases.toml");
        let (code, told) = policies(&place, &["test", policy, "--case", cases.to_str().unwrap()]);
        assert_eq!((code, &told["failed"]), (0, &json!(0)), "{policy}: {told:#}");
        assert!(told["passed"].as_u64().unwrap() > 5, "{policy}: {told:#}");
    }
}

/// Runs cases of the guest `policy-faults`, whose settings select its faults.
fn policy_faults(place: &Place, cases: &str) -> (std::process::Output, String) {
    let file = place.path().join("cases.toml");
    std::fs::write(&file, cases).unwrap();
    let output = place.run(&[
        "policy",
        "test",
        guest("policy-faults").to_str().unwrap(),
        "--case",
        file.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, said)
}

#[test]
fn what_goes_wrong_in_a_policy_can_be_expected() {
    let cases = [
        ("before", "trap", "crash"),
        ("before", "loop", "deadline"),
        ("before", "grow", "memory"),
        ("before", "give up", "cannot_judge"),
        ("before", "amend to no object", "bad_amendment"),
        ("before", "remember", "cannot_judge"),
        ("after", "trap", "crash"),
        ("after", "pry", "cannot_judge"),
    ];
    let mut text = String::from(
        "[[case]]\nname = \"it remembers in a call that writes\"\ntool = \"t\"\nphase = \"after\"\nresult = {}\n\
         settings = { after = \"remember\" }\nexpect = \"pass\"\n\
         [[case]]\nname = \"its dislikes\"\ntool = \"t\"\nsettings = { dislikes = [\"one\"] }\n\
         expect = { bad_settings = \"one\" }\n",
    );
    for (phase, deed, cause) in cases {
        let result = if phase == "after" { "result = {}\n" } else { "" };
        text.push_str(&format!(
            "[[case]]\nname = \"{phase} {deed}\"\ntool = \"t\"\nphase = \"{phase}\"\n{result}\
             settings = {{ {phase} = \"{deed}\" }}\nexpect = {{ fail = \"{cause}\" }}\n"
        ));
    }
    let (output, said) = policy_faults(&Place::new(), &text);
    assert!(
        output.status.success() && said.ends_with("10 of 10 cases as expected\n"),
        "{said}"
    );
}

#[test]
fn a_case_has_the_memory_and_the_input_schema_that_it_states() {
    let place = Place::new();
    let file = place.path().join("cases.toml");
    std::fs::write(
        &file,
        r#"
        [defaults]
        tool = "note_add"

        [[case]]
        name = "entries that are over are not there"
        arguments = { label = "deny" }
        at = "2026-01-05T12:00:00Z"
        memory = { denied = 2, gone = { number = 1, until = "2026-01-05T11:59:59Z" }, who = "ada", soon = { text = "x", until = "10m" } }
        expect = { deny = "DENIED", text = "before/note_add=1 denied=3 soon=x who=ada" }

        [[case]]
        name = "a case without memory has none"
        arguments = { label = "deny" }
        expect = { deny = "DENIED", text = "before/note_add=1 denied=1" }

        [[case]]
        name = "a schema"
        arguments = { label = "schema" }
        input_schema = { type = "object", properties = { reason = { type = "string" } } }
        expect = { deny = "SCHEMA", text = '{"properties":{"reason":{"type":"string"}},"type":"object"}' }

        [[case]]
        name = "no schema"
        arguments = { label = "schema" }
        expect = { deny = "SCHEMA", text = "null" }
        "#,
    )
    .unwrap();
    let component = guest("policy-memory");
    let (code, told) = policies(
        &place,
        &[
            "test",
            component.to_str().unwrap(),
            "--case",
            file.to_str().unwrap(),
        ],
    );
    assert_eq!((code, &told["passed"]), (0, &json!(4)), "{told:#}");
}

#[test]
fn what_is_not_as_expected_is_shown_and_the_rest_runs() {
    let (output, said) = policy_faults(
        &Place::new(),
        "[[case]]\nname = \"one\"\ntool = \"t\"\nsettings = { before = \"deny\" }\nexpect = \"pass\"\n\
         [[case]]\nname = \"two\"\ntool = \"t\"\nexpect = \"pass\"\n\
         [[case]]\nname = \"three\"\ntool = \"t\"\nsettings = { before = \"amend to what no tool takes\" }\n\
         expect = { amend = { bogus = 2 } }\n",
    );
    assert_eq!(output.status.code(), Some(1));
    for line in [
        "FAILED  one",
        "expected: pass",
        "got:      deny DROPTABLE",
        "ok      two",
        "arguments.bogus: expected 2, got 1",
        "1 of 3 cases as expected",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn a_file_with_mistakes_is_told_all_of_them_and_nothing_runs() {
    let place = Place::new();
    let (output, said) = policy_faults(
        &place,
        "[[case]]\nname = \"one\"\nphase = \"later\"\nexpect = \"maybe\"\n[[case]]\ntool = 3\nsetings = {}\n",
    );
    assert_eq!((output.status.code(), said.as_str()), (Some(2), ""));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("have 7 mistakes"), "{said}");
    assert!(
        said.contains("did you mean settings?") && said.contains("cases.toml:3:9"),
        "{said}"
    );
    let unknown = place.run(&["policy", "test", "nobody", "--case", "none.toml"]);
    assert_eq!(unknown.status.code(), Some(2));
}

const RECORDING: &str = "[artifacts]\nenabled = true\narguments = true\nresults = true\n";

fn task(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
           "actor": "ada", "actor_role": "orchestrator"})
}

/// Every file of a data directory, without the two files that SQLite creates for readers.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.path().display().to_string();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                found.insert(name, Vec::new());
            } else if !name.ends_with("-shm") && !name.ends_with("-wal") {
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// A ledger of calls: two without recorded arguments, four with them, and one that a policy denied.
async fn recorded() -> (Place, Session) {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task("zero")).await;
    session.ok("task_list", json!({})).await;
    session.close().await;
    let denying = "[policies.closed]\nsource = \"builtin:cel\"\nlimits.time_ms = 10000\ntools = [\"task_get\"]\n\
                   config = { when = \"true\", code = \"CLOSED\", message = \"no\" }\n";
    std::fs::write(place.config(), format!("{RECORDING}{denying}")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    for title in ["one", "two", TOKEN] {
        session.ok("task_create", task(title)).await;
    }
    session.refused("task_get", json!({"task_id": "x"})).await;
    session.refused("task_create", json!({"title": 3})).await;
    session.ok("task_list", json!({})).await;
    (place, session)
}

fn of<'a>(told: &'a Value, tool: &str) -> &'a Value {
    let tools = told["backtest"]["tools"].as_array().unwrap();
    tools
        .iter()
        .find(|counted| counted["tool"] == tool)
        .unwrap_or_else(|| panic!("{tool}: {told:#}"))
}

#[tokio::test]
async fn recorded_calls_are_shown_to_a_policy_that_was_not_there() {
    let (place, session) = recorded().await;
    let limit = [
        "backtest",
        "rate-limit",
        "--settings",
        r#"{"calls": 2, "seconds": 600}"#,
    ];
    // A host works here meanwhile.
    let (code, told) = policies(&place, &limit);
    assert_eq!(code, 0, "{told:#}");
    let create = of(&told, "task_create");
    // The one before the recording counts: it would have been the first of two.
    assert_eq!(
        (&create["calls"], &create["denied"], &create["amended"]),
        (&json!(3), &json!(2), &json!(0)),
        "{told:#}"
    );
    assert_eq!(create["examples"][0]["code"], "RATE_LIMITED");
    assert_eq!(of(&told, "task_list")["denied"], 0);
    let missing = &told["backtest"]["missing"];
    assert_eq!(
        missing,
        &json!({"not_recorded": 2, "denied": 1, "refused_before": 1})
    );
    session.close().await;

    let before = contents(&place.data());
    let (_, told) = policies(
        &place,
        &[
            "backtest",
            "secret-scan",
            "--settings",
            r#"{"arguments": "redact", "results": false}"#,
            "--tools",
            "task_create",
        ],
    );
    let create = of(&told, "task_create");
    assert_eq!(
        (&create["calls"], &create["amended"]),
        (&json!(3), &json!(1)),
        "{told:#}"
    );
    assert_eq!(create["examples"][0]["places"], json!(["arguments.title"]));
    assert!(!told.to_string().contains(TOKEN));
    // Results too: what was recorded of them is judged.
    let (_, told) = policies(
        &place,
        &[
            "backtest",
            "builtin:secret-scan",
            "--settings",
            r#"{"patterns": ["\\btwo\\b"], "arguments": "redact"}"#,
        ],
    );
    assert_eq!(of(&told, "task_list")["denied"], 1, "{told:#}");
    assert_eq!(of(&told, "task_create")["denied"], 2, "{told:#}");
    assert_eq!(contents(&place.data()), before);
}

#[tokio::test]
async fn what_cannot_be_shown_any_more_is_counted_by_why() {
    let (place, session) = recorded().await;
    session.close().await;
    if !place.is_in_file() {
        // A server has the content in a table.
        return;
    }
    let all = place.sql("SELECT hash FROM core_artifacts WHERE kind = 'arguments' ORDER BY op_id");
    std::fs::remove_file(place.data().join("artifacts").join(&all[0])).unwrap();
    std::fs::write(place.data().join("artifacts").join(&all[1]), "{}").unwrap();
    let output = place.run(&[
        "policy",
        "backtest",
        "require-actor",
        "--since",
        "1h",
        "--tools",
        "task_*",
    ]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in [
        "2: the arguments were not recorded",
        "1: the recorded arguments have expired",
        "1: the recorded arguments do not match the hash in the ledger",
        "1: a policy denied the call",
        "arguments = true",
        "MEDIAN µs",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let nothing = Place::new();
    let output = nothing.run(&["policy", "backtest", "require-actor"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!nothing.data().join("tollgate.db").exists());
    let bad = place.run(&[
        "policy",
        "backtest",
        "rate-limit",
        "--settings",
        r#"{"calls": 0}"#,
    ]);
    let said = String::from_utf8_lossy(&bad.stderr);
    assert!(bad.status.code() == Some(2) && said.contains("seconds"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_brings_in_no_code_of_packs() {
    let place = Place::in_file("");
    assert_eq!(place.call("task_list", &json!({})).0, 0);
    let config = Config::load(Some(&place.config())).unwrap();
    let authority = Authority {
        executable: env!("CARGO_BIN_EXE_tollgate").into(),
        environment: None,
        umask: 0o077,
        cache_dir: None,
        server: None,
    };
    let context = HostContext::frozen(&place.data(), authority).unwrap();
    let policy = sources::named_policy(&config, "secret-scan").unwrap();
    let loaded = context
        .load_to_try(&config, &Workspaces::default(), policy)
        .await
        .unwrap();
    assert_eq!(loaded.packs().len(), 5);
    assert!(loaded.find("task_list").is_some());
    for pack in loaded.packs() {
        assert!(
            Loader::brought(context.loader(), &pack.hash).is_none(),
            "{}",
            pack.manifest.name
        );
    }
}
