//! Targets of `make` that stand for commands, although they have the names of files.
//!
//! If there is a file or a directory of such a name, make takes the target for done and runs none of its commands.

use std::collections::{BTreeMap, BTreeSet};

use super::runners::Runner;
use super::settings;
use crate::git::Git;

/// Names of the file of targets, in the order in which make looks for them.
const FILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Paths that make takes for targets which it runs for some commands, by the files as they were in a commit.
pub(super) fn targets(git: &Git<'_>, base: Option<&str>, commands: &[Runner]) -> BTreeSet<String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for call in commands
        .iter()
        .flat_map(|runner| settings::simple(&runner.words))
        .filter_map(|words| Call::of(&words))
    {
        let place = call.directory.clone();
        let text = texts.entry(place).or_insert_with(|| {
            let names = FILES.iter().map(|name| format!("{}{name}", call.directory));
            let read = |path: String| base.and_then(|base| git.text_in(base, &path));
            let mut texts = names.filter_map(read);
            texts.next().unwrap_or_default()
        });
        let names = wanted(text, &call.goals).into_iter();
        found.extend(names.map(|name| format!("{}{name}", call.directory)));
    }
    found
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
        if !matches!(settings::name_of(program), "make" | "gmake" | "${MAKE}") {
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
