//! Attempts to pass a guarded step by what another step, the tests or the gates' own commands do, one test each.

use serde_json::{Value, json};

use crate::cheats::{accepted, accepted_with, caught, caught_with, gated, planned};
use crate::harness::{Bench, result, step};
use crate::suites::{from_template, libtest, report};

/// A job whose first step has no gates and whose second may change nothing but `b.txt`.
fn after_an_open_step() -> Bench {
    let guarded =
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "tests_unchanged"}]);
    let bench = Bench::with_repository();
    bench.write("tests/t.py", "assert total == 3\n");
    bench.commit_all("tests");
    let bench = bench.started(json!([step("one", json!([])), step("two", guarded)]));
    bench.run("- job_next_step_prompt {}");
    bench
}

fn reasons(reply: &Value) -> String {
    reply["rejection_reasons"].to_string()
}

#[test]
fn changes_in_a_step_without_gates_count_for_the_next_guarded_one() {
    let bench = after_an_open_step();
    bench.write("secret.py", "evil\n");
    bench.write("tests/t.py", "assert True\n");
    accepted(&bench);
    bench.run("- job_next_step_prompt {}");
    let reply = bench.reply("job_submit_step_result", result("S2"));
    for word in [
        "changed outside of b.txt: secret.py, tests/t.py; changes of earlier steps are included",
        "existing tests changed: tests/t.py",
    ] {
        assert!(reasons(&reply).contains(word), "{reply}");
    }
    bench.git(&["checkout", "--quiet", "tests"]);
    std::fs::remove_file(bench.path("secret.py")).unwrap();
    let reply = bench.reply("job_submit_step_result", result("S2"));
    assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
}

#[test]
fn a_step_that_is_inserted_before_a_guarded_one_needs_its_gates_or_a_person() {
    let bench = after_an_open_step();
    bench.as_agent();
    let insert =
        |gates: Value| json!({"edits": [{"op": "insert", "after": "S1", "step": step("three", gates)}]});
    let weak = json!([{"gate": "changed_files_minimum", "min": 0}]);
    for gates in [json!([]), weak.clone()] {
        let refused = bench.call("plan_refine_steps", insert(gates)).unwrap_err();
        assert_eq!(refused.code, "PERSON_REQUIRED");
    }
    // Gates that only want changes take none from the gates of a later step.
    let update = json!({"edits": [{"op": "update", "step_id": "S1", "set": {"gates": weak}}]});
    bench.reply("plan_refine_steps", update);
    let limit = json!([{"gate": "diff_max_lines", "max": 900}]);
    let update = json!({"edits": [{"op": "update", "step_id": "S1", "set": {"gates": limit}}]});
    assert_eq!(
        bench.call("plan_refine_steps", update).unwrap_err().code,
        "PERSON_REQUIRED"
    );
    let moved = json!({"edits": [{"op": "move", "step_id": "S2"}]});
    assert_eq!(
        bench.call("plan_refine_steps", moved).unwrap_err().code,
        "PERSON_REQUIRED"
    );
    let as_strict =
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "tests_unchanged"}]);
    bench.reply("plan_refine_steps", insert(as_strict));
}

#[test]
fn gates_that_only_want_changes_leave_them_to_the_next_guarded_step() {
    for gate in [
        json!({"gate": "diff_min_lines", "min": 1}),
        json!({"gate": "changed_files_minimum", "min": 1}),
    ] {
        let bench = Bench::with_repository();
        bench.write("tests/t.py", "assert total == 3\n");
        bench.commit_all("tests");
        let steps = json!([
            step("one", json!([gate])),
            step("two", json!([{"gate": "tests_unchanged"}]))
        ]);
        let bench = bench.started(steps);
        bench.run("- job_next_step_prompt {}");
        bench.write("tests/t.py", "assert True\n");
        bench.write("b.txt", "1\n");
        accepted(&bench);
        bench.run("- job_next_step_prompt {}");
        let reply = bench.reply("job_submit_step_result", result("S2"));
        assert!(
            reasons(&reply).contains("existing tests changed: tests/t.py"),
            "{reply}"
        );
        // Other work of the first step is as good as before.
        bench.git(&["checkout", "--quiet", "tests"]);
        let reply = bench.reply("job_submit_step_result", result("S2"));
        assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
    }
}

