//! Edits outside of calls: an agent that knows no envelopes and uses its own editor.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Place, Session};

/// A failing run of pytest. Its message contains the value in the tested file.
pub(crate) const FAILING: &str = "value=$(cat value)\n\
    echo '=========================== test session starts ============================'\n\
    echo '=========================== short test summary info ========================'\n\
    echo \"FAILED test_calc.py::test_add - AssertionError: assert $value == 3\"\n\
    echo '========================= 1 failed, 2 passed in 0.02s ======================'\nexit 1\n";

pub(crate) fn git(place: &Place, arguments: &[&str]) {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let status = Command::new("git")
        .current_dir(place.path().join("work"))
        .args(identity)
        .args(arguments)
        .status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// A repository with a failing test, with the operator's settings of envelopes.
pub(crate) fn place(envelope: &str) -> Place {
    let place = Place::with(&format!(
        "[workspaces.default]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n{envelope}"
    ));
    std::fs::create_dir(place.path().join("work")).unwrap();
    write(&place, "run.sh", FAILING);
    write(&place, "value", "-1");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    place
}

pub(crate) fn write(place: &Place, file: &str, content: &str) {
    std::fs::write(place.path().join("work").join(file), content).unwrap();
}

/// The envelope of the connection.
async fn envelope(session: &Session) -> Value {
    let listed = session.ok("envelope_list", json!({})).await;
    let listed = &listed["envelopes"][0];
    let id = listed["envelope_id"].clone();
    let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(listed["flags"], shown["flags"], "the list says the same");
    shown
}

#[tokio::test]
async fn an_agent_that_never_heard_of_envelopes_is_told_that_it_makes_no_progress() {
    let place = place("[envelope]\nauto = true\n");
    let session = place.serve(&["--tier", "full"]).await;
    let mut last = session.ok("test_run", json!({})).await;
    assert_eq!(
        (&last["non_progress"], &last["observed_edits"]),
        (&json!(false), &json!(0))
    );
    for edit in 1..=6 {
        write(&place, "value", &edit.to_string());
        last = session.ok("test_run", json!({})).await;
        assert_eq!(last["non_progress"], true, "{last:#}");
        assert_eq!(last["observed_edits"], edit);
    }
    let message = last["message"].as_str().unwrap();
    assert!(
        message.contains("same failure seen 7 times across 6 edits; no progress"),
        "{message}"
    );
    let shown = envelope(&session).await;
    assert_eq!(shown["counters"]["observed_edits"], 6);
    assert_eq!(shown["counters"]["mutation_count"], 0);
    assert_eq!(shown["flags"]["non_progress"], true);
    assert_eq!(shown["flags"]["failure_seen"], 7);
    assert_eq!(shown["flags"]["failure_mutations"], 6);
    assert!(shown["repo_snapshot"]["index_version"].is_i64(), "{shown:#}");
    let status = session.ok("convergence_status", json!({})).await;
    assert_eq!(
        (&status["non_progress"], &status["observed_edits"]),
        (&json!(true), &json!(6))
    );
    let id = shown["envelope_id"].clone();
    let report = session.ok("ledger_report", json!({"envelope_id": id})).await;
    let closed = session
        .ok("envelope_close", json!({"envelope_id": id, "outcome": "failed"}))
        .await;
    for text in [&report["text"], &closed["summary"]] {
        let text = text.as_str().unwrap();
        assert!(text.contains("6 observed edits"), "{text}");
        assert!(
            text.contains(" 7 times over 6 edits, by test_run: test_calc.py::test_add"),
            "{text}"
        );
    }
    assert_eq!(report["repeated_failures"][0]["edits_between"], 6);
    session.close().await;
    let hashes = place.sql(
        "SELECT count(DISTINCT repo_before_hash) || ' ' || count(repo_after_hash) FROM core_operations
         WHERE tool = 'test_run'",
    );
    assert_eq!(hashes, ["7 7"]);
    let told = place.sql(
        "SELECT DISTINCT short_diff || ' ' || diff_stats FROM core_operations WHERE short_diff IS NOT NULL",
    );
    assert_eq!(
        told,
        ["~ value {\"files_changed\":1,\"insertions\":1,\"deletions\":1}"]
    );
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn an_agent_without_an_envelope_is_told_that_it_makes_no_progress() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    let run = async |value: &str| {
        write(&place, "value", value);
        session.ok("test_run", json!({})).await
    };
    assert_eq!(run("1").await["non_progress"], false);
    assert_eq!(run("1").await["non_progress"], false, "nothing was edited");
    for (seen, value) in [(3, "2"), (4, "3")] {
        let ran = run(value).await;
        assert_eq!(
            (
                &ran["non_progress"],
                &ran["failure_seen"],
                &ran["failure_mutations"],
                ran.get("unobserved")
            ),
            (&json!(true), &json!(seen), &json!(seen - 2), None),
            "{ran:#}"
        );
    }
    // A failure after a run that passed begins anew.
    write(&place, "run.sh", PASSING);
    assert_eq!(run("4").await["passed"], true);
    write(&place, "run.sh", FAILING);
    let again = run("5").await;
    assert_eq!(
        (
            &again["non_progress"],
            &again["failure_seen"],
            &again["regression"]
        ),
        (&json!(false), &json!(1), &json!(true)),
        "{again:#}"
    );
    session.close().await;
}

#[tokio::test]
async fn edits_are_bounded_when_the_operator_says_so() {
    let place = place("[envelope]\nauto = true\nmax_edits = 4\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    for edit in 1..=4 {
        write(&place, "value", &edit.to_string());
        session.ok("test_run", json!({})).await;
    }
    write(&place, "value", "5");
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "EDIT_BUDGET_EXHAUSTED", "{refusal:#}");
    assert_eq!(
        (&refusal["context"]["limit"], &refusal["context"]["used"]),
        (&json!(4), &json!(4))
    );
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    assert_eq!(refusal["context"]["closed_by"], "EDIT_BUDGET_EXHAUSTED");
    let shown = envelope(&session).await;
    assert_eq!(
        (&shown["state"], &shown["counters"]["observed_edits"]),
        (&json!("CLOSED_FAILED"), &json!(4))
    );
    session.close().await;
    let limits = place.sql("SELECT limit_triggered FROM core_operations WHERE limit_triggered IS NOT NULL");
    assert_eq!(limits, ["EDIT_BUDGET_EXHAUSTED"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn going_back_to_where_the_work_began_is_oscillation_and_a_commit_is_no_edit() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
    let id = opened["envelope_id"].clone();
    let flags = async || session.ok("envelope_get", json!({"envelope_id": id})).await["flags"].clone();
    write(&place, "value", "1");
    session.ok("test_run", json!({})).await;
    write(&place, "value", "-1");
    session.ok("test_run", json!({})).await;
    assert_eq!(flags().await["oscillation_period"], 2);
    let status = session.ok("convergence_status", json!({})).await;
    assert_eq!(status["mutations"]["period"], 2);
    write(&place, "new file", "1\n2\n");
    session.ok("test_run", json!({})).await;
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "second"]);
    let committed = session.ok("test_run", json!({})).await;
    assert_eq!(committed["observed_edits"], 3);
    let recorded = session.ok("mutation_record", json!({})).await;
    assert_eq!(recorded["no_op"], false, "{recorded:#}");
    let again = session.ok("mutation_record", json!({})).await;
    assert_eq!(again["no_op"], true, "{again:#}");
    assert_eq!(flags().await["no_op"], true);
    let closed = session
        .ok("envelope_close", json!({"envelope_id": id, "outcome": "failed"}))
        .await;
    let snapshot = &closed["envelope"]["repo_snapshot"];
    assert_ne!(snapshot["git_head"], snapshot["closed_git_head"]);
    session.close().await;
}

