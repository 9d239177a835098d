//! Tests that change between the agreement on a plan and its execution.

use serde_json::{Value, json};
use tollgate_sdk::GitAccess;
use tollgate_sdk::native::Workspace;

use crate::harness::{Bench, READY, result, step};

fn with_test(workspace: Workspace, words: &[&str]) -> Workspace {
    workspace.test("default", words)
}

/// A READY job with these gates in a repository that has a committed test, which an agent executes.
fn ready(gates: Value) -> Bench {
    let bench = Bench::with_repository_and(|workspace| with_test(workspace, &["echo", "3 passed in 1s"]));
    bench.write("tests/t.py", "assert total == 3\n");
    bench.commit_all("tests");
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", gates)]}));
    bench.run("- job_set_ready {}");
    bench.as_agent();
    bench
}

fn refused(bench: &Bench) -> String {
    let refused = bench.call("job_start", json!({})).unwrap_err();
    assert_eq!(refused.code, "PERSON_REQUIRED");
    refused.message
}

#[test]
fn tests_that_change_before_the_start_need_a_person() {
    for gates in [
        json!([{"gate": "tests_unchanged"}]),
        json!([{"gate": "tests_passed"}]),
    ] {
        let bench = ready(gates);
        bench.write("tests/t.py", "assert True\n");
        assert!(refused(&bench).contains("existing tests changed: tests/t.py"));
        bench.git(&["commit", "--quiet", "-am", "tests"]);
        assert!(refused(&bench).contains("existing tests changed: tests/t.py"));
        // To agree once more without an edit of the plan records nothing anew.
        bench.run("- job_set_ready {}");
        assert!(refused(&bench).contains("existing tests changed: tests/t.py"));
        bench.write("conftest.py", "x\n");
        assert!(refused(&bench).contains("files that decide how tests run changed: conftest.py"));
        bench.as_person();
        bench.reply("job_start", json!({}));
        let view = bench.reply("job_get", json!({})).to_string();
        assert!(view.contains("have changed since the plan was agreed"), "{view}");
    }
}

#[test]
fn new_tests_other_work_and_tests_that_are_put_back_start_without_a_person() {
    let bench = ready(json!([{"gate": "tests_unchanged"}]));
    bench.write("tests/t.py", "assert True\n");
    bench.git(&["commit", "--quiet", "-am", "tests"]);
    bench.git(&["revert", "--no-edit", "HEAD"]);
    bench.write("tests/new.py", "assert 1\n");
    bench.write("a.txt", "three\n");
    bench.reply("job_start", json!({}));
}

#[test]
fn tests_may_change_under_a_plan_without_gates_about_them() {
    let bench = ready(json!([{"gate": "diff_max_lines", "max": 9}]));
    bench.write("tests/t.py", "assert True\n");
    bench.reply("job_start", json!({}));
}

#[test]
fn a_plan_that_is_agreed_anew_shows_that_its_tests_changed() {
    let bench = ready(json!([{"gate": "tests_unchanged"}]));
    bench.write("tests/t.py", "assert True\n");
    bench.reply(
        "conductor_answer",
        json!({"answers": {"constraints": ["small patches"]}}),
    );
    let reply = bench.reply("job_set_ready", json!({}));
    let line = "the tests changed after the plan was agreed: existing tests changed: tests/t.py";
    assert!(reply["warnings"].to_string().contains(line), "{reply}");
    bench.reply("job_start", json!({}));
    let view = bench.reply("job_get", json!({}));
    assert!(
        view["plan_changes"][0].as_str().unwrap().ends_with(line),
        "{view}"
    );
}

/// The same job after the operator's configuration, or whoever could edit it, changed the words of a test.
fn reworded(bench: Bench, words: &[&str]) -> Bench {
    let workspace = Workspace::new("main", &bench.path("")).git(GitAccess::Write);
    Bench {
        session: bench.session.workspace(with_test(workspace, words)),
        ..bench
    }
}

#[test]
fn a_registered_test_that_becomes_another_command_needs_a_person() {
    let bench = ready(json!([{"gate": "tests_passed"}]));
    let bench = reworded(bench, &["echo", "9 passed in 1s"]);
    let change = "the test default was `echo '3 passed in 1s'` and is `echo '9 passed in 1s'`";
    assert!(refused(&bench).contains(change));
    let bench = reworded(bench, &["echo", "3 passed in 1s"]);
    bench.run("- job_start {}\n- job_next_step_prompt {}");
    let bench = reworded(bench, &["echo", "9 passed in 1s"]);
    let mut arguments = result("S1");
    arguments["evidence"]["tests_run"] = json!(["default"]);
    arguments["evidence"]["tests_passed"] = json!(true);
    let reply = bench.reply("job_submit_step_result", arguments.clone());
    assert!(reply["rejection_reasons"].to_string().contains(change), "{reply}");
    bench.run("- job_pause {}");
    let refused = bench.call("job_resume", json!({})).unwrap_err();
    assert_eq!(refused.code, "PERSON_REQUIRED");
    bench.as_person();
    bench.reply("job_resume", json!({}));
    bench.as_agent();
    assert_eq!(
        bench.reply("job_submit_step_result", arguments)["accepted"],
        json!(true)
    );
}
