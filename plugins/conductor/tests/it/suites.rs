//! Gates about tests: what a test run has to show, and the built-in templates that use them.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Workspace;

use crate::harness::{Bench, no_faults, result, step};

/// A repository whose test `default` prints the file `suite`, and fails if it says so.
fn with_suite(workspace: Workspace) -> Workspace {
    workspace.test("default", &["sh", "-c", "cat suite; ! grep -q FAILED suite"])
}

/// Output of `cargo test`.
pub(crate) fn libtest(passed: u32, failed: u32, ignored: u32) -> String {
    let failing: String = (0..failed)
        .map(|number| format!("test t{number} ... FAILED\n"))
        .collect();
    let word = if failed > 0 { "FAILED" } else { "ok" };
    format!(
        "running {} tests\n{failing}test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         0 filtered out\n",
        passed + failed + ignored
    )
}

fn begun(suite: &str, gates: &[Value]) -> Bench {
    let bench = Bench::with_repository_and(with_suite);
    bench.write("suite", suite);
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let steps: Vec<Value> = gates.iter().map(|gates| step("part", gates.clone())).collect();
    let bench = bench.started(json!(steps));
    bench.run("- job_next_step_prompt {}");
    bench
}

/// The reasons of a rejection; empty if the step is accepted.
fn submit(bench: &Bench, id: &str, passed: bool) -> String {
    let mut arguments = result(id);
    arguments["evidence"]["tests_run"] = json!(["default"]);
    arguments["evidence"]["tests_passed"] = json!(passed);
    let reply = bench.reply("job_submit_step_result", arguments);
    if reply["accepted"] == json!(true) && reply["status"] == json!("EXECUTING") {
        bench.run("- job_next_step_prompt {}");
    }
    let reasons = reply["rejection_reasons"].as_array().unwrap();
    reasons
        .iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("; ")
}

#[track_caller]
fn caught(reasons: &str, word: &str) {
    assert!(reasons.contains(word), "{word:?} is not among: {reasons}");
}

#[test]
fn a_lie_about_the_suite_is_found_out() {
    let passed = json!([{"gate": "tests_passed"}]);
    let bench = begun(&libtest(3, 0, 0), &[passed.clone(), passed]);
    bench.write("suite", &libtest(2, 1, 0));
    caught(&submit(&bench, "S1", true), "exit code 1");
    bench.write("suite", &libtest(0, 0, 0));
    caught(&submit(&bench, "S1", true), "it ran no tests");
    bench.write("suite", &libtest(2, 0, 0));
    caught(
        &submit(&bench, "S1", true),
        "it ran 2 tests, but 3 when the step began",
    );
    bench.write("suite", &libtest(2, 0, 1));
    caught(
        &submit(&bench, "S1", true),
        "it skipped or ignored 1 test, but 0 when the step began",
    );
    bench.write("suite", &libtest(4, 0, 0));
    assert_eq!(submit(&bench, "S1", true), "");
    // The next step is compared with what this one left.
    bench.write("suite", &libtest(3, 0, 0));
    caught(
        &submit(&bench, "S2", true),
        "it ran 3 tests, but 4 when the step began",
    );
}

#[test]
fn a_red_test_is_reported_as_red_and_turns_green() {
    let bench = begun(
        &libtest(3, 0, 0),
        &[
            json!([{"gate": "tests_fail"}]),
            json!([{"gate": "fail_to_pass"}, {"gate": "tests_unchanged"}]),
        ],
    );
    caught(
        &submit(&bench, "S1", false),
        "all tests pass, but at least one must fail",
    );
    bench.write("suite", "error: could not compile `x`\nFAILED\n");
    caught(&submit(&bench, "S1", false), "the run broke before a test failed");
    bench.write("suite", &libtest(3, 1, 0));
    bench.write("tests/t.py", "assert total == 3\n");
    caught(&submit(&bench, "S1", true), "tests_passed is not false");
    assert_eq!(submit(&bench, "S1", false), "");
    caught(&submit(&bench, "S2", true), "exit code 1");
    bench.write("suite", &libtest(3, 0, 0));
    caught(
        &submit(&bench, "S2", true),
        "it ran 3 tests, but 4 when the step began",
    );
    bench.write("suite", &libtest(4, 0, 0));
    bench.write("tests/t.py", "assert True\n");
    caught(&submit(&bench, "S2", true), "existing tests changed: tests/t.py");
    bench.write("tests/t.py", "assert total == 3\n");
    assert_eq!(submit(&bench, "S2", true), "");
}

