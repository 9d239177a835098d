//! Test runs and changes of files by a real client: fingerprints, repetition, limits, and a killed host.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::path::PathBuf;
use std::process::Command;

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Place, Session, params, until};

/// A failing run in the format of a Rust test tool. Its folder, process and time differ from run to run.
const FAILING: &str = r#"echo "running 1 test"
echo "test tests::adds ... FAILED"
echo
echo "failures:"
echo
echo "---- tests::adds stdout ----"
echo
echo "thread 'tests::adds' ($$) panicked at $PWD/src/lib.rs:25:9:"
echo "assertion failed: add(1, 2) == 3"
echo
echo "failures:"
echo "    tests::adds"
echo
echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.$$s"
exit 101
"#;

/// Two workspaces, `one` and `other`, each a repository whose tests fail in the same way.
fn place() -> Place {
    let place = Place::with(
        "[workspaces.one]\npath = \"one\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         [workspaces.other]\npath = \"other/folder\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n",
    );
    for folder in ["one", "other/folder"] {
        let path = place.path().join(folder);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("run.sh"), FAILING).unwrap();
        std::fs::write(path.join("calc.py"), "def add(a, b):\n    return a - b\n").unwrap();
        for arguments in [
            &["init", "-q"][..],
            &["add", "-A"],
            &[
                "-c",
                "user.name=Ada",
                "-c",
                "user.email=ada@example.org",
                "commit",
                "-qm",
                "first",
            ],
        ] {
            let status = Command::new("git").current_dir(&path).args(arguments).status();
            assert!(status.unwrap().success());
        }
    }
    place
}

fn one(place: &Place, file: &str) -> PathBuf {
    place.path().join("one").join(file)
}

