//! Prompts of whole jobs from the built-in templates, as an executor gets them one after the other.

use expect_test::{ExpectFile, expect_file};
use serde_json::{Value, json};

use crate::suites::{from_template, libtest, report};

/// Work on a step: files that are written, the claim about tests, and whether to commit.
type Work = (&'static [(&'static str, &'static str)], Value, bool);

/// All prompts of a job, without what differs from run to run.
fn told(template: &str, variables: Value, works: Vec<Work>) -> String {
    let bench = from_template(template, variables);
    let mut all = String::new();
    for (files, passed, commit) in works {
        let prompt = bench.reply("job_next_step_prompt", json!({}));
        all += prompt["prompt"].as_str().unwrap();
        all += "\n=====\n\n";
        for (path, content) in files {
            let content = match *content {
                "red" => libtest(3, 1, 0),
                "green" => libtest(4, 0, 0),
                content => content.to_owned(),
            };
            bench.write(path, &content);
        }
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        let reply = report(&bench, &paths, passed, commit);
        assert_eq!(reply["accepted"], json!(true), "{reply}");
    }
    let view = bench.reply("job_get", json!({}));
    assert_eq!(view["status"], json!("COMPLETE"), "{template}: {view}");
    let place = bench.path("").display().to_string();
    let all = all.replace(place.trim_end_matches('/'), "/home/ada/shop");
    without_hashes(&all.replace(&bench.job, "JOB-1"))
}

/// Commits by a fixed name.
fn without_hashes(text: &str) -> String {
    let is_hash = |word: &str| word.len() == 12 && word.starts_with('(') && word.ends_with("):");
    let is_hash = |word: &str| is_hash(word) || (word.len() == 13 && word.starts_with('('));
    let words = text.split(' ').map(|word| {
        let is_hash = is_hash(word) && word[1..11].bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { "(0123456789):" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn check(expected: ExpectFile, template: &str, variables: Value, works: Vec<Work>) {
    expected.assert_eq(&told(template, variables, works));
}

#[test]
fn a_feature() {
    let variables = json!({"feature": "the export", "area": "reports"});
    check(
        expect_file!["snapshots/strict_feature.md"],
        "strict_feature",
        variables,
        vec![
            (&[], json!(null), false),
            (&[("export.py", "1\n")], json!(true), true),
            (&[("export.py", "2\n")], json!(true), true),
            (&[("test_export.py", "1\n")], json!(true), true),
            (&[("README.md", "1\n")], json!(true), true),
            (&[], json!(true), false),
        ],
    );
}

#[test]
fn a_test_first() {
    check(
        expect_file!["snapshots/tdd_loop.md"],
        "tdd_loop",
        json!({"behaviour": "the total"}),
        vec![
            (
                &[("suite", "red"), ("tests/test_total.py", "1\n")],
                json!(false),
                false,
            ),
            (&[("suite", "green"), ("total.py", "1\n")], json!(true), false),
            (&[], json!(true), false),
        ],
    );
}

#[test]
fn a_bug() {
    check(
        expect_file!["snapshots/bug_fix.md"],
        "bug_fix",
        json!({"bug": "the wrong total"}),
        vec![
            (
                &[("suite", "red"), ("tests/test_total.py", "1\n")],
                json!(false),
                false,
            ),
            (&[], json!(null), false),
            (&[("suite", "green"), ("total.py", "1\n")], json!(true), false),
        ],
    );
}

#[test]
fn a_new_structure() {
    let part = |files: &'static [(&'static str, &'static str)]| (files, json!(true), false);
    check(
        expect_file!["snapshots/refactor.md"],
        "refactor",
        json!({"target": "the exporter"}),
        vec![
            part(&[("test_export.py", "1\n")]),
            part(&[]),
            part(&[("export.py", "1\n")]),
            part(&[("old_export.py", "1\n")]),
        ],
    );
}

#[test]
fn a_page() {
    check(
        expect_file!["snapshots/docs.md"],
        "docs",
        json!({"topic": "exports", "audience": "new users"}),
        vec![
            (&[], json!(null), false),
            (&[("docs.md", "1\n")], json!(null), false),
            (&[], json!(null), false),
        ],
    );
}

#[test]
fn a_dependency() {
    check(
        expect_file!["snapshots/dependency_upgrade.md"],
        "dependency_upgrade",
        json!({"dependency": "serde", "version": "2"}),
        vec![
            (&[], json!(true), false),
            (&[], json!(true), false),
            (&[("Cargo.toml", "serde = 2\n")], json!(true), true),
            (&[], json!(null), false),
        ],
    );
}
