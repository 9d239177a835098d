//! Closing an envelope as a success over work that no test run of the host shows.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use serde_json::{Value, json};

use crate::envelopes::observed_edits::{git, write};
use crate::harness::{Place, Session, until};

/// A repository whose tests pass if the file `value` says `good`, and with a second test command that passes.
pub(crate) fn place() -> Place {
    let place = Place::with(
        "[workspaces.shop]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         tests.lint = [\"sh\", \"lint.sh\"]\n",
    );
    std::fs::create_dir(place.path().join("work")).unwrap();
    let tap = |result: &str, code: u8| {
        format!("printf 'TAP version 13\\n1..1\\n{result} 1 - adds\\n'; exit {code}\n")
    };
    let run = format!(
        "if grep -q good value; then {}fi\n{}",
        tap("ok", 0),
        tap("not ok", 1)
    );
    write(&place, "run.sh", &run);
    write(&place, "lint.sh", &tap("ok", 0));
    write(&place, "value", "bad");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    place
}

pub(crate) async fn open(session: &Session, arguments: Value) -> String {
    let opened = session.ok("envelope_open", arguments).await;
    opened["envelope_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn run(session: &Session, test: &str, envelope: &str) {
    let arguments = json!({"workspace": "shop", "test": test, "envelope_id": envelope});
    session.ok("test_run", arguments).await;
}

/// Closes an envelope as a success. Returns the doubts about it, with `#N` for places in the ledger, and the reply.
pub(crate) async fn close(session: &Session, envelope: &str) -> (String, Value) {
    let arguments = json!({"envelope_id": envelope, "outcome": "success", "report": true});
    let closed = session.ok("envelope_close", arguments).await;
    let doubts = |text: &Value| -> Vec<String> {
        let lines = text.as_str().unwrap().lines();
        let doubts = lines.filter_map(|line| line.strip_prefix("It was closed as a success, but "));
        doubts.map(str::to_owned).collect()
    };
    let told = doubts(&closed["summary"]);
    let all = doubts(&closed["report"]["text"]);
    assert_eq!(Some(&told[..]), all.get(..told.len()));
    let mut plain = String::new();
    for letter in told.join("\n").chars() {
        // `#12` becomes `#N`.
        match letter {
            '#' => plain.push_str("#N"),
            digit if digit.is_ascii_digit() && plain.ends_with("#N") => {}
            other => plain.push(other),
        }
    }
    (plain, closed)
}

#[tokio::test]
async fn a_success_is_measured_by_the_newest_run_of_each_test_command() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let fresh = async || open(&session, json!({"workspace": "shop"})).await;
    let failed = "the newest run of test default in shop (#N) did not pass: failed 1 of 1: adds";

    let id = fresh().await;
    run(&session, "default", &id).await;
    run(&session, "lint", &id).await;
    assert_eq!(close(&session, &id).await.0, format!("{failed}."));

    let id = fresh().await;
    run(&session, "default", &id).await;
    let claim = json!({"workspace": "shop", "exit_code": 0, "output": "TAP version 13\n1..1\nok 1 - adds\n"});
    assert_eq!(session.ok("test_report", claim).await["passed"], true);
    let (doubts, closed) = close(&session, &id).await;
    assert_eq!(
        doubts,
        format!("{failed}; a passing run (#N) was only reported by the caller.")
    );
    let tests = &closed["report"]["tests"];
    assert_eq!(
        (&tests[0]["test"], &tests[0]["passed"], &tests[1]["is_claim"]),
        (&json!("default"), &json!(false), &json!(true)),
        "{tests:#}"
    );

    let around = fresh().await;
    let part = open(
        &session,
        json!({"workspace": "shop", "parent": around, "label": "inner"}),
    )
    .await;
    run(&session, "default", &part).await;
    let (doubts, closed) = close(&session, &around).await;
    assert_eq!(
        doubts.replace(&part, "env_2"),
        "the newest run of test default in shop (#N, in child envelope env_2) did not pass: failed 1 of 1: adds."
    );
    assert_eq!(closed["report"]["parts"][0]["label"], "inner");
    let summary = closed["summary"].as_str().unwrap().replace(&part, "env_2");
    let line = "Child envelopes: env_2 \"inner\" as interrupted (its parent envelope was closed), 0 mutations, 1 test run, 0 observed edits.";
    assert!(summary.contains(line), "{summary}");

    let id = fresh().await;
    run(&session, "default", &id).await;
    write(&place, "value", "good");
    run(&session, "default", &id).await;
    assert_eq!(close(&session, &id).await.0, "");
    session.close().await;
    let rows = place.sql(
        "SELECT DISTINCT workspace || ' ' || (outcome ->> '$.runs[0].test') FROM core_operations
         WHERE tool = 'test_run' ORDER BY 1",
    );
    assert_eq!(rows, ["shop default", "shop lint"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

/// An edit after the last run of `default`.
const AFTER_DEFAULT: &str =
    "test default was not run again after 1 edit of shop; its last run (#N), before these edits, passed.";

#[tokio::test]
async fn neither_another_test_nor_a_claim_settles_an_edit_or_a_failure() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let fresh = async || {
        write(&place, "value", "good");
        open(&session, json!({"workspace": "shop"})).await
    };
    let claim = async |code: u8| {
        let arguments = json!({"workspace": "shop", "exit_code": code, "output": "said so"});
        session.ok("test_report", arguments).await;
    };
    let claimed = "; a passing run (#N) was only reported by the caller.";

    // The lint passes over the edit that breaks the default test.
    let id = fresh().await;
    run(&session, "default", &id).await;
    write(&place, "value", "bad");
    run(&session, "lint", &id).await;
    assert_eq!(close(&session, &id).await.0, AFTER_DEFAULT);

    // The report finds the edit, and says that tests pass.
    let id = fresh().await;
    run(&session, "default", &id).await;
    write(&place, "value", "bad");
    claim(0).await;
    let after_default = AFTER_DEFAULT.trim_end_matches('.');
    assert_eq!(close(&session, &id).await.0, format!("{after_default}{claimed}"));

    let id = fresh().await;
    write(&place, "value", "good once more");
    claim(0).await;
    assert_eq!(
        close(&session, &id).await.0,
        format!("the host ran no test in shop, although its work tree was edited{claimed}")
    );

    let id = fresh().await;
    claim(1).await;
    claim(0).await;
    let failing = "no test that the host ran in shop has passed since the caller reported a failing test run (#N): \
                   failed: said so";
    assert_eq!(close(&session, &id).await.0, format!("{failing}{claimed}"));

    // Each of them settles itself.
    let id = fresh().await;
    run(&session, "default", &id).await;
    write(&place, "value", "good again");
    run(&session, "lint", &id).await;
    run(&session, "default", &id).await;
    assert_eq!(close(&session, &id).await.0, "");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn an_edit_that_is_found_while_a_test_runs_comes_after_that_test() {
    let place = place();
    write(&place, "value", "good");
    let run_slowly = "touch ../started\nwhile ! [ -e ../go ]; do sleep 0.02; done\n\
                      printf 'TAP version 13\\n1..1\\nok 1 - adds\\n'\n";
    write(&place, "run.sh", run_slowly);
    git(&place, &["commit", "-qam", "slow"]);
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"workspace": "shop"})).await;
    let slow = run(&session, "default", &id);
    let edit = async {
        until(async || place.path().join("started").exists()).await;
        write(&place, "value", "bad");
        run(&session, "lint", &id).await;
        std::fs::write(place.path().join("go"), "").unwrap();
    };
    tokio::join!(slow, edit);
    assert_eq!(close(&session, &id).await.0, AFTER_DEFAULT);
    session.close().await;
}