async fn open(session: &Session, limits: Value) -> String {
    let opened = session.ok("envelope_open", json!({"limits": limits})).await;
    opened["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn one_failure_has_one_fingerprint_in_two_folders() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({})).await;
    let here = session.ok("test_run", json!({"workspace": "one"})).await;
    let there = session.ok("test_run", json!({"workspace": "other"})).await;
    assert_eq!(here["failure_fingerprint"], there["failure_fingerprint"]);
    assert_eq!(here["passed"], false);
    let failure = here["failure_fingerprint"].as_str().unwrap();
    std::fs::write(one(&place, "run.sh"), FAILING.replace("adds", "subtracts")).unwrap();
    let different = session.ok("test_run", json!({"workspace": "one"})).await;
    assert_ne!(different["failure_fingerprint"], failure);
    let found = session
        .ok("ledger_query", json!({"failure_fingerprint": failure}))
        .await;
    let tools: Vec<&Value> = found["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| &operation["tool"])
        .collect();
    assert_eq!(tools, ["test_run", "test_run"]);
    let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(
        shown["last_failure_fingerprint"],
        different["failure_fingerprint"]
    );
    assert_eq!(
        shown["counters"],
        json!({"mutation_count": 0, "test_run_count": 3, "observed_edits": 1, "open_sec": shown["counters"]["open_sec"]})
    );
    session.close().await;
    assert_eq!(
        place.sql("SELECT failing_tests || failure_class FROM core_operations WHERE tool = 'test_run' ORDER BY seq LIMIT 1"),
        ["[\"tests::adds\"]test_failure"]
    );
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn edits_in_circles_and_failures_that_stay_are_flagged() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({})).await;
    let mut log = String::new();
    for content in ["A", "B", "A", "B", "B"] {
        std::fs::write(
            one(&place, "calc.py"),
            format!("def add(a, b):\n    return {content}\n"),
        )
        .unwrap();
        let result = session
            .call_raw("mutation_record", json!({"workspace": "one"}))
            .await;
        let meta = serde_json::to_value(result.meta.unwrap()).unwrap();
        let said = result.structured_content.unwrap();
        let ran = session.ok("test_run", json!({"workspace": "one"})).await;
        let mutation = &meta["tollgate/mutation"];
        log += &format!(
            "{} | no_op {} oscillation {} | {} {}\n",
            said["message"].as_str().unwrap(),
            mutation["no_op"],
            mutation["oscillation"],
            ran["non_progress"],
            ran["message"].as_str().unwrap()
        );
    }
    let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
    log += &format!("{}\n", shown["flags"]);
    let status = session
        .ok("convergence_status", json!({"workspace": "one"}))
        .await;
    log += &format!("{}\n", status["message"]);
    expect![[r#"
        1 file changed, +1 -1 | no_op null oscillation null | false failed: 0 passed, 1 failed, 0 skipped
        1 file changed, +1 -1 | no_op null oscillation null | true failed: 0 passed, 1 failed, 0 skipped; same failure seen 2 times across 1 edit; no progress
        1 file changed, +1 -1; oscillation: the work tree is back in its state of 2 edits ago | no_op null oscillation {"period":2} | true failed: 0 passed, 1 failed, 0 skipped; same failure seen 3 times across 2 edits; no progress; edits repeat with period 2
        1 file changed, +1 -1; oscillation: the work tree is back in its state of 2 edits ago | no_op null oscillation {"period":2} | true failed: 0 passed, 1 failed, 0 skipped; same failure seen 4 times across 3 edits; no progress; edits repeat with period 2
        nothing changed; no-op: same state as the previous record | no_op true oscillation null | true failed: 0 passed, 1 failed, 0 skipped; same failure seen 5 times across 3 edits; no progress; edits repeat with period 2
        {"no_op":true,"non_progress":true,"failure_seen":5,"failure_mutations":3}
        "same failure seen 5 times across 3 edits; the last edit had no effect"
    "#]].assert_eq(&log);
    session.close().await;
    let rows = place.sql(
        "SELECT diff_stats || ' ' || changed_paths || ' ' || short_diff || ' ' || op_type
         FROM core_operations WHERE tool = 'mutation_record' ORDER BY seq LIMIT 1",
    );
    expect![[r#"{"files_changed":1,"insertions":1,"deletions":1} ["calc.py"] ~ calc.py mutation"#]]
        .assert_eq(&rows.join("\n"));
}

#[tokio::test]
async fn the_test_run_past_the_limit_is_only_refused() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"max_test_runs": 2, "max_mutations": 1})).await;
    session.ok("test_run", json!({"workspace": "one"})).await;
    session
        .ok("test_report", json!({"workspace": "one", "exit_code": 1}))
        .await;
    for (tool, arguments) in [
        ("test_run", json!({"workspace": "one"})),
        ("test_report", json!({"exit_code": 0})),
    ] {
        let refusal = session.refused(tool, arguments).await;
        assert_eq!(refusal["code"], "TEST_BUDGET_EXHAUSTED");
    }
    let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(
        (&shown["state"], &shown["counters"]["test_run_count"]),
        (&json!("OPEN"), &json!(2))
    );
    session.ok("mutation_record", json!({"workspace": "one"})).await;
    let refusal = session
        .refused("mutation_record", json!({"workspace": "one"}))
        .await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED");
    session.close().await;
}

#[tokio::test]
async fn a_host_that_dies_in_a_test_run_leaves_one_interrupted_operation() {
    let place = place();
    std::fs::write(
        one(&place, "run.sh"),
        "echo > started\nwhile true; do sleep 1; done\n",
    )
    .unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"max_test_runs": 5})).await;
    let running = session
        .client()
        .call_tool(params("test_run", json!({"workspace": "one"})));
    let killer = async {
        until(async || one(&place, "started").exists()).await;
        session.kill();
    };
    let (ran, ()) = tokio::join!(running, killer);
    assert!(ran.is_err());
    let next = place.serve(&["--tier", "full"]).await;
    let shown = next.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(
        (&shown["state"], &shown["counters"]["test_run_count"]),
        (&json!("CLOSED_INTERRUPTED"), &json!(1))
    );
    next.close().await;
    assert_eq!(
        place.sql("SELECT coalesce(CAST(success AS TEXT), 'unknown') || ' ' || failure_class FROM core_operations WHERE tool = 'test_run'"),
        ["unknown interrupted"]
    );
}

