//! Attempts to have a step accepted without doing it, one test each.

use serde_json::{Value, json};

use crate::harness::{Bench, READY, git, result, step};

/// A job with two steps, the first under these gates, its prompt returned, and many tries left.
pub(crate) fn gated(gates: Value) -> Bench {
    planned(Bench::with_repository(), gates)
}

pub(crate) fn planned(bench: Bench, gates: Value) -> Bench {
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let bench = bench.started(json!([step("one", gates), step("two", json!([]))]));
    bench.run("- job_next_step_prompt {}");
    bench
}

/// The reasons why a submission of S1 is rejected; empty if it is accepted.
pub(crate) fn submit(bench: &Bench, changes: Value) -> String {
    let mut arguments = result("S1");
    for (key, value) in changes.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    let reply = bench.reply("job_submit_step_result", arguments);
    assert_eq!(
        reply["accepted"] == json!(true),
        reply["rejection_reasons"] == json!([])
    );
    let reasons = reply["rejection_reasons"].as_array().unwrap();
    let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
    reasons.join("; ")
}

/// Asserts that a submission of S1 is rejected for a reason with this word.
#[track_caller]
pub(crate) fn caught(bench: &Bench, word: &str) {
    caught_with(bench, json!({}), word);
}

/// Asserts that a submission of S1 with these arguments is rejected for a reason with this word.
#[track_caller]
pub(crate) fn caught_with(bench: &Bench, changes: Value, word: &str) {
    let reasons = submit(bench, changes);
    assert!(reasons.contains(word), "{word:?} is not among: {reasons}");
}

/// Asserts that a submission of S1 is accepted.
#[track_caller]
pub(crate) fn accepted(bench: &Bench) {
    accepted_with(bench, json!({}));
}

/// Asserts that a submission of S1 with these arguments is accepted.
#[track_caller]
pub(crate) fn accepted_with(bench: &Bench, changes: Value) {
    assert_eq!(submit(bench, changes), "");
}

/// Evidence of a step that changed these files.
pub(crate) fn changed(files: &[&str]) -> Value {
    json!({"notes": "n", "changed_files": files, "invariants_checked": true})
}

/// A job whose step may change nothing but `b.txt`.
fn only_b() -> Bench {
    gated(json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}]))
}

#[test]
fn the_index_cannot_hide_a_change() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let bench = only_b();
        bench.git(&["update-index", flag, "a.txt"]);
        bench.write("a.txt", "gutted\n");
        caught(&bench, "Git's index hides changes of a.txt");
        bench.git(&["update-index", "--no-assume-unchanged", "a.txt"]);
        bench.git(&["update-index", "--no-skip-worktree", "a.txt"]);
        caught(&bench, "changed outside of b.txt: a.txt");
        bench.git(&["checkout", "--quiet", "a.txt"]);
        accepted(&bench);
    }
}

#[test]
fn flags_from_before_the_job_hide_nothing_either() {
    let bench = Bench::with_repository();
    bench.git(&["update-index", "--assume-unchanged", "a.txt"]);
    bench.write("a.txt", "the user's own\n");
    let bench = planned(
        bench,
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}]),
    );
    bench.write("a.txt", "gutted\n");
    caught(&bench, "changed outside of b.txt: a.txt");
    bench.write("a.txt", "the user's own\n");
    accepted(&bench);
}

#[test]
fn a_sparse_checkout_cannot_hide_a_change() {
    let bench = Bench::with_repository();
    bench.write("tests/t.py", "assert True\n");
    bench.git(&["add", "tests"]);
    bench.git(&["commit", "--quiet", "-m", "tests"]);
    let bench = planned(bench, json!([{"gate": "forbid_paths", "paths": ["tests/**"]}]));
    bench.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    caught(&bench, "tests/t.py");
}