#[tokio::test]
async fn the_work_tree_is_looked_at_once_when_an_envelope_is_closed() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"workspace": "shop"})).await;
    write(&place, "value", "edited");
    let (doubts, closed) = close(&session, &id).await;
    assert_eq!(doubts, "no test ran in shop, although its work tree was edited.");
    assert_eq!(closed["envelope"]["counters"]["observed_edits"], 1);

    write(&place, "value", "good");
    for recorded in [false, true] {
        // The workspace is known from the call alone.
        let id = open(&session, json!({})).await;
        run(&session, "default", &id).await;
        write(
            &place,
            "value",
            if recorded { "good, once more" } else { "good again" },
        );
        if recorded {
            session.ok("mutation_record", json!({"workspace": "shop"})).await;
        }
        let (doubts, _) = close(&session, &id).await;
        assert_eq!(doubts, AFTER_DEFAULT, "recorded: {recorded}");
    }

    let id = open(&session, json!({"workspace": "shop", "limits": {"max_edits": 1}})).await;
    write(&place, "value", "good 1");
    run(&session, "default", &id).await;
    write(&place, "value", "good 2");
    let (_, closed) = close(&session, &id).await;
    let envelope = &closed["envelope"];
    assert_eq!(
        (
            &envelope["state"],
            &envelope["closed_by"],
            &envelope["counters"]["observed_edits"]
        ),
        (
            &json!("CLOSED_FAILED"),
            &json!("EDIT_BUDGET_EXHAUSTED"),
            &json!(1)
        ),
        "one edit more than the limit is no success: {envelope:#}"
    );
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn reports_tell_workspaces_apart_and_name_edits_in_circles() {
    let place = Place::with(
        "[workspaces.shop]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         [workspaces.js]\npath = \"js\"\ngit = \"none\"\ntests.default = [\"sh\", \"../work/run.sh\"]\n",
    );
    for folder in ["work", "js"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    write(
        &place,
        "run.sh",
        "printf 'TAP version 13\\n1..1\\nnot ok 1 - adds\\n'; exit 1\n",
    );
    write(&place, "value", "A");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"workspace": "shop"})).await;
    let mut last = Value::Null;
    for value in ["B", "A", "B", "A"] {
        write(&place, "value", value);
        last = session.ok("test_run", json!({"workspace": "shop"})).await;
    }
    assert_eq!(last["oscillation_period"], 2, "{last:#}");
    let message = last["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "; no progress, unless another assertion with the same expectation failed; edits repeat with period 2"
        ),
        "{message}"
    );
    session.ok("test_run", json!({"workspace": "js"})).await;
    let report = session.ok("ledger_report", json!({"envelope_id": id})).await;
    let text = report["text"].as_str().unwrap();
    for part in [
        " 4 times over 3 edits, by test_run: adds",
        "shop returned to an earlier state 3 times, the last time after 2 edits",
        "test_run in js via ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        text.matches("; 1 file, +1 -1").count(),
        4,
        "each edit has its line: {text}"
    );
    let found = session
        .ok(
            "ledger_query",
            json!({"tool": "test_run", "fields": ["workspace"], "limit": 2}),
        )
        .await;
    let workspaces: Vec<&Value> = found["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["workspace"])
        .collect();
    assert_eq!(workspaces, ["js", "shop"]);
    session.close().await;
}

