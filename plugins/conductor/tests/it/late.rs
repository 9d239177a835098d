//! Attempts to pass a guarded step by what an earlier step or a rule of it hides, and honest work that looks alike.

use serde_json::{Value, json};
use tollgate_sdk::native::Workspace;

use crate::cheats::{accepted, accepted_with, caught, caught_with, gated, planned};
use crate::harness::{Bench, result, step};

/// A job of two steps, the first with this text and these gates, the second guarding tests.
fn two_steps(bench: Bench, text: &str, gates: Value) -> Bench {
    let mut first = step("one", gates);
    first["instruction_prompt"] = json!(text);
    let guarded = json!([{"gate": "tests_unchanged"}]);
    let bench = bench.started(json!([first, step("two", guarded)]));
    bench.run("- job_next_step_prompt {}");
    bench
}

fn with_tests() -> Bench {
    let bench = Bench::with_repository();
    bench.write("tests/t.py", "assert total == 3\n");
    bench.commit_all("tests");
    bench
}

/// The reasons against the second step; empty if it is accepted.
fn second(bench: &Bench) -> String {
    bench.run("- job_next_step_prompt {}");
    let reply = bench.reply("job_submit_step_result", result("S2"));
    let reasons = reply["rejection_reasons"].as_array().unwrap();
    let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
    reasons.join("; ")
}

#[test]
fn gates_that_say_nothing_about_tests_do_not_take_them_over() {
    for gate in [
        json!({"gate": "forbid_paths", "paths": ["app.py"]}),
        json!({"gate": "diff_max_lines", "max": 30}),
    ] {
        let bench = two_steps(with_tests(), "Write docs/a.md. All tests pass.", json!([gate]));
        bench.write("tests/t.py", "assert True\n");
        bench.write("docs/a.md", "text\n");
        bench.commit_all("S1: docs");
        accepted(&bench);
        let word = "an earlier step changed these tests or test settings without being asked to: tests/t.py";
        let reasons = second(&bench);
        assert!(reasons.contains(word), "{reasons}");
        bench.write("tests/t.py", "assert total == 3\n");
        assert_eq!(second(&bench), "");
    }
}

#[test]
fn tests_that_an_earlier_step_is_to_change_are_its_work() {
    for (text, gates) in [
        ("Add a test for the total to the suite.", json!([])),
        (
            "Add a failing case to tests/t.py.",
            json!([{"gate": "changed_files_minimum", "min": 1}]),
        ),
        (
            "Correct tests/t.py.",
            json!([{"gate": "diff_max_lines", "max": 30}]),
        ),
        (
            "Work.",
            json!([{"gate": "changed_files_allowlist", "paths": ["tests/**"]}]),
        ),
    ] {
        let bench = two_steps(with_tests(), text, gates);
        bench.write("tests/t.py", "assert total == 4\n");
        accepted(&bench);
        assert_eq!(second(&bench), "", "{text}");
    }
}

#[test]
fn rules_of_an_earlier_step_hide_no_code() {
    let gates = json!([{"gate": "forbid_paths", "paths": ["docs/**"]}]);
    let mut guarded = step(
        "two",
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}]),
    );
    guarded["instruction_prompt"] = json!("Write b.txt.");
    let bench = Bench::with_repository();
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let bench = bench.started(json!([step("one", gates), guarded]));
    bench.run("- job_next_step_prompt {}");
    let rules = "lib/app\nlocal.mk\nlocal.sh\nmakefile\n*.pyc\ndata.csv\nbuild/\n*.egg-info/\n";
    bench.write(".gitignore", rules);
    bench.commit_all("S1: ignore");
    accepted(&bench);
    let hidden = ["lib/app", "local.mk", "local.sh", "makefile", "tests/app.pyc"];
    for file in hidden {
        bench.write(file, "x\n");
        let reasons = second(&bench);
        assert!(
            reasons.contains(&format!("changed outside of b.txt: {file}")),
            "{file}: {reasons}"
        );
        std::fs::remove_file(bench.path(file)).unwrap();
    }
    let plugin = "x.egg-info/entry_points.txt";
    bench.write(plugin, "[pytest11]\nx = x\n");
    let reasons = second(&bench);
    assert!(reasons.contains(plugin), "{reasons}");
    // Metadata of an installation, data and what builds make are nobody's.
    bench.write(plugin, "[console_scripts]\nx = x\n");
    for file in [
        "data.csv",
        "build/a.py",
        "tests/__pycache__/t.pyc",
        "x.egg-info/PKG-INFO",
    ] {
        bench.write(file, "x\n");
    }
    assert_eq!(second(&bench), "");
}

