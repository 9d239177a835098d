//! Tests that steps changed whose gates do not judge tests. The next step that guards tests answers for them, unless the
//! texts of the step that changed them want it.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{self, Anywhere};
use super::known::{Change, GitFacts};
use super::runners::Runner;
use super::{Gate, TEST_FILES, facts, glob_set, moved, unchanged};
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::step::StepSpec;
use crate::store::job::{Baseline, Job};
use crate::store::step::Step;

/// Beginnings of words for work on a file.
const VERBS: [&str; 30] = [
    "writ", "add", "extend", "updat", "chang", "rewrit", "adapt", "adjust", "port", "mov", "renam", "creat",
    "cover", "correct", "replac", "delet", "remov", "reproduc", "format", "reformat", "migrat", "split",
    "merg", "fix", "mend", "pin", "put", "edit", "drop", "refactor",
];
/// Words that turn a sentence into its opposite, or into one about something else.
const NEGATIONS: [&str; 16] = [
    "not",
    "no",
    "never",
    "without",
    "leave",
    "keep",
    "stay",
    "stays",
    "unchanged",
    "don't",
    "dont",
    "how",
    "will",
    "instead",
    "nor",
    "avoid",
];
/// Words for tests.
const TEST_WORDS: [&str; 5] = ["test", "tests", "spec", "specs", "suite"];

/// State when the last step ended that judges tests, for the step after one that does not.
pub(super) fn judged(since: Option<&Baseline>, gates: &[Gate], next: &Baseline) -> Option<Box<Baseline>> {
    if judges(gates) {
        return None;
    }
    let since = since?;
    let from = since.judged.as_deref().unwrap_or(since);
    Some(Box::new(moved::state_of(from, next)))
}

/// Files that a step changed as its texts want, beside those of steps before, with the hash of their content; and tests that
/// it changed although no text wants it.
pub(super) fn planned(
    git: &Git<'_>,
    since: Option<&Baseline>,
    facts: &GitFacts,
    (job, step, gates): (&Job, &Step, &[Gate]),
) -> (BTreeMap<String, String>, BTreeSet<String>) {
    if judges(gates) {
        return (BTreeMap::new(), BTreeSet::new());
    }
    let mut planned = since.map(|since| since.planned.clone()).unwrap_or_default();
    let mut owing = since.map(|since| since.owing.clone()).unwrap_or_default();
    let deliverables = job.plan.deliverables.as_deref().unwrap_or_default();
    let agreed = step.agreed();
    let own = agreed.parsed_gates();
    let tests = usual();
    let named = named_tests(agreed, &tests);
    let writes = writes_tests(agreed) || own.iter().any(|gate| matches!(gate, Gate::TestsFail(_)));
    let is_wanted = |path: &String| {
        let is_open = tests.is_match(path) && writes && named.is_empty();
        is_open
            || wants(agreed, path)
            || data::is_asked(agreed, (&own, deliverables), path, Anywhere::No)
            || allows(&own, path)
    };
    let (wanted, others): (Vec<&Change>, Vec<&Change>) =
        facts.changed.iter().partition(|change| is_wanted(&change.path));
    owing.extend(
        others
            .iter()
            .filter(|change| is_test(change, &tests))
            .map(|change| change.path.clone()),
    );
    // To change a test on purpose does not answer for what an earlier step did to it.
    let wanted = wanted
        .iter()
        .map(|change| &change.path)
        .filter(|path| !owing.contains(*path));
    planned.extend(git.hashes(wanted).unwrap_or_default());
    (planned, owing)
}

/// Tests that steps before changed.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// Tests that differ still, although no text wants it.
    pub changed: Vec<String>,
    /// Tests that the step put back.
    pub restored: Vec<String>,
    /// Tests that steps without gates about changes wrote as they should.
    pub wanted: Vec<String>,
}

