//! Tests that steps changed whose gates do not judge tests. The next step that guards tests answers for them, unless the
//! texts of the step that changed them want it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex_lite::Regex;

use super::data::{self, Anywhere};
use super::decide::{Change, GitFacts};
use super::{Gate, TEST_FILES, facts, glob_set, unchanged};
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::step::StepSpec;
use crate::store::job::{Baseline, Job};
use crate::store::step::Step;

/// Words of a step that is to write or change tests.
static WRITES_TESTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs = "writ|add|extend|updat|chang|rewrit|adapt|adjust|port|mov|renam|creat|cover|correct|replac|delet|remov|\
                 reproduc|format|reformat|migrat|split|merg";
    Regex::new(&format!(
        r"(?i)\b(?:{verbs})\w*\b[^.;!?]*\b(?:unit|regression|failing|red)?\s*(?:tests?|specs?|suite)\b"
    ))
    .ok()
});

/// State when the last step ended that judges tests, for the step after one that does not.
pub(super) fn judged(since: Option<&Baseline>, gates: &[Gate], next: &Baseline) -> Option<Box<Baseline>> {
    if judges(gates) {
        return None;
    }
    let since = since?;
    let from = since.judged.as_deref().unwrap_or(since);
    Some(Box::new(facts::state_of(from, next)))
}

/// Tests that a step changed as its texts want, beside those of steps before.
pub(super) fn planned(
    git: &Git<'_>,
    since: Option<&Baseline>,
    facts: &GitFacts,
    (job, step, gates): (&Job, &Step, &[Gate]),
) -> BTreeMap<String, String> {
    if judges(gates) {
        return BTreeMap::new();
    }
    let mut planned = since.map(|since| since.planned.clone()).unwrap_or_default();
    let deliverables = job.plan.deliverables.as_deref().unwrap_or_default();
    let agreed = step.agreed();
    let own = agreed.parsed_gates();
    let is_of_tests = writes_tests(agreed) || own.iter().any(|gate| matches!(gate, Gate::TestsFail(_)));
    let tests = usual();
    let changed = facts
        .changed
        .iter()
        .filter(|change| is_test(change, &tests))
        .map(|change| &change.path)
        .filter(|path| {
            is_of_tests
                || data::is_planned(agreed, &own, path)
                || data::is_asked(agreed, (&own, deliverables), path, Anywhere::Yes)
                || allows(&own, path)
        });
    planned.extend(git.hashes(changed).unwrap_or_default());
    planned
}

/// Tests that steps before changed.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// Tests that differ still, although no text wants it.
    pub changed: Vec<String>,
    /// Tests that the step put back.
    pub restored: Vec<String>,
}

/// Tests that steps before changed, for a step that judges tests, beside its own changes.
pub(super) fn changed(
    git: &Git<'_>,
    since: Option<&Baseline>,
    look: &Look,
    (gates, own, carried): (&[Gate], &[Change], &[Change]),
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
    let changed: BTreeSet<&String> = seen
        .changed
        .iter()
        .filter(|change| !change.undone && is_test(change, &tests))
        .map(|change| &change.path)
        .collect();
    let now = git.hashes(changed.iter().copied())?;
    let is_planned = |path: &String| planned.get(path).is_some_and(|then| now.get(path) == Some(then));
    let is_own = |path: &String| own.iter().chain(carried).any(|change| change.path == *path);
    let restored = own
        .iter()
        .filter(|change| tests.is_match(&change.path) || unchanged::is_setting(&change.path))
        .filter(|change| {
            let mut differing = seen.changed.iter().filter(|other| !other.undone);
            !differing.any(|other| other.path == change.path)
        })
        .filter(|change| !planned.contains_key(&change.path));
    Ok(Owed {
        restored: restored.map(|change| change.path.clone()).collect(),
        changed: changed
            .into_iter()
            .filter(|path| !is_planned(path) && !is_own(path))
            .cloned()
            .collect(),
    })
}

fn judges(gates: &[Gate]) -> bool {
    gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_)))
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

/// Checks whether the texts of a step want tests to be written or changed.
fn writes_tests(step: &StepSpec) -> bool {
    let Some(wants) = WRITES_TESTS.as_ref() else {
        return false;
    };
    let texts = [&step.title, &step.instruction_prompt].into_iter();
    let mut texts = texts
        .chain(&step.acceptance_criteria)
        .chain(&step.expected_outputs);
    texts.any(|text| wants.is_match(text))
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
        ] {
            assert!(writes_tests(&told(text)), "{text}");
        }
        for text in [
            "Write docs/a.md.",
            "Mend total(). All tests pass.",
            "The suite is green",
        ] {
            assert!(!writes_tests(&told(text)), "{text}");
        }
    }
}