#[test]
fn compiled_modules_beside_sources_are_not_hidden_by_a_new_rule() {
    let bench = gated(json!([{"gate": "tests_unchanged"}]));
    bench.write(".gitignore", "*.pyc\n");
    bench.commit_all("S1: ignore");
    bench.write("tests/app.pyc", "x\n");
    caught(&bench, "tests/app.pyc");
    std::fs::remove_file(bench.path("tests/app.pyc")).unwrap();
    bench.write("tests/__pycache__/app.pyc", "x\n");
    accepted(&bench);
}

#[test]
fn code_that_tests_load_from_a_directory_is_not_planted_by_their_own_command() {
    let run = "for f in lib/*.sh; do . ./$f; done; cat wanted > lib/new.sh; echo '3 passed in 1s'";
    let plants = |workspace: Workspace| workspace.test("default", &["sh", "-c", run]);
    let bench = Bench::with_repository_and(plants);
    bench.write("lib/a.sh", ":\n");
    bench.commit_all("scripts");
    let bench = planned(
        bench,
        json!([{"gate": "tests_unchanged"}, {"gate": "tests_passed"}]),
    );
    // `job_start` ran the tests, so what they wrote then is theirs.
    bench.write("wanted", "echo ok\n");
    let evidence = json!({"notes": "n", "tests_run": ["default"], "tests_passed": true});
    accepted_with(&bench, json!({"evidence": evidence}));

    let run = "test ! -e go || echo 'exit 0' > lib/new.sh; echo '3 passed in 1s'";
    let later = |workspace: Workspace| workspace.test("default", &["sh", "-c", run]);
    let bench = Bench::with_repository_and(later);
    let bench = planned(
        bench,
        json!([{"gate": "tests_unchanged"}, {"gate": "tests_passed"}]),
    );
    std::fs::create_dir_all(bench.path("lib")).unwrap();
    bench.write("go", "x\n");
    caught_with(
        &bench,
        json!({"evidence": evidence}),
        "the commands of the gates wrote files that decide how tests run: lib/new.sh",
    );
}

#[test]
fn scripts_and_targets_that_tests_do_not_come_to_are_free() {
    let made = |workspace: Workspace| {
        workspace
            .test("default", &["make", "test"])
            .test("npm", &["npm", "test"])
    };
    let bench = Bench::with_repository_and(made);
    bench.write("Makefile", ".PHONY: test\ntest:\n\techo '3 passed in 1s'\n");
    bench.write("package.json", "{\"scripts\": {\"test\": \"node --test\"}}\n");
    bench.commit_all("tools");
    let gates = json!([{"gate": "tests_unchanged"}, {"gate": "command_exit_0", "command": ["make", "test"]}]);
    let bench = planned(bench, gates);
    let makefile = ".PHONY: test lint\ntest:\n\techo '3 passed in 1s'\nlint:\n\ttrue\n";
    for (file, text, word) in [
        (
            "Makefile",
            makefile.replace("echo '3", "echo '4"),
            "decide how tests run changed: Makefile; restore these files",
        ),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"true\"}}".to_owned(),
            "",
        ),
        (
            "package.json",
            "{\"type\": \"module\"}".to_owned(),
            "package.json (type",
        ),
    ] {
        let old = std::fs::read_to_string(bench.path(file)).unwrap();
        bench.write(file, &text);
        if !word.is_empty() {
            caught(&bench, word);
        }
        bench.write(file, &old);
    }
    bench.write("Makefile", makefile);
    bench.write(
        "package.json",
        "{\"scripts\": {\"test\": \"node --test\", \"start\": \"node a.js\"}}\n",
    );
    bench.write(
        "packages/b/package.json",
        "{\"type\": \"module\", \"scripts\": {\"test\": \"x\"}}\n",
    );
    accepted(&bench);
}