#[tokio::test]
async fn without_git_everything_works_and_says_why_nothing_is_seen() {
    let place = Place::with(
        "[workspaces.default]\npath = \"work\"\ngit = \"none\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         [workspaces.bare]\npath = \"bare\"\ngit = \"read\"\ntests.default = [\"sh\", \"-c\", \"exit 1\"]\n",
    );
    for folder in ["work", "bare"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    write(&place, "run.sh", FAILING);
    write(&place, "value", "1");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("envelope_open", json!({"workspace": "default"})).await;
    for (workspace, why) in [
        ("default", "workspace default has no Git access (git = \"read\")"),
        ("bare", "workspace bare is not a Git repository"),
    ] {
        session.ok("test_run", json!({"workspace": workspace})).await;
        let ran = session.ok("test_run", json!({"workspace": workspace})).await;
        assert_eq!(
            (&ran["failure_seen"], &ran["unobserved"]),
            (&json!(2), &json!(why))
        );
        assert_eq!(ran["observed_edits"], Value::Null);
    }
    session.close().await;
}

#[tokio::test]
async fn each_new_state_has_one_diff_and_git_leaves_no_logs() {
    let place = place("[artifacts]\nenabled = true\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("envelope_open", json!({"workspace": "default"})).await;
    session.ok("test_run", json!({})).await;
    write(&place, "value", "two\n");
    for number in 0..3_000 {
        write(&place, &format!("new-{number}"), "line\n");
    }
    session.ok("mutation_record", json!({})).await;
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "second"]);
    write(&place, "value", "three\n");
    session.ok("mutation_record", json!({})).await;
    session.close().await;
    let kinds = place.sql("SELECT kind || ' ' || count(*) FROM core_artifacts GROUP BY kind ORDER BY kind");
    // One log of the test run, and one diff for each of two edits.
    assert_eq!(kinds, ["diff 2", "log 1"]);
    let stats =
        place.sql("SELECT diff_stats FROM core_operations WHERE tool = 'mutation_record' ORDER BY seq");
    let stats: Vec<Value> = stats
        .iter()
        .map(|stats| serde_json::from_str(stats).unwrap())
        .collect();
    assert_eq!(
        stats[1],
        json!({"files_changed": 1, "insertions": 1, "deletions": 1})
    );
    let counted = stats[0]["insertions"].as_u64().unwrap();
    assert!(counted >= 3_001 || stats[0]["cut"] == true, "{stats:?}");
}

