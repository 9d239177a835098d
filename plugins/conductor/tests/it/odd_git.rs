//! Odd repositories and commits: what a submission shows is what is there.

use serde_json::json;

use crate::cheats::{accepted, accepted_with, caught, caught_with, gated, planned, submit};
use crate::harness::Bench;

#[test]
fn tests_behind_a_link_are_seen() {
    let bench = Bench::with_repository();
    bench.write("tests/test_app.py", "def test_add(): ...\n");
    bench.commit_all("tests");
    let bench = planned(bench, json!([{"gate": "tests_unchanged"}]));
    std::fs::rename(bench.path("tests"), bench.path("real")).unwrap();
    std::os::unix::fs::symlink("real", bench.path("tests")).unwrap();
    caught(&bench, "existing tests changed: tests/test_app.py");
    std::fs::remove_file(bench.path("tests")).unwrap();
    std::fs::rename(bench.path("real"), bench.path("tests")).unwrap();
    accepted(&bench);
}

#[test]
fn a_fifo_is_no_file_and_nothing_waits_for_it() {
    let bench = gated(
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "file_exists", "paths": ["b.txt"]}]),
    );
    let made = std::process::Command::new("mkfifo")
        .arg(bench.path("b.txt"))
        .status()
        .unwrap();
    assert!(made.success());
    caught(&bench, "b.txt is a link or a special file");
}

#[test]
fn another_work_tree_or_repository_is_no_way_out() {
    let bench = gated(json!([{"gate": "forbid_paths", "paths": ["a.txt"]}]));
    let clean = tempfile::tempdir().unwrap();
    std::fs::write(clean.path().join("a.txt"), "one\ntwo\n").unwrap();
    bench.write("a.txt", "gutted\n");
    bench.git(&["config", "core.worktree", clean.path().to_str().unwrap()]);
    assert_ne!(submit(&bench, json!({})), "");
    bench.git(&["config", "--unset", "core.worktree"]);
    // A linked work tree in the place of the repository.
    let linked = tempfile::tempdir().unwrap();
    let linked = linked.path().join("linked");
    bench.git(&[
        "worktree",
        "add",
        "--quiet",
        linked.to_str().unwrap(),
        "-b",
        "side",
    ]);
    let git = std::fs::read_to_string(linked.join(".git")).unwrap();
    std::fs::rename(bench.path(".git"), bench.path("other.git")).unwrap();
    std::fs::write(bench.path(".git"), git.replace("/.git/", "/other.git/")).unwrap();
    assert_ne!(submit(&bench, json!({})), "");
}

#[test]
fn commits_that_say_less_than_they_seem_do_not_count() {
    let bench = gated(json!([{"gate": "commit_exists"}]));
    // A commit of another branch.
    bench.git(&["switch", "--quiet", "--create", "other"]);
    bench.write("b.txt", "1\n");
    bench.git(&["add", "b.txt"]);
    bench.git(&["commit", "--quiet", "-m", "S1: add b"]);
    let elsewhere = bench.git(&["rev-parse", "HEAD"]);
    bench.git(&["switch", "--quiet", "main"]);
    caught_with(&bench, json!({"commit_hash": elsewhere}), "commit");
    // A merge that brings what the other branch has is work of the step, and so is a commit with an old date.
    bench.git(&["merge", "--quiet", "--no-ff", "-m", "S1: add b", "other"]);
    let merge = bench.git(&["rev-parse", "HEAD"]);
    accepted_with(&bench, json!({"commit_hash": merge}));
    let bench = gated(json!([{"gate": "commit_exists"}]));
    bench.write("a.txt", "one\ntwo\nthree\n");
    bench.git(&[
        "commit",
        "--quiet",
        "-am",
        "S1: three",
        "--date",
        "2001-01-01T00:00:00Z",
    ]);
    let commit = bench.git(&["rev-parse", "HEAD"]);
    accepted_with(&bench, json!({"commit_hash": commit}));
}
