//! Data that tests read: expected outputs, samples, tables. To change what a test compares with is to change the test.
//!
//! A file is such data if it holds no code and a test names it. A plan that wants it changed names it, too.

use std::collections::BTreeMap;

use super::{Gate, TEST_FILES, glob_set};
use crate::git::Git;
use crate::git::look::Look;
use crate::step::StepSpec;

use super::known::Change;

/// Maximum number of tests that are searched for the names of changed files.
const MAX_TESTS: usize = 3_000;
/// Extensions of files with code, which tests may test.
const CODE_EXTENSIONS: &[&str] = &[
    "py", "pyi", "rs", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "astro", "go",
    "java", "kt", "kts", "scala", "groovy", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "cs", "fs", "swift",
    "m", "mm", "rb", "php", "pl", "pm", "lua", "sh", "bash", "zsh", "ps1", "bat", "ex", "exs", "erl", "hs",
    "ml", "clj", "dart", "zig", "nim", "r", "jl", "css", "scss", "sass", "less",
];
/// Extensions and names of files at the top of a repository that tools read, and that tests name for other reasons.
const PROJECT_EXTENSIONS: &[&str] = &["md", "rst", "toml", "lock", "cfg", "ini", "mod", "sum"];
const PROJECT_FILES: &[&str] = &[
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "jsconfig.json",
    "composer.json",
];

/// Changed data, and a test that names each.
pub(super) fn read_by_tests(
    git: &Git<'_>,
    look: &Look,
    changed: &[&Change],
    gates: &[Gate],
) -> BTreeMap<String, String> {
    let globs = gates.iter().find_map(|gate| match gate {
        Gate::TestsUnchanged(globs) => Some(globs.clone()),
        _ => None,
    });
    let usual = || TEST_FILES.iter().map(|glob| (*glob).to_owned()).collect();
    let tests = glob_set(&globs.unwrap_or_else(usual));
    let data = changed
        .iter()
        .filter(|change| !change.new && !tests.is_match(&change.path));
    let mut open: Vec<&str> = data
        .map(|change| change.path.as_str())
        .filter(|path| is_data(path))
        .collect();
    let mut found = BTreeMap::new();
    let is_changed = |path: &str| changed.iter().any(|change| change.path == path);
    let known = look
        .times
        .keys()
        .filter(|path| tests.is_match(path) && !is_data(path) && !is_changed(path));
    for test in known.take(MAX_TESTS) {
        if open.is_empty() {
            break;
        }
        let text = git.text_now(test).unwrap_or_default();
        open.retain(|path| {
            let is_named = names(&text, path);
            if is_named {
                found.insert((*path).to_owned(), test.clone());
            }
            !is_named
        });
    }
    found
}

/// Checks whether a plan names a file whose change is its work: by its path in a text or by a narrow pattern.
pub(super) fn is_planned(step: &StepSpec, gates: &[Gate], path: &str) -> bool {
    let texts = [&step.instruction_prompt].into_iter();
    let mut texts = texts
        .chain(&step.expected_outputs)
        .chain(&step.acceptance_criteria);
    let is_narrow =
        |glob: &&String| !glob.starts_with('*') && glob_set(std::slice::from_ref(*glob)).is_match(path);
    texts.any(|text| holds(text, path))
        || gates.iter().any(|gate| match gate {
            Gate::ChangedFilesAllowlist(globs) => globs.iter().any(|glob| is_narrow(&glob)),
            _ => false,
        })
}

/// Checks whether a plan names a file by its whole path as the work of a step: in its outputs, in its allowlist or in
/// the job's deliverables; also in other texts of the step, if `anywhere`.
pub(super) fn is_asked(
    step: &StepSpec,
    (gates, deliverables): (&[Gate], &[String]),
    path: &str,
    anywhere: Anywhere,
) -> bool {
    let named = step.expected_outputs.iter().chain(deliverables);
    let others = [&step.instruction_prompt]
        .into_iter()
        .chain(&step.acceptance_criteria);
    let others = others.filter(|_| anywhere == Anywhere::Yes);
    named.chain(others).any(|text| holds(text, path))
        || gates.iter().any(|gate| match gate {
            Gate::ChangedFilesAllowlist(globs) => globs.iter().any(|glob| glob == path),
            Gate::FileExists(paths) => paths.iter().any(|wanted| wanted == path),
            _ => false,
        })
}

/// Checks whether a plan wants a module or the package that it is in, for a module that nothing but the lack of an
/// importer speaks against: by a directory or a pattern of its outputs, or by its name in words.
pub(super) fn is_wanted(step: &StepSpec, deliverables: &[String], path: &str) -> bool {
    let is_below = |text: &str| {
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
        let mut above = above.filter(|directory| *directory != "src/" && *directory != "lib/");
        above.any(|directory| holds_start(text, directory))
    };
    let matches = |text: &String| {
        let is_glob = text.contains('*') && !text.starts_with('*') && !text.contains(char::is_whitespace);
        is_glob && glob_set(std::slice::from_ref(text)).is_match(path)
    };
    let first = path.split('/').next().unwrap_or_default();
    let name = first.strip_suffix(".py").unwrap_or(first);
    let outputs = step.expected_outputs.iter().chain(deliverables);
    let mut outputs = outputs
        .clone()
        .filter(|text| matches(text))
        .chain(outputs.filter(|text| is_below(text)));
    let others = [&step.instruction_prompt, &step.title].into_iter();
    let mut others = others.chain(&step.acceptance_criteria);
    outputs.next().is_some() || others.any(|text| is_below(text) || names_module(text, name))
}