#[tokio::test]
async fn what_the_operator_did_not_allow_is_refused() {
    let place = Place::with(
        "[workspaces.one]\npath = \"one\"\ntests.default = [\"sh\", \"-c\", \"exit 1\"]\n\
         [packs.convergence]\ngrants.process = [\"git\"]\n",
    );
    std::fs::create_dir(place.path().join("one")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let mut log = String::new();
    for (tool, arguments) in [
        ("test_run", json!({"workspace": "one"})),
        ("test_run", json!({"workspace": "nowhere"})),
        ("mutation_record", json!({"workspace": "one"})),
    ] {
        let refusal = session.refused(tool, arguments).await;
        log += &format!("{} {}\n", refusal["code"], refusal["remediation"]);
    }
    expect![[r#"
        "TEST_NOT_REGISTERED" "Use a registered test command, or ask the operator to add `tests.default = [\"PROGRAM\", …]` to [workspaces.one] and grant `tests` to the pack. Record your own run with test_report."
        "WORKSPACE_UNKNOWN" "Use a workspace that is granted to the pack; workspace_list lists all. Or ask the operator to register one with path = \"/srv/app\" in [workspaces.NAME], and to grant it with grants.workspaces = [\"NAME\"] in [packs.PACK]."
        "NOT_A_REPOSITORY" "Create a repository with `git init`, or use a workspace that is a repository."
    "#]].assert_eq(&log);
    session.close().await;
}

#[tokio::test]
async fn a_run_without_tests_is_not_passed_and_a_late_one_says_after_how_long() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({})).await;
    let empty = "echo\necho '----------------------------------------------------------------------'\n\
        echo 'Ran 0 tests in 0.000s'\necho\necho OK\n";
    std::fs::write(one(&place, "run.sh"), empty).unwrap();
    let ran = session.ok("test_run", json!({"workspace": "one"})).await;
    assert_eq!(
        (&ran["passed"], &ran["outcome"]),
        (&json!(false), &json!("no_tests")),
        "{ran:#}"
    );
    let status = session
        .ok("convergence_status", json!({"workspace": "one"}))
        .await;
    assert_eq!(status["message"], "the last test run found no tests");
    std::fs::write(one(&place, "run.sh"), FAILING).unwrap();
    let ran = session.ok("test_run", json!({"workspace": "one"})).await;
    assert_eq!(ran["regression"], Value::Null, "nothing passed before: {ran:#}");
    // A program that waits for a pipe into which nobody writes.
    std::fs::write(one(&place, "run.sh"), "mkfifo ../pipe\nread -r line < ../pipe\n").unwrap();
    let ran = session
        .ok("test_run", json!({"workspace": "one", "timeout_sec": 1}))
        .await;
    assert_eq!(ran["message"], "timed out after 1 s", "{ran:#}");
    let report = session.ok("ledger_report", json!({"envelope_id": id})).await;
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("; timed out after 1 s"), "{text}");
    assert!(text.contains("; no tests"), "{text}");
    session.close().await;
    let outcomes = place.sql(
        "SELECT outcome ->> 'result' || ' ' || (events ->> '$[0].type') FROM core_operations
         WHERE tool = 'test_run' ORDER BY seq",
    );
    assert_eq!(
        outcomes,
        [
            "no_tests test.no_tests",
            "failed test.failed",
            "timed_out test.failed"
        ]
    );
}

#[tokio::test]
async fn a_success_after_a_failing_test_is_told_when_the_envelope_is_closed() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({})).await;
    session.ok("test_run", json!({"workspace": "one"})).await;
    let closed = session
        .ok(
            "envelope_close",
            json!({"envelope_id": id, "outcome": "success", "report": true}),
        )
        .await;
    for text in [&closed["summary"], &closed["report"]["text"]] {
        let text = text.as_str().unwrap();
        let doubts: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("as a success, but"))
            .collect();
        assert_eq!(doubts.len(), 1, "{text}");
        assert!(
            doubts[0].contains("did not pass: failed 1 of 1: tests::adds: "),
            "{text}"
        );
    }
    assert_eq!(closed["report"]["last_tests"]["passed"], false);
    session.close().await;
}

#[tokio::test]
async fn rows_have_the_version_of_the_client_and_the_name_that_its_caller_claims() {
    let place = place();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.ask(
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "@scope/agent", "version": "1.2 beta"}}}),
    );
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (number, (tool, arguments)) in [
        ("envelope_open", json!({"workspace": "one"})),
        ("test_run", json!({"workspace": "one", "actor": "ada"})),
        (
            "test_report",
            json!({"workspace": "one", "exit_code": 1, "actor": "ada"}),
        ),
        ("mutation_record", json!({"workspace": "one", "actor": "ada"})),
    ]
    .into_iter()
    .enumerate()
    {
        let call = json!({"jsonrpc": "2.0", "id": number + 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let reply = wire.ask(&call);
        assert_ne!(reply["result"]["isError"], true, "{reply:#}");
    }
    drop(wire);
    let rows = place
        .sql("SELECT tool || ' ' || coalesce(actor, '-') || ' ' || client FROM core_operations ORDER BY seq");
    assert_eq!(
        rows,
        [
            "envelope_open - @scope/agent/1.2_beta",
            "test_run claimed:ada @scope/agent/1.2_beta",
            "test_report claimed:ada @scope/agent/1.2_beta",
            "mutation_record claimed:ada @scope/agent/1.2_beta",
        ]
    );
    let print = |arguments: &[&str]| String::from_utf8(place.run(arguments).stdout).unwrap();
    let report = print(&["ledger", "report"]);
    assert!(
        report.contains("test_run by claimed:ada via @scope/agent/1.2_beta: done"),
        "{report}"
    );
    for arguments in [
        ["--json", "ledger", "tail"].as_slice(),
        &["--json", "ledger", "query", "--tool", "test_run"],
        &["--json", "call", "ledger_stats", r#"{"by": ["client"]}"#],
    ] {
        let told = print(arguments).replace("\": \"", "\":\"");
        let client = r#""client":"@scope/agent/1.2_beta""#;
        assert!(told.contains(client), "{arguments:?}: {told}");
    }
    assert!(place.run(&["ledger", "verify"]).status.success());
}
