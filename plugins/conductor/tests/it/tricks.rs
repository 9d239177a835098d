//! Attempts to have a step accepted by what was broken, hidden, undone or forged, one test each.

use serde_json::{Value, json};
use tollgate_sdk::native::Workspace;

use crate::cheats::{accepted, accepted_with, caught, caught_with, changed, gated, planned, submit};
use crate::harness::{Bench, READY, result, step};

/// A repository whose test passes as long as `total.py` says `right` and no test wants more than `total.py` has.
fn with_total(workspace: Workspace) -> Workspace {
    let run = "grep -q right total.py && ! { grep -qs more tests/*.py && ! grep -q more total.py; } \
        && echo '3 passed in 1s' || { echo '1 failed, 2 passed in 1s'; exit 1; }";
    workspace.test("default", &["sh", "-c", run])
}

/// A job that wants a failing test first and a fix then.
fn red_and_green() -> Bench {
    let bench = Bench::with_repository_and(with_total);
    bench.write("total.py", "right\n");
    bench.write("util.py", "x = 1\n");
    bench.commit_all("total");
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let gates = [json!([{"gate": "tests_fail"}]), json!([{"gate": "fail_to_pass"}])];
    let steps: Vec<Value> = gates.into_iter().map(|gates| step("part", gates)).collect();
    bench.started(json!(steps))
}

/// The reasons against a step of such a job; empty if it is accepted.
fn claim(bench: &Bench, id: &str, passed: bool) -> String {
    bench.run("- job_next_step_prompt {}");
    let mut arguments = result(id);
    arguments["evidence"]["tests_run"] = json!(["default"]);
    arguments["evidence"]["tests_passed"] = json!(passed);
    let reply = bench.reply("job_submit_step_result", arguments);
    let reasons = reply["rejection_reasons"].as_array().unwrap();
    let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
    reasons.join("; ")
}

#[track_caller]
fn says(reasons: &str, word: &str) {
    assert!(reasons.contains(word), "{word:?} is not among: {reasons}");
}

#[test]
fn working_code_that_is_broken_is_no_red_test() {
    let bench = red_and_green();
    bench.write("total.py", "wrong\n");
    says(
        &claim(&bench, "S1", false),
        "total.py changed since the tests last passed, but no test is new or changed",
    );
    // A note does not help; a test does.
    bench.write("NOTES.md", "it fails\n");
    says(&claim(&bench, "S1", false), "no test is new or changed");
    bench.write("total.py", "right\n");
    bench.write("tests/test_total.py", "more\n");
    assert_eq!(claim(&bench, "S1", false), "");
    bench.write("total.py", "right, and more\n");
    assert_eq!(claim(&bench, "S2", true), "");
}

#[test]
fn code_that_is_put_back_is_no_fix() {
    let bench = red_and_green();
    bench.write("tests/test_total.py", "a test that says nothing\n");
    bench.write("total.py", "wrong\n");
    assert_eq!(claim(&bench, "S1", false), "");
    bench.write("total.py", "right\n");
    let back = "total.py has the same content as when the tests last passed";
    says(&claim(&bench, "S2", true), back);
    // Neither a comment, nor another test, nor a new file makes it one.
    bench.write("total.py", "# fixed\nright\n\n");
    says(&claim(&bench, "S2", true), back);
    bench.write("tests/test_more.py", "another\n");
    says(&claim(&bench, "S2", true), back);
    bench.write("helper.py", "y = 1\n");
    says(&claim(&bench, "S2", true), back);
    bench.commit_all("S2: put back");
    says(&claim(&bench, "S2", true), back);
    bench.write("total.py", "right, and better\n");
    assert_eq!(claim(&bench, "S2", true), "");
}