/// Checks whether a text names a module or a package as such: `the package shop`, `python -m shop`.
fn names_module(text: &str, name: &str) -> bool {
    const NOUNS: [&str; 7] = [
        "package", "module", "program", "script", "command", "-m", "import",
    ];
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | ':'))
        .map(|word| word.trim_matches(['`', '"', '\'', '.']).to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    let is_noun =
        |word: Option<&String>| word.is_some_and(|word| NOUNS.contains(&word.to_lowercase().as_str()));
    words.iter().enumerate().any(|(place, word)| {
        let before = place.checked_sub(1).and_then(|place| words.get(place));
        word == name && (is_noun(before) || is_noun(words.get(place.saturating_add(1))))
    })
}

/// Checks whether a text has a directory and not only as a part of a longer path.
fn holds_start(text: &str, directory: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.match_indices(directory).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at.saturating_add(directory.len())..);
        let after = after.and_then(|after| after.chars().next());
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        !before.is_some_and(is_part) && !goes_on
    })
}

/// Use of the texts of a step that say more than its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anywhere {
    Yes,
    No,
}

/// Checks whether a file holds code, by its extension.
pub(super) fn is_code(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    CODE_EXTENSIONS.contains(&extension.as_str())
}

/// Checks whether a file holds data rather than code.
fn is_data(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        // Without an extension it may be a script or a licence, and with nothing before the dot a setting.
        None | Some(("", _)) => false,
        Some((_, extension)) => {
            let extension = extension.to_lowercase();
            let is_project = name == path
                && (PROJECT_EXTENSIONS.contains(&extension.as_str()) || PROJECT_FILES.contains(&name));
            !CODE_EXTENSIONS.contains(&extension.as_str()) && !is_project
        }
    }
}

/// Checks whether the text of a test names a file: its path or the end of it, or its name and that of its directory.
fn names(text: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').collect();
    match parts.as_slice() {
        [name] => holds(text, name),
        [name, directory, ..] => {
            holds(text, &format!("{directory}/{name}")) || (holds(text, name) && holds(text, directory))
        }
        [] => false,
    }
}

/// Checks whether a text has these words and not only as a part of longer ones.
fn holds(text: &str, words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(words).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let mut after = text
            .get(at.saturating_add(words.len())..)
            .unwrap_or_default()
            .chars();
        let ends = match after.next() {
            Some('.') => !after.next().is_some_and(char::is_alphanumeric),
            Some(c) => !is_part(c),
            None => true,
        };
        ends && !before.is_some_and(|c| is_part(c) || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_name_data_by_its_path_or_by_its_parts() {
        for (text, path, expected) in [
            ("read('data/rates.json')", "data/rates.json", true),
            ("read(ROOT / 'data' / 'rates.json')", "data/rates.json", true),
            ("read('rates.json')", "data/rates.json", false),
            ("read('../golden/out.txt')", "web/golden/out.txt", true),
            ("read('data/rates.json.bak')", "data/rates.json", false),
            ("the metadata/rates.json", "data/rates.json", false),
            ("open('expected.txt')", "expected.txt", true),
        ] {
            assert_eq!(names(text, path), expected, "{text} {path}");
        }
    }

    #[test]
    fn code_and_settings_are_no_data() {
        for path in [
            "data/rates.json",
            "golden/out.txt",
            "expected.csv",
            "web/a.html",
            "docs/expected.md",
        ] {
            assert!(is_data(path), "{path}");
        }
        for path in [
            "src/a.py",
            "README.md",
            "package.json",
            "Cargo.toml",
            ".gitignore",
            "run",
            "a/b.TS",
        ] {
            assert!(!is_data(path), "{path}");
        }
    }

    #[test]
    fn a_plan_wants_a_package_by_its_directory_a_pattern_or_a_noun() {
        let told = |text: &str| StepSpec {
            instruction_prompt: text.to_owned(),
            ..StepSpec::default()
        };
        let path = "stats/__init__.py";
        for text in [
            "Add a package stats that prints.",
            "Add the package in stats/.",
            "It runs with python -m stats.",
            "the `stats` module",
        ] {
            assert!(is_wanted(&told(text), &[], path), "{text}");
        }
        for text in [
            "Print the stats.",
            "in mystats/",
            "in stats/rows.py",
            "the package statistics",
        ] {
            assert!(!is_wanted(&told(text), &[], path), "{text}");
        }
        let outputs = |text: &str| StepSpec {
            expected_outputs: vec![text.to_owned()],
            ..StepSpec::default()
        };
        assert!(is_wanted(&outputs("stats/**"), &[], path));
        assert!(is_wanted(&StepSpec::default(), &["stats/".to_owned()], path));
        assert!(!is_wanted(&outputs("**"), &[], path));
    }

    #[test]
    fn a_plan_names_data_in_words_or_by_a_narrow_pattern() {
        let step = |text: &str| StepSpec {
            instruction_prompt: text.to_owned(),
            ..StepSpec::default()
        };
        let only = |glob: &str| [Gate::ChangedFilesAllowlist(vec![glob.to_owned()])];
        let path = "data/rates.json";
        assert!(is_planned(&step("Correct data/rates.json."), &[], path));
        assert!(is_planned(&step(""), &only("data/*.json"), path));
        assert!(!is_planned(&step("Correct data/rates.json.bak"), &[], path));
        assert!(!is_planned(&step(""), &only("**"), path));
    }
}