#[test]
fn exclude_files_cannot_hide_a_new_file() {
    let excludes = |bench: &Bench| {
        std::fs::create_dir_all(bench.path(".git/info")).unwrap();
        std::fs::write(bench.path(".git/info/exclude"), "evil.py\n").unwrap();
    };
    let configured = |bench: &Bench| {
        std::fs::write(bench.path(".git/ignored"), "evil.py\n").unwrap();
        let path = bench.path(".git/ignored");
        bench.git(&["config", "core.excludesFile", path.to_str().unwrap()]);
    };
    let by_gitignore = |bench: &Bench| bench.write("sub/.gitignore", "*\n");
    let hide: [&dyn Fn(&Bench); 3] = [&excludes, &configured, &by_gitignore];
    // The host refuses a repository that names the user's exclude file itself.
    let words = [
        ("evil.py", "evil.py"),
        ("evil.py", "core.excludesfile"),
        ("sub/evil.py", "sub/evil.py"),
    ];
    for (hide, (file, word)) in hide.into_iter().zip(words) {
        let bench = only_b();
        hide(&bench);
        bench.write(file, "evil\n");
        assert!(!bench.git(&["status", "--short"]).contains(file));
        caught(&bench, word);
    }
}

#[test]
fn a_committed_gitignore_hides_what_the_user_does_not_want_to_see() {
    let bench = Bench::with_repository();
    bench.write(".gitignore", "target/\n*.pyc\n");
    bench.git(&["add", ".gitignore"]);
    bench.git(&["commit", "--quiet", "-m", "ignore"]);
    // What a user's own exclude file hides was there before.
    std::fs::write(bench.path(".git/info/exclude"), ".idea\n").unwrap();
    bench.write(".idea/workspace.xml", "<x/>\n");
    let bench = planned(
        bench,
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "no_uncommitted_changes"}]),
    );
    bench.write("target/debug/x", "built\n");
    bench.write("b.pyc", "built\n");
    accepted(&bench);
}

#[test]
fn replaced_commits_and_grafts_change_nothing() {
    let bench = gated(json!([{"gate": "forbid_paths", "paths": ["a.txt"]}, {"gate": "commit_exists"}]));
    let base = bench.git(&["rev-parse", "HEAD"]);
    bench.write("a.txt", "gutted\n");
    bench.git(&["commit", "--quiet", "-am", "S1: gutted"]);
    let head = bench.git(&["rev-parse", "HEAD"]);
    bench.git(&["replace", &base, &head]);
    caught_with(
        &bench,
        json!({"commit_hash": head}),
        "these must not change: a.txt",
    );
    bench.git(&["replace", "-d", &base]);
    std::fs::create_dir_all(bench.path(".git/info")).unwrap();
    std::fs::write(bench.path(".git/info/grafts"), format!("{head}\n")).unwrap();
    caught_with(
        &bench,
        json!({"commit_hash": base}),
        "was there before the step began",
    );
}

#[test]
fn attributes_and_odd_bytes_do_not_hide_lines() {
    let bench = gated(json!([{"gate": "diff_max_lines", "max": 5}]));
    std::fs::create_dir_all(bench.path(".git/info")).unwrap();
    std::fs::write(bench.path(".git/info/attributes"), "*.txt -diff\n").unwrap();
    bench.write("a.txt", &"line\n".repeat(500));
    caught(&bench, "502 lines changed");
    bench.write("a.txt", "one\ntwo\n");
    bench.write("new.txt", &format!("\0{}", "line\n".repeat(500)));
    caught(&bench, "500 lines changed");
    bench.git(&["add", "new.txt"]);
    caught(&bench, "500 lines changed");
}