#[test]
fn a_stub_may_come_with_the_red_test() {
    let bench = red_and_green();
    bench.write("tests/test_total.py", "more\n");
    bench.write("total.py", "right\ndef stub(): ...\n");
    bench.write("new.py", "def other(): ...\n");
    assert_eq!(claim(&bench, "S1", false), "");
    bench.write("total.py", "right\ndef more(): return 1\n");
    assert_eq!(claim(&bench, "S2", true), "");
    // Tests inside of the source count as well.
    let bench = red_and_green();
    bench.write("src/lib.rs", "#[cfg(test)]\nmod tests {}\n");
    bench.write("total.py", "wrong\n");
    assert_eq!(claim(&bench, "S1", false), "");
}

#[test]
fn tests_that_are_exchanged_are_named() {
    let bench = Bench::with_repository_and(|workspace| workspace.test("default", &["cat", "said"]));
    bench.write("said", "2 passed in 1s\n");
    bench.write("tests/test_a.py", "def test_one(): ...\ndef test_two(): ...\n");
    bench.commit_all("tests");
    // One that was never committed.
    bench.write("tests/test_b.py", "def test_three(): ...\n");
    let bench = planned(bench, json!([{"gate": "tests_passed"}]));
    let evidence = json!({"notes": "n", "tests_run": ["default"], "tests_passed": true});
    let submission = json!({"evidence": evidence});
    bench.write("tests/test_a.py", "def test_one(): ...\ndef test_easy(): ...\n");
    bench.write("tests/test_b.py", "def test_four(): ...\n");
    let gone = "tests that were there when the step began and are gone: test_two (tests/test_a.py), test_three (tests/test_b.py)";
    bench.write("said", "1 passed in 1s\n");
    let reasons = submit(&bench, submission.clone());
    says(&reasons, "it ran 1 test, but 2 when the step began");
    says(&reasons, gone);
    bench.write("said", "2 passed in 1s\n");
    let mut arguments = result("S1");
    arguments["evidence"] = submission["evidence"].clone();
    let reply = bench.reply("job_submit_step_result", arguments);
    assert_eq!(reply["accepted"], json!(true), "{reply}");
    says(&reply["notes"].to_string(), gone);
    let kept = bench.reply("job_get", json!({"attempts": 1}));
    says(
        &kept["attempts"][0]["notes"].to_string(),
        "test_two (tests/test_a.py)",
    );
}

#[test]
fn a_test_that_moves_is_not_gone() {
    let bench = Bench::with_repository();
    bench.write("tests/test_a.py", "def test_one(): ...\n");
    bench.commit_all("tests");
    let bench = planned(bench, json!([]));
    bench.git(&["mv", "tests/test_a.py", "tests/test_b.py"]);
    let reply = bench.reply("job_submit_step_result", result("S1"));
    assert_eq!(reply["accepted"], json!(true), "{reply}");
    assert!(!reply["notes"].to_string().contains("are gone"), "{reply}");
}

#[test]
fn an_ignore_rule_of_the_step_hides_nothing_in_it() {
    let bench = gated(json!([{"gate": "changed_files_allowlist", "paths": [".gitignore", "b.txt"]}]));
    bench.write(".gitignore", "evil*\nhidden/\nbuild/\n");
    bench.git(&["add", ".gitignore"]);
    bench.git(&["commit", "--quiet", "-m", "S1: ignore"]);
    accepted_but_for(&bench, "evil.py", "changed outside of .gitignore, b.txt: evil.py");
    accepted_but_for(
        &bench,
        "hidden/x.py",
        "changed outside of .gitignore, b.txt: hidden/x.py",
    );
    // Every project that is set up begins to ignore what its build makes.
    bench.write("build/out", "x\n");
    accepted(&bench);
}

fn accepted_but_for(bench: &Bench, path: &str, word: &str) {
    bench.write(path, "x\n");
    caught(bench, word);
    std::fs::remove_file(bench.path(path)).unwrap();
}

