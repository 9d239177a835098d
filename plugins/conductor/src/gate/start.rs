//! State when a job starts: of the work tree, and of the tests that its gates name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Map;
use tollgate_sdk::{Cx, ToolError};

use super::decide::some;
use super::known::{Facts, Run};
use super::runs::TestRuns;
use super::{Gate, Need, TEST_FILES, agreed, facts, glob_set, learn, moved, named, red};
use crate::access::{self, Access};
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::person;
use crate::store::job::{Baseline, Job};
use crate::store::step::Step;

/// Longest time that tests take which are counted when a job starts.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// State when a job starts.
#[derive(Debug, Default)]
pub(crate) struct Start {
    pub baseline: Option<Baseline>,
    pub warnings: Vec<String>,
    /// Line for the log, if a person allowed tests that are not those of the plan.
    pub allowed: Option<String>,
    /// Registered tests that ran.
    pub tests: TestRuns,
}

/// Looks at the work tree and runs the tests that gates name. Fails if the tests are not those of the agreed plan and
/// no person allows that.
pub(crate) fn begin(cx: &Cx<'_>, job: &Job, steps: &[Step]) -> Result<Start, ToolError> {
    let access = access::open(cx, job.repo_root.as_deref());
    let gates: Vec<Gate> = steps
        .iter()
        .flat_map(|step| facts::gates_of(&access, step))
        .collect();
    let git = Git::open(cx, job.repo_root.as_deref());
    let first = git.as_ref().map_err(Clone::clone).and_then(Git::look);
    let allowed = allowed(cx, job, &git, &first, (&access, steps))?;
    let mut known = Facts::default();
    for words in gates.iter().filter_map(Gate::tests) {
        learn::learn(&access, Need::Command(words), TEST_TIMEOUT, &mut known);
    }
    let second = match (&git, &first) {
        (Ok(git), Ok(_)) if !known.commands.is_empty() => git.look(),
        _ => first.clone(),
    };
    let seen_by = git.as_ref().ok().zip(first.as_ref().ok());
    let tests = TestRuns::of(&access, seen_by, None, &known, &gates);
    let mut warnings = late(&known);
    warnings.extend(access::nobody(cx, job, steps));
    let recorded = Baseline {
        tests: facts::tallies(&known, &gates),
        commands: access
            .map(|access| agreed::words(access.workspace.info()))
            .unwrap_or_default(),
        ..Baseline::default()
    };
    let baseline = match (first, second) {
        (Ok(first), Ok(second)) => {
            let moved = moved::moved(None, &first, &second, &Map::new());
            warnings.extend(rewriting(&moved.touched));
            let written = moved.written;
            let mut begun = Baseline {
                rewritten: moved.touched.into_iter().filter(|path| !is_test(path)).collect(),
                droppings: written.keys().cloned().collect(),
                dropped: written,
                tests: recorded.tests,
                commands: recorded.commands,
                begun: second.commit.clone(),
                named: git
                    .as_ref()
                    .map(|git| named::uncommitted(git, &second))
                    .unwrap_or_default(),
                ..second.baseline()
            };
            begun.runs = red::recorded(BTreeMap::new(), (&known, &gates), &begun);
            Some(begun)
        }
        (Err(fault), _) | (_, Err(fault)) => {
            if !matches!(fault, GitFault::Unavailable(_) | GitFault::NoRepository(_)) {
                warnings.push(fault.to_string());
            }
            Some(recorded).filter(|baseline| *baseline != Baseline::default())
        }
    };
    Ok(Start {
        baseline,
        warnings,
        allowed,
        tests,
    })
}

/// Warnings about tests that did not end in time.
fn late(known: &Facts) -> Vec<String> {
    let runs = known.commands.iter();
    let late = runs.filter(|(_, run)| matches!(run, Ok(Run { exit: None, .. })));
    late.map(|(words, _)| {
        format!(
            "`{}` did not end within {} s, so its tests are unknown; they are compared from the first accepted step on",
            words.join(" "),
            TEST_TIMEOUT.as_secs()
        )
    })
    .collect()
}

fn is_test(path: &str) -> bool {
    let usual: Vec<String> = TEST_FILES.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&usual).is_match(path)
}

/// Warnings about tests that write files which Git tracks.
fn rewriting(touched: &BTreeSet<String>) -> Vec<String> {
    let (tests, others): (Vec<String>, Vec<String>) = touched.iter().cloned().partition(|path| is_test(path));
    let mut warnings = Vec::new();
    if !others.is_empty() {
        warnings.push(format!(
            "the registered tests rewrite {} with the same content; if something swaps these files while gates run, that cannot \
             be detected",
            some(&others)
        ));
    }
    if !tests.is_empty() {
        warnings.push(format!(
            "the registered tests rewrite the test files {}; gates that run these tests will reject submissions until the tests \
             stop writing them",
            some(&tests)
        ));
    }
    warnings
}

/// Line about a person who allowed tests that are not those of the plan. `None` if they are.
fn allowed(
    cx: &Cx<'_>,
    job: &Job,
    git: &Result<Git<'_>, GitFault>,
    look: &Result<Look, GitFault>,
    plan: (&Result<Access<'_>, String>, &[Step]),
) -> Result<Option<String>, ToolError> {
    let changed = match (git, look) {
        (Ok(git), Ok(look)) => agreed::changes(git, job, look, plan),
        (Err(fault), _) | (_, Err(fault)) => agreed::unseen(job, fault, plan),
    };
    if changed.is_empty() {
        return Ok(None);
    }
    let change = format!(
        "the tests or test commands of {} have changed since the plan was agreed: {}",
        job.id,
        changed.join("; ")
    );
    let who = person::allows(cx, &change, "job_start")?;
    Ok(Some(format!("plan changed by {who}: {change}")))
}