#[test]
fn a_fix_without_a_failing_test_is_none() {
    let bench = begun(&libtest(3, 0, 0), &[json!([{"gate": "fail_to_pass"}])]);
    caught(
        &submit(&bench, "S1", true),
        "it already passed in its last run before this step",
    );
}

#[test]
fn a_criterion_may_want_a_red_test() {
    let bench = Bench::new();
    let red = json!({
        "title": "Red", "instruction_prompt": "Write the test.", "acceptance_criteria": ["the new test fails"],
        "required_evidence": {"tests_passed": "boolean"},
    });
    let mut green = red.clone();
    green["acceptance_criteria"] = json!(["no test fails"]);
    let bench = bench.started(json!([red, green]));
    bench.run("- job_next_step_prompt {}");
    let mut arguments = result("S1");
    arguments["evidence"] = json!({"tests_run": ["t"], "tests_passed": false, "invariants_checked": true, "criteria_checklist": {"c1": true}});
    assert_eq!(
        bench.reply("job_submit_step_result", arguments.clone())["accepted"],
        json!(true)
    );
    bench.run("- job_next_step_prompt {}");
    arguments["step_id"] = json!("S2");
    assert_eq!(
        bench.reply("job_submit_step_result", arguments)["accepted"],
        json!(false)
    );
}

/// A job from a template, started.
pub(crate) fn from_template(name: &str, variables: Value) -> Bench {
    let bench = Bench::with_repository_and(with_suite);
    bench.write("suite", &libtest(3, 0, 0));
    bench.commit_all("suite");
    bench.run(
        r#"
        - conductor_answer {"answers": {"deliverables": ["it works"], "definition_of_done": ["it works"], "invariants": [], "repo_root": "main"}}
        - conductor_answer {"answers": {"target_environment": "Python 3.12 on Linux", "out_of_scope": ["other formats"], "key_files": ["a.txt"]}}
        "#,
    );
    bench.reply("conductor_answer", json!({"answers": no_faults()}));
    bench.reply("template_apply", json!({"name": name, "variables": variables}));
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    bench
}

/// Evidence that every step of a template accepts, if its gates hold.
pub(crate) fn report(bench: &Bench, files: &[&str], passed: Value, commit: bool) -> Value {
    let view = bench.reply("job_get", json!({}));
    let place = usize::try_from(view["current_step_index"].as_u64().unwrap()).unwrap();
    let id = view["steps"][place]["step_id"].clone();
    let whole = bench.reply("job_get", json!({"step_id": id}));
    let criteria = whole["step"]["acceptance_criteria"].as_array().unwrap().len();
    let checklist: serde_json::Map<String, Value> = (1..=criteria)
        .map(|number| (format!("c{number}"), json!(true)))
        .collect();
    let mut arguments = json!({
        "step_id": id, "model_claim": "MET", "summary": "did what the step asks for", "devlog_line": "went on",
        "evidence": {
            "changed_files": files, "diff_summary": "what the step asks for, and nothing else", "commands_run": ["default"],
            "tests_run": if passed.is_null() { json!([]) } else { json!(["default"]) }, "tests_passed": passed,
            "notes": "as the step says", "criteria_checklist": checklist, "invariants_checked": true,
        },
    });
    if commit {
        let commit = bench.reply("git_commit", json!({"summary": "go on", "paths": files}));
        arguments["commit_hash"] = commit["commit_hash"].clone();
    }
    let reply = bench.reply("job_submit_step_result", arguments);
    if reply["accepted"] == json!(true) && reply["status"] == json!("EXECUTING") {
        bench.run("- job_next_step_prompt {}");
    }
    reply
}

#[track_caller]
fn goes_on(reply: &Value) {
    assert_eq!(reply["accepted"], json!(true), "{reply}");
}

#[track_caller]
fn ends(reply: &Value) {
    assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
}

