//! Tests of a plan: as they were when the plan was agreed, compared with those that are there when its job starts or a
//! step is submitted.
//!
//! A gate about tests means the tests that the planner knew. So the state of the work tree and the words of the
//! registered commands are recorded when the job becomes ready.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_sdk::{Cx, WorkspaceInfo};

use super::data::{self, Anywhere};
use super::decide;
use super::known::Change;
use super::{Gate, TEST_FILES, facts, unchanged};
use crate::access::{self, Access};
use crate::arguments;
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::model::StepStatus;
use crate::step::StepSpec;
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

/// Warning about files that a step's texts name and that its gate about tests refuses all the same: a text may as well say
/// that the file is left alone. `is_there` finds existing files.
pub(crate) fn closed(job: &Job, step: &Step, is_there: impl Fn(&str) -> bool) -> Option<String> {
    let deliverables = job.plan.deliverables.as_deref().unwrap_or_default();
    let settings = closed_settings(&step.spec, deliverables);
    let tests = closed_tests(&step.spec, is_there);
    let closed: Vec<String> = settings.iter().chain(&tests).cloned().collect();
    let way = match (settings.is_empty(), tests.is_empty()) {
        (true, true) => return None,
        (false, true) => "if the step must change them, name them in expected_outputs",
        _ => {
            "if the step must change existing tests, give it another gate, for example changed_files_allowlist"
        }
    };
    Some(format!(
        "step {}: the gate tests_unchanged will reject changes of {}, although the step's texts name these files; {way}",
        step.step_id,
        decide::some(&closed)
    ))
}

/// Warning about steps whose tests are guarded, but not the other files that tests load.
pub(crate) fn unlimited(steps: &[Step]) -> Option<String> {
    let is_unlimited = |step: &&Step| {
        let gates = step.spec.parsed_gates();
        let guards = gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_)));
        guards
            && !gates
                .iter()
                .any(|gate| matches!(gate, Gate::ChangedFilesAllowlist(_)))
    };
    let ids: Vec<String> = steps
        .iter()
        .filter(is_unlimited)
        .map(|step| step.step_id.to_string())
        .collect();
    (!ids.is_empty()).then(|| {
        format!(
            "{}: tests_unchanged protects tests, but not other files that tests load, such as helpers outside of test folders; \
             to limit what a step may change, add changed_files_allowlist",
            ids.join(", ")
        )
    })
}

/// Files that decide how tests run, that a step's texts name and that its gate about tests refuses.
pub(crate) fn closed_settings(step: &StepSpec, deliverables: &[String]) -> Vec<String> {
    let gates = step.parsed_gates();
    let is_closed = |path: &String| {
        unchanged::is_setting(path) && !data::is_asked(step, (&gates, deliverables), path, Anywhere::No)
    };
    named_paths(step).into_iter().filter(is_closed).collect()
}

/// Existing tests that a step's texts name. The name of a file that is only run or read is no wish to change it.
fn closed_tests(step: &StepSpec, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let gates = step.parsed_gates();
    let globs = gates.iter().find_map(|gate| match gate {
        Gate::TestsUnchanged(globs) => Some(globs.as_slice()),
        _ => None,
    });
    let tests = super::glob_set(globs.unwrap_or_default());
    let outputs = &step.expected_outputs;
    let is_closed = |path: &String| {
        let is_output = outputs.contains(path);
        let is_moved = || named_before(&step.instruction_prompt, path);
        tests.is_match(path) && (is_output || is_moved()) && is_there(path)
    };
    named_paths(step).into_iter().filter(is_closed).collect()
}

/// Checks whether a sentence that wants something changed names a path.
fn named_before(text: &str, path: &str) -> bool {
    const VERBS: [&str; 8] = [
        "rename", "move", "delete", "remove", "rewrite", "change", "update", "edit",
    ];
    let mut sentences = text.split(['\n', ';']);
    sentences.any(|sentence| {
        let lower = sentence.to_lowercase();
        sentence.contains(path) && VERBS.iter().any(|verb| lower.contains(verb))
    })
}

/// Words of a step with the gate about tests that may be paths.
fn named_paths(step: &StepSpec) -> BTreeSet<String> {
    let gates = step.parsed_gates();
    let guards = gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_)));
    let texts = [&step.instruction_prompt].into_iter();
    let texts = texts
        .chain(&step.acceptance_criteria)
        .chain(&step.expected_outputs)
        .filter(|_| guards);
    let words = texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || ",;()".contains(c)));
    let words = words.map(|word| {
        let word = word.trim_end_matches(['.', ':']);
        word.trim_matches(['`', '"', '\'']).trim_end_matches(['.', ':'])
    });
    let is_file = |path: &&str| !path.is_empty() && !path.ends_with('/') && !path.contains('*');
    words.filter(is_file).map(str::to_owned).collect()
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
        .retain(|path, _| !undone.iter().any(|change| change.path == *path));
    seen.changed = kept;
    let globs: BTreeSet<&str> = gates
        .iter()
        .flat_map(|gate| match gate {
            Gate::TestsUnchanged(globs) => globs.iter().map(String::as_str).collect(),
            _ => TEST_FILES.to_vec(),
        })
        .collect();
    let globs: Vec<String> = globs.into_iter().map(str::to_owned).collect();
    let differing = unchanged::tests_differing(&seen, &globs).into_iter();
    let differing: Vec<String> = differing.map(|(what, _)| what).collect();
    (!differing.is_empty()).then(|| differing.join("; "))
}
