//! Tests of a plan: as they were when the plan was agreed, compared with those that are there when its job starts or a
//! step is submitted.
//!
//! A gate about tests means the tests that the planner knew. So the state of the work tree and the words of the
//! registered commands are recorded when the job becomes ready.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_sdk::{Cx, WorkspaceInfo};

use super::data::{self, Anywhere};
use super::decide::{self, Change};
use super::{Gate, TEST_FILES, facts};
use crate::access::{self, Access};
use crate::arguments;
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::model::StepStatus;
use crate::store::job::{Baseline, Job};
use crate::store::step::Step;

/// Words of each registered command.
type Commands = BTreeMap<String, Vec<String>>;

/// State when a plan is agreed, and how its tests differ from those of an agreement before.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub state: Option<Baseline>,
    pub changed: Vec<String>,
}

/// Looks at the work tree when a plan is agreed.
pub(crate) fn agree(cx: &Cx<'_>, job: &Job, steps: &[Step]) -> Agreement {
    let access = access::open(cx, job.repo_root.as_deref());
    let Ok(open) = &access else {
        return Agreement::default();
    };
    let commands = words(open.workspace.info());
    let git = Git::open(cx, job.repo_root.as_deref());
    let look = git.as_ref().map_err(Clone::clone).and_then(Git::look);
    let state = match &look {
        Ok(look) => look.baseline(),
        Err(_) => Baseline::default(),
    };
    let changed = match (&git, &look) {
        (Ok(git), Ok(look)) => changes(git, job, look, (&access, steps)),
        _ => Vec::new(),
    };
    Agreement {
        state: Some(Baseline { commands, ..state }),
        changed,
    }
}

/// Words of the registered commands of a workspace.
pub(super) fn words(info: &WorkspaceInfo) -> Commands {
    let tests = info.tests.iter();
    tests.map(|test| (test.name.clone(), test.argv.clone())).collect()
}

/// Commands of gates whose words are others than those recorded. A job of an earlier version has none recorded.
pub(crate) fn rewritten(
    since: Option<&Baseline>,
    access: &Result<Access<'_>, String>,
    gates: &[Gate],
) -> Vec<String> {
    let (Some(since), Ok(access)) = (since.filter(|since| !since.commands.is_empty()), access) else {
        return Vec::new();
    };
    let now = words(access.workspace.info());
    let named: BTreeSet<&String> = gates.iter().flat_map(Gate::needs).filter_map(name_of).collect();
    let shown = |words: Option<&Vec<String>>| match words {
        Some(words) => format!("`{}`", arguments::shell(words)),
        None => "not registered".to_owned(),
    };
    let differing = named
        .into_iter()
        .filter(|name| since.commands.get(*name) != now.get(*name));
    differing
        .map(|name| {
            let (was, is) = (shown(since.commands.get(name)), shown(now.get(name)));
            format!("the test {name} was {was} and is {is}")
        })
        .collect()
}

/// Differences of registered commands that a person allows by resuming the job. They are recorded anew.
pub(crate) fn resumed(cx: &Cx<'_>, job: &mut Job, steps: &[Step]) -> Vec<String> {
    let access = access::open(cx, job.repo_root.as_deref());
    let open = steps.iter().filter(|step| step.status != StepStatus::Done);
    let gates: Vec<Gate> = open.flat_map(|step| facts::gates_of(&access, step)).collect();
    let changed = rewritten(job.baseline.as_ref(), &access, &gates);
    if let (Some(since), Ok(access), false) = (job.baseline.as_mut(), &access, changed.is_empty()) {
        since.commands = words(access.workspace.info());
    }
    let id = job.id.clone();
    changed
        .into_iter()
        .map(|change| format!("{id}: {change}"))
        .collect()
}