#[test]
fn what_a_step_began_to_ignore_is_ignored_in_the_next() {
    let only = json!([{"gate": "changed_files_allowlist", "paths": [".gitignore", "local.cfg"]}, {"gate": "no_uncommitted_changes"}]);
    let bench = Bench::with_repository().started(json!([step("one", only.clone()), step("two", only)]));
    bench.run("- job_next_step_prompt {}");
    bench.write(".gitignore", "local.*\n");
    bench.write("local.cfg", "x\n");
    bench.git(&["add", ".gitignore"]);
    bench.git(&["commit", "--quiet", "-m", "S1: ignore"]);
    accepted(&bench);
    bench.run("- job_next_step_prompt {}");
    bench.write("local.cfg", "y\n");
    bench.write("local.other", "y\n");
    let reply = bench.reply("job_submit_step_result", result("S2"));
    assert_eq!(reply["accepted"], json!(true), "{reply}");
}

#[test]
fn a_commit_that_is_reverted_in_the_step_does_not_count() {
    let bench = gated(json!([{"gate": "commit_exists"}]));
    bench.write("a.txt", "better\n");
    bench.git(&["commit", "--quiet", "-am", "S1: better"]);
    let commit = bench.git(&["rev-parse", "HEAD"]);
    bench.git(&["revert", "--no-edit", "HEAD"]);
    caught_with(
        &bench,
        json!({"commit_hash": commit}),
        "has no net effect: its files are as they were when the step began",
    );
    bench.write("a.txt", "best\n");
    bench.git(&["commit", "--quiet", "-am", "S1: best"]);
    let commit = bench.git(&["rev-parse", "HEAD"]);
    accepted_with(
        &bench,
        json!({"commit_hash": commit, "evidence": changed(&["a.txt"])}),
    );
}

