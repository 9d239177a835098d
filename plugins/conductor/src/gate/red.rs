//! Changes between runs of tests that passed and runs that failed: a red run has to tell of a missing piece of work, and
//! a green run after it has to come from that work. The verdicts are pure.
//!
//! Working code that is broken and put back ends red and green as well. So a red run comes with a test, and a green
//! run with code that is not as it was when the tests last passed.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::some;
use super::known::{Change, Facts, Run};
use super::{Gate, is_usual_test, suite};
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::store::job::{Baseline, Runs};

/// Maximum files whose text is compared with that of the last run that passed.
const MAX_COMPARED_FILES: usize = 50;
/// Maximum changed files that are searched for tests beside code.
const MAX_SEARCHED_FILES: usize = 200;
/// Extensions of files that hold no code.
const DOCUMENT_EXTENSIONS: [&str; 5] = ["md", "txt", "rst", "adoc", "log"];
/// Marks of tests that stand in the same file as the code that they test.
const INLINE_TEST_MARKS: [&str; 6] = [
    "#[test]",
    "#[cfg(test)]",
    "::test]",
    ">>> ",
    "import.meta.vitest",
    "unittest {",
];

/// Changes since the recorded runs of one test command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Between {
    /// Since the last run that passed, if there was one.
    pub passed: Option<Vec<Change>>,
    /// Since the last run that failed, if there was one after that.
    pub failed: Option<Vec<Change>>,
    /// Files of `passed` with code and tests.
    pub inline: BTreeSet<String>,
    /// Files of `passed` in which only blank lines and comments differ.
    pub idle: BTreeSet<String>,
}

/// Records of runs after those of a submission. `state` is what they ran on.
pub(super) fn recorded(
    before: BTreeMap<String, Runs>,
    (facts, gates): (&Facts, &[Gate]),
    state: &Baseline,
) -> BTreeMap<String, Runs> {
    let mut records = before;
    for words in gates.iter().filter_map(Gate::tests) {
        let Some(Ok(run)) = facts.commands.get(words) else {
            continue;
        };
        let tally = suite::tally(run, words);
        let record = records.entry(words.join(" ")).or_default();
        if tally.passed {
            record.passed = Some(Box::new(plain(state)));
            record.failed = None;
        } else if tally.failed {
            record.failed = Some(Box::new(plain(state)));
        }
    }
    records
}

/// A baseline with nothing but Git's state.
fn plain(state: &Baseline) -> Baseline {
    Baseline {
        guard: None,
        tests: BTreeMap::new(),
        commands: BTreeMap::new(),
        runs: BTreeMap::new(),
        named: BTreeMap::new(),
        rewritten: BTreeSet::new(),
        ..state.clone()
    }
}

/// Changes since the recorded runs of the commands whose red or green is judged.
pub(super) fn between(
    git: &Git<'_>,
    since: Option<&Baseline>,
    look: &Look,
    gates: &[Gate],
) -> Result<BTreeMap<String, Between>, GitFault> {
    let mut found = BTreeMap::new();
    let Some(since) = since else { return Ok(found) };
    let judged = gates.iter().filter_map(|gate| match gate {
        Gate::TestsFail(Some(command)) | Gate::FailToPass(Some(command)) => Some(command.join(" ")),
        _ => None,
    });
    for command in judged {
        let Some(runs) = since.runs.get(&command) else {
            continue;
        };
        let changes = |state: &Option<Box<Baseline>>| {
            let state = state.as_deref().map(|state| with_droppings(state, since));
            let facts = state.map(|state| git.facts_of(Some(&state), look, false));
            Ok::<_, GitFault>(facts.transpose()?.map(|facts| facts.changed))
        };
        let (passed, failed) = (changes(&runs.passed)?, changes(&runs.failed)?);
        let there = passed.iter().flatten().filter(|change| !change.undone);
        let code: Vec<&String> = there
            .map(|change| &change.path)
            .filter(|path| is_code(path))
            .collect();
        let has_tests = |path: &&&String| {
            let text = git.text_now(path).unwrap_or_default();
            INLINE_TEST_MARKS.iter().any(|mark| text.contains(mark))
        };
        let inline = code
            .iter()
            .take(MAX_SEARCHED_FILES)
            .filter(has_tests)
            .map(|path| (*path).clone());
        let base = runs.passed.as_deref();
        let is_idle = |path: &&&String| {
            let commit = base.filter(|base| !base.dirty.contains_key(**path));
            let old = commit.and_then(|base| git.text_in(base.commit.as_deref()?, path));
            let new = git.text_now(path);
            old.zip(new)
                .is_some_and(|(old, new)| bare(path, &old) == bare(path, &new))
        };
        let idle = code
            .iter()
            .take(MAX_COMPARED_FILES)
            .filter(|_| failed.is_some())
            .filter(is_idle);
        found.insert(
            command,
            Between {
                inline: inline.collect(),
                idle: idle.map(|path| (*path).clone()).collect(),
                passed,
                failed,
            },
        );
    }
    Ok(found)
}