/// Warning about files that decide how tests run, that a step's texts name and that its gate about tests refuses all the
/// same: a text may as well say that the file is left alone.
pub(crate) fn closed(job: &Job, step: &Step) -> Option<String> {
    let gates = step.spec.parsed_gates();
    let guards = gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_)));
    let deliverables = job.plan.deliverables.as_deref().unwrap_or_default();
    let texts = [&step.spec.instruction_prompt].into_iter();
    let texts = texts.chain(&step.spec.acceptance_criteria).filter(|_| guards);
    let words = texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || ",;()".contains(c)));
    let words = words.map(|word| {
        let word = word.trim_end_matches(['.', ':']);
        word.trim_matches(['`', '"', '\'']).trim_end_matches(['.', ':'])
    });
    let is_closed = |path: &&str| {
        let is_file = !path.is_empty() && !path.ends_with('/') && !path.contains('*');
        let is_asked = || data::is_asked(&step.spec, (&gates, deliverables), path, Anywhere::No);
        is_file && decide::is_setting(path) && !is_asked()
    };
    let closed: BTreeSet<String> = words.filter(is_closed).map(str::to_owned).collect();
    let closed: Vec<String> = closed.into_iter().collect();
    (!closed.is_empty()).then(|| {
        format!(
            "step {}: gate tests_unchanged will refuse {}, which the step's texts name; if the step is to write it, name \
             it in expected_outputs",
            step.step_id,
            decide::some(&closed)
        )
    })
}

/// Name of the registered command that a gate runs.
fn name_of(need: super::Need<'_>) -> Option<&String> {
    match need {
        super::Need::Command([name]) => Some(name),
        _ => None,
    }
}

/// Differences if Git cannot be read any more.
pub(super) fn unseen(
    job: &Job,
    fault: &GitFault,
    (access, steps): (&Result<Access<'_>, String>, &[Step]),
) -> Vec<String> {
    let gates = gates(access, steps);
    let mut changed = rewritten(job.baseline.as_ref(), access, &gates);
    if !gates.is_empty() && job.baseline.as_ref().is_some_and(|since| since.whole) {
        changed.push(format!(
            "Git could be read when the plan was agreed, but not now: {fault}"
        ));
    }
    changed
}

fn gates(access: &Result<Access<'_>, String>, steps: &[Step]) -> Vec<Gate> {
    let gates = steps.iter().flat_map(|step| facts::gates_of(access, step));
    gates.filter(Gate::is_about_tests).collect()
}

/// Differences of tests between a plan's agreement and now, as far as the gates of its steps are about tests.
pub(super) fn changes(
    git: &Git<'_>,
    job: &Job,
    look: &Look,
    (access, steps): (&Result<Access<'_>, String>, &[Step]),
) -> Vec<String> {
    let gates = gates(access, steps);
    let since = job.baseline.as_ref();
    let mut changed = rewritten(since, access, &gates);
    if let Some(since) = since.filter(|since| since.whole && !gates.is_empty()) {
        changed.extend(files(git, since, look, (access, &gates)));
    }
    changed
}

/// Changed files that hold tests, or that decide how tests run.
fn files(
    git: &Git<'_>,
    since: &Baseline,
    look: &Look,
    (access, gates): (&Result<Access<'_>, String>, &[Gate]),
) -> Option<String> {
    let commands = facts::commands(access, gates);
    let asked = facts::Asked {
        commit: None,
        evidence: &serde_json::Map::new(),
        wants_git: true,
    };
    let mut seen = match facts::view(git, Some(since), look, (gates, &commands), &asked) {
        Ok(seen) => seen,
        Err(fault) => return Some(format!("the tests cannot be compared: {fault}")),
    };
    // What was put back before the job started is as it was agreed.
    let (kept, undone): (Vec<Change>, Vec<Change>) =
        seen.changed.into_iter().partition(|change| !change.undone);
    seen.settings
        .retain(|path| !undone.iter().any(|change| change.path == *path));
    seen.changed = kept;
    let globs: BTreeSet<&str> = gates
        .iter()
        .flat_map(|gate| match gate {
            Gate::TestsUnchanged(globs) => globs.iter().map(String::as_str).collect(),
            _ => TEST_FILES.to_vec(),
        })
        .collect();
    let globs: Vec<String> = globs.into_iter().map(str::to_owned).collect();
    decide::tests_changed(&seen, &globs)
}