#[test]
fn nested_repositories_and_submodules_are_seen() {
    let bench = Bench::with_repository();
    let other = tempfile::tempdir().unwrap();
    git(other.path(), &["init", "--quiet"]);
    git(other.path(), &["config", "user.name", "Ada"]);
    git(other.path(), &["config", "user.email", "ada@example.org"]);
    std::fs::write(other.path().join("lib.py"), "x\n").unwrap();
    git(other.path(), &["add", "lib.py"]);
    git(other.path(), &["commit", "--quiet", "-m", "lib"]);
    let from = other.path().to_str().unwrap().to_owned();
    bench.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &from,
        "vendor",
    ]);
    bench.git(&["commit", "--quiet", "-m", "vendor"]);
    bench.git(&["config", "submodule.vendor.ignore", "all"]);
    bench.write("nested/x.py", "1\n");
    git(&bench.path("nested"), &["init", "--quiet"]);
    let bench = planned(
        bench,
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}]),
    );
    bench.write("vendor/lib.py", "evil\n");
    caught(&bench, "changed outside of b.txt: vendor/");
    bench.write("vendor/lib.py", "x\n");
    bench.write("nested/x.py", "evil\n");
    caught(&bench, "changed outside of b.txt: nested/");
    bench.write("nested/x.py", "1\n");
    bench.write("more/x.py", "1\n");
    git(&bench.path("more"), &["init", "--quiet"]);
    caught(&bench, "changed outside of b.txt: more/");
    std::fs::remove_dir_all(bench.path("more")).unwrap();
    accepted(&bench);
}

#[test]
fn a_repository_that_went_away_is_no_way_out() {
    let bench = gated(json!([]));
    std::fs::remove_dir_all(bench.path(".git")).unwrap();
    caught(&bench, "Git could be read when the step began, but not now");
    bench.git(&["init", "--quiet"]);
    caught(&bench, "Git could be read when the step began, but not now");
}

#[test]
fn work_of_the_user_that_is_undone_shows() {
    let bench = Bench::with_repository();
    bench.write("a.txt", "one\ntwo\nthe user's\n");
    bench.write("notes.txt", "the user's\n");
    let bench = planned(
        bench,
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "forbid_paths", "paths": ["notes.txt"]}]),
    );
    bench.git(&["checkout", "--quiet", "a.txt"]);
    std::fs::remove_file(bench.path("notes.txt")).unwrap();
    caught(&bench, "changed outside of b.txt: a.txt, notes.txt");
    // Such a change can be reported, too.
    let reasons = submit(&bench, json!({"evidence": changed(&["a.txt", "notes.txt"])}));
    assert!(!reasons.contains("does not show as changed"), "{reasons}");
    bench.write("a.txt", "one\ntwo\nthe user's\n");
    bench.write("notes.txt", "the user's\n");
    accepted(&bench);
}

#[test]
fn tests_that_change_while_they_run_are_caught() {
    let bench = Bench::with_repository_and(|workspace| {
        workspace
            .test("gut", &["sh", "-c", "echo gutted > a.txt; echo 3 passed"])
            .test(
                "commit",
                &["sh", "-c", "git commit --quiet --allow-empty -m x; echo 3 passed"],
            )
    });
    let bench = planned(bench, json!([{"gate": "command_exit_0", "command": ["gut"]}]));
    caught(&bench, "changed while the commands of the gates ran: a.txt");
    // It does not change it again; now it is the step's change.
    let mut arguments = result("S1");
    arguments["evidence"]["changed_files"] = json!([]);
    let reply = bench.reply("job_submit_step_result", arguments);
    assert_eq!(
        reply["notes"],
        json!(["changed, but not in changed_files: a.txt"])
    );
}

#[test]
fn files_of_the_gates_own_commands_are_nobodys() {
    let bench = Bench::with_repository_and(|workspace| {
        workspace.test("cover", &["sh", "-c", "date +%N > coverage.xml; cat ok"])
    });
    let bench = planned(
        bench,
        json!([
            {"gate": "command_exit_0", "command": ["cover"]},
            {"gate": "changed_files_allowlist", "paths": ["ok"]},
            {"gate": "no_uncommitted_changes"},
        ]),
    );
    caught(&bench, "exit code 1");
    bench.write("ok", "3 passed\n");
    bench.git(&["add", "ok"]);
    bench.git(&["commit", "--quiet", "-m", "ok"]);
    let reply = bench.reply("job_submit_step_result", result("S1"));
    assert_eq!(reply["accepted"], json!(true), "{reply}");
    bench.run("- job_next_step_prompt {}");
    let log = bench.run("git_diff_summary {} ? total");
    assert_eq!(log, "ok total=0\n");
    // Once it is committed it counts like any other file.
    bench.git(&["add", "coverage.xml"]);
    let log = bench.run("git_diff_summary {} ? files.0.path");
    assert_eq!(log, "ok files.0.path=\"coverage.xml\"\n");
}