/// A state that also knows the files which commands of gates wrote since.
fn with_droppings(state: &Baseline, since: &Baseline) -> Baseline {
    let mut state = state.clone();
    state.droppings.extend(since.droppings.iter().cloned());
    state.dropped.extend(since.dropped.clone());
    state
}

/// Lines of a text that are neither blank nor comments, without blanks at their ends.
fn bare<'t>(path: &str, text: &'t str) -> Vec<&'t str> {
    let marks = super::delivered::comments(path).0;
    let lines = text.lines().map(str::trim_end);
    lines
        .filter(|line| {
            let start = line.trim_start();
            !start.is_empty() && !marks.iter().any(|mark| start.starts_with(mark))
        })
        .collect()
}

/// Checks whether a path is neither a test nor a document.
fn is_code(path: &str) -> bool {
    let extension = path
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_lowercase());
    !is_usual_test(path)
        && !extension.is_some_and(|extension| DOCUMENT_EXTENSIONS.contains(&extension.as_str()))
}

/// Reason why a failing run shows no missing work: code changed since the tests passed, and no test did.
pub(super) fn no_test(command: &str, facts: &Facts) -> Option<String> {
    let Some(Ok(git)) = &facts.git else {
        return None;
    };
    let between = git.between.get(command);
    let changed = match between.and_then(|between| between.passed.as_ref()) {
        Some(changed) => changed,
        // The tests failed from the beginning.
        None if facts.before.get(command).is_some_and(|before| before.failed) => return None,
        None => &git.changed,
    };
    let there: Vec<&Change> = changed.iter().filter(|change| !change.undone).collect();
    let has_inline = |path: &str| between.is_some_and(|between| between.inline.contains(path));
    let has_test = there
        .iter()
        .any(|change| is_usual_test(&change.path) || has_inline(&change.path));
    let code: Vec<String> = there
        .iter()
        .filter(|change| is_code(&change.path))
        .map(|change| change.path.clone())
        .collect();
    (!has_test && !code.is_empty()).then(|| {
        format!(
            "{} changed since the tests last passed, but no test is new or changed; breaking working code does not count as \
             a failing test. Restore the code, and write a test that fails because the work is missing",
            some(&code)
        )
    })
}

/// Reason why the changes contain no fix: only tests and documents changed, or the code is one that passed before.
pub(super) fn no_fix(command: &str, facts: &Facts) -> Option<String> {
    let Some(Ok(git)) = &facts.git else {
        return None;
    };
    let between = git.between.get(command);
    let since_failed = between.and_then(|between| between.failed.as_ref());
    let all: Vec<&Change> = match since_failed {
        Some(changed) => changed.iter().collect(),
        None => git.changed.iter().chain(git.carried.iter().flatten()).collect(),
    };
    let code: Vec<&Change> = all
        .into_iter()
        .filter(|change| !change.undone && is_code(&change.path))
        .collect();
    if code.is_empty() {
        return Some(
            "only tests and documents changed, so the passing run does not prove a fix; change the code"
                .to_owned(),
        );
    }
    let passed = between?.passed.as_ref().filter(|_| since_failed.is_some())?;
    let is_back = |change: &&Change| {
        let differs = passed
            .iter()
            .any(|other| !other.undone && other.path == change.path);
        !differs || between.is_some_and(|between| between.idle.contains(&change.path))
    };
    let (back, fixed): (Vec<&Change>, Vec<&Change>) = code.into_iter().partition(is_back);
    // A new file beside code that is put back is no fix of what was broken.
    let is_none = !back.is_empty() && fixed.iter().all(|change| change.new);
    let back: Vec<String> = back.iter().map(|change| change.path.clone()).collect();
    is_none.then(|| {
        format!(
            "{} has the same content as when the tests last passed; restoring code that was broken in between does not count \
             as a fix",
            some(&back)
        )
    })
}

/// Reason why a run does not show that a test fails because work is missing.
pub(super) fn failed(run: &Run, command: &[String], facts: &Facts) -> Option<String> {
    suite::failed(run, command).or_else(|| no_test(&command.join(" "), facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_no_code() {
        let old = "def f():\n    return 1\n";
        assert_eq!(
            bare("a.py", old),
            bare("a.py", "# new\ndef f():\n\n    return 1  \n")
        );
        assert_ne!(bare("a.py", old), bare("a.py", "def f():\n        return 1\n"));
        assert_ne!(bare("a.py", old), bare("a.py", "def f():\n    return 2\n"));
    }

    #[test]
    fn tests_and_documents_are_told_from_code() {
        for path in ["src/a.py", "Makefile", "suite", "a/b.rs"] {
            assert!(is_code(path), "{path}");
        }
        for path in ["tests/a.py", "README.MD", "a/b.test.ts", "x.feature"] {
            assert!(!is_code(path), "{path}");
        }
    }
}
