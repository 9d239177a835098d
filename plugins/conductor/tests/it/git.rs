//! Git tools, and gates that look at Git, files and commands of a real repository.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Bench, READY, result, step};

fn submit(bench: &Bench, changes: Value) -> String {
    let mut arguments = result("S1");
    for (key, value) in changes.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    let reply = bench.reply("job_submit_step_result", arguments);
    format!(
        "{} {} {} {}\n",
        reply["accepted"], reply["rejection_reasons"], reply["notes"], reply["commands"]
    )
}

/// A job with one step under these gates, its prompt returned, and many tries left.
fn gated(gates: Value) -> Bench {
    let bench = Bench::with_repository();
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let bench = bench.started(json!([step("one", gates), step("two", json!([]))]));
    bench.run("- job_next_step_prompt {}");
    bench
}

#[test]
fn gates_on_changes_see_what_git_sees() {
    let bench = gated(json!([
        {"gate": "changed_files_allowlist", "paths": ["src/**"]},
        {"gate": "forbid_paths", "paths": ["**/*.lock"]},
        {"gate": "changed_files_minimum", "min": 1},
        {"gate": "diff_max_lines", "max": 5},
        {"gate": "diff_min_lines", "min": 2},
        {"gate": "no_uncommitted_changes"},
        {"gate": "commit_exists"},
    ]));
    let mut log = submit(&bench, json!({}));
    bench.write("src/deep/x.lock", "1\n2\n3\n4\n5\n6\n");
    bench.write("a.txt", "one\n");
    log += &submit(
        &bench,
        json!({"evidence": {"notes": "n", "changed_files": ["a.txt", "ghost.py"]}, "commit_hash": "0123456"}),
    );
    bench.git(&["checkout", "--quiet", "a.txt"]);
    std::fs::remove_dir_all(bench.dir.as_ref().unwrap().path().join("src")).unwrap();
    bench.write("src/a.py", "1\n2\n3\n");
    let old = bench.git(&["rev-parse", "HEAD"]);
    log += &submit(&bench, json!({"commit_hash": old})).replace(&old, "OLD");
    let commit = bench.reply("git_commit", json!({"summary": "add a", "paths": ["src"]}));
    log += &format!("{} {}\n", commit["message"], commit["files"]);
    log += &submit(
        &bench,
        json!({"commit_hash": commit["commit_hash"], "evidence": {"notes": "n", "changed_files": ["./src/a.py"]}}),
    );
    expect![[r#"
        false ["gate changed_files_minimum: 0 files changed; at least 1 must change","gate diff_min_lines: 0 lines changed; at least 2 must change","gate commit_exists: commit_hash is missing"] null null
        false ["gate changed_files_allowlist: changed outside of src/**: a.txt","gate forbid_paths: these must not change: src/deep/x.lock","gate diff_max_lines: 7 lines changed; at most 5 may change","gate no_uncommitted_changes: not committed: a.txt, src/deep/x.lock","gate commit_exists: commit 0123456 is not in the repository","changed_files lists files that Git does not show as changed: ghost.py"] ["changed, but not in changed_files: src/deep/x.lock"] null
        false ["gate no_uncommitted_changes: not committed: src/a.py","gate commit_exists: commit OLD was there before the step began"] ["changed, but not in changed_files: src/a.py"] null
        "S1: add a\n" ["src/a.py"]
        true [] null null
    "#]].assert_eq(&log);
}

#[test]
fn gates_on_files_and_commands_look_themselves() {
    let bench = gated(json!([
        {"gate": "file_exists", "paths": ["out.json"]},
        {"gate": "file_not_exists", "paths": ["a.txt"]},
        {"gate": "json_schema_valid", "path": "out.json", "schema": {"type": "array", "minItems": 1}},
        {"gate": "command_exit_0", "command": ["fail"]},
        {"gate": "command_output_contains", "command": ["say"], "contains": "13 passed"},
        {"gate": "command_output_regex", "command": ["say"], "regex": "^1[0-9] passed"},
        {"gate": "command_exit_0", "command": ["rm", "-rf", "x"]},
    ]));
    let mut log = submit(&bench, json!({}));
    bench.write("out.json", "[]");
    log += &submit(&bench, json!({}));
    let fixed = json!({"edits": [{"op": "update", "step_id": "S1", "set": {"gates": [
        {"gate": "file_exists", "paths": ["out.json"]},
        {"gate": "tests_passed", "command": ["pass"]},
        {"gate": "command_output_contains", "command": ["say"], "contains": "12 passed"},
    ]}}]});
    bench.reply("plan_refine_steps", fixed);
    bench.run("- job_next_step_prompt {}");
    log += &submit(
        &bench,
        json!({"evidence": {"notes": "n", "tests_run": ["pass"], "tests_passed": true}}),
    );
    expect![[r#"
        false ["gate file_exists: out.json does not exist","gate file_not_exists: a.txt exists","gate json_schema_valid: out.json cannot be read: `out.json` does not exist","gate command_exit_0: `fail`: it ended with exit code 3: 1 failed","gate command_output_contains: `say`: its output does not contain \"13 passed\": 12 passed","gate command_exit_0: `rm -rf x`: it cannot be run: not allowed: the pack may not run `rm` in `main`"] null {"fail":"exit code 3","rm -rf x":"not allowed: the pack may not run `rm` in `main`","say":"exit code 0"}
        false ["gate file_not_exists: a.txt exists","gate json_schema_valid: out.json does not match the schema: [] has less than 1 item at /","gate command_exit_0: `fail`: it ended with exit code 3: 1 failed","gate command_output_contains: `say`: its output does not contain \"13 passed\": 12 passed","gate command_exit_0: `rm -rf x`: it cannot be run: not allowed: the pack may not run `rm` in `main`"] ["changed, but not in changed_files: out.json","no progress: `fail` fails in the same way as before, 2 times in this job; try another approach"] {"fail":"exit code 3","rm -rf x":"not allowed: the pack may not run `rm` in `main`","say":"exit code 0"}
        true [] ["changed, but not in changed_files: out.json"] {"pass":"exit code 0","say":"exit code 0"}
    "#]].assert_eq(&log);
}

#[test]
fn each_of_the_gates_stops_a_submission() {
    let gates = json!([
        {"gate": "tests_passed"},
        {"gate": "lint_passed"},
        {"gate": "evidence_bool_true", "key": "reviewed"},
        {"gate": "criteria_checklist_complete"},
        {"gate": "changed_files_allowlist", "paths": ["src/**"]},
        {"gate": "forbid_paths", "paths": ["a.*"]},
        {"gate": "changed_files_minimum", "min": 2},
        {"gate": "file_exists", "paths": ["b.txt"]},
        {"gate": "file_not_exists", "paths": ["a.txt"]},
        {"gate": "no_uncommitted_changes"},
        {"gate": "diff_max_lines", "max": 0},
        {"gate": "diff_min_lines", "min": 50},
        {"gate": "commit_exists"},
        {"gate": "command_exit_0", "command": ["fail"]},
        {"gate": "command_output_contains", "command": ["say"], "contains": "13"},
        {"gate": "command_output_regex", "command": ["say"], "regex": "^[a-z]+$"},
        {"gate": "json_schema_valid", "key": "notes", "schema": {"type": "object"}},
        {"gate": "human_approval"},
    ]);
    let bench = gated(gates.clone());
    bench.write("a.txt", "one\n");
    let mut arguments = result("S1");
    arguments["evidence"] = json!({"notes": "n", "criteria_checklist": {"c1": true}});
    let reply = bench.reply("job_submit_step_result", arguments);
    let reasons = reply["rejection_reasons"].as_array().unwrap();
    let stopped: Vec<&str> = reasons
        .iter()
        .filter_map(|reason| reason.as_str()?.strip_prefix("gate ")?.split(':').next())
        .collect();
    let planned: Vec<&str> = gates
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|gate| gate["gate"].as_str())
        .collect();
    assert_eq!(stopped, planned);
    assert_eq!(planned.len(), 18, "one of each kind that fails here");
}

#[test]
fn what_was_there_before_the_step_is_not_its_change() {
    let bench = Bench::with_repository();
    bench.write("old.txt", "left over\n");
    let bench = bench.started(json!([
        step(
            "one",
            json!([{"gate": "changed_files_allowlist", "paths": ["new.txt"]}])
        ),
        step("two", json!([{"gate": "changed_files_minimum", "min": 1}])),
    ]));
    bench.run("- job_next_step_prompt {}");
    bench.write("new.txt", "1\n");
    let mut log = bench.run("git_diff_summary {} ? files total lines");
    log += &submit(&bench, json!({}));
    bench.run("- job_next_step_prompt {}");
    log += &bench.run("git_diff_summary {} ? files total");
    log += &submit(&bench, json!({"step_id": "S2"}));
    bench.write("new.txt", "1\n2\n");
    log += &bench.run("git_diff_summary {} ? files total");
    log += &submit(&bench, json!({"step_id": "S2"}));
    expect![[r#"
        ok files=[{"path":"new.txt","lines":1,"new":true}] total=1 lines=1
        true [] ["changed, but not in changed_files: new.txt"] null
        ok files=[] total=0
        false ["gate changed_files_minimum: 0 files changed; at least 1 must change"] null null
        ok files=[{"path":"new.txt","lines":2,"new":false}] total=1
        true [] ["changed, but not in changed_files: new.txt"] null
    "#]]
    .assert_eq(&log);
}

#[test]
fn new_files_want_a_description_if_the_policy_says_so() {
    let bench = gated(json!([]));
    bench.run(r#"- job_update_policies {"policies": {"require_file_descriptions": true}}"#);
    bench.write("x.py", "1\n");
    bench.write("a.txt", "changed\n");
    let mut log = submit(&bench, json!({}));
    log += &submit(
        &bench,
        json!({"evidence": {"notes": "n", "file_descriptions": {"x.py": "the exporter"}}}),
    );
    expect![[r#"
        false ["new files have no description in file_descriptions or from repo_file_descriptions_update: x.py"] ["changed, but not in changed_files: a.txt, x.py"] null
        true [] ["changed, but not in changed_files: a.txt, x.py"] null
    "#]]
    .assert_eq(&log);
}

#[test]
fn commits_hold_the_named_paths_and_nothing_else() {
    let bench = gated(json!([]));
    bench.write("a.txt", "changed\n");
    bench.write("b.txt", "new\n");
    bench.write("c.txt", "staged\n");
    bench.git(&["add", "c.txt"]);
    std::fs::create_dir_all(bench.dir.as_ref().unwrap().path().join(".git/hooks")).unwrap();
    bench.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch hooked\nexit 1\n");
    std::process::Command::new("chmod")
        .args(["+x", ".git/hooks/pre-commit"])
        .current_dir(bench.dir.as_ref().unwrap().path())
        .status()
        .unwrap();
    let mut log = bench.run(
        r#"
        git_status {} ? branch detached clean changes total
        git_commit {"summary": "x", "paths": ["../a.txt", "/etc/passwd", ":(glob)*"]}
        git_commit {"summary": "x", "paths": ["nowhere.txt"]}
        git_commit {"summary": "rename {title}", "paths": ["a.txt", "b.txt"]} ? message files settled_batch
        git_status {} ? changes
        git_log {"limit": 1} ? commits.0.subject commits.0.author
        git_branch {"name": "feature/x"} ? current created branches
        git_branch {"name": "main"} ? current created
        git_branch {"name": "--force"}
        git_tag {"name": "v1"} ? tags
        git_tag {"name": "v1"}
        git_tag {"name": "main"}
        git_tag {"name": "HEAD"}
        git_tag {"name": "refs/heads/main"}
        git_branch {"name": "v1"}
        git_branch {"name": "heads/main"}
        git_branch {"name": "deadbeef"}
        git_tag {} ? tags
        git_diff_summary {"since": "v1"} ? files
        git_diff_summary {"since": "v2"}
        "#,
    );
    log += &format!(
        "hooked: {}\n",
        bench.dir.as_ref().unwrap().path().join("hooked").exists()
    );
    expect![[r#"
        ok branch="main" detached=false clean=false changes=[{"path":"a.txt","staged":".","unstaged":"M"},{"path":"c.txt","staged":"A","unstaged":"."},{"path":"b.txt","staged":".","unstaged":"?"}] total=3
        err PATH_REFUSED: the path ../a.txt leads out of the repository; and 1 more reason
          - PATH_REFUSED: the path ../a.txt leads out of the repository -> git_status {"job_id":"JOB"}
          - PATH_REFUSED: the path /etc/passwd leads out of the repository -> git_status {"job_id":"JOB"}
        err NOTHING_TO_COMMIT: the named paths have no changes to commit
          - NOTHING_TO_COMMIT: the named paths have no changes to commit -> git_status {"job_id":"JOB"}
        ok
        S1: rename {title}
         files=["a.txt","b.txt"] settled_batch=false
        ok changes=[{"path":"c.txt","staged":"A","unstaged":"."}]
        ok commits.0.subject="S1: rename {title}" commits.0.author="Ada"
        ok current="feature/x" created=true branches=["feature/x","main"]
        ok current="main" created=false
        err INVALID_ARGUMENTS: name is not a valid name: use letters, digits, `.`, `_`, `-` and `/`
          - INVALID_ARGUMENTS (name): name is not a valid name: use letters, digits, `.`, `_`, `-` and `/`
        ok tags=["v1"]
        err GIT_FAILED: git tag failed: fatal: tag 'v1' already exists
          - GIT_FAILED: git tag failed: fatal: tag 'v1' already exists
        err INVALID_ARGUMENTS: name `main` is already a branch: use another name
          - INVALID_ARGUMENTS (name): name `main` is already a branch: use another name
        err INVALID_ARGUMENTS: name `HEAD` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
          - INVALID_ARGUMENTS (name): name `HEAD` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
        err INVALID_ARGUMENTS: name `refs/heads/main` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
          - INVALID_ARGUMENTS (name): name `refs/heads/main` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
        err INVALID_ARGUMENTS: name `v1` is already a tag: use another name
          - INVALID_ARGUMENTS (name): name `v1` is already a tag: use another name
        err INVALID_ARGUMENTS: name `heads/main` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
          - INVALID_ARGUMENTS (name): name `heads/main` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
        err INVALID_ARGUMENTS: name `deadbeef` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
          - INVALID_ARGUMENTS (name): name `deadbeef` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`
        ok tags=["v1"]
        ok files=[{"path":"c.txt","lines":1,"new":true}]
        err NOT_FOUND: there is no commit v2
          - NOT_FOUND: there is no commit v2
        hooked: false
    "#]].assert_eq(&log);
}

#[test]
fn odd_states_of_a_repository_are_told() {
    let bench = gated(json!([{"gate": "changed_files_minimum", "min": 1}]));
    bench.git(&["checkout", "--quiet", "-b", "side"]);
    bench.write("a.txt", "side\n");
    bench.git(&["commit", "--quiet", "-am", "side"]);
    bench.git(&["checkout", "--quiet", "main"]);
    bench.write("a.txt", "main\n");
    bench.git(&["commit", "--quiet", "-am", "main"]);
    let merge = std::process::Command::new("git")
        .args(["merge", "side"])
        .current_dir(bench.dir.as_ref().unwrap().path())
        .output()
        .unwrap();
    assert!(!merge.status.success());
    let mut log = bench.run(
        r#"
        git_status {} ? in_progress changes
        git_commit {"summary": "x", "paths": ["a.txt"]}
        git_branch {"name": "other"}
        "#,
    );
    bench.git(&["merge", "--abort"]);
    bench.git(&["checkout", "--quiet", "--detach"]);
    bench.write("line\nbreak.txt", "x\n");
    log += &bench.run(
        r#"
        git_status {} ? detached changes
        git_commit {"summary": "odd name", "paths": ["line\nbreak.txt"]} ? files
        "#,
    );
    expect![[r#"
        ok in_progress="merge" changes=[{"path":"a.txt","staged":"U","unstaged":"U"}]
        err GIT_IN_PROGRESS: a merge is in progress in the repository
          - GIT_IN_PROGRESS: a merge is in progress in the repository
        err GIT_IN_PROGRESS: a merge is in progress in the repository
          - GIT_IN_PROGRESS: a merge is in progress in the repository
        ok detached=true changes=[{"path":"line\nbreak.txt","staged":".","unstaged":"?"}]
        ok files=["line\nbreak.txt"]
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_commit_that_cannot_succeed_leaves_the_index_as_it_was() {
    let bench = gated(json!([]));
    let staged = || bench.git(&["status", "--porcelain"]);
    bench.write("b.txt", "new\n");
    bench.git(&["config", "user.name", ""]);
    let said = bench.run(r#"git_commit {"summary": "x", "paths": ["b.txt"]}"#);
    assert!(
        said.starts_with("err GIT_FAILED: git commit failed: ") && said.contains("ident name"),
        "{said}"
    );
    assert_eq!(staged(), "?? b.txt");
    let named = r#"git_commit {"summary": "x", "paths": ["b.txt"], "author_name": "Bob", "author_email": "b@example.org"} ? files"#;
    assert_eq!(bench.run(named), "ok files=[\"b.txt\"]\n");
    bench.git(&["config", "user.name", "Ada"]);
    // Staged, and taken back in the work tree.
    bench.write("a.txt", "changed\n");
    bench.git(&["add", "a.txt"]);
    bench.write("a.txt", "one\ntwo\n");
    let said = bench.run(r#"git_commit {"summary": "x", "paths": ["a.txt"]}"#);
    assert!(said.starts_with("err NOTHING_TO_COMMIT"), "{said}");
    assert_eq!(staged(), "MM a.txt");
    bench.write("c.txt", "new\n");
    let said = bench.run(r#"git_commit {"summary": "x", "paths": ["c.txt", "a.txt"]}"#);
    assert!(
        said.starts_with("err PATH_REFUSED: the path a.txt has no changes"),
        "{said}"
    );
    assert_eq!(staged(), "MM a.txt\n?? c.txt");
    // Removed from the index, and kept in the work tree.
    bench.git(&["rm", "--quiet", "--force", "--cached", "a.txt"]);
    for paths in [r#"["a.txt"]"#, r#"["c.txt", "a.txt"]"#] {
        let said = bench.run(&format!(r#"git_commit {{"summary": "x", "paths": {paths}}}"#));
        assert!(said.starts_with("err "), "{said}");
        assert_eq!(staged(), "D  a.txt\n?? a.txt\n?? c.txt");
    }
    bench.write("a.txt", "changed\n");
    let files = bench.run(r#"git_commit {"summary": "x", "paths": ["."]} ? files"#);
    assert_eq!(files, "ok files=[\"a.txt\",\"c.txt\"]\n");
    // With these settings the whole message is a comment.
    bench.git(&["config", "commit.cleanup", "strip"]);
    bench.git(&["config", "core.commentChar", "S"]);
    bench.write("c.txt", "newer\n");
    let files = bench.run(r#"git_commit {"summary": "x", "paths": ["c.txt"]} ? files"#);
    assert_eq!(files, "ok files=[\"c.txt\"]\n");
    assert_eq!(bench.git(&["log", "-1", "--format=%s"]), "S1: x");
}

#[test]
fn a_file_that_is_in_the_index_alone_is_nothing_to_commit() {
    let bench = Bench::with_repository();
    let path = bench.dir.as_ref().unwrap().path();
    std::fs::remove_dir_all(path.join(".git")).unwrap();
    bench.git(&["init", "--quiet", "--initial-branch=main"]);
    bench.write("b.txt", "new\n");
    bench.git(&["add", "b.txt"]);
    std::fs::remove_file(path.join("b.txt")).unwrap();
    let said = bench.run(r#"git_commit {"summary": "x", "paths": ["b.txt"]}"#);
    assert!(said.starts_with("err NOTHING_TO_COMMIT"), "{said}");
    assert_eq!(bench.git(&["status", "--porcelain"]), "AD b.txt\n?? a.txt");
}

#[test]
fn filters_of_the_repository_itself_do_not_run() {
    let bench = gated(json!([{"gate": "changed_files_minimum", "min": 1}]));
    bench.write(".gitattributes", "*.txt filter=odd\n");
    bench.write("a.txt", "changed\n");
    for (key, value) in [
        ("filter.odd.clean", "touch ran; cat"),
        ("filter.odd.smudge", "touch ran; cat"),
    ] {
        bench.git(&["config", key, value]);
    }
    let mut log = bench.run(
        r#"
        git_status {}
        git_diff_summary {}
        git_commit {"summary": "x", "paths": ["a.txt"]}
        git_branch {"name": "side"}
        "#,
    );
    log += &submit(&bench, json!({}));
    let ran = bench.dir.as_ref().unwrap().path().join("ran").exists();
    bench.git(&["config", "--remove-section", "filter.odd"]);
    log += &bench.run("git_status {} ? total");
    log += &format!("ran: {ran}\n");
    expect![[r#"
        err GIT_FILTERS: the repository's own configuration names programs for filters: odd
          - GIT_FILTERS: the repository's own configuration names programs for filters: odd
        err GIT_FILTERS: the repository's own configuration names programs for filters: odd
          - GIT_FILTERS: the repository's own configuration names programs for filters: odd
        err GIT_FILTERS: the repository's own configuration names programs for filters: odd
          - GIT_FILTERS: the repository's own configuration names programs for filters: odd
        err GIT_FILTERS: the repository's own configuration names programs for filters: odd
          - GIT_FILTERS: the repository's own configuration names programs for filters: odd
        false ["gate changed_files_minimum: Git is not available: the repository's own configuration names programs for filters: odd","Git could be read when the step began, but not now: the repository's own configuration names programs for filters: odd"] null null
        ok total=2
        ran: false
    "#]].assert_eq(&log);
}

#[test]
fn filters_that_the_operator_accepts_run_and_others_do_not() {
    let bench = Bench::with_repository_and(|workspace| workspace.git_config("filter.lfs.*"));
    bench.write(".gitattributes", "*.txt filter=lfs\n");
    bench.write("a.txt", "changed\n");
    bench.git(&["config", "filter.lfs.clean", "touch ran; cat"]);
    let ran = || bench.dir.as_ref().unwrap().path().join("ran").exists();
    let log = bench.run(r#"git_commit {"summary": "x", "paths": ["a.txt"]} ? files"#);
    assert_eq!(log, "ok files=[\"a.txt\"]\n");
    assert!(ran(), "the operator wants it");
    std::fs::remove_file(bench.dir.as_ref().unwrap().path().join("ran")).unwrap();
    bench.git(&["config", "filter.odd.clean", "touch ran; cat"]);
    bench.write("a.txt", "again\n");
    let _ = std::fs::remove_file(bench.dir.as_ref().unwrap().path().join("ran"));
    let log = bench.run("git_status {}");
    assert!(log.starts_with("err GIT_FILTERS") && log.contains("odd"), "{log}");
    assert!(!ran());
}

#[test]
fn output_that_is_too_large_for_one_piece_is_read_in_several() {
    let bench = Bench::with_repository();
    let folder = "d".repeat(200);
    for number in 0..6_000 {
        bench.write(&format!("{folder}/{number}.txt"), "");
    }
    assert_eq!(
        bench.run("git_status {} ? clean total"),
        "ok clean=false total=6000\n"
    );
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let bench = Bench::with_repository();
    let path = bench.dir.as_ref().unwrap().path();
    std::fs::remove_dir_all(path.join(".git")).unwrap();
    let mut log = bench.run("git_status {}");
    bench.git(&["init", "--quiet", "--initial-branch=main"]);
    log += &bench.run(
        r#"
        git_status {} ? branch clean changes
        git_log {} ? commits
        git_tag {"name": "v0"}
        git_diff_summary {} ? files
        "#,
    );
    let bench = bench.started(json!([step(
        "one",
        json!([{"gate": "changed_files_minimum", "min": 1}])
    )]));
    bench.run("- job_next_step_prompt {}");
    log += &submit(&bench, json!({}));
    bench.write("new.txt", "1\n2\n");
    log += &bench.run("git_diff_summary {} ? files");
    log += &submit(&bench, json!({}));
    expect![[r#"
        err NO_REPOSITORY: main is not a Git repository
          - NO_REPOSITORY: main is not a Git repository
        ok branch="main" clean=false changes=[{"path":"a.txt","staged":".","unstaged":"?"}]
        ok commits=[]
        err NOT_FOUND: there is no commit HEAD
          - NOT_FOUND: there is no commit HEAD
        ok files=[{"path":"a.txt","lines":2,"new":true}]
        false ["gate changed_files_minimum: 0 files changed; at least 1 must change"] null null
        ok files=[{"path":"new.txt","lines":2,"new":true}]
        true [] ["changed, but not in changed_files: new.txt"] null
    "#]]
    .assert_eq(&log);
}

#[test]
fn without_a_grant_gates_fail_closed_and_the_ready_gate_says_so() {
    let bench = Bench::new();
    bench.run(READY);
    let gates = json!([
        {"gate": "changed_files_minimum", "min": 0},
        {"gate": "file_not_exists", "paths": ["x"]},
        {"gate": "command_exit_0", "command": ["pytest"]},
    ]);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", gates)]}));
    bench.run(r#"- conductor_answer {"answers": {"repo_root": "main"}}"#);
    bench.run(r#"- job_update_policies {"policies": {"require_commit_per_step": true}}"#);
    let mut log = bench.run(
        r#"
        job_set_ready {} ? warnings
        - job_start {}
        - job_next_step_prompt {}
        git_status {}
        git_commit {"summary": "x", "paths": ["a"]}
        "#,
    );
    log += &submit(&bench, json!({"commit_hash": "0123456"}));
    expect![[r#"
        ok warnings=["step S1: gate changed_files_minimum will fail: workspace `main` does not exist or is not granted to this pack","step S1: gate file_not_exists will fail: workspace `main` does not exist or is not granted to this pack","step S1: gate command_exit_0 will fail: workspace `main` does not exist or is not granted to this pack","commits are required, but git_commit cannot create them here: commit outside, or set git = \"write\" for the workspace"]
        err GIT_UNAVAILABLE: Git cannot be used here: workspace `main` does not exist or is not granted to this pack
          - GIT_UNAVAILABLE: Git cannot be used here: workspace `main` does not exist or is not granted to this pack
        err GIT_UNAVAILABLE: Git cannot be used here: workspace `main` does not exist or is not granted to this pack
          - GIT_UNAVAILABLE: Git cannot be used here: workspace `main` does not exist or is not granted to this pack
        false ["gate changed_files_minimum: Git is not available: Git cannot be used here: workspace `main` does not exist or is not granted to this pack","gate file_not_exists: x cannot be checked: workspace `main` does not exist or is not granted to this pack","gate command_exit_0: `pytest`: it cannot be run: workspace `main` does not exist or is not granted to this pack"] null {"pytest":"workspace `main` does not exist or is not granted to this pack"}
    "#]].assert_eq(&log);
}