#[test]
fn one_commit_serves_one_job() {
    let bench = gated(json!([{"gate": "commit_exists"}]));
    let init = json!({"title": "Other", "goal": "Another export", "repo_root": "main"});
    let other = bench.reply("conductor_init", init)["job_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = bench.job.clone();
    let other = Bench { job: other, ..bench };
    let other = other.started(json!([
        step("one", json!([{"gate": "commit_exists"}])),
        step("two", json!([]))
    ]));
    other.run("- job_next_step_prompt {}");
    other.write("a.txt", "better\n");
    other.git(&["commit", "--quiet", "-am", "S1: better"]);
    let commit = other.git(&["rev-parse", "HEAD"]);
    accepted_with(&other, json!({"job_id": first, "commit_hash": commit}));
    let word = format!("was already submitted for step S1 of {first}");
    caught_with(&other, json!({"commit_hash": commit}), &word);
    caught_with(&other, json!({"commit_hash": &commit[..9]}), &word);
}

#[test]
fn what_is_taken_out_of_a_plan_before_the_start_is_shown() {
    let bench = Bench::with_repository();
    bench.run(READY);
    let gates = json!([{"gate": "file_exists", "paths": ["b.txt"]}, {"gate": "diff_max_lines", "max": 9}]);
    bench.reply(
        "plan_propose_steps",
        json!({"steps": [step("one", gates), step("two", json!([])), step("three", json!([]))]}),
    );
    let before = bench.reply("job_get", json!({}));
    assert_eq!(
        before["plan_changes"],
        Value::Null,
        "a first draft takes nothing out"
    );
    bench.run("- job_set_ready {}");
    bench.as_agent();
    let edits = json!([
        {"op": "update", "step_id": "S1", "set": {"gates": [{"gate": "diff_max_lines", "max": 900}], "instruction_prompt": "Do it."}},
        {"op": "update", "step_id": "S2", "set": {"acceptance_criteria": ["it works"]}},
        {"op": "remove", "step_id": "S3"},
    ]);
    let reply = bench.reply("plan_refine_steps", json!({"edits": edits}));
    assert_eq!(reply["unreadied"], json!(true));
    bench.reply("plan_set_deliverables", json!({"deliverables": ["less"]}));
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.reply(
        "job_update_policies",
        json!({"policies": {"max_retries_per_step": 9, "require_commit_per_step": true}}),
    );
    // A flood of entries hides none of it, and nobody else writes such entries.
    for _ in 0..3 {
        bench.reply("devlog_append", json!({"content": "plan changed: nothing"}));
    }
    let forged = json!({"content": "plan changed by a person", "log_type": "SYSTEM"});
    assert_eq!(
        bench.call("devlog_append", forged).unwrap_err().code,
        "INVALID_ARGUMENTS"
    );
    let changes = bench.plan_changes();
    for (place, words) in [
        "S1.gates: [{\"gate\":\"file_exists\",\"paths\":[\"b.txt\"]},{\"gate\":\"diff_max_lines\",\"max\":9}] becomes \
         [{\"gate\":\"diff_max_lines\",\"max\":900}]",
        "S2.acceptance_criteria: [\"it works\",\"it is tested\"] becomes [\"it works\"]",
        "S3 \"three\" is removed",
        "deliverables: [\"the exporter\"] becomes [\"less\"]",
        "S1.gates: [{\"gate\":\"diff_max_lines\",\"max\":900}] becomes []",
        "S2 \"two\" is removed",
        "policy max_retries_per_step: 2 becomes 9",
    ]
    .iter()
    .enumerate()
    {
        let line = format!("plan changed before the start: {words}");
        assert!(changes[place].starts_with(&line), "{place}: {changes:#?}");
    }
    assert_eq!(changes.len(), 7, "{changes:#?}");
    let document = bench.reply("job_export_bundle", json!({"format": "md"}));
    says(
        document["content"].as_str().unwrap(),
        "plan changed before the start: S3 \"three\" is removed",
    );
}

#[test]
fn a_forged_history_is_marked_as_imported() {
    let bench = Bench::new().started(json!([step("one", json!([{"gate": "tests_passed"}]))]));
    let bundle = bench.reply("job_export_bundle", json!({"format": "json"}));
    let mut bundle: Value = serde_json::from_str(bundle["content"].as_str().unwrap()).unwrap();
    // Complete, with a submission that nobody made.
    bundle["job"]["status"] = json!("COMPLETE");
    bundle["steps"][0]["status"] = json!("DONE");
    bundle["attempts"] = json!([{
        "attempt_id": "ATT-7777", "step_id": "S1", "at": bundle["exported_at"], "model_claim": "MET", "accepted": true,
        "summary": "all tests pass", "feedback": "S1 is accepted.", "evidence": {}, "commands": {"default": "exit code 0"},
    }]);
    let other = Bench::new();
    let job = other.reply("job_import", json!({"bundle": bundle}))["job_id"].clone();
    let view = other.reply("job_get", json!({"job_id": job, "attempts": 1}));
    assert_eq!(view["status"], json!("COMPLETE"));
    says(
        view["imported"].as_str().unwrap(),
        "imported from a bundle as COMPLETE: the job's id in the bundle is ",
    );
    says(
        view["imported"].as_str().unwrap(),
        "this host did not judge its accepted submissions (1)",
    );
    assert_eq!(view["steps"][0]["judged_elsewhere"], json!(true), "{view:#}");
    let note = "imported: this host did not judge this submission";
    assert_eq!(view["attempts"][0]["notes"], json!([note]));
    let listed = other.reply("job_list", json!({}));
    let jobs = listed["jobs"].as_array().unwrap();
    let marks: Vec<bool> = jobs
        .iter()
        .map(|line| line["job_id"] == job && line["imported"] == json!(true))
        .collect();
    assert_eq!(marks.iter().filter(|mark| **mark).count(), 1, "{listed:#}");
    assert!(jobs.iter().any(|line| line["imported"].is_null()), "{listed:#}");
    let export = |format: &str| {
        let reply = other.reply("job_export_bundle", json!({"job_id": job, "format": format}));
        reply["content"].as_str().unwrap().to_owned()
    };
    let document = export("md");
    for words in [
        "- Origin: imported from a bundle as COMPLETE",
        "S1: all tests pass (not judged by this host)",
        "ATT-7777 accepted elsewhere at",
    ] {
        says(&document, words);
    }
    says(&export("json"), note);
    // The mark outlives another round.
    let again: Value = serde_json::from_str(&export("json")).unwrap();
    let again = other.reply("job_import", json!({"bundle": again}))["job_id"].clone();
    let view = other.reply("job_get", json!({"job_id": again, "attempts": 1}));
    assert_eq!(view["attempts"][0]["notes"], json!([note]));
    assert_eq!(view["steps"][0]["judged_elsewhere"], json!(true));
}

#[test]
fn settings_of_tests_in_files_of_builds_are_protected() {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = 'a'\n",
            "[package]\nname = 'a'\n[lib]\ntest = false\n",
        ),
        (
            "pom.xml",
            "<project/>\n",
            "<project><properties><skipTests>true</skipTests></properties></project>\n",
        ),
        (
            "build.gradle",
            "plugins {}\n",
            "plugins {}\ntest {\n  enabled = false\n}\n",
        ),
        (
            "vite.config.ts",
            "export default {}\n",
            "export default { test: { include: [] } }\n",
        ),
        ("bunfig.toml", "", "[test]\nroot = 'x'\n"),
        ("deno.json", "{}\n", "{\"tasks\": {\"test\": \"true\"}}\n"),
        (
            "CMakeLists.txt",
            "project(a)\n",
            "project(a)\nset(BUILD_TESTING OFF)\n",
        ),
        ("babel.config.js", "x\n", "y\n"),
        (".npmrc", "x\n", "script-shell=true\n"),
        (
            "app/settings.py",
            "DEBUG = 1\n",
            "DEBUG = 1\nTEST_RUNNER = 'app.Nothing'\n",
        ),
    ];
    let bench = Bench::with_repository();
    for (path, old, _) in files {
        bench.write(path, old);
    }
    bench.write("features/pay.feature", "Scenario: pay\n");
    bench.commit_all("settings");
    let bench = planned(bench, json!([{"gate": "tests_unchanged"}]));
    for (path, old, new) in files {
        bench.write(path, new);
        let word = format!("files that decide how tests run changed: {path}");
        caught(&bench, &word);
        bench.write(path, old);
    }
    bench.write("features/pay.feature", "Scenario: other\n");
    caught(&bench, "existing tests changed: features/pay.feature");
    bench.write("features/pay.feature", "Scenario: pay\n");
    for path in ["random.py", "tests/random.py"] {
        bench.write(path, "x\n");
        caught(&bench, &format!("new files may change how tests run: {path}"));
        std::fs::remove_file(bench.path(path)).unwrap();
    }
    // Other changes of these files are work like any other.
    bench.write(
        "Cargo.toml",
        "[package]\nname = 'a'\n[dependencies]\ntest-log = '1'\n",
    );
    bench.write("app/random.py", "x\n");
    accepted(&bench);
}

