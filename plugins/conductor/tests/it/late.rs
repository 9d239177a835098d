//! Attempts to pass a guarded step by what an earlier step or a rule of it hides, and honest work that looks alike.

use serde_json::{Value, json};
use tollgate_sdk::native::Workspace;

use crate::cheats::{accepted, caught, gated, planned};
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
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "tests"]);
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
        bench.git(&["add", "."]);
        bench.git(&["commit", "--quiet", "-m", "S1: docs"]);
        accepted(&bench, json!({}));
        let word = "an earlier step changed tests or how they run, which its texts do not say: tests/t.py";
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
            "Correct tests/t.py.",
            json!([{"gate": "diff_max_lines", "max": 30}]),
        ),
        (
            "Work.",
            json!([{"gate": "changed_files_allowlist", "paths": ["tests/**"]}]),
        ),
    ] {
        let is_open = gates == json!([]);
        let bench = two_steps(with_tests(), text, gates);
        bench.write("tests/t.py", "assert total == 4\n");
        accepted(&bench, json!({}));
        let reasons = second(&bench);
        // Without any gate the change counts for the next step that looks at changes, as before.
        assert_eq!(reasons.is_empty(), !is_open, "{text}: {reasons}");
        assert!(!reasons.contains("an earlier step"), "{text}: {reasons}");
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
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "S1: ignore"]);
    accepted(&bench, json!({}));
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
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "S1: ignore"]);
    bench.write("tests/app.pyc", "x\n");
    caught(&bench, json!({}), "tests/app.pyc");
    std::fs::remove_file(bench.path("tests/app.pyc")).unwrap();
    bench.write("tests/__pycache__/app.pyc", "x\n");
    accepted(&bench, json!({}));
}

#[test]
fn code_that_tests_load_from_a_directory_is_not_planted_by_their_own_command() {
    let run = "for f in lib/*.sh; do . ./$f; done; cat wanted > lib/new.sh; echo '3 passed in 1s'";
    let plants = |workspace: Workspace| workspace.test("default", &["sh", "-c", run]);
    let bench = Bench::with_repository_and(plants);
    bench.write("lib/a.sh", ":\n");
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "scripts"]);
    let bench = planned(
        bench,
        json!([{"gate": "tests_unchanged"}, {"gate": "tests_passed"}]),
    );
    // `job_start` ran the tests, so what they wrote then is theirs.
    bench.write("wanted", "echo ok\n");
    let evidence = json!({"notes": "n", "tests_run": ["default"], "tests_passed": true});
    accepted(&bench, json!({"evidence": evidence}));

    let run = "test ! -e go || echo 'exit 0' > lib/new.sh; echo '3 passed in 1s'";
    let later = |workspace: Workspace| workspace.test("default", &["sh", "-c", run]);
    let bench = Bench::with_repository_and(later);
    let bench = planned(
        bench,
        json!([{"gate": "tests_unchanged"}, {"gate": "tests_passed"}]),
    );
    std::fs::create_dir_all(bench.path("lib")).unwrap();
    bench.write("go", "x\n");
    caught(
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
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "tools"]);
    let gates = json!([{"gate": "tests_unchanged"}, {"gate": "command_exit_0", "command": ["make", "test"]}]);
    let bench = planned(bench, gates);
    let makefile = ".PHONY: test lint\ntest:\n\techo '3 passed in 1s'\nlint:\n\ttrue\n";
    for (file, text, word) in [
        (
            "Makefile",
            makefile.replace("echo '3", "echo '4"),
            "decide how tests run changed: Makefile; put that back",
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
            caught(&bench, json!({}), word);
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
    accepted(&bench, json!({}));
}