/// Tests that steps before changed, for a step that judges tests, beside its own changes.
pub(super) fn changed(
    git: &Git<'_>,
    since: Option<&Baseline>,
    look: &Look,
    (gates, commands): (&[Gate], &[Runner]),
    (own, carried): (&[Change], &[Change]),
) -> Result<Owed, GitFault> {
    let judged = since.and_then(|since| Some((since.judged.as_deref()?, &since.planned)));
    let globs = gates.iter().find_map(|gate| match gate {
        Gate::TestsUnchanged(globs) => Some(globs),
        _ => None,
    });
    let (Some((judged, planned)), Some(globs)) = (judged, globs) else {
        return Ok(Owed::default());
    };
    let tests = glob_set(globs);
    let seen = git.facts_of(Some(judged), look, false)?;
    let deciding = deciding(git, judged, look, (&seen, commands));
    let changed: BTreeSet<&String> = seen
        .changed
        .iter()
        .filter(|change| !change.undone && (is_test(change, &tests) || deciding.contains(&change.path)))
        .map(|change| &change.path)
        // A new test that a step wrote as it should stays as it is.
        .chain(planned.keys().filter(|path| tests.is_match(path.as_str())))
        .collect();
    let now = git.hashes(changed.iter().copied())?;
    let is_planned = |path: &String| planned.get(path).is_some_and(|then| now.get(path) == Some(then));
    let is_own = |path: &String| own.iter().chain(carried).any(|change| change.path == *path);
    let differs = |path: &String| {
        let mut differing = seen.changed.iter().filter(|other| !other.undone);
        differing.any(|other| other.path == *path)
    };
    let restored = own
        .iter()
        .filter(|change| tests.is_match(&change.path) || unchanged::is_setting(&change.path))
        .filter(|change| match planned.contains_key(&change.path) {
            true => is_planned(&change.path),
            false => !differs(&change.path),
        });
    Ok(Owed {
        restored: restored.map(|change| change.path.clone()).collect(),
        wanted: carried
            .iter()
            .filter(|change| tests.is_match(&change.path) && is_planned(&change.path))
            .map(|change| change.path.clone())
            .collect(),
        changed: changed
            .into_iter()
            .filter(|path| !is_planned(path) && !is_own(path))
            .cloned()
            .collect(),
    })
}

/// Files that decide how tests run, that take the place of others or that tests read, among changes since a state.
fn deciding(
    git: &Git<'_>,
    judged: &Baseline,
    look: &Look,
    (seen, commands): (&GitFacts, &[Runner]),
) -> BTreeSet<String> {
    let base = judged.commit.as_deref();
    let paths: BTreeSet<(&String, bool)> = seen
        .changed
        .iter()
        .map(|change| (&change.path, change.new))
        .collect();
    let (settings, newcomers) = facts::deciding_files((git, base), look, &paths, (commands, true));
    let all: Vec<&Change> = seen.changed.iter().collect();
    let usual: Vec<String> = TEST_FILES.iter().map(|glob| (*glob).to_owned()).collect();
    let data = data::read_by_tests(git, look, &all, &[Gate::TestsUnchanged(usual)]);
    settings
        .into_keys()
        .chain(newcomers.into_keys())
        .chain(data.into_keys())
        .collect()
}

/// Checks whether a step judges the usual tests. One that judges others says nothing of them.
fn judges(gates: &[Gate]) -> bool {
    gates.iter().any(|gate| match gate {
        Gate::TestsUnchanged(globs) => TEST_FILES
            .iter()
            .all(|usual| globs.iter().any(|glob| glob == usual)),
        _ => false,
    })
}

fn usual() -> globset::GlobSet {
    let globs: Vec<String> = TEST_FILES.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&globs)
}

/// Checks whether a change is one of an existing test, or of a file that decides how tests run.
fn is_test(change: &Change, tests: &globset::GlobSet) -> bool {
    (!change.new && tests.is_match(&change.path)) || unchanged::is_setting(&change.path)
}

/// Checks whether an allowlist means a test by a pattern of tests.
fn allows(gates: &[Gate], path: &str) -> bool {
    let is_of_tests = |glob: &String| {
        let lower = glob.to_lowercase();
        let is_about = lower.contains("test") || lower.contains("spec");
        is_about && glob_set(std::slice::from_ref(glob)).is_match(path)
    };
    gates.iter().any(|gate| match gate {
        Gate::ChangedFilesAllowlist(globs) => globs.iter().any(is_of_tests),
        _ => false,
    })
}