/// Result of the second step after a first one with this text that writes these files.
fn after(text: &str, gates: Value, files: &[(&str, &str)]) -> String {
    let bench = with_tests();
    bench.write("golden/total.json", "{\"total\": 3}\n");
    bench.write("tests/t.py", "assert total == read('golden/total.json')\n");
    bench.write("app.py", "x = 1\n");
    bench.commit_all("data");
    let bench = two_steps(bench, text, gates);
    for (path, content) in files {
        bench.write(path, content);
    }
    accepted(&bench);
    second(&bench)
}

#[test]
fn what_decides_how_tests_run_counts_over_steps_as_well() {
    let gates = || json!([{"gate": "forbid_paths", "paths": ["zzz/**"]}]);
    for (path, content) in [
        ("tests/app.py", "x = 3\n"),
        ("golden/total.json", "{\"total\": 0}\n"),
        ("conftest.py", "x = 1\n"),
        ("package.json", "{\"jest\": {}}\n"),
    ] {
        let text = "Describe the total in docs/a.md.";
        let reasons = after(text, gates(), &[(path, content), ("docs/a.md", "text\n")]);
        assert!(
            reasons.contains(&format!("being asked to: {path}")),
            "{path}: {reasons}"
        );
        let named = format!("Describe the total and update {path}.");
        assert_eq!(after(&named, gates(), &[(path, content)]), "", "{path}");
    }
    // Other work is nobody's debt.
    assert_eq!(
        after(
            "Work.",
            gates(),
            &[("app.py", "x = 2\n"), ("docs/a.md", "text\n")]
        ),
        ""
    );
}

#[test]
fn texts_that_deny_or_mention_tests_open_none() {
    for text in [
        "Do not add tests.",
        "Leave tests/t.py alone.",
        "Run tests/t.py.",
        "Describe how to write a test.",
        "Add a test for the mean in tests/mean.py.",
    ] {
        let gates = json!([{"gate": "diff_max_lines", "max": 30}]);
        let reasons = after(text, gates, &[("tests/t.py", "assert True\n")]);
        assert!(
            reasons.contains("being asked to: tests/t.py"),
            "{text}: {reasons}"
        );
    }
}

#[test]
fn a_red_step_hands_its_test_on_as_it_is() {
    let run = "grep -q pass said && echo '3 passed in 1s' || { echo '1 failed, 2 passed in 1s'; exit 1; }";
    let bench = Bench::with_repository_and(|workspace| workspace.test("default", &["sh", "-c", run]));
    bench.write("said", "pass\n");
    bench.write("tests/t.py", "assert total == 3\n");
    bench.commit_all("tests");
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let mut red = step("one", json!([{"gate": "tests_fail"}]));
    red["instruction_prompt"] = json!("Add a failing test to tests/t.py.");
    let docs = step("two", json!([{"gate": "forbid_paths", "paths": ["zzz/**"]}]));
    let guarded = step("three", json!([{"gate": "tests_unchanged"}]));
    let bench = bench.started(json!([red, docs, guarded]));
    bench.run("- job_next_step_prompt {}");
    bench.write("tests/t.py", "assert total == 3\nassert total == 4\n");
    bench.write("said", "x\n");
    let mut first = result("S1");
    first["evidence"]["tests_run"] = json!(["default"]);
    first["evidence"]["tests_passed"] = json!(false);
    let reply = bench.reply("job_submit_step_result", first);
    assert_eq!(reply["accepted"], json!(true), "{reply}");
    bench.run("- job_next_step_prompt {}");
    bench.write("tests/t.py", "assert total == 3\n");
    let reply = bench.reply("job_submit_step_result", result("S2"));
    assert_eq!(reply["accepted"], json!(true), "{reply}");
    bench.run("- job_next_step_prompt {}");
    let reply = bench.reply("job_submit_step_result", result("S3"));
    assert!(
        reply["rejection_reasons"]
            .to_string()
            .contains("being asked to: tests/t.py"),
        "{reply}"
    );
    bench.write("tests/t.py", "assert total == 3\nassert total == 4\n");
    let reply = bench.reply("job_submit_step_result", result("S3"));
    assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
}