#[test]
fn a_bug_is_not_fixed_by_its_test_or_by_a_note() {
    let bench = from_template("bug_fix", json!({"bug": "the total"}));
    bench.write("suite", &libtest(3, 1, 0));
    bench.write("tests/t.py", "assert total == 3\n");
    assert_eq!(
        report(&bench, &["tests/t.py"], json!(false), false)["accepted"],
        json!(true)
    );
    // The step that changes no code.
    bench.write("tests/t.py", "assert True\n");
    let reply = report(&bench, &[], json!(null), false);
    assert!(
        reasons(&reply).contains("existing tests changed: tests/t.py"),
        "{reply}"
    );
    bench.write("tests/t.py", "assert total == 3\n");
    bench.write("notes.md", "x\n");
    let reply = report(&bench, &[], json!(null), false);
    assert!(
        reasons(&reply).contains("1 line changed; at most 0 may change"),
        "{reply}"
    );
    std::fs::remove_file(bench.path("notes.md")).unwrap();
}

#[test]
fn a_fix_changes_more_than_tests_and_notes() {
    let flaky = |workspace: tollgate_sdk::native::Workspace| {
        // Red as long as there is no note.
        let run = "test -e NOTES.md && echo '3 passed in 1s' || { echo '1 failed, 2 passed in 1s'; exit 1; }";
        workspace.test("default", &["sh", "-c", run])
    };
    let steps = [json!([{"gate": "tests_fail"}]), json!([{"gate": "fail_to_pass"}])];
    let steps: Vec<Value> = steps.into_iter().map(|gates| step("part", gates)).collect();
    let bench = Bench::with_repository_and(flaky).started(json!(steps));
    let submit = |id: &str, passed: bool| {
        bench.run("- job_next_step_prompt {}");
        let mut arguments = result(id);
        arguments["evidence"]["tests_run"] = json!(["default"]);
        arguments["evidence"]["tests_passed"] = json!(passed);
        bench.reply("job_submit_step_result", arguments)
    };
    assert_eq!(submit("S1", false)["accepted"], json!(true));
    bench.write("NOTES.md", "fixed\n");
    let reply = submit("S2", true);
    assert!(
        reasons(&reply).contains("only tests and documents changed"),
        "{reply}"
    );
    bench.write("total.py", "fixed\n");
    assert_eq!(submit("S2", true)["accepted"], json!(true));
}

/// A job whose test prints the file `said`, under these gates.
fn saying(said: &str, gates: Value) -> Bench {
    let bench = Bench::with_repository_and(|workspace| workspace.test("told", &["cat", "said"]));
    bench.write("said", said);
    planned(bench, gates)
}

fn told(bench: &Bench, word: &str) {
    let evidence = json!({"notes": "n", "tests_run": ["told"], "tests_passed": true});
    match word {
        "" => accepted_with(bench, json!({"evidence": evidence})),
        word => caught_with(bench, json!({"evidence": evidence}), word),
    }
}

#[test]
fn a_run_that_prints_no_numbers_any_more_is_refused() {
    let bench = saying(
        "3 passed in 1s\n",
        json!([{"gate": "tests_passed", "command": ["told"]}]),
    );
    for silent in ["", "all is well\n"] {
        bench.write("said", silent);
        told(&bench, "its output contains no test count, but it ran 3 tests");
    }
    bench.write("said", "3 passed in 1s\n");
    told(&bench, "");
    // A tool that never printed any has none to lose.
    let bench = saying(
        "all is well\n",
        json!([{"gate": "tests_passed", "command": ["told"]}]),
    );
    told(&bench, "");
}

#[test]
fn new_files_that_decide_how_tests_run_are_seen() {
    let bench = gated(json!([{"gate": "tests_unchanged"}]));
    for file in [
        "conftest.py",
        "sub/conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.py",
        "unittest.py",
        "unittest/__init__.py",
        "sitecustomize.py",
        "jest.config.js",
        "vitest.config.ts",
        ".mocharc.json",
    ] {
        bench.write(file, "x\n");
        let word = format!("files that decide how tests run changed: {file}");
        caught(&bench, &word);
        std::fs::remove_file(bench.path(file)).unwrap();
    }
    bench.write(
        "pyproject.toml",
        "[tool.pytest.ini_options]\ntestpaths = ['t2']\n",
    );
    caught(&bench, "decide how tests run changed: pyproject.toml");
    bench.write("pyproject.toml", "[project]\nname = 'a'\n");
    bench.write("package.json", "{\"jest\": {\"testMatch\": []}}\n");
    caught(&bench, "decide how tests run changed: package.json");
    bench.write("package.json", "{\"dependencies\": {}}\n");
    bench.write("tests/new.py", "assert True\n");
    accepted(&bench);
}

