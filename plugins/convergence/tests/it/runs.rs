//! Test runs: what is told, what repeats, and what happens to runs that misbehave.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;
use tollgate_sdk::{SeenWorkTree, TestResult, WorkTreeChange};

use crate::place::{Place, edit, refusal, reply};

/// A failing run as a Rust test tool tells it: its place, its process and its time differ from run to run.
pub(crate) const FAILING: &str = r#"echo "running 2 tests"
echo "test tests::adds ... FAILED"
echo "test tests::runs ... ok"
echo
echo "failures:"
echo
echo "---- tests::adds stdout ----"
echo
echo "thread 'tests::adds' ($$) panicked at $PWD/src/lib.rs:25:9:"
echo "assertion failed: add(1, 2) == 3 at 0x7ffd$$00 after 0.$$s"
echo
echo "failures:"
echo "    tests::adds"
echo
echo "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.$$s"
exit 101
"#;

pub(crate) const PASSING: &str = "echo 'running 1 test'\necho 'test tests::adds ... ok'\necho\n\
    echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'\n";

fn fingerprint(session: &Session) -> String {
    let ran = reply(session, "test_run", json!({}));
    ran["failure_fingerprint"].as_str().unwrap().to_owned()
}

#[test]
fn a_failure_that_outlives_a_mutation_is_no_progress() {
    let place = Place::repository();
    place.tests_print(FAILING);
    let session = place.session();
    session.set_envelope(Some("env_1"));
    let mut log = String::new();
    let run = |log: &mut String| {
        let ran = reply(&session, "test_run", json!({}));
        *log += &format!("{} {}\n", ran["message"].as_str().unwrap(), ran["non_progress"]);
    };
    run(&mut log);
    run(&mut log);
    place.write("calc.py", "def add(a, b):\n    return a * b\n");
    log += &edit(&session);
    run(&mut log);
    log += &edit(&session);
    place.tests_print(PASSING);
    run(&mut log);
    place.tests_print(FAILING);
    run(&mut log);
    let status = reply(&session, "convergence_status", json!({}));
    log += &format!("{status:#}\n").replace(
        status["failures"][0]["failure_fingerprint"].as_str().unwrap(),
        "FAILURE",
    );
    let last = status["mutations"]["last_fingerprint"].as_str().unwrap();
    expect![[r#"
        failed: 1 passed, 1 failed, 0 skipped false
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 2 times across 0 mutations false
        2 files changed, +17 -1 [~ calc.py, + run.sh] calc.py: add
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 3 times across 1 mutation; no progress true
        2 files changed, +17 -1; no-op: same state as the previous record [~ calc.py, + run.sh] calc.py: add
        passed: 1 passed, 0 failed, 0 skipped false
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 4 times across 2 mutations; no progress true
        {
          "workspace": "default",
          "envelope_id": "env_1",
          "counters": [
            {
              "name": "mutations",
              "used": 2
            },
            {
              "name": "test_runs",
              "used": 5
            }
          ],
          "test_runs": 5,
          "failed_test_runs": 4,
          "non_progress": true,
          "failures": [
            {
              "failure_fingerprint": "FAILURE",
              "seen": 4,
              "mutations": 2,
              "last_at": "2026-01-01T00:00:07.000Z",
              "text": "same failure seen 4 times across 2 mutations"
            }
          ],
          "mutations": {
            "recorded": 2,
            "no_ops": 1,
            "oscillations": 0,
            "last_fingerprint": "MUTATION",
            "no_op": true
          },
          "message": "same failure seen 4 times across 2 mutations; the last edit had no effect"
        }
    "#]]
    .assert_eq(&log.replace(last, "MUTATION"));
    let events: Vec<String> = session
        .events()
        .iter()
        .map(|event| {
            format!(
                "{} {:?} {:?} {}{}",
                event.event_type,
                event.failing_tests,
                event.changed,
                event.failure_fingerprint.is_some(),
                event.mutation_fingerprint.is_some()
            )
        })
        .collect();
    expect![[r#"
        test.failed ["tests::adds"] [] truefalse
        test.failed ["tests::adds"] [] truefalse
        mutation.recorded [] ["calc.py", "run.sh"] falsetrue
        test.non_progress ["tests::adds"] [] truefalse
        mutation.no_op [] ["calc.py", "run.sh"] falsetrue
        test.passed [] [] falsefalse
        test.non_progress ["tests::adds"] [] truefalse"#]]
    .assert_eq(&events.join("\n"));
}

pub(crate) fn seen(edits: u64, oscillation: Option<u32>) -> SeenWorkTree {
    SeenWorkTree {
        state: Some(format!("state {edits}")),
        edits,
        observed_edits: edits,
        has_baseline: true,
        oscillation,
        ..SeenWorkTree::default()
    }
}

#[test]
fn edits_that_nobody_recorded_count() {
    let place = Place::repository();
    place.tests_print(FAILING);
    let session = place.session();
    session.set_envelope(Some("env_1"));
    let mut log = String::new();
    let run = |log: &mut String, edits: u64, script: &str| {
        place.tests_print(script);
        session.set_work_tree("default", seen(edits, None));
        let ran = reply(&session, "test_run", json!({}));
        let flags = ["non_progress", "same_test_other_failure", "flaky", "regression"];
        let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
        *log += &format!("{} | {set:?}\n", ran["message"].as_str().unwrap());
    };
    let other = FAILING.replace("add(1, 2) == 3", "add(0, 0) == 0");
    run(&mut log, 0, FAILING);
    run(&mut log, 0, FAILING);
    run(&mut log, 1, FAILING);
    run(&mut log, 2, &other);
    run(&mut log, 3, &other);
    run(&mut log, 4, PASSING);
    run(&mut log, 4, FAILING);
    run(&mut log, 5, PASSING);
    run(&mut log, 6, FAILING);
    let status = reply(&session, "convergence_status", json!({}));
    log += &format!(
        "{} {} {} {}\n",
        status["message"].as_str().unwrap(),
        status["non_progress"],
        status["regression"],
        status["observed_edits"]
    );
    expect![[r#"
        failed: 1 passed, 1 failed, 0 skipped | []
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 2 times across 0 edits | []
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 3 times across 1 edit; no progress | ["non_progress"]
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 4 times across 2 edits; another failure of the same tests | ["same_test_other_failure"]
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 5 times across 3 edits; no progress | ["non_progress"]
        passed: 1 passed, 0 failed, 0 skipped | []
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 6 times across 4 edits; no progress; another failure of the same tests; flaky: the previous run had another result, without an edit of this workspace in between | ["non_progress", "same_test_other_failure", "flaky"]
        passed: 1 passed, 0 failed, 0 skipped | []
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 7 times across 6 edits; no progress; regression: the last run passed | ["non_progress", "regression"]
        same failure seen 7 times across 6 edits; regression true true 6
    "#]].assert_eq(&log);
    let events = session.events();
    let count = |kind: &str| events.iter().filter(|event| event.event_type == kind).count();
    assert_eq!((count("test.flaky"), count("test.regression")), (1, 1));
}

#[test]
fn a_record_without_an_edit_is_a_no_op_from_the_opening_on() {
    let place = Place::repository();
    let session = place.session();
    session.set_envelope(Some("env_1"));
    let mut log = String::new();
    for tree in [
        seen(0, None),
        seen(1, None),
        seen(1, None),
        seen(2, Some(2)),
        seen(4, Some(2)),
    ] {
        session.set_work_tree("default", tree);
        let recorded = reply(&session, "mutation_record", json!({}));
        log += &format!(
            "{} {} {}\n",
            recorded["no_op"], recorded["oscillation"], recorded["period"]
        );
    }
    let status = reply(&session, "convergence_status", json!({}));
    log += &format!("{}\n", status["mutations"]["period"]);
    assert_eq!(
        log,
        "true false null\nfalse false null\ntrue false null\nfalse true 2\nfalse true 2\n2\n"
    );
}

#[test]
fn a_record_tells_what_changed_since_the_one_before_and_what_is_left_out() {
    let place = Place::repository();
    let session = place.session();
    session.set_envelope(Some("env_1"));
    session.set_change(
        "default",
        0,
        WorkTreeChange {
            paths: (0..300).map(|number| format!("~ file-{number:03}")).collect(),
            more_paths: 50,
            insertions: 7,
            deletions: 1,
            uncounted_files: 2,
            uncompared_files: 40,
        },
    );
    session.set_change("default", 1, WorkTreeChange::default());
    let mut log = String::new();
    for tree in [seen(1, None), seen(1, None)] {
        session.set_work_tree("default", tree);
        let recorded = reply(&session, "mutation_record", json!({}));
        let paths = recorded["changed_paths"].as_array().unwrap();
        log += &format!(
            "{} | {} | {} of {:?}, {} more\n",
            recorded["message"].as_str().unwrap(),
            recorded["diff_stats"],
            paths.len(),
            paths.first(),
            recorded["more_paths"]
        );
    }
    expect![[r#"
        350 files changed, +7 -1; files not compared: 40 | {"files_changed":350,"insertions":7,"deletions":1,"cut":true,"uncounted_files":2,"uncompared_files":40} | 200 of Some(String("file-000")), 150 more
        nothing changed; no-op: same state as the previous record | {"files_changed":0,"insertions":0,"deletions":0} | 0 of None, 0 more
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_failure_is_known_from_other_envelopes() {
    let session = Place::new().session();
    let mut log = String::new();
    for envelope in ["env_1", "env_2", "env_2", "env_3"] {
        session.set_envelope(Some(envelope));
        let said = reply(
            &session,
            "test_report",
            json!({"exit_code": 1, "failing_tests": ["a"]}),
        );
        log += &format!(
            "{} {}\n",
            said["message"].as_str().unwrap(),
            said["earlier_envelopes"]
        );
        session.advance_ms(25 * 60 * 60 * 1000);
    }
    session.set_envelope(Some("env_4"));
    let other = json!({"exit_code": 1, "failing_tests": ["a"], "workspace": "other"});
    log += &format!("{}\n", reply(&session, "test_report", other)["message"]);
    expect![[r#"
        failed null
        failed; seen in 1 earlier envelope, first 1 day ago 1
        failed; same failure seen 2 times across 0 mutations; seen in 1 earlier envelope, first 2 days ago 1
        failed; seen in 2 earlier envelopes, first 3 days ago 2
        "failed"
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_failure_is_the_same_wherever_it_ran_and_whoever_tells() {
    let (one, other) = (Place::repository(), Place::repository());
    one.tests_print(FAILING);
    other.tests_print(FAILING);
    let (here, there) = (one.session(), other.session());
    let failure = fingerprint(&here);
    assert_eq!(fingerprint(&there), failure);
    let said = std::process::Command::new("sh")
        .arg("run.sh")
        .current_dir(other.path())
        .output()
        .unwrap();
    let report = json!({"exit_code": 101, "output": String::from_utf8(said.stdout).unwrap(), "command": "cargo test",
        "directory": other.path().to_str().unwrap()});
    let reported = reply(&here, "test_report", report);
    assert_eq!(reported["failure_fingerprint"], failure.as_str());
    assert_eq!(reported["failure_seen"], 2);
    other.tests_print(&FAILING.replace("tests::adds", "tests::subtracts"));
    assert_ne!(fingerprint(&there), failure);
}

#[test]
fn a_run_of_ones_own_is_reported_with_what_one_has() {
    let session = Place::new().session();
    let mut log = String::new();
    for arguments in [
        json!({"exit_code": 0}),
        json!({"failing_tests": []}),
        json!({"exit_code": 1, "failing_tests": ["b", "a"]}),
        json!({"exit_code": 1, "failing_tests": ["a", "b"]}),
        json!({"exit_code": 2}),
        json!({"output": "1..2\nok 1 - one\nnot ok 2 - two\n", "exit_code": 1}),
        json!({"output": "nothing to see", "exit_code": 1, "failing_tests": ["x"], "workspace": "only a label"}),
    ] {
        let said = reply(&session, "test_report", arguments);
        let names: Vec<&str> = said["failing_tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| test["name"].as_str().unwrap())
            .collect();
        log += &format!("{} {names:?} {}\n", said["message"], said["failure_seen"]);
    }
    let err = refusal(&session, "test_report", json!({"command": "make test"}));
    log += &format!("{err}\n");
    expect![[r#"
        "passed" [] 0
        "passed" [] 0
        "failed" ["a", "b"] 1
        "failed; same failure seen 2 times across 0 mutations" ["a", "b"] 2
        "failed" [] 1
        "failed: 1 passed, 1 failed, 0 skipped" ["two"] 1
        "failed" ["x"] 1
        NOTHING_REPORTED: the report contains no result of a test run
    "#]]
    .assert_eq(&log);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let place = Place::new();
    let session = place.session_with(|workspace| {
        workspace
            .test("unit", &["sh", "run.sh"])
            .test("gone", &["no-such-program-here"])
    });
    let mut log = String::new();
    for arguments in [
        json!({}),
        json!({"test": "integration"}),
        json!({"test": "gone"}),
        json!({"workspace": "other"}),
        json!({"workspace": "../default"}),
    ] {
        let err = refusal(&session, "test_run", arguments);
        log += &format!("{err} {}\n", serde_json::Value::from(err.context.clone()));
    }
    expect![[r#"
        TEST_NOT_REGISTERED: workspace default has no test command `default` {"workspace":"default","registered":["gone","unit"]}
        TEST_NOT_REGISTERED: workspace default has no test command `integration` {"workspace":"default","registered":["gone","unit"]}
        PROCESS_NOT_STARTED: not started: `no-such-program-here`: No such file or directory (os error 2) {}
        WORKSPACE_UNKNOWN: workspace `other` does not exist or is not granted to this pack {}
        WORKSPACE_UNKNOWN: workspace `../default` does not exist or is not granted to this pack {}
    "#]].assert_eq(&log);
}

#[test]
fn a_run_that_never_ends_is_ended() {
    let place = Place::new();
    place.tests_print("echo starting\nwhile true; do sleep 1; done\n");
    let session = place.session();
    let ran = reply(&session, "test_run", json!({"timeout_sec": 1}));
    assert_eq!(
        (&ran["timed_out"], &ran["passed"], &ran["output_tail"]),
        (&json!(true), &json!(false), &json!("starting"))
    );
    assert_eq!(ran["message"], "timed out after 1 s");
    let outcome = session.test_outcome().unwrap();
    assert_eq!(
        (
            outcome.result,
            outcome
                .message
                .as_deref()
                .map(|message| message.starts_with("after 1 s"))
        ),
        (TestResult::TimedOut, Some(true))
    );
    let late = ran["failure_fingerprint"].clone();
    assert!(late.is_string());
    place.tests_print("kill -KILL $$\n");
    let ran = reply(&session, "test_run", json!({}));
    assert_ne!(ran["failure_fingerprint"], late);
    assert_eq!((&ran["signal"], &ran["outcome"]), (&json!(9), &json!("error")));
}

#[test]
fn output_in_no_encoding_and_without_end_is_bounded() {
    let place = Place::new();
    place.tests_print("printf '\\377\\376\\300not ok 1 - \\351t\\351\\n1..1\\n'\nexit 1\n");
    let session = place.session();
    let ran = reply(&session, "test_run", json!({}));
    assert_eq!(ran["passed"], false);
    // One gigabyte, of which the first and the last half of a megabyte are read.
    place.tests_print("head -c 1000000000 /dev/zero | tr '\\0' 'x'\necho\necho 'the end'\nexit 3\n");
    let ran = reply(&session, "test_run", json!({"tail_bytes": 20}));
    assert_eq!(
        (&ran["output_bytes"], &ran["output_tail"], &ran["exit_code"]),
        (&json!(1_000_000_009_u64), &json!("the end"), &json!(3))
    );
    assert!(ran.to_string().len() < 8_000, "{}", ran.to_string().len());
}

#[test]
fn what_outdates_does_not_count_and_is_removed_a_day_later() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let session = Place::new().session();
    let stored = || reply(&session, "convergence_status", json!({}))["test_runs"].clone();
    for _ in 0..3 {
        reply(&session, "test_report", json!({"exit_code": 1}));
    }
    session.advance_ms(30 * DAY_MS + 1);
    let said = reply(&session, "test_report", json!({"exit_code": 1}));
    assert_eq!((&said["failure_seen"], stored()), (&json!(1), json!(4)));
    session.advance_ms(DAY_MS);
    let said = reply(&session, "test_report", json!({"exit_code": 1}));
    assert_eq!((&said["failure_seen"], stored()), (&json!(2), json!(2)));
}
