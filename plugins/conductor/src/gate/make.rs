//! Targets of `make` that stand for commands, although they have the names of files.
//!
//! If there is a file or a directory of such a name, make takes the target for done and runs none of its commands.

use std::collections::{BTreeMap, BTreeSet};

use super::commands;
use super::runners::Runner;
use crate::git::Git;

/// Names of the file of targets, in the order in which make looks for them.
const MAKEFILE_NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Paths that make takes for targets which it runs for some commands, by the files as they were in a commit.
pub(super) fn targets(git: &Git<'_>, base: Option<&str>, commands: &[Runner]) -> BTreeSet<String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for call in commands
        .iter()
        .flat_map(|runner| commands::simple(&runner.words))
        .filter_map(|words| Call::of(&words))
    {
        let place = call.directory.clone();
        let text = texts.entry(place).or_insert_with(|| {
            let names = MAKEFILE_NAMES
                .iter()
                .map(|name| format!("{}{name}", call.directory));
            let read = |path: String| base.and_then(|base| git.text_in(base, &path));
            let mut texts = names.filter_map(read);
            texts.next().unwrap_or_default()
        });
        let names = wanted(text, &call.goals).into_iter();
        found.extend(names.map(|name| format!("{}{name}", call.directory)));
    }
    found
}

/// Checks whether a path is the file of targets.
pub(super) fn is_file(path: &str) -> bool {
    MAKEFILE_NAMES.contains(&path)
}

/// Checks whether words are those of a call of make.
pub(super) fn is_call(words: &[String]) -> bool {
    commands::simple(words)
        .iter()
        .all(|words| Call::of(words).is_some())
}

/// Checks whether two texts of the file of targets differ in anything that make may come to for some commands. Rules
/// with plain names that nothing names are not part of that.
pub(super) fn differs(old: &str, new: &str, commands: &[Runner]) -> bool {
    let is_odd = |text: &str| {
        let mut lines = text.lines();
        text.contains(".RECIPEPREFIX") || lines.any(|line| line.trim_start().starts_with("define"))
    };
    if old.trim().is_empty() || is_odd(old) || is_odd(new) {
        return old != new;
    }
    let calls: Vec<Call> = commands
        .iter()
        .flat_map(|runner| commands::simple(&runner.words))
        .filter_map(|words| Call::of(&words))
        .collect();
    let mut reached: BTreeSet<String> = calls.iter().flat_map(|call| call.goals.clone()).collect();
    let texts = [joined(old), joined(new)];
    if calls.iter().any(|call| call.goals.is_empty()) {
        reached.extend(texts.iter().filter_map(|text| first_target(text)));
    }
    loop {
        let before = reached.len();
        for text in &texts {
            let kept = kept(text, &reached);
            let lines = kept.iter().filter(|line| !line.starts_with(PHONY));
            let words: Vec<String> = lines.flat_map(|line| words_of(line)).collect();
            reached.extend(words);
        }
        if reached.len() == before {
            break;
        }
    }
    let [old, new] = &texts;
    if texts.iter().any(|text| computes(&kept(text, &reached))) {
        return old != new;
    }
    kept(old, &reached) != kept(new, &reached)
}

/// Rule that names targets which are no files.
const PHONY: &str = ".PHONY:";

/// A text with each continued line as one.
fn joined(text: &str) -> String {
    text.replace("\r\n", "\n").replace("\\\n", " ")
}

fn words_of(line: &str) -> impl Iterator<Item = String> {
    let words = line.split(|c: char| !is_plain(c)).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn first_target(text: &str) -> Option<String> {
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '.']));
    let rule = lines.find_map(|line| line.split_once(':').filter(|(_, rest)| !rest.starts_with('=')));
    rule.and_then(|(names, _)| names.split_whitespace().next())
        .map(str::to_owned)
}

/// Lines of a text without comments and without the rules whose names nothing reaches.
fn kept(text: &str, reached: &BTreeSet<String>) -> Vec<String> {
    let is_free = |name: &str| name.chars().all(is_plain) && !reached.contains(name);
    let is_free =
        |name: &str| is_free(name) && !MAKEFILE_NAMES.iter().any(|file| file.eq_ignore_ascii_case(name));
    let mut kept = Vec::new();
    let mut is_skipped = false;
    for line in text.lines() {
        if line.starts_with('\t') {
            if !is_skipped {
                kept.push(line.trim_end().to_owned());
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(names) = line.strip_prefix(PHONY) {
            is_skipped = false;
            let names: Vec<&str> = names.split_whitespace().filter(|name| !is_free(name)).collect();
            if !names.is_empty() {
                kept.push(format!("{PHONY} {}", names.join(" ")));
            }
            continue;
        }
        is_skipped = plain_rule(line).is_some_and(|names| names.split_whitespace().all(is_free));
        if !is_skipped {
            kept.push(line.trim_end().to_owned());
        }
    }
    kept
}

/// Checks whether lines compute the names of targets, so that any rule may be meant.
fn computes(lines: &[String]) -> bool {
    lines.iter().any(|line| match line.strip_prefix('\t') {
        Some(recipe) => recipe.contains("make") || recipe.contains("MAKE"),
        // Of a rule; what a variable holds counts as text.
        None => line.split_once(':').is_some_and(|(names, rest)| {
            !rest.starts_with('=') && !names.contains('=') && line.contains('$')
        }),
    })
}

/// Names of a rule that make only reads: without variables, patterns or functions.
fn plain_rule(line: &str) -> Option<&str> {
    let (names, rest) = line.split_once(':').filter(|_| !line.starts_with(' '))?;
    let needed = rest.split(';').next().unwrap_or_default();
    let is_plain = !needed.contains(['=', '$', ':', '%']) && !names.trim().is_empty();
    is_plain.then_some(names)
}

/// A call of make.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    /// Directory that it runs in, with a slash at its end, or empty.
    directory: String,
    goals: Vec<String>,
}

impl Call {
    fn of(words: &[String]) -> Option<Call> {
        let (program, rest) = words.split_first()?;
        if !matches!(commands::name_of(program), "make" | "gmake" | "${MAKE}") {
            return None;
        }
        let mut call = Call {
            directory: String::new(),
            goals: Vec::new(),
        };
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let directory = match word.as_str() {
                "-C" | "--directory" => rest.next().map(String::as_str),
                "-f" | "--file" | "-o" | "-W" => {
                    rest.next();
                    None
                }
                word if word.starts_with("-C") => word.get(2..),
                word => word.strip_prefix("--directory="),
            };
            match directory {
                Some(directory) => {
                    let plain = directory.trim_start_matches("./").trim_end_matches('/');
                    call.directory = match plain {
                        "" | "." => String::new(),
                        plain => format!("{plain}/"),
                    };
                }
                None if word.starts_with('-') || word.contains('=') => {}
                None => call.goals.push(word.clone()),
            }
        }
        Some(call)
    }
}

