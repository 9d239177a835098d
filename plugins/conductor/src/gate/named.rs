//! Tests that files define, by name. A run counts tests, and most tools print no names of those that pass; the files
//! tell which test went when another one came.

use std::collections::BTreeMap;

use regex_lite::Regex;

use super::is_usual_test;
use super::known::{Change, GitFacts};
use crate::git::Git;
use crate::git::look::Look;
use crate::store::job::Baseline;

/// Maximum files whose tests are read in one look.
const MAX_FILES: usize = 500;

/// Forms of a definition of a test, by extension. The first group that matches is its name.
const TEST_FORMS: &[(&[&str], &[&str])] = &[
    (&["py"], &[r"(?m)^\s*(?:async\s+)?def\s+(test\w*)"]),
    (
        &["rs"],
        &[r"#\[[^\]]*\btest\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)"],
    ),
    (
        &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        &[
            r#"\b(?:test|it|specify)(?:\.\w+)*\s*\(\s*(?:"([^"\n]+)"|'([^'\n]+)'|`([^`\n]+)`)"#,
            r#"\bDeno\.test\s*\(\s*(?:"([^"\n]+)"|'([^'\n]+)')"#,
        ],
    ),
    (
        &["go"],
        &[r"(?m)^func\s+((?:Test|Benchmark|Fuzz|Example)\w*)\s*\("],
    ),
    (
        &["java", "kt", "groovy", "scala"],
        &[r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b(?:\([^)]*\))?[^(;]*?(\w+|`[^`]+`)\s*\("],
    ),
    (
        &["cs"],
        &[r"\[(?:Test|Fact|Theory|TestCase|TestMethod)\b[^(;]*?(\w+)\s*\("],
    ),
    (
        &["rb"],
        &[
            r#"(?m)^\s*(?:it|test|specify|scenario)\s+(?:"([^"\n]+)"|'([^'\n]+)')"#,
            r"(?m)^\s*def\s+(test_\w+)",
        ],
    ),
    (&["php", "swift"], &[r"\bfunc(?:tion)?\s+(test\w+)"]),
    (&["feature"], &[r"(?m)^\s*Scenario(?: Outline)?:\s*(\S.*)$"]),
];

/// Names of the tests that a text defines, each as often as it does.
pub(super) fn names(path: &str, text: &str) -> Vec<String> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let forms = TEST_FORMS.iter().filter(|(all, _)| all.contains(&extension));
    let forms = forms
        .flat_map(|(_, forms)| *forms)
        .filter_map(|form| Regex::new(form).ok());
    let mut found = Vec::new();
    for form in forms {
        for captures in form.captures_iter(text) {
            let name = captures.iter().skip(1).flatten().next();
            found.extend(name.map(|name| name.as_str().trim().to_owned()));
        }
    }
    found.sort();
    found
}

/// Checks whether a file may define tests: by its place, or as source of a language whose tests stand beside the code.
fn may_define(path: &str) -> bool {
    path.ends_with(".rs") || is_usual_test(path)
}

/// Names of the tests in uncommitted files, for the baseline of a step: later only their hashes are known.
pub(crate) fn uncommitted(git: &Git<'_>, look: &Look) -> BTreeMap<String, Vec<String>> {
    let there = look.hashes.iter().filter(|(_, hash)| !hash.is_empty());
    let paths = there.map(|(path, _)| path).filter(|path| may_define(path));
    let found = paths.take(MAX_FILES).map(|path| {
        let text = git.text_now(path).unwrap_or_default();
        (path.clone(), names(path, &text))
    });
    found.filter(|(_, names)| !names.is_empty()).collect()
}

/// Tests that changed files defined when the step began, and that no changed file defines now, each with its file.
pub(super) fn gone(git: &Git<'_>, since: Option<&Baseline>, facts: &GitFacts) -> Vec<String> {
    let Some(since) = since else { return Vec::new() };
    let changed = facts.changed.iter().filter(|change| may_define(&change.path));
    let changed: Vec<&Change> = changed.take(MAX_FILES).collect();
    let mut now: Vec<String> = Vec::new();
    for change in &changed {
        let text = git.text_now(&change.path).unwrap_or_default();
        now.extend(names(&change.path, &text));
    }
    let mut gone = Vec::new();
    for change in changed.iter().filter(|change| !change.new) {
        for name in before(git, since, &change.path) {
            match now.iter().position(|known| *known == name) {
                Some(place) => {
                    now.swap_remove(place);
                }
                None => gone.push(format!("{name} ({})", change.path)),
            }
        }
    }
    gone
}

/// Names of the tests that a file defined when the step began.
fn before(git: &Git<'_>, since: &Baseline, path: &str) -> Vec<String> {
    if let Some(known) = since.named.get(path) {
        return known.clone();
    }
    if since.dirty.contains_key(path) {
        return Vec::new();
    }
    let text = since
        .commit
        .as_deref()
        .and_then(|commit| git.text_in(commit, path));
    names(path, &text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_tests_are_found_in_many_languages() {
        for (path, text, expected) in [
            (
                "t.py",
                "class TestA:\n    def test_one(self): ...\nasync def test_two():\n  pass\ndef helper(): ...\n",
                "test_one test_two",
            ),
            (
                "a.rs",
                "#[test]\n#[ignore]\nfn one() {}\n#[tokio::test]\nasync fn two() {}\n#[cfg(test)]\nmod tests {}\nfn three() {}",
                "one two",
            ),
            (
                "a.test.ts",
                "test('adds', () => {});\nit.each([1])(`x`, f);\nit.only(\"takes\", f)",
                "adds takes",
            ),
            (
                "a_test.go",
                "func TestA(t *testing.T) {}\nfunc helper() {}\n",
                "TestA",
            ),
            (
                "ATest.java",
                "@Test\npublic void one() {}\n@Test(timeout = 3) void two() {}",
                "one two",
            ),
            (
                "a_spec.rb",
                "it \"adds\" do\nend\ndef test_b\nend\n",
                "adds test_b",
            ),
            ("a.feature", "Scenario: pay\n  Given x\n", "pay"),
            ("a.txt", "def test_x", ""),
        ] {
            assert_eq!(names(path, text).join(" "), expected, "{path}");
        }
    }
}