#[test]
fn a_file_that_appears_while_the_gates_run_is_noted() {
    let bench =
        Bench::with_repository_and(|workspace| workspace.test("plant", &["sh", "-c", "echo x > planted.py"]));
    let bench = planned(bench, json!([{"gate": "command_exit_0", "command": ["plant"]}]));
    let reply = bench.reply("job_submit_step_result", result("S1"));
    let note = "written by the commands of the gates, so not counted as changes: planted.py";
    assert_eq!(reply["notes"], json!([note]));
}

#[test]
fn a_commit_has_to_be_new_and_full_and_of_this_step() {
    let bench = gated(json!([{"gate": "commit_exists"}]));
    let old = bench.git(&["rev-parse", "HEAD"]);
    caught_with(
        &bench,
        json!({"commit_hash": old}),
        "was there before the step began",
    );
    bench.git(&["commit", "--quiet", "--allow-empty", "-m", "S1: nothing"]);
    let empty = bench.git(&["rev-parse", "HEAD"]);
    caught_with(&bench, json!({"commit_hash": empty}), "is empty");
    bench.write("b.txt", "1\n");
    bench.write("c.txt", "1\n");
    bench.git(&["add", "b.txt"]);
    bench.git(&["commit", "--quiet", "-m", "lol whatever"]);
    let worded = bench.git(&["rev-parse", "HEAD"]);
    caught_with(
        &bench,
        json!({"commit_hash": worded}),
        "the job's template requires \"S1: <summary>\"",
    );
    bench.git(&["commit", "--quiet", "--amend", "-m", "S1: add b"]);
    let commit = bench.git(&["rev-parse", "HEAD"]);
    let foreign = json!({"commit_hash": commit, "evidence": changed(&["c.txt"])});
    caught_with(&bench, foreign, "has none of the files in changed_files");
    accepted_with(
        &bench,
        json!({"commit_hash": commit, "evidence": changed(&["./b.txt"])}),
    );
    bench.run("- job_next_step_prompt {}");
    let mut again = result("S2");
    again["commit_hash"] = json!(commit);
    let reply = bench.reply("job_submit_step_result", again);
    assert!(
        reply["rejection_reasons"][0]
            .as_str()
            .unwrap()
            .contains("was there before the step began"),
        "{reply}"
    );
}