/// Targets that make runs for some goals, without those that are told to be no files.
fn wanted(text: &str, goals: &[String]) -> BTreeSet<String> {
    let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut phony: BTreeSet<&str> = BTreeSet::new();
    let mut first = None;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().filter(|line| !line.starts_with(['\t', ' ', '#'])) {
        let Some((names, rest)) = line.split_once(':') else {
            continue;
        };
        let rest = rest.trim_start_matches(':');
        if rest.starts_with('=') || names.contains('=') {
            continue;
        }
        let rest = rest.split([';', '#']).next().unwrap_or_default();
        let needed = rest.split_whitespace().filter(|word| *word != "|");
        for name in names.split_whitespace() {
            match name {
                ".PHONY" => phony.extend(needed.clone()),
                name if name.starts_with('.') && !name.contains('/') => {}
                name => {
                    first = first.or(Some(name));
                    rules.entry(name).or_default().extend(needed.clone());
                }
            }
        }
    }
    let mut open: Vec<&str> = match goals.is_empty() {
        true => first.into_iter().collect(),
        false => goals.iter().map(String::as_str).collect(),
    };
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some(needed) = rules.get(name).filter(|_| seen.insert(name)) {
            open.extend(needed);
        }
    }
    let files = seen.into_iter().filter(|name| !phony.contains(name));
    files
        .map(|name| name.trim_start_matches("./").to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_and_what_they_need_are_followed() {
        let text = "\
PYTEST := python -m pytest
.PHONY: lint \\
    clean
test: prep lint build/app
\t$(PYTEST)
prep:
\ttrue
lint:
\ttrue
build/app: app.c
docs: ; true
";
        for (goals, expected) in [
            (&["test"][..], "build/app prep test"),
            (&[], "build/app prep test"),
            (&["docs"], "docs"),
            (&["clean", "none"], ""),
        ] {
            let goals: Vec<String> = goals.iter().map(|goal| (*goal).to_owned()).collect();
            let found: Vec<String> = wanted(text, &goals).into_iter().collect();
            assert_eq!(found.join(" "), expected, "{goals:?}");
        }
    }

    #[test]
    fn rules_that_nothing_reaches_make_no_difference() {
        let old =
            "PY := python\n.PHONY: test\ntest: prep\n\t$(PY) -m unittest\nprep:\n\ttrue\nlint:\n\tflake8\n";
        let make = |goals: &str| {
            [Runner {
                words: format!("make {goals}")
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
                is_test: true,
            }]
        };
        let add = |rule: &str| format!("{old}{rule}");
        for (new, goals, expected) in [
            (add("build:\n\ttsc\n"), "test", false),
            (add(".PHONY: build\nbuild: lint\n\ttsc\n"), "test", false),
            (old.replace(".PHONY: test", ".PHONY: test build"), "test", false),
            (old.replace("flake8", "ruff"), "test", false),
            (old.replace("\ttrue", "\trm -r tests"), "test", true),
            (old.replace("prep:", "prep: lint"), "test", true),
            (old.replace(".PHONY: test", ""), "test", true),
            (add("test:\n\ttrue\n"), "test", true),
            (add("lint: PY := true\n"), "test", true),
            (add("build: $(shell rm -r tests)\n"), "test", true),
            (add("Makefile:\n\ttrue\n"), "test", true),
            (add("%:\n\ttrue\n"), "test", true),
            (add("PY = true\n"), "test", true),
            (add("-include local.mk\n"), "test", true),
            (format!("build:\n\ttrue\n{old}"), "", true),
            (format!("build:\n\ttrue\n{old}"), "test", false),
            (add("define x\nendef\n"), "test", true),
            (
                old.replace("test: prep", "test: check-$(PY)") + "build:\n\ttsc\n",
                "test",
                true,
            ),
        ] {
            assert_eq!(differs(old, &new, &make(goals)), expected, "{new}");
        }
    }

    #[test]
    fn calls_are_told_by_their_words() {
        for (line, directory, goals) in [
            ("make -C sub test V=1 -j4", "sub/", "test"),
            ("make --directory=./a/b", "a/b/", ""),
            ("${MAKE} all", "", "all"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let call = Call::of(&words).unwrap();
            assert_eq!(
                (call.directory.as_str(), call.goals.join(" ").as_str()),
                (directory, goals)
            );
        }
        assert_eq!(Call::of(&["cmake".to_owned()]), None);
    }
}
