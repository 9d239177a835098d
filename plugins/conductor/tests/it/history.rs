//! Attempts to hide a change in commits, in the index, in earlier steps and in files of gates, one test each.

use serde_json::{Value, json};

use crate::cheats::{accepted, accepted_with, caught, caught_with, changed, gated};
use crate::harness::{Bench, result};

/// Gates that allow three lines in `b.txt`, and a try to break them.
fn guarded() -> Bench {
    gated(json!([
        {"gate": "changed_files_allowlist", "paths": ["b.txt"]},
        {"gate": "forbid_paths", "paths": ["secret.py", "tests/**"]},
        {"gate": "tests_unchanged"},
        {"gate": "diff_max_lines", "max": 3},
    ]))
}

fn commit(bench: &Bench, message: &str) -> String {
    bench.git(&["add", "--all"]);
    bench.git(&["commit", "--quiet", "-m", message]);
    bench.git(&["rev-parse", "HEAD"])
}

#[test]
fn what_a_commit_holds_counts_though_the_work_tree_was_put_back() {
    let bench = guarded();
    bench.write("b.txt", "1\n");
    bench.write("secret.py", &"evil\n".repeat(50));
    bench.write("tests/t.py", "assert True\n");
    let hash = commit(&bench, "S1: fix");
    std::fs::remove_file(bench.path("secret.py")).unwrap();
    std::fs::remove_file(bench.path("tests/t.py")).unwrap();
    let said = || json!({"commit_hash": hash, "evidence": changed(&["b.txt"])});
    for word in [
        "changed outside of b.txt: secret.py, tests/t.py",
        "these must not change: secret.py, tests/t.py",
        "52 lines changed",
    ] {
        caught_with(&bench, said(), word);
    }
    // The index and the history differ now: the commit still holds it.
    bench.git(&["rm", "--quiet", "--cached", "secret.py", "tests/t.py"]);
    commit(&bench, "put back");
    caught_with(&bench, said(), "these must not change: secret.py, tests/t.py");
    // Without the commit there is nothing to hold.
    bench.git(&["reset", "--quiet", "--soft", "HEAD~2"]);
    let clean = commit(&bench, "S1: fix");
    accepted_with(
        &bench,
        json!({"commit_hash": clean, "evidence": changed(&["b.txt"])}),
    );
}

#[test]
fn a_commit_that_is_reverted_counts() {
    let bench = guarded();
    bench.write("a.txt", "gutted\n");
    commit(&bench, "S1: gutted");
    bench.git(&["revert", "--no-edit", "HEAD"]);
    caught(&bench, "changed outside of b.txt: a.txt");
}

#[test]
fn a_side_branch_that_is_merged_away_counts() {
    let bench = guarded();
    bench.git(&["switch", "--quiet", "--create", "side"]);
    bench.write("secret.py", "evil\n");
    commit(&bench, "S1: evil");
    bench.git(&["switch", "--quiet", "main"]);
    bench.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "--strategy=ours",
        "-m",
        "S1: merge",
        "side",
    ]);
    caught(&bench, "changed outside of b.txt: secret.py");
}

#[test]
fn an_orphan_history_counts_whatever_the_configuration_shows() {
    let bench = guarded();
    bench.git(&["config", "log.showRoot", "false"]);
    bench.git(&["config", "log.follow", "true"]);
    bench.git(&["checkout", "--quiet", "--orphan", "other"]);
    bench.write("secret.py", "evil\n");
    commit(&bench, "S1: all anew");
    bench.git(&["rm", "--quiet", "secret.py"]);
    commit(&bench, "S1: put back");
    caught(&bench, "changed outside of b.txt: secret.py");
}

#[test]
fn what_is_staged_belongs_to_the_step_that_staged_it() {
    let bench = guarded();
    bench.write("a.txt", "gutted\n");
    bench.write("secret.py", "evil\n");
    bench.git(&["add", "a.txt", "secret.py"]);
    bench.write("a.txt", "one\ntwo\n");
    std::fs::remove_file(bench.path("secret.py")).unwrap();
    caught(&bench, "changed outside of b.txt: a.txt, secret.py");
    bench.git(&["reset", "--quiet"]);
    accepted(&bench);
}

#[test]
fn a_change_that_was_undone_is_no_work() {
    let bench =
        gated(json!([{"gate": "changed_files_minimum", "min": 1}, {"gate": "diff_min_lines", "min": 2}]));
    bench.write("a.txt", "gutted\n");
    commit(&bench, "S1: gutted");
    bench.git(&["revert", "--no-edit", "HEAD"]);
    caught(&bench, "0 files changed");
    caught(&bench, "0 lines changed");
}

#[test]
fn work_of_an_earlier_step_may_be_committed_later() {
    let bench = Bench::with_repository();
    let only = |file: &str| json!([{"gate": "changed_files_allowlist", "paths": [file]}]);
    let steps =
        [("one", "b.txt"), ("two", "c.txt")].map(|(title, file)| crate::harness::step(title, only(file)));
    let bench = bench.started(json!(steps));
    bench.run("- job_next_step_prompt {}");
    bench.write("b.txt", "1\n");
    accepted(&bench);
    bench.run("- job_next_step_prompt {}");
    bench.git(&["add", "b.txt"]);
    bench.git(&["commit", "--quiet", "-m", "S1: b"]);
    bench.write("c.txt", "1\n");
    let reply: Value = bench.reply("job_submit_step_result", result("S2"));
    assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
}