#[test]
fn a_policy_about_commits_looks_as_closely_as_the_gate() {
    let bench = Bench::with_repository();
    bench.run(r#"- job_update_policies {"policies": {"require_commit_per_step": true}}"#);
    let bench = planned(bench, json!([]));
    let old = bench.git(&["rev-parse", "HEAD"]);
    bench.write("b.txt", "1\n");
    caught(&bench, "commit_hash is missing");
    caught_with(
        &bench,
        json!({"commit_hash": old}),
        "was there before the step began",
    );
    std::fs::remove_file(bench.path("b.txt")).unwrap();
    // Without any change there is nothing to commit.
    accepted(&bench);
}

#[test]
fn files_of_a_step_are_regular_and_have_content() {
    let bench = gated(json!([{"gate": "file_exists", "paths": ["out/report.csv"]}]));
    let path = bench.path("out/report.csv");
    bench.write("out/report.csv", "");
    caught(&bench, "out/report.csv is empty");
    std::fs::remove_file(&path).unwrap();
    for target in ["/etc/passwd", "nowhere", "../a.txt"] {
        std::os::unix::fs::symlink(target, &path).unwrap();
        caught(&bench, "is a link or a special file");
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
    caught(&bench, "is a directory");
    std::fs::remove_dir(&path).unwrap();
    bench.write("out/report.csv", "a,b\n");
    accepted(&bench);
}

#[test]
fn output_counts_only_if_the_command_succeeds() {
    let bench =
        gated(json!([{"gate": "command_output_contains", "command": ["fail"], "contains": "1 failed"}]));
    caught(&bench, "exit code 3");
}

#[test]
fn contents_of_files_are_read() {
    let bench = gated(json!([
        {"gate": "file_contains", "path": "b.py", "contains": "def export"},
        {"gate": "file_lacks", "path": "b.py", "regex": "TODO|FIXME"},
    ]));
    caught(&bench, "b.py cannot be read");
    bench.write("b.py", "def export(): pass # TODO\n");
    caught(&bench, "b.py contains something that matches /TODO|FIXME/");
    bench.write("b.py", "def exprt(): pass\n");
    caught(&bench, "b.py does not contain \"def export\"");
    bench.write("b.py", "def export(): pass\n");
    accepted(&bench);
}

#[test]
fn code_that_nothing_reaches_is_not_wired() {
    let bench = gated(json!([{"gate": "reachable", "paths": ["app/csv_writer.py"]}]));
    bench.write("app/__init__.py", "");
    bench.write("app/__main__.py", "print('x')\n");
    caught(&bench, "app/csv_writer.py cannot be reached from any entry point");
    bench.write("app/csv_writer.py", "def write(): pass\n");
    caught(&bench, "app/csv_writer.py cannot be reached from any entry point");
    bench.write("app/__main__.py", "from app.csv_writer import write\nwrite()\n");
    accepted(&bench);
}

#[test]
fn a_new_file_that_only_starts_itself_is_not_wired() {
    let bench = Bench::with_repository_and(|workspace| workspace.test("smoke", &["true", "app/smoke.py"]));
    bench.write("old.py", "if __name__ == '__main__':\n    print(1)\n");
    bench.commit_all("old");
    let paths = json!(["old.py", "app/new.py", "app/smoke.py", "scripts/table.py"]);
    let bench = planned(bench, json!([{"gate": "reachable", "paths": paths}]));
    for path in ["app/new.py", "app/smoke.py", "scripts/table.py"] {
        bench.write(path, "def f(): ...\nif __name__ == '__main__':\n    f()\n");
    }
    caught(
        &bench,
        "no code, manifest, configuration or registered command refers to app/new.py; import it, or add such a reference",
    );
    bench.write("README.md", "Run app/new.py.\n");
    caught(&bench, "refers to app/new.py");
    bench.write("Procfile", "web: python app/new.py\n");
    accepted(&bench);
}

#[test]
fn changes_of_any_size_can_be_judged() {
    let bench = gated(json!([
        {"gate": "changed_files_allowlist", "paths": ["many/**"]},
        {"gate": "changed_files_minimum", "min": 14_000},
    ]));
    let folder = format!("many/{}", "d".repeat(80));
    for number in 0..14_000 {
        bench.write(&format!("{folder}/{number}.txt"), "");
    }
    bench.write("evil.py", "x\n");
    caught(&bench, "changed outside of many/**: evil.py");
    std::fs::remove_file(bench.path("evil.py")).unwrap();
    bench.git(&["add", "many"]);
    accepted(&bench);
    bench.run("- job_next_step_prompt {}");
    assert_eq!(bench.run("git_diff_summary {} ? total"), "ok total=0\n");
    bench.git(&["commit", "--quiet", "-m", "S2: many"]);
    assert_eq!(bench.run("git_diff_summary {} ? total"), "ok total=0\n");
}

#[test]
fn evidence_that_says_nothing_of_files_is_noted() {
    let bench = gated(json!([]));
    bench.write("b.txt", "1\n");
    let reply = bench.reply("job_submit_step_result", result("S1"));
    assert_eq!(
        reply["notes"],
        json!(["changed, but not in changed_files: b.txt"])
    );
}

#[test]
fn invariants_have_to_be_checked() {
    let bench = Bench::new();
    bench.run(READY);
    let bench = bench.started(json!([step("one", json!([]))]));
    bench.run("- job_next_step_prompt {}");
    let log = bench.run(
        r#"job_submit_step_result {"step_id": "S1", "model_claim": "MET", "summary": "did it", "devlog_line": "x", "evidence": {"notes": "n"}} ? rejection_reasons"#,
    );
    assert!(log.contains("invariants_checked is missing"), "{log}");
}
