//! Conventions that a tree follows, as far as its files show them.

use std::collections::BTreeMap;

use crate::frameworks::Run;
use crate::language::{self, Language};
use crate::path;
use crate::resolve::Index;

/// Configuration files, with the subject of each.
const RULE_FILES: [(&str, &str); 19] = [
    (".editorconfig", "editor settings"),
    (".clang-format", "C/C++ formatting"),
    (".eslintrc.json", "JavaScript lints"),
    (".eslintrc.js", "JavaScript lints"),
    (".golangci.yml", "Go lints"),
    (".pre-commit-config.yaml", "checks before each commit"),
    (".prettierrc", "JavaScript formatting"),
    ("CONTRIBUTING.md", "how to contribute"),
    ("biome.json", "JavaScript lints and formatting"),
    ("clippy.toml", "Rust lints"),
    ("deny.toml", "Rust dependencies"),
    ("eslint.config.js", "JavaScript lints"),
    ("mypy.ini", "Python types"),
    ("pytest.ini", "Python tests"),
    ("ruff.toml", "Python lints"),
    ("rust-toolchain.toml", "the Rust compiler"),
    ("rustfmt.toml", "Rust formatting"),
    ("tox.ini", "Python test environments"),
    ("tsconfig.json", "TypeScript"),
];

/// Minimum number of files that show a convention.
const MIN_HABIT_FILES: usize = 5;

/// Conventions, one sentence each.
pub(super) fn find(index: &Index<'_>, run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for (name, rules) in RULE_FILES {
        if index.find(name).is_some() {
            found.push(format!("`{name}` configures {rules}."));
        }
    }
    found.extend(names(index));
    found.extend(tests(index));
    found.extend(frameworks(run));
    found
}

/// Frameworks with the number of files that each runs without an import.
fn frameworks(run: &Run) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in run.values() {
        *counts.entry(name).or_default() += 1;
    }
    let line = |(name, count)| format!("Files that {name} uses without an import: {count}.");
    counts.into_iter().map(line).collect()
}

/// Naming style of the files of a language, if nine of ten agree.
fn names(index: &Index<'_>) -> Vec<String> {
    let mut styles: BTreeMap<Language, BTreeMap<&str, usize>> = BTreeMap::new();
    for file in 0..index.len() {
        let path = index.path(file);
        if let Some(language) = Language::of(path) {
            *styles
                .entry(language)
                .or_default()
                .entry(style(path::stem(path)))
                .or_default() += 1;
        }
    }
    let mut found = Vec::new();
    for (language, styles) in styles {
        // A single lower-case word matches each style in lower case.
        let plain = styles.get("lowercase").copied().unwrap_or_default();
        let all: usize = styles.values().sum();
        let fits = |style: &str| if style == "PascalCase" { 0 } else { plain };
        let best = styles
            .iter()
            .filter(|(style, _)| **style != "lowercase" && **style != "mixed");
        if let Some((style, count)) = best.max_by_key(|(style, count)| (**count, **style))
            && (count + fits(style)) * 10 >= all * 9
            && all >= MIN_HABIT_FILES
        {
            found.push(format!("{} files are named in {style}.", language.name()));
        }
    }
    found
}

fn style(stem: &str) -> &'static str {
    let has = |wanted: fn(char) -> bool| stem.chars().any(wanted);
    let (upper, under, dash) = (has(char::is_uppercase), stem.contains('_'), stem.contains('-'));
    match (upper, under, dash) {
        (false, false, false) => "lowercase",
        (false, true, false) => "snake_case",
        (false, false, true) => "kebab-case",
        (true, false, false) if stem.starts_with(char::is_uppercase) => "PascalCase",
        (true, false, false) => "camelCase",
        _ => "mixed",
    }
}

/// Directory of most tests.
fn tests(index: &Index<'_>) -> Option<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = 0;
    for file in 0..index.len() {
        let path = index.path(file);
        if !language::is_test(path) || Language::of(path).is_none() {
            continue;
        }
        all += 1;
        let named = path::parent(path)
            .split('/')
            .find(|part| matches!(*part, "test" | "tests" | "__tests__" | "spec"));
        *folders.entry(named.unwrap_or_default()).or_default() += 1;
    }
    let (folder, count) = folders
        .into_iter()
        .max_by_key(|(folder, count)| (*count, *folder))?;
    let habit = match folder {
        "" => "Tests are beside the code that they test.".to_owned(),
        folder => format!("Tests are in `{folder}/`."),
    };
    (all >= MIN_HABIT_FILES && count * 10 >= all * 8).then_some(habit)
}