#[test]
fn scripts_that_the_scripts_of_tests_call_are_protected() {
    for (test, files) in [
        (
            &["npm", "test"][..],
            vec![
                (
                    "package.json",
                    "{\"scripts\": {\"test\": \"npm run check\", \"check\": \"node ci/all.js\"}}",
                ),
                ("ci/all.js", "1"),
            ],
        ),
        (
            &["sh", "run.sh"][..],
            vec![
                ("run.sh", "set -e\n./ci/unit.sh\n"),
                ("ci/unit.sh", "python -m checks.all\n"),
                ("checks/all.py", "1\n"),
            ],
        ),
        (
            &["make", "test"][..],
            vec![
                ("Makefile", "test:\n\t@sh ci/unit.sh\n"),
                ("ci/unit.sh", "true\n"),
            ],
        ),
        (&["task", "test"][..], vec![("Taskfile.yml", "1\n")]),
        (&["bundle", "exec", "rake"][..], vec![("Rakefile", "1\n")]),
        (
            &["python", "-m", "checks"][..],
            vec![("checks/__main__.py", "1\n")],
        ),
    ] {
        let bench = Bench::with_repository_and(|workspace| workspace.test("default", test));
        bench.write_all(&files);
        bench.commit_all("scripts");
        let bench = planned(bench, json!([{"gate": "tests_unchanged"}]));
        for (path, text) in files.iter().filter(|(path, _)| *path != "package.json") {
            // Comments of make say nothing.
            let weaker = if *path == "Makefile" {
                "\t@true\n"
            } else {
                "# weaker\n"
            };
            bench.write(path, &format!("{text}{weaker}"));
            caught(
                &bench,
                &format!("files that decide how tests run changed: {path}"),
            );
            bench.write(path, text);
        }
        accepted(&bench);
    }
}