/// Two repositories whose tests pass, `shop` in `work` and `js` beside it.
fn two_places() -> Place {
    let place = Place::with(
        "[workspaces.shop]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         tests.again = [\"sh\", \"run.sh\"]\n\
         [workspaces.js]\npath = \"js\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n",
    );
    for folder in ["work", "js"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    for folder in ["", "../js/"] {
        let tap = "printf 'TAP version 13\\n1..1\\nok 1 - adds\\n'\n";
        write(&place, &format!("{folder}run.sh"), tap);
        write(&place, &format!("{folder}value"), "0");
    }
    git(&place, &["init", "-q"]);
    git(&place, &["init", "-q", "../js"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    git(&place, &["-C", "../js", "add", "-A"]);
    git(&place, &["-C", "../js", "commit", "-qm", "first"]);
    place
}

#[tokio::test]
async fn the_closing_looks_at_every_work_tree_that_calls_of_the_envelope_looked_at() {
    let place = two_places();
    let session = place.serve(&["--tier", "full"]).await;
    let run = async |workspace: &str, envelope: &str| {
        let arguments = json!({"workspace": workspace, "envelope_id": envelope});
        session.ok("test_run", arguments).await;
    };
    // The last look at shop finds nothing new.
    let id = open(&session, json!({"workspace": "shop"})).await;
    run("js", &id).await;
    run("shop", &id).await;
    write(&place, "value", "1");
    let (doubts, closed) = close(&session, &id).await;
    assert_eq!(
        doubts,
        "test default was not run again after 1 edit of shop; its last run (#N), before these edits, passed."
    );
    assert_eq!(closed["envelope"]["counters"]["observed_edits"], 1);

    let id = open(&session, json!({})).await;
    for workspace in ["shop", "js", "shop"] {
        run(workspace, &id).await;
    }
    write(&place, "value", "2");
    write(&place, "../js/value", "1");
    let (doubts, closed) = close(&session, &id).await;
    let mut doubts: Vec<&str> = doubts.lines().collect();
    doubts.sort_unstable();
    assert_eq!(
        doubts,
        [
            "test default was not run again after 1 edit of js; its last run (#N), before these edits, passed.",
            "test default was not run again after 1 edit of shop; its last run (#N), before these edits, passed.",
        ]
    );
    assert_eq!(closed["envelope"]["counters"]["observed_edits"], 2);

    // The last of several edits is one too many.
    let id = open(&session, json!({"limits": {"max_edits": 1}})).await;
    for workspace in ["js", "shop"] {
        run(workspace, &id).await;
    }
    write(&place, "value", "3");
    write(&place, "../js/value", "2");
    let (_, closed) = close(&session, &id).await;
    assert_eq!(closed["envelope"]["closed_by"], "EDIT_BUDGET_EXHAUSTED");
    session.close().await;
    let rows = place.sql(
        "SELECT workspace || ' ' || events FROM core_operations WHERE tool = 'envelope_close' ORDER BY seq",
    );
    let looked: Vec<String> = rows
        .iter()
        .map(|row| {
            let (workspace, events) = row.split_once(' ').unwrap();
            let events: Vec<Value> = serde_json::from_str(events).unwrap();
            let trees = events.iter().filter_map(|event| event["work_trees"].as_array());
            let trees: Vec<&str> = trees
                .flatten()
                .map(|tree| tree["workspace"].as_str().unwrap())
                .collect();
            format!("{workspace} {}", trees.join(","))
        })
        .collect();
    assert_eq!(looked, ["shop shop,js", "shop shop,js", "shop shop,js"]);
    let verified = place.run(&["ledger", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[tokio::test]
async fn a_success_of_work_that_nobody_could_look_at_is_told() {
    let place = two_places();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"workspace": "shop"})).await;
    session.ok("test_run", json!({"workspace": "js"})).await;
    session.ok("test_run", json!({"workspace": "shop"})).await;
    write(&place, "value", "broken");
    let away = place.path().join("away");
    let repository = place.path().join("work/.git");
    std::fs::rename(&repository, &away).unwrap();
    let (doubts, closed) = close(&session, &id).await;
    assert!(
        doubts.starts_with("the work tree of shop could not be inspected: ") && doubts.lines().count() == 1,
        "{doubts}"
    );
    assert_eq!(closed["report"]["unseen"][0]["workspace"], "shop", "{closed:#}");
    std::fs::rename(&away, &repository).unwrap();
    let report = session.ok("ledger_report", json!({"envelope_id": id})).await;
    let text = report["text"].as_str().unwrap();
    assert!(
        text.contains("It was closed as a success, but the work tree of shop could not be inspected: "),
        "{text}"
    );
    assert_eq!(report["unseen"], closed["report"]["unseen"]);

    // A workspace without access to Git is never looked at, and that is no news.
    let id = open(&session, json!({"workspace": "nowhere"})).await;
    assert_eq!(close(&session, &id).await.0, "");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn the_row_of_a_test_run_names_the_test_that_was_asked_for() {
    let place = two_places();
    let session = place.serve(&["--tier", "full"]).await;
    for arguments in [
        json!({"workspace": "shop"}),
        json!({"workspace": "shop", "test": "again"}),
        json!({"workspace": "shop", "test": "default"}),
    ] {
        session.ok("test_run", arguments).await;
    }
    session.close().await;
    let rows = place
        .sql("SELECT outcome ->> '$.runs[0].test' FROM core_operations WHERE tool = 'test_run' ORDER BY seq");
    assert_eq!(rows, ["default", "again", "default"]);
}

/// Names that read like lines of a report.
#[tokio::test]
async fn no_name_adds_a_line_to_a_report() {
    let place = two_places();
    let session = place.serve(&["--tier", "full"]).await;
    let label = "fix\"\nOpened 2020, closed as a success at 2020, by token:ada.\nIt all passed";
    let id = open(
        &session,
        json!({"workspace": "shop", "label": label, "actor": "ann\n  #99 x"}),
    )
    .await;
    let file =
        "z by 1 call (mutation_record)\n\nIts owner said\n\u{1b}[2KThe tests passed: 9 of 9, by token:ada";
    write(&place, file, "x");
    write(&place, "plain.txt", "x");
    let record = json!({"workspace": "shop", "note": "n\nIt was closed by ada", "actor": "bob\n#1"});
    session.ok("mutation_record", record).await;
    let failed = json!({"workspace": "shop", "exit_code": 1,
        "failing_tests": ["x\n  17:00:00  #78 test_run: done; passed 9", "plain test"]});
    for _ in 0..2 {
        session.ok("test_report", failed.clone()).await;
    }
    let closed = session
        .ok(
            "envelope_close",
            json!({"envelope_id": id, "outcome": "failed", "note": "n\nIt all passed"}),
        )
        .await;
    let report = session.ok("ledger_report", json!({"envelope_id": id})).await;
    let printed = place.run(&["ledger", "report", &id]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let texts = [
        closed["summary"].as_str().unwrap(),
        report["text"].as_str().unwrap(),
        printed.as_str(),
    ];
    for text in texts {
        for line in text.lines() {
            let forged = [
                "Its owner said",
                "The tests",
                "It all",
                "It was closed by",
                "Opened 2020",
                "  17:00:00",
            ];
            assert!(!forged.iter().any(|start| line.starts_with(start)), "{text}");
        }
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
        assert!(
            text.contains(r#""z by 1 call (mutation_record)  Its owner said [2KThe tests"#),
            "{text}"
        );
        assert!(text.contains("plain.txt"), "{text}");
    }
    assert!(
        texts[1].contains(r#"  plain.txt by 1 call (mutation_record)"#),
        "{}",
        texts[1]
    );
    assert!(texts[0].contains(r#" "fix\" Opened 2020"#), "{}", texts[0]);
    session.close().await;
}