#[test]
fn a_bug_is_fixed_as_the_template_says_and_not_otherwise() {
    let bench = from_template("bug_fix", json!({"bug": "the total"}));
    bench.write("suite", &libtest(3, 1, 0));
    bench.write("tests/t.py", "assert total == 3\n");
    goes_on(&report(&bench, &["suite", "tests/t.py"], json!(false), false));
    goes_on(&report(&bench, &[], json!(null), false));
    // Without a fix, and with a red suite.
    let lie = report(&bench, &[], json!(true), false);
    let reasons = lie["rejection_reasons"].to_string();
    caught(
        &reasons,
        "gate fail_to_pass: `default`: it ended with exit code 1",
    );
    caught(&reasons, "gate changed_files_minimum: 0 files changed");
    bench.write("suite", &libtest(4, 0, 0));
    bench.write("total.py", "fixed\n");
    ends(&report(&bench, &["suite", "total.py"], json!(true), false));
}

#[test]
fn a_test_comes_first_as_the_template_says() {
    let bench = from_template("tdd_loop", json!({"behaviour": "the total"}));
    bench.write("suite", &libtest(3, 1, 0));
    bench.write("tests/t.py", "assert total == 3\n");
    goes_on(&report(&bench, &["suite", "tests/t.py"], json!(false), false));
    bench.write("suite", &libtest(4, 0, 0));
    bench.write("total.py", "1\n");
    goes_on(&report(&bench, &["suite", "total.py"], json!(true), false));
    ends(&report(&bench, &[], json!(true), false));
}

#[test]
fn a_feature_is_built_as_the_template_says() {
    let bench = from_template(
        "strict_feature",
        json!({"feature": "the export", "area": "reports"}),
    );
    goes_on(&report(&bench, &[], json!(null), false));
    for file in ["skeleton.py", "feature.py", "test_feature.py"] {
        bench.write(file, "1\n");
        goes_on(&report(&bench, &[file], json!(true), true));
    }
    bench.write("README.md", "1\n");
    goes_on(&report(&bench, &["README.md"], json!(true), true));
    // The last checkpoint changes nothing either.
    ends(&report(&bench, &[], json!(true), false));
}

#[test]
fn a_dependency_is_raised_as_the_template_says() {
    let bench = from_template(
        "dependency_upgrade",
        json!({"dependency": "serde", "version": "2"}),
    );
    goes_on(&report(&bench, &[], json!(true), false));
    goes_on(&report(&bench, &[], json!(true), false));
    bench.write("Cargo.toml", "serde = 2\n");
    goes_on(&report(&bench, &["Cargo.toml"], json!(true), true));
    ends(&report(&bench, &[], json!(null), false));
}

#[test]
fn structure_and_texts_change_as_the_templates_say() {
    let bench = from_template("refactor", json!({"target": "the exporter"}));
    for number in 1.. {
        let file = format!("part{number}.py");
        bench.write(&file, "1\n");
        let reply = report(&bench, &[&file], json!(true), false);
        goes_on(&reply);
        if reply["status"] == json!("COMPLETE") {
            break;
        }
    }
    let bench = from_template("docs", json!({"topic": "exports", "audience": "users"}));
    goes_on(&report(&bench, &[], json!(null), false));
    bench.write("docs.md", "1\n");
    goes_on(&report(&bench, &["docs.md"], json!(null), false));
    ends(&report(&bench, &[], json!(null), false));
}

