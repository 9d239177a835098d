//! Verdicts on test runs: failures over several envelopes, and runs without tests.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Workspace;
use tollgate_sdk::{GitAccess, SeenWorkTree};

use crate::place::{Place, reply};
use crate::runs::{FAILING, PASSING, seen};

#[test]
fn a_failure_that_outlives_edits_over_envelopes_is_no_progress() {
    let place = Place::repository();
    let session = place.session();
    let mut log = String::new();
    let run = |log: &mut String, envelope: &str, edits: u64, script: &str| {
        place.tests_print(script);
        session.set_envelope(Some(envelope));
        session.set_work_tree("default", seen(0, None));
        session.set_edits_over_envelopes("default", edits);
        let ran = reply(&session, "test_run", json!({"actor": "ada"}));
        *log += &format!(
            "{} | {} {}\n",
            ran["message"].as_str().unwrap(),
            ran["non_progress"],
            ran["earlier_edits"]
        );
    };
    let other = FAILING.replace("add(1, 2) == 3", "add(0, 0) == 0");
    run(&mut log, "env_1", 4, FAILING);
    run(&mut log, "env_2", 4, FAILING);
    run(&mut log, "env_3", 5, FAILING);
    run(&mut log, "env_4", 7, &other);
    run(&mut log, "env_5", 8, PASSING);
    run(&mut log, "env_6", 9, FAILING);
    // The host does not see the work tree any more.
    session.set_envelope(Some("env_7"));
    session.set_work_tree("default", SeenWorkTree::default());
    session.set_edits_over_envelopes("default", 20);
    let ran = reply(&session, "test_run", json!({}));
    log += &format!("{} {}\n", ran["non_progress"], ran["earlier_edits"]);
    expect![[r#"
        failed: 1 passed, 1 failed, 0 skipped | false null
        failed: 1 passed, 1 failed, 0 skipped; seen in 1 earlier envelope across 0 edits, first less than a minute ago | false 0
        failed: 1 passed, 1 failed, 0 skipped; seen in 2 earlier envelopes across 1 edit, first less than a minute ago; no progress | true 1
        failed: 1 passed, 1 failed, 0 skipped; seen in 3 earlier envelopes, first less than a minute ago | false null
        passed: 1 passed, 0 failed, 0 skipped | false null
        failed: 1 passed, 1 failed, 0 skipped; seen in 4 earlier envelopes, first less than a minute ago; regression: the last run passed | false null
        false null
    "#]]
    .assert_eq(&log);
}

#[test]
fn outside_of_envelopes_only_sightings_since_the_command_passed_count() {
    let place = Place::repository();
    let session = place.session();
    let mut log = String::new();
    let run = |log: &mut String, edits: u64, script: &str| {
        place.tests_print(script);
        session.set_work_tree("default", seen(edits, None));
        session.set_edits_over_envelopes("default", edits);
        let ran = reply(&session, "test_run", json!({}));
        *log += &format!(
            "{} | {} {}\n",
            ran["message"].as_str().unwrap(),
            ran["non_progress"],
            ran["observed_edits"]
        );
    };
    for edits in [4, 4, 5] {
        run(&mut log, edits, FAILING);
    }
    run(&mut log, 6, PASSING);
    run(&mut log, 7, FAILING);
    run(&mut log, 8, FAILING);
    expect![[r#"
        failed: 1 passed, 1 failed, 0 skipped | false null
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 2 times across 0 edits | false null
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 3 times across 1 edit; no progress | true null
        passed: 1 passed, 0 failed, 0 skipped | false null
        failed: 1 passed, 1 failed, 0 skipped; regression: the last run passed | false null
        failed: 1 passed, 1 failed, 0 skipped; same failure seen 2 times across 1 edit; no progress | true null
    "#]]
    .assert_eq(&log);
}

/// One run of the host or report of the caller, in the words of its reply.
fn step(place: &Place, session: &tollgate_sdk::native::Session, edits: u64, what: &str) -> String {
    session.set_work_tree("default", seen(edits, None));
    session.set_edits_over_envelopes("default", edits);
    place.tests_print(if what == "fail" { FAILING } else { PASSING });
    let claim = "running 1 test\ntest tests::adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; \
                 0 measured; 0 filtered out; finished in 0.01s\n";
    let ran = match what {
        "claim" => reply(
            session,
            "test_report",
            json!({"exit_code": 0, "output": claim, "command": "default"}),
        ),
        "claimed failure" => reply(
            session,
            "test_report",
            json!({"exit_code": 1, "failing_tests": ["tests::other"], "command": "default"}),
        ),
        _ => reply(session, "test_run", json!({})),
    };
    let flags = ["non_progress", "flaky", "regression"];
    let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
    format!("{what} {set:?}\n")
}

#[test]
fn a_claim_ends_nothing_that_the_host_saw() {
    let place = Place::repository();
    let session = place.session();
    let mut log = String::new();
    for edits in 0..3 {
        log += &step(&place, &session, edits, "fail");
        log += &step(&place, &session, edits, "claim");
    }
    // With an envelope for each attempt.
    for edits in 3..6 {
        let envelope = format!("env_{edits}");
        session.set_envelope(Some(&envelope));
        log += &step(&place, &session, edits, "fail");
        log += &step(&place, &session, edits, "claim");
        let status = reply(&session, "convergence_status", json!({}));
        log += &format!("{} {}\n", status["non_progress"], status["message"]);
    }
    // What only the caller tells, the caller settles.
    session.set_envelope(None);
    for (edits, what) in [
        (6, "claim"),
        (7, "claimed failure"),
        (8, "claim"),
        (9, "claimed failure"),
    ] {
        log += &step(&place, &session, edits, what);
    }
    expect![[r#"
        fail []
        claim []
        fail ["non_progress"]
        claim []
        fail ["non_progress"]
        claim []
        fail []
        claim []
        false "same failure seen 1 time across 0 edits"
        fail ["non_progress"]
        claim []
        true "same failure seen 1 time across 0 edits"
        fail ["non_progress"]
        claim []
        true "same failure seen 1 time across 0 edits"
        claim []
        claimed failure ["regression"]
        claim []
        claimed failure ["regression"]
    "#]]
    .assert_eq(&log);
}

#[test]
fn flaky_and_regression_hold_over_envelopes_and_outside_of_them() {
    let place = Place::repository();
    let session = place.session();
    let mut log = String::new();
    for (envelope, edits, what) in [
        (Some("env_1"), 0, "pass"),
        (Some("env_2"), 0, "fail"),
        (Some("env_3"), 0, "pass"),
        (None, 0, "fail"),
        (Some("env_4"), 0, "pass"),
        (Some("env_5"), 1, "fail"),
        (None, 2, "pass"),
        (Some("env_5"), 3, "claim"),
        (Some("env_5"), 3, "fail"),
    ] {
        session.set_envelope(envelope);
        log += &format!("{} {edits} ", envelope.unwrap_or("outside"));
        log += &step(&place, &session, edits, what);
    }
    expect![[r#"
        env_1 0 pass []
        env_2 0 fail ["flaky"]
        env_3 0 pass ["flaky"]
        outside 0 fail ["flaky"]
        env_4 0 pass ["flaky"]
        env_5 1 fail ["regression"]
        outside 2 pass []
        env_5 3 claim []
        env_5 3 fail ["non_progress", "regression"]
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_killed_run_and_edits_in_circles_are_told_in_words() {
    let place = Place::repository();
    let session = place.session();
    session.set_envelope(Some("env_1"));
    session.set_work_tree("default", seen(2, Some(2)));
    place.tests_print("kill -KILL $$\n");
    let killed = reply(&session, "test_run", json!({}));
    assert_eq!(
        (&killed["message"], &killed["oscillation_period"]),
        (
            &json!("killed by signal 9; edits repeat with period 2"),
            &json!(2)
        )
    );
    place.write("calc.py", "");
    let recorded = reply(&session, "mutation_record", json!({}));
    let message = recorded["message"].as_str().unwrap();
    assert!(
        message.ends_with("; oscillation: the work tree is back in its state of 2 edits ago"),
        "{message}"
    );
}

#[test]
fn a_run_without_tests_is_not_passed() {
    let place = Place::repository();
    let session = place.session();
    session.set_envelope(Some("env_1"));
    session.set_work_tree("default", seen(0, None));
    let empty = PASSING
        .replace("test tests::adds ... ok", "")
        .replace("1 test", "0 tests")
        .replace("1 passed", "0 passed");
    let mut log = String::new();
    let run = |log: &mut String, script: &str| {
        place.tests_print(script);
        let ran = reply(&session, "test_run", json!({}));
        let flags = ["flaky", "regression", "non_progress"];
        let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
        let status = reply(&session, "convergence_status", json!({}));
        *log += &format!(
            "{} {} | {set:?} | {}\n",
            ran["outcome"], ran["passed"], status["message"]
        );
    };
    run(&mut log, &empty);
    // Neither flaky nor a regression: nothing passed before.
    run(&mut log, FAILING);
    run(&mut log, &empty);
    run(&mut log, PASSING);
    expect![[r#"
        "no_tests" false | [] | "the last test run found no tests"
        "failed" false | [] | "same failure seen 1 time across 0 edits"
        "no_tests" false | [] | "the last test run found no tests"
        "passed" true | [] | "the last test run passed"
    "#]]
    .assert_eq(&log);
    let events: Vec<String> = session
        .events()
        .into_iter()
        .map(|event| event.event_type)
        .collect();
    assert_eq!(
        events,
        ["test.no_tests", "test.failed", "test.no_tests", "test.passed"]
    );
    let ran = reply(
        &session,
        "test_report",
        json!({"exit_code": 0, "output": "Ran 0 tests in 0.000s\n\nOK\n", "actor": "ada"}),
    );
    assert_eq!(
        (&ran["outcome"], &ran["passed"]),
        (&json!("no_tests"), &json!(false))
    );
    reply(&session, "mutation_record", json!({"actor": "ada"}));
}

/// Runs one test command, and tells the flags of the reply.
fn flags(session: &tollgate_sdk::native::Session, tool: &str, arguments: serde_json::Value) -> String {
    let ran = reply(session, tool, arguments);
    let flags = ["passed", "timed_out", "non_progress", "flaky", "regression"];
    let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
    format!("{set:?}")
}

#[test]
fn a_run_that_a_limit_cut_off_is_compared_with_no_other() {
    let place = Place::repository();
    let session = place.session();
    session.set_work_tree("default", seen(0, None));
    session.set_edits_over_envelopes("default", 0);
    let run = |script: &str, limit: Option<u32>| {
        place.tests_print(script);
        let arguments = limit.map_or(json!({}), |limit| json!({ "timeout_sec": limit }));
        flags(&session, "test_run", arguments)
    };
    let slow = format!("sleep 3\n{PASSING}");
    assert_eq!(run(&slow, Some(1)), r#"["timed_out"]"#);
    assert_eq!(run(PASSING, None), r#"["passed"]"#);
    assert_eq!(run(&slow, Some(1)), r#"["timed_out"]"#);
    // What ran to its end is compared with what did.
    assert_eq!(run(FAILING, None), r#"["flaky"]"#);
    session.set_edits_over_envelopes("default", 1);
    assert_eq!(run(&slow, Some(1)), r#"["timed_out"]"#);
}

#[test]
fn tests_that_do_not_keep_to_the_time_of_the_operator_fail() {
    let place = Place::repository();
    let session = place.session().config(&json!({"test_timeout_sec": 1}));
    session.set_work_tree("default", seen(0, None));
    session.set_edits_over_envelopes("default", 0);
    place.tests_print(PASSING);
    assert_eq!(flags(&session, "test_run", json!({})), r#"["passed"]"#);
    session.set_edits_over_envelopes("default", 1);
    place.tests_print("sleep 3\n");
    assert_eq!(
        flags(&session, "test_run", json!({})),
        r#"["timed_out", "regression"]"#
    );
}

#[test]
fn two_commands_whose_failures_name_no_test_have_two_failures() {
    let place = Place::repository();
    let session = place.session_with(|workspace| {
        workspace
            .git(GitAccess::Read)
            .test("one", &["sh", "one.sh"])
            .test("two", &["sh", "two.sh"])
    });
    session.set_envelope(Some("env_1"));
    let mut edits = 0;
    let mut run = |test: &str, script: &str| {
        place.write("one.sh", script);
        place.write("two.sh", script);
        edits += 1;
        session.set_work_tree("default", seen(edits, None));
        let ran = reply(&session, "test_run", json!({ "test": test }));
        format!("{} {}", ran["non_progress"], ran["failure_seen"])
    };
    assert_eq!(run("one", "exit 1"), "false 1");
    assert_eq!(run("two", "exit 1"), "false 1");
    assert_eq!(run("two", "exit 1"), "true 2");
    let wrong = "echo 'error: something is wrong'; exit 1";
    assert_eq!(run("one", wrong), "false 1");
    assert_eq!(run("two", wrong), "false 1");
    assert_eq!(run("one", wrong), "true 2");
    // A test has a name, whichever command ran it.
    assert_eq!(run("one", FAILING), "false 1");
    assert_eq!(run("two", FAILING), "true 2");
    // The command as the caller types it.
    let mut report = |command: &str| {
        edits += 1;
        session.set_work_tree("default", seen(edits, None));
        let told = json!({"exit_code": 1, "failing_tests": [], "command": command});
        let ran = reply(&session, "test_report", told);
        format!("{} {}", ran["non_progress"], ran["failure_seen"])
    };
    assert_eq!(report("make one"), "false 1");
    assert_eq!(report("make two"), "false 1");
    assert_eq!(report(" make  two"), "true 2");
}

#[test]
fn reports_without_a_command_are_compared_by_their_tool() {
    let place = Place::repository();
    let session = place.session();
    session.set_work_tree("default", seen(0, None));
    session.set_edits_over_envelopes("default", 0);
    let pytest =
        "=== short test summary info ===\nFAILED t.py::test_a - assert 1 == 2\n=== 1 failed in 0.01s ===\n";
    let cargo = "running 1 test\ntest tests::adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; \
                 0 measured; 0 filtered out; finished in 0.01s\n";
    let report = |output: &str, exit_code: i32| {
        let told = json!({"exit_code": exit_code, "output": output});
        flags(&session, "test_report", told)
    };
    assert_eq!(report(pytest, 1), "[]");
    assert_eq!(report(cargo, 0), r#"["passed"]"#);
    let passed = "=== 1 passed in 0.01s ===\n";
    assert_eq!(
        report(&format!("t.py . [100%]\n{passed}"), 0),
        r#"["passed", "flaky"]"#
    );
}

#[test]
fn a_command_of_other_words_is_another_command() {
    let place = Place::repository();
    place.write("other.sh", PASSING);
    place.tests_print(FAILING);
    let run = |session: &tollgate_sdk::native::Session| {
        session.set_work_tree("default", seen(0, None));
        session.set_edits_over_envelopes("default", 0);
        flags(session, "test_run", json!({}))
    };
    let session = place.session();
    assert_eq!(run(&session), "[]");
    let other = Workspace::new("default", &place.path()).git(GitAccess::Read);
    let session = session.workspace(other.test("default", &["sh", "other.sh"]));
    assert_eq!(run(&session), r#"["passed"]"#);
    place.write("other.sh", FAILING);
    assert_eq!(run(&session), r#"["flaky"]"#);
}
