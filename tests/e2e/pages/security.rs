//! Promises of SECURITY.md and the tests that prove them: the named files and tests must exist.
#![allow(clippy::disallowed_methods, reason = "tests look at files")]

use std::path::{Path, PathBuf};

/// Promises of the page, each with the names in backticks on its line.
fn promises(page: &str) -> Vec<(String, Vec<String>)> {
    let scope = page
        .split("## In scope")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the page has a section `In scope`");
    scope
        .split("\n* ")
        .skip(1)
        .map(|item| {
            let title = item.split("**").nth(1).unwrap_or_default().to_owned();
            let quoted = item.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (title, quoted)
        })
        .collect()
}

/// True if a text in backticks is the name of a test.
fn is_test(quoted: &str) -> bool {
    quoted.matches('_').count() > 2 && quoted.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn sources(root: &Path, quoted: &[String]) -> Vec<PathBuf> {
    let path = |name: &&String| name.contains('/') && !name.contains(' ');
    let mut files = Vec::new();
    for name in quoted.iter().filter(path) {
        let named = root.join(name);
        assert!(named.exists(), "SECURITY.md names {name}, which is not there");
        let mut open = vec![named];
        while let Some(at) = open.pop() {
            if at.is_dir() {
                open.extend(std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                files.push(at);
            }
        }
    }
    files
}

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let promises = promises(&page);
    assert!(promises.len() > 10, "{} promises were read", promises.len());
    for (title, quoted) in promises {
        let files = sources(&root, &quoted);
        let holds = !files.is_empty() || quoted.iter().any(|name| name.starts_with("cargo xtask"));
        assert!(holds, "nothing is named that holds: {title}");
        let texts: Vec<_> = files
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok())
            .collect();
        for test in quoted.iter().filter(|name| is_test(name)) {
            let definition = format!("fn {test}(");
            assert!(
                texts.iter().any(|text| text.contains(&definition)),
                "no test {test} in the files named for: {title}"
            );
        }
    }
}