/// Sentences of a step's texts.
fn sentences(step: &StepSpec) -> impl Iterator<Item = String> {
    let texts = [&step.title, &step.instruction_prompt].into_iter();
    let texts = texts.chain(&step.acceptance_criteria);
    let mut sentences: Vec<String> = Vec::new();
    for text in texts {
        let mut rest = text.as_str();
        // A full stop ends a sentence if no name goes on after it.
        while let Some(at) = rest
            .match_indices(['.', ';', '!', '?', '\n'])
            .find(|(at, _)| {
                rest.get(at + 1..)
                    .is_none_or(|after| after.is_empty() || after.starts_with(char::is_whitespace))
            })
            .map(|(at, _)| at)
        {
            sentences.push(rest.get(..at).unwrap_or_default().to_owned());
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        sentences.push(rest.to_owned());
    }
    sentences.into_iter()
}

fn words(sentence: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '\'');
    let words = sentence.split(|c: char| !is_part(c));
    words
        .map(|word| word.trim_matches(['.', '\'', '-']).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Checks whether a sentence wants work to be done: it has a verb for it, and nothing that denies it.
fn is_work(words: &[String]) -> bool {
    let is_not = words.iter().any(|word| NEGATIONS.contains(&word.as_str()));
    !is_not
        && words
            .iter()
            .any(|word| VERBS.iter().any(|verb| word.starts_with(verb)))
}

/// Checks whether a text of a step wants a file to be changed.
fn wants(step: &StepSpec, path: &str) -> bool {
    sentences(step).any(|sentence| {
        let words = words(&sentence);
        let path = path.to_lowercase();
        is_work(&words) && words.iter().any(|word| word.trim_start_matches("./") == path)
    })
}

/// Tests that the texts of a step name by their paths.
fn named_tests(step: &StepSpec, tests: &globset::GlobSet) -> Vec<String> {
    let named = sentences(step).flat_map(|sentence| words(&sentence));
    named
        .filter(|word| word.contains('.') && tests.is_match(word))
        .collect()
}

/// Checks whether the texts of a step want tests to be written or changed: "Add a test for the total".
fn writes_tests(step: &StepSpec) -> bool {
    sentences(step).any(|sentence| {
        let words = words(&sentence);
        let is_test = |word: &String| TEST_WORDS.contains(&word.as_str());
        // Of "a test runner" the runner is meant, of "the tests need" the code.
        let follows = |at: usize| words.get(at + 1).map(String::as_str);
        let is_meant = |at: usize| {
            follows(at).is_none_or(|next| {
                [
                    "for", "of", "that", "which", "to", "in", "with", "and", "first", "by", "on", "case",
                    "cases",
                ]
                .contains(&next)
            })
        };
        let mut tests = words
            .iter()
            .enumerate()
            .filter(|(_, word)| is_test(word))
            .map(|(at, _)| at);
        is_work(&words) && tests.any(is_meant)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_want_tests_by_a_verb() {
        let told = |text: &str| StepSpec {
            instruction_prompt: text.to_owned(),
            ..StepSpec::default()
        };
        for text in [
            "Write a failing test for the bug.",
            "Add total() and cover it by tests",
            "Move the specs of the parser",
            "Add a regression test.",
            "Port the suite.",
        ] {
            assert!(writes_tests(&told(text)), "{text}");
        }
        for text in [
            "Write docs/a.md.",
            "Mend total(). All tests pass.",
            "The suite is green",
            "Do not add tests.",
            "Never change tests.",
            "Describe how to write a test",
            "The next step will add tests.",
            "Write code that the tests need.",
            "Update the docs of the test runner",
            "Write docs/spec.md.",
            "Add a test button to docs/a.md.",
            "Write mean.py without changing the tests.",
        ] {
            assert!(!writes_tests(&told(text)), "{text}");
        }
        let path = "tests/chk.py";
        assert!(wants(&told("Correct tests/chk.py."), path));
        for text in [
            "Leave tests/chk.py alone.",
            "tests/chk.py still passes",
            "Run tests/chk.py",
        ] {
            assert!(!wants(&told(text), path), "{text}");
        }
    }
}