#[test]
fn lines_that_end_with_a_carriage_return_count() {
    let bench = gated(json!([{"gate": "diff_max_lines", "max": 10}]));
    bench.write("a.txt", &format!("one\ntwo\n{}", "x = 1\r".repeat(500)));
    caught(&bench, "lines changed; at most 10 may change");
    bench.write("a.txt", "one\ntwo\nthree\n");
    bench.write("b.txt", &"x = 1\r".repeat(500));
    caught(&bench, "501 lines changed; at most 10 may change");
    bench.write("b.txt", "x = 1\r\n");
    accepted(&bench);
}

#[test]
fn a_deliverable_of_dots_is_none_in_strict_mode() {
    for (text, is_one) in [
        ("…… . .\n", false),
        ("\u{200b}\u{3164}\n", false),
        ("a,b\n", true),
    ] {
        let bench = Bench::with_repository();
        bench.run(READY);
        bench.run(r#"- job_update_policies {"policies": {"evidence_schema_mode": "strict"}}"#);
        bench.reply("plan_set_deliverables", json!({"deliverables": ["report.csv"]}));
        bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
        bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
        bench.write("report.csv", text);
        let mut arguments = result("S1");
        arguments["summary"] = json!("wrote the report as a table");
        let reply = bench.reply("job_submit_step_result", arguments);
        assert_eq!(reply["accepted"], json!(is_one), "{text:?}: {reply}");
        if !is_one {
            says(
                &reply["rejection_reasons"].to_string(),
                "report.csv has no content",
            );
        }
    }
}

#[test]
fn words_that_nobody_sees_are_none_in_strict_mode() {
    let bench = Bench::new();
    bench.run(READY);
    bench.run(r#"- job_update_policies {"policies": {"evidence_schema_mode": "strict", "max_retries_per_step": 9}}"#);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    let summary = "wrote the report as a table";
    for (field, text, word) in [
        (
            "summary",
            "................................",
            "summary has no content",
        ),
        (
            "summary",
            "\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}\u{3164}.",
            "summary has no content",
        ),
        (
            "summary",
            "a .............................",
            "summary has 1 characters, counting only its words",
        ),
        ("devlog_line", "\u{2060}.", "devlog_line is missing"),
        ("notes", "- - -", "notes has no content"),
    ] {
        let mut arguments = result("S1");
        arguments["summary"] = json!(summary);
        match field {
            "notes" => arguments["evidence"]["notes"] = json!(text),
            field => arguments[field] = json!(text),
        }
        let reply = bench.reply("job_submit_step_result", arguments);
        says(&reply["rejection_reasons"].to_string(), word);
    }
}

#[test]
fn a_kind_of_context_that_does_not_exist_is_answered_with_those_that_do() {
    let bench = Bench::new();
    let refusal = bench
        .call(
            "context_add_block",
            json!({"job_id": bench.job, "block_type": "LORE", "content": "x"}),
        )
        .unwrap_err();
    let text = format!("{refusal:?}");
    for word in [
        "block_type",
        "LORE",
        "RESEARCH",
        "NOTES",
        "PLAN",
        "REPO_MAP",
        "DECISION",
        "CONSTRAINTS",
        "SNIPPET",
        "OUTPUT",
    ] {
        says(&text, word);
    }
}