#[tokio::test]
async fn a_failure_is_known_from_earlier_envelopes_and_how_it_ended_counts() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    for earlier in 0..3_u64 {
        let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
        let ran = session.ok("test_run", json!({})).await;
        assert_eq!(ran["earlier_envelopes"].as_u64().unwrap_or(0), earlier, "{ran:#}");
        assert_eq!(ran["failure_seen"], 1);
        assert_eq!(ran["first_seen"].is_string(), earlier > 0);
        assert_eq!(ran["non_progress"], false, "nothing was edited: {ran:#}");
        let arguments = json!({"envelope_id": opened["id"], "outcome": "failed"});
        session.ok("envelope_close", arguments).await;
    }
    write(&place, "run.sh", "kill -KILL $$\n");
    let killed = session.ok("test_run", json!({})).await;
    write(&place, "run.sh", "sleep 60\n");
    let late = session.ok("test_run", json!({"timeout_sec": 1})).await;
    assert_ne!(killed["failure_fingerprint"], late["failure_fingerprint"]);
    session.close().await;
}

/// A failing run as Rust's test tool tells it, with the assertion that a file names.
const ASSERTION: &str = "echo 'running 1 test'\n\
    printf 'test tests::adds ... FAILED\\n\\nfailures:\\n\\n---- tests::adds stdout ----\\n\\n'\n\
    echo \"thread 'tests::adds' (7) panicked at src/lib.rs:25:9:\"\n\
    echo \"assertion failed: $(cat value)\"\n\
    printf '\\nfailures:\\n    tests::adds\\n\\n'\n\
    echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'\n\
    exit 101\n";

#[tokio::test]
async fn a_step_within_a_test_is_told_from_no_progress() {
    let place = place("[envelope]\nauto = true\n");
    write(&place, "run.sh", ASSERTION);
    let session = place.serve(&["--tier", "full"]).await;
    let mut told = Vec::new();
    for assertion in [
        "add(1, 2) == 3",
        "add(1, 2) == 3 ",
        "add(0, 0) == 0",
        "add(0, 0) == 0 ",
    ] {
        write(&place, "value", assertion);
        let ran = session.ok("test_run", json!({})).await;
        assert_eq!(ran["failing_tests"][0]["name"], "tests::adds", "{ran:#}");
        told.push((
            ran["failure_seen"].as_u64().unwrap(),
            ran["same_test_other_failure"] == true,
            ran["non_progress"] == true,
        ));
    }
    assert_eq!(
        told,
        [
            (1, false, false),
            (2, false, true),
            (3, true, false),
            (4, false, true)
        ]
    );
    session.close().await;
}

#[tokio::test]
async fn files_beyond_those_that_a_state_keeps_are_counted_and_told() {
    let place = place("[envelope]\nauto = true\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    for number in 0..5_007 {
        write(&place, &format!("new-{number:05}"), "line\n");
    }
    let recorded = session.ok("mutation_record", json!({})).await;
    assert_eq!(recorded["diff_stats"]["files_changed"], 5_000, "{recorded:#}");
    assert_eq!(recorded["diff_stats"]["uncompared_files"], 7);
    assert_eq!(recorded["diff_stats"]["cut"], true);
    let message = recorded["message"].as_str().unwrap();
    assert!(message.contains("files not compared: 7"), "{message}");
    // An edit of one of those is an edit.
    write(&place, "new-05006", "other\n");
    let ran = session.ok("test_run", json!({})).await;
    assert_eq!(ran["observed_edits"], 2, "{ran:#}");
    session.close().await;
    let short = place.sql("SELECT short_diff FROM core_operations WHERE tool = 'mutation_record'");
    assert!(
        short[0].ends_with("because too many differ from the last commit: 7"),
        "{short:?}"
    );
}