#[test]
fn the_script_that_runs_the_tests_is_protected() {
    let bench = Bench::with_repository_and(|workspace| workspace.test("default", &["sh", "run.sh"]));
    bench.write("run.sh", "echo 3 passed in 1s\n");
    let bench = planned(bench, json!([{"gate": "tests_unchanged"}]));
    bench.write("run.sh", "echo 4 passed in 1s\n");
    caught(&bench, "files that decide how tests run changed: run.sh");
}

#[test]
fn snapshots_and_fixtures_are_tests() {
    let files = [
        "a/__snapshots__/x.snap",
        "testdata/x",
        "app/fixtures/x.json",
        "Tests/T.swift",
        "src/ATest.php",
        "t/a.t",
    ];
    let bench = Bench::with_repository();
    for file in files {
        bench.write(file, "old\n");
    }
    bench.commit_all("tests");
    let bench = planned(bench, json!([{"gate": "tests_unchanged"}]));
    for file in files {
        bench.write(file, "new\n");
        caught(&bench, &format!("existing tests changed: {file}"));
        bench.write(file, "old\n");
    }
    accepted(&bench);
}

#[test]
fn a_file_of_the_gates_that_is_changed_by_hand_belongs_to_the_step() {
    let bench = Bench::with_repository_and(|workspace| {
        workspace.test(
            "plant",
            &["sh", "-c", "test -e evil.py || echo x > evil.py; cat ok"],
        )
    });
    let gates = json!([
        {"gate": "command_exit_0", "command": ["plant"]},
        {"gate": "changed_files_allowlist", "paths": ["ok"]},
        {"gate": "diff_max_lines", "max": 10},
        {"gate": "no_uncommitted_changes"},
    ]);
    let bench = planned(bench, gates);
    caught(&bench, "exit code 1");
    bench.write("ok", "3 passed\n");
    bench.git(&["add", "ok"]);
    bench.git(&["commit", "--quiet", "-m", "ok"]);
    bench.write("evil.py", &"evil\n".repeat(500));
    for word in [
        "changed outside of ok: evil.py",
        "501 lines changed",
        "not committed: evil.py",
    ] {
        caught(&bench, word);
    }
    bench.write("evil.py", "x\n");
    accepted(&bench);
}

#[test]
fn an_old_commit_with_another_message_is_not_new() {
    let bench = gated(json!([{"gate": "commit_exists"}]));
    bench.git(&["commit", "--quiet", "--amend", "-m", "S1: fix it"]);
    let amended = bench.git(&["rev-parse", "HEAD"]);
    caught_with(
        &bench,
        json!({"commit_hash": amended}),
        "changes nothing since the step began",
    );
    bench.write("b.txt", "1\n");
    bench.git(&["add", "b.txt"]);
    bench.git(&["commit", "--quiet", "--amend", "-m", "S1: fix it"]);
    let real = bench.git(&["rev-parse", "HEAD"]);
    accepted_with(&bench, json!({"commit_hash": real}));
}

#[test]
fn a_rule_of_the_job_hides_no_file_that_takes_part_in_tests() {
    let open = json!([]);
    let ignoring = json!([{"gate": "changed_files_allowlist", "paths": [".gitignore"]}]);
    for (first, is_early) in [(open, true), (ignoring, false)] {
        let guarded = json!([{"gate": "tests_unchanged"}]);
        let bench = Bench::with_repository().started(json!([step("one", first), step("two", guarded)]));
        bench.run("- job_next_step_prompt {}");
        bench.write(".gitignore", "conftest.py\nhidden/\nlocal.cfg\nbuild/\n");
        bench.git(&["add", ".gitignore"]);
        bench.git(&["commit", "--quiet", "-m", "S1: ignore"]);
        let plant = || {
            bench.write("conftest.py", "x = 1\n");
            bench.write("hidden/tests/conftest.py", "x = 1\n");
        };
        if is_early {
            plant();
        }
        accepted(&bench);
        bench.run("- job_next_step_prompt {}");
        plant();
        // What else the rule of a step ignores stays ignored, and so does what a build makes.
        bench.write("local.cfg", "x\n");
        bench.write("build/conftest.py", "x\n");
        let reply = bench.reply("job_submit_step_result", result("S2"));
        let word = "files that decide how tests run changed: conftest.py, hidden/tests/conftest.py";
        assert!(reasons(&reply).contains(word), "{reply}");
        std::fs::remove_file(bench.path("conftest.py")).unwrap();
        std::fs::remove_dir_all(bench.path("hidden")).unwrap();
        let reply = bench.reply("job_submit_step_result", result("S2"));
        assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
    }
}