#[test]
fn inserted_checkpoints_run_the_suite() {
    let bench = Bench::with_repository_and(with_suite);
    bench.write("suite", &libtest(3, 0, 0));
    bench.run(crate::harness::READY);
    bench.run(r#"- job_update_policies {"policies": {"checkpoint_interval_steps": 1}}"#);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    goes_on(&report(&bench, &[], json!(null), false));
    bench.write("suite", &libtest(2, 1, 0));
    let reply = report(&bench, &["suite"], json!(true), false);
    caught(
        &reply["rejection_reasons"].to_string(),
        "gate tests_passed: `default`: it ended with exit code 1",
    );
    bench.write("suite", &libtest(3, 0, 0));
    ends(&report(&bench, &[], json!(true), false));
}

/// A failing run of `cargo test`, with the message of the assertion.
fn panicked(message: &str) -> String {
    format!(
        "running 2 tests\ntest t0 ... FAILED\ntest t1 ... ok\n\nfailures:\n\n---- t0 stdout ----\n\n\
         thread 't0' panicked at src/lib.rs:3:5:\n{message}\n\n\
         test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n"
    )
}

/// Type, fingerprint, failing tests and note of the events of the newest call.
fn told(bench: &Bench, calls_before: usize) -> Vec<(String, bool, Vec<String>, String)> {
    let events = bench.session.events();
    let new = events.into_iter().skip(calls_before);
    new.filter(|event| event.event_type.starts_with("test."))
        .map(|event| {
            let has_failure = event.failure_fingerprint.is_some();
            (
                event.event_type,
                has_failure,
                event.failing_tests,
                event.note.unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn tests_of_gates_are_told_to_the_ledger_with_failures_that_stay() {
    let bench = begun(&libtest(2, 0, 0), &[json!([{"gate": "tests_passed"}])]);
    let submitted = |suite: &str| {
        let before = bench.session.events().len();
        bench.write("suite", suite);
        let reasons = submit(&bench, "S1", true);
        (
            reasons,
            told(&bench, before),
            bench.session.test_outcome().unwrap(),
        )
    };
    let (_, first, outcome) = submitted(&panicked("assertion failed: quoted"));
    expect![[r#"
        [("test.regression", false, [], ""), ("test.failed", true, ["t0"], "default failed: 1 passed, 1 failed, 0 skipped; regression: the last run passed")]
        Failed Some(1) of Some(2): t0: assertion failed: quoted"#]]
    .assert_eq(&format!(
        "{first:?}\n{:?} {:?} of {:?}: {}",
        outcome.result,
        outcome.failed,
        outcome.total,
        outcome.message.unwrap()
    ));
    // The same submission again, without an edit.
    let (_, again, _) = submitted(&panicked("assertion failed: quoted"));
    assert_eq!(again[0].0, "test.failed", "{again:?}");
    // An edit that does not help is no progress, whoever reads it.
    bench.write("a.txt", "edited\n");
    let (_, stays, _) = submitted(&panicked("assertion failed: quoted"));
    assert_eq!(stays[0].0, "test.non_progress", "{stays:?}");
    assert!(
        stays[0].3.ends_with("same failure seen 3 times; no progress"),
        "{stays:?}"
    );
    let attempts = bench.reply("job_get", json!({"attempts": 5}))["attempts"].clone();
    assert!(
        attempts
            .to_string()
            .contains("no progress: `default` fails in the same way as before, 3 times"),
        "{attempts}"
    );
    // Another assertion of the same test is a step.
    let (_, moved, _) = submitted(&panicked("assertion failed: header"));
    assert_eq!(moved[0].0, "test.failed", "{moved:?}");
    let (reasons, passed, outcome) = submitted(&libtest(2, 0, 0));
    assert_eq!((reasons.as_str(), passed[0].0.as_str()), ("", "test.passed"));
    assert_eq!((outcome.failed, outcome.total), (Some(0), Some(2)));
}

#[test]
fn a_red_test_that_a_gate_wants_is_no_lack_of_progress() {
    let gates = json!([{"gate": "tests_fail"}, {"gate": "file_exists", "paths": ["new.txt"]}]);
    let bench = begun(&panicked("assertion failed: x"), &[gates]);
    let before = bench.session.events().len();
    caught(&submit(&bench, "S1", false), "new.txt does not exist");
    bench.write("new.txt", "new\n");
    assert_eq!(submit(&bench, "S1", false), "");
    let told = told(&bench, before);
    assert!(told.iter().all(|event| event.0 == "test.failed"), "{told:?}");
}

#[test]
fn the_fingerprint_of_a_gate_is_that_of_a_test_run() {
    let bench = begun(&libtest(2, 0, 0), &[json!([{"gate": "tests_passed"}])]);
    let suite = panicked("assertion failed: quoted");
    bench.write("suite", &suite);
    submit(&bench, "S1", true);
    let run = test_readers::readers::Run {
        output: suite.as_bytes(),
        exit_code: Some(1),
        command: "sh -c cat suite; ! grep -q FAILED suite",
        reader: None,
    };
    let report = test_readers::readers::read(&run, &test_readers::Normaliser::default());
    let expected = test_readers::fingerprint::failure(&report);
    let found = bench.session.events();
    let found = found
        .iter()
        .rev()
        .find_map(|event| event.failure_fingerprint.clone());
    assert_eq!(found, expected);
}