/// A run that passes.
const PASSING: &str = "echo 'Ran 2 tests in 0.001s'\necho\necho OK\n";

#[tokio::test]
async fn a_failure_that_outlives_edits_over_envelopes_is_no_progress() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    let run = async |edit_first: bool, value: &str| {
        if edit_first {
            write(&place, "value", value);
        }
        let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
        if !edit_first {
            write(&place, "value", value);
        }
        let ran = session.ok("test_run", json!({})).await;
        let id = opened["envelope_id"].clone();
        let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
        assert_eq!(shown["flags"]["non_progress"], ran["non_progress"], "{shown:#}");
        let arguments = json!({"envelope_id": id, "outcome": "failed"});
        session.ok("envelope_close", arguments).await;
        ran
    };
    let first = run(true, "-1").await;
    assert_eq!(
        (&first["non_progress"], &first["earlier_edits"]),
        (&json!(false), &Value::Null)
    );
    // Edited before the opening, and after it.
    for (count, edit_first) in [(1, true), (2, false), (3, true)] {
        let ran = run(edit_first, &count.to_string()).await;
        assert_eq!(
            (&ran["non_progress"], &ran["failure_seen"], &ran["earlier_edits"]),
            (&json!(true), &json!(1), &json!(count)),
            "{ran:#}"
        );
        let message = ran["message"].as_str().unwrap();
        let edits = if count == 1 { "edit" } else { "edits" };
        assert!(
            message.contains(&format!(" across {count} {edits}, first ")),
            "{message}"
        );
        assert!(message.contains("; no progress"), "{message}");
    }
    // What failed before a run that passed is another story.
    write(&place, "run.sh", PASSING);
    assert_eq!(run(false, "4").await["passed"], true);
    write(&place, "run.sh", FAILING);
    let again = run(false, "5").await;
    assert_eq!(
        (&again["non_progress"], &again["earlier_envelopes"]),
        (&json!(false), &json!(4)),
        "{again:#}"
    );
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

/// A failing run that makes a file of its own each time, and waits until somebody has done something.
const WAITING: &str = "date +%N > coverage\n[ -p ../started ] && { : > ../started; read -r line < ../go; }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_that_is_edited_while_tests_run_counts_and_files_of_tests_do_not() {
    let place = place("[envelope]\nauto = true\n");
    write(&place, "run.sh", &format!("{WAITING}{FAILING}"));
    git(&place, &["commit", "-qam", "waits"]);
    let session = place.serve(&["--tier", "full"]).await;
    let edits = async || session.ok("test_run", json!({})).await["observed_edits"].clone();
    // Runs tests, and does something in the work tree while they run.
    let during = async |act: fn(&Path)| {
        let top = place.path().to_owned();
        for pipe in ["started", "go"] {
            let made = Command::new("mkfifo").arg(top.join(pipe)).status();
            assert!(made.unwrap().success());
        }
        let acting = tokio::task::spawn_blocking(move || {
            std::fs::read(top.join("started")).unwrap();
            act(&top.join("work"));
            std::fs::write(top.join("go"), "\n").unwrap();
        });
        session.ok("test_run", json!({})).await;
        acting.await.unwrap();
        for pipe in ["started", "go"] {
            std::fs::remove_file(place.path().join(pipe)).unwrap();
        }
    };
    assert_eq!(edits().await, 0);
    assert_eq!(edits().await, 0, "what tests write is no edit");
    write(&place, "new.py", "1");
    assert_eq!(edits().await, 1);
    during(|work| std::fs::write(work.join("new.py"), "2").unwrap()).await;
    assert_eq!(edits().await, 2, "an edit while tests ran");
    assert_eq!(edits().await, 2, "what tests write is no edit");
    during(|work| std::fs::remove_file(work.join("new.py")).unwrap()).await;
    assert_eq!(edits().await, 3, "a file that was removed while tests ran");
    during(|work| std::fs::write(work.join("value"), "7").unwrap()).await;
    assert_eq!(edits().await, 4, "a file that Git tracks");
    // Nobody can tell a file that appears from one of the tests'.
    during(|work| std::fs::write(work.join("snapshot"), "1").unwrap()).await;
    assert_eq!(edits().await, 4);
    during(|work| std::fs::write(work.join("snapshot"), "2").unwrap()).await;
    assert_eq!(edits().await, 4);
    write(&place, "coverage", "by hand");
    assert_eq!(edits().await, 5);
    assert_eq!(edits().await, 5, "tests write their file again");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}
