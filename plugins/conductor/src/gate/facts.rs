//! Gathering of the facts that the gates of a submission need.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};
use tollgate_sdk::Cx;

use super::data::Anywhere;
use super::known::{Change, Facts, GitFacts};
use super::learn::learn;
use super::moved::{Moved, droppings, guard, moved};
use super::newcomers::{Kind, Newcomer};
use super::runners::{self, Runner};
use super::runs::TestRuns;
use super::{
    Gate, Need, agreed, data, make, modules, named, newcomers, owed, package, red, settings, suite, unchanged,
};
use crate::access::{self, Access};
use crate::error::GitFault;
use crate::git::Git;
use crate::git::look::Look;
use crate::git::untracked::is_built;
use crate::store::job::{Baseline, Job, Tally};
use crate::store::step::Step;

/// Longest time that a command of a gate takes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Facts that a submission gives.
pub(crate) struct Asked<'a> {
    pub commit: Option<&'a str>,
    pub evidence: &'a Map<String, Value>,
    /// True if a policy needs Git's view.
    pub wants_git: bool,
}

/// State after the commands of the gates.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    /// Git's state, the baseline of the next step.
    pub baseline: Option<Baseline>,
    /// Untracked files that the commands wrote, with the hash of their content.
    pub written: BTreeMap<String, String>,
    /// Registered tests among the commands.
    pub tests: TestRuns,
}

/// Gates of a step, with the workspace's test `default` where a test command is not given.
pub(crate) fn gates_of(access: &Result<Access<'_>, String>, step: &Step) -> Vec<Gate> {
    let info = access.as_ref().ok().map(|access| access.workspace.info());
    let default = info
        .and_then(|info| info.test("default"))
        .map(|_| vec!["default".to_owned()]);
    let gates = step.spec.parsed_gates().into_iter();
    gates.map(|gate| gate.or_default(default.as_deref())).collect()
}

/// Gathers all facts that the gates of a step need, and Git's view if Git is available.
pub(crate) fn gather(cx: &Cx<'_>, job: &Job, step: &Step, asked: &Asked<'_>) -> (Facts, Aftermath) {
    let access = access::open(cx, job.repo_root.as_deref());
    let gates = gates_of(&access, step);
    let since = job.baseline.as_ref().filter(|baseline| baseline.is_of_git());
    let mut facts = Facts {
        rewritten: agreed::rewritten(job.baseline.as_ref(), &access, &gates),
        approved: step.approval.is_some(),
        had_git: since.is_some(),
        before: job
            .baseline
            .iter()
            .flat_map(|baseline| baseline.tests.clone())
            .collect(),
        ..Facts::default()
    };
    let git = Git::open(cx, job.repo_root.as_deref());
    let look = |git: &Git<'_>| git.look_since(since);
    let first = git.as_ref().map_err(Clone::clone).and_then(look);
    for need in gates.iter().flat_map(Gate::needs) {
        learn(&access, need, COMMAND_TIMEOUT, &mut facts);
    }
    let second = match (&git, &first) {
        (Ok(git), Ok(_)) if !facts.commands.is_empty() => look(git),
        _ => first.clone(),
    };
    let commands = commands(&access, &gates);
    let seen_by = git.as_ref().ok().zip(first.as_ref().ok());
    let mut aftermath = Aftermath {
        tests: TestRuns::of(&access, seen_by, since, &facts, &gates),
        ..Aftermath::default()
    };
    let seen = match (&git, &first, &second) {
        (Ok(git), Ok(first), Ok(second)) => {
            let mut moved = moved(since, first, second, asked.evidence);
            let base = since.map_or(first.commit.as_deref(), |since| since.commit.as_deref());
            let planted = planted((git, since, base), second, (&gates, &commands), &moved);
            moved.written.retain(|path, _| !planted.contains(path));
            aftermath.written = moved.written;
            let mut next = second.baseline();
            next.dropped = droppings(since, first, second, &aftermath.written);
            next.droppings = next.dropped.keys().cloned().collect();
            next.guard = guard(since, &gates, &next);
            next.judged = owed::judged(since, &gates, &next);
            next.rewritten = since.map(|since| since.rewritten.clone()).unwrap_or_default();
            next.commands = job
                .baseline
                .as_ref()
                .map(|since| since.commands.clone())
                .unwrap_or_default();
            next.runs = since.map(|since| since.runs.clone()).unwrap_or_default();
            next.named = named::uncommitted(git, second);
            next.begun = since.and_then(|since| since.begun.clone());
            aftermath.baseline = Some(next);
            let runs = red::between(git, since, first, &gates);
            let facts = view(git, since, first, (&gates, &commands), asked);
            if let (Ok(facts), Some(next)) = (&facts, aftermath.baseline.as_mut()) {
                (next.planned, next.owing) = owed::planned(git, since, facts, (job, step, &gates));
            }
            facts
                .and_then(|facts| Ok((facts, runs?)))
                .map(|(facts, between)| GitFacts {
                    data: data_of_tests(git, first, &facts, (step, &gates)),
                    gone: named::gone(git, since, &facts),
                    asked: asked_for(job, &facts, step),
                    planted,
                    between,
                    unsteady: moved.unsteady,
                    touched: moved.touched.into_iter().collect(),
                    ..facts
                })
        }
        (Err(fault), ..) | (_, Err(fault), _) | (.., Err(fault)) => Err(fault.clone()),
    };
    let needed = asked.wants_git
        || since.is_some()
        || gates.iter().flat_map(Gate::needs).any(|need| need == Need::Git);
    facts.git = (needed || seen.is_ok()).then(|| seen.map_err(|fault| fault.to_string()));
    if let Some(next) = aftermath.baseline.as_mut() {
        next.tests = tallies(&facts, &gates);
        next.runs = red::recorded(std::mem::take(&mut next.runs), (&facts, &gates), next);
    }
    facts.gates = gates;
    (facts, aftermath)
}

/// Git's view of the changes and of the submitted commit.
pub(super) fn view(
    git: &Git<'_>,
    since: Option<&Baseline>,
    look: &Look,
    (gates, commands): (&[Gate], &[Runner]),
    asked: &Asked<'_>,
) -> Result<GitFacts, GitFault> {
    let wants_lines = gates
        .iter()
        .any(|gate| matches!(gate, Gate::DiffMaxLines(_) | Gate::DiffMinLines(_)));
    let commit = asked
        .commit
        .map(|hash| git.commit_facts(hash, since, look.commit.as_deref()));
    let guard = since.and_then(|since| since.guard.as_deref());
    let carried = guard.map(|guard| git.facts_of(Some(guard), look, wants_lines));
    let mut facts = GitFacts {
        commit: commit.transpose()?,
        carried: carried.transpose()?.map(|facts| facts.changed),
        ..git.facts_of(since, look, wants_lines)?
    };
    let is_about_tests = gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_)));
    let judged = since.and_then(|since| since.judged.as_deref());
    let followed = match is_about_tests {
        true => runners::followed(
            git,
            judged.or(since).and_then(|since| since.commit.as_deref()),
            commands,
        ),
        false => commands.to_vec(),
    };
    let carried = facts.carried.as_deref().unwrap_or_default();
    let owed = owed::changed(git, since, look, (gates, &followed), (&facts.changed, carried))?;
    facts
        .changed
        .retain(|change| !owed.restored.contains(&change.path));
    if let Some(carried) = facts.carried.as_mut() {
        carried.retain(|change| !owed.wanted.contains(&change.path));
    }
    facts.owed = owed.changed;
    let base = guard
        .or(since)
        .map_or(look.commit.as_deref(), |since| since.commit.as_deref());
    let all = facts.changed.iter().chain(facts.carried.iter().flatten());
    let paths: BTreeSet<(&String, bool)> = all.map(|change| (&change.path, change.new)).collect();
    let commands = match is_about_tests && !paths.is_empty() {
        true => runners::followed(git, base, commands),
        false => commands.to_vec(),
    };
    let (settings, newcomers) = deciding_files((git, base), look, &paths, (&commands, is_about_tests));
    Ok(GitFacts {
        settings,
        newcomers,
        ..facts
    })
}

/// Changed files that decide how tests run, each with the part that does, and new ones that take part in a run of tests, if
/// the tests are guarded. `commands` are followed into their scripts.
pub(super) fn deciding_files(
    (git, base): (&Git<'_>, Option<&str>),
    look: &Look,
    paths: &BTreeSet<(&String, bool)>,
    (commands, is_about_tests): (&[Runner], bool),
) -> (BTreeMap<String, String>, BTreeMap<String, Newcomer>) {
    let settings = paths
        .iter()
        .filter_map(|(path, new)| {
            let is_apart = || *new && is_apart(look, paths, path);
            Some(((*path).clone(), deciding(git, base, path, (commands, &is_apart))?))
        })
        .collect();
    let scene = newcomers::Scene {
        git,
        base,
        look,
        commands,
    };
    let new = paths
        .iter()
        .filter(|(_, new)| *new)
        .map(|(path, _)| *path)
        .collect();
    let newcomers = match is_about_tests {
        true => newcomers::found(&scene, &new),
        false => BTreeMap::new(),
    };
    (settings, newcomers)
}

/// Files that take part in runs of tests, among those that commands of gates wrote. As nobody's change they would
/// escape the gates of the next submission.
fn planted(
    (git, since, base): (&Git<'_>, Option<&Baseline>, Option<&str>),
    look: &Look,
    (gates, commands): (&[Gate], &[Runner]),
    moved: &Moved,
) -> Vec<String> {
    // What the commands wrote before the job began is theirs, and what they write beside it.
    let place = |path: &str| path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    let is_known = |path: &String| since.is_some_and(|since| since.droppings.contains(path));
    let is_beside = |path: &String| {
        let mut known = since.iter().flat_map(|since| &since.droppings);
        known.any(|other| place(other).is_some() && place(other) == place(path))
    };
    let is_about_tests = gates.iter().any(Gate::is_about_tests);
    // Tests may load any code from a directory.
    let is_loaded = |path: &String| {
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        is_about_tests && data::is_code(path) && !is_hidden && !is_built(path) && !is_beside(path)
    };
    let new: BTreeSet<&String> = moved.written.keys().filter(|path| !is_known(path)).collect();
    if new.is_empty() {
        return Vec::new();
    }
    let commands = runners::followed(git, base, commands);
    let scene = newcomers::Scene {
        git,
        base,
        look,
        commands: &commands,
    };
    let taking_part = newcomers::found(&scene, &new);
    let decides = |path: &&String| {
        let is_metadata = path.to_lowercase().contains(".egg-info/");
        let is_plugin = || newcomers::names_plugin(git, path);
        let is_in_place = |newcomer: &Newcomer| newcomer.kind == Kind::Place;
        (unchanged::is_setting(path) && (!is_metadata || is_plugin()))
            || modules::shadows(path)
            || newcomers::is_collected(path)
            || (!is_metadata && is_loaded(path))
            || (!is_metadata && taking_part.get(*path).is_some_and(is_in_place))
            || commands.iter().any(|runner| runner.runs(path))
            || sets(git, base, path, (&commands, &|| false)).is_some()
    };
    new.into_iter().filter(decides).cloned().collect()
}

/// Changed files that the plan names as the work of a step.
fn asked_for(job: &Job, facts: &GitFacts, step: &Step) -> BTreeSet<String> {
    let gates = step.agreed().parsed_gates();
    let deliverables = job.plan.deliverables.as_deref().unwrap_or_default();
    let paths = facts.changed.iter().chain(facts.carried.iter().flatten());
    let paths = paths.map(|change| &change.path);
    let is_asked = |path: &&String| {
        let anywhere = match facts.newcomers.contains_key(*path) && !unchanged::is_setting(path) {
            true => Anywhere::Yes,
            false => Anywhere::No,
        };
        let plain = path.trim_end_matches('/');
        let newcomer = facts.newcomers.get(*path);
        let is_alone = newcomer.is_some_and(|newcomer| newcomer.kind == Kind::Alone);
        data::is_asked(step.agreed(), (&gates, deliverables), plain, anywhere)
            || (is_alone && data::is_wanted(step.agreed(), deliverables, path))
    };
    paths.chain(&facts.owed).filter(is_asked).cloned().collect()
}

/// Changed data that tests read and the plan does not name, each with the test.
fn data_of_tests(
    git: &Git<'_>,
    look: &Look,
    facts: &GitFacts,
    (step, gates): (&Step, &[Gate]),
) -> BTreeMap<String, String> {
    if !gates.iter().any(|gate| matches!(gate, Gate::TestsUnchanged(_))) {
        return BTreeMap::new();
    }
    let all: Vec<&Change> = facts
        .changed
        .iter()
        .chain(facts.carried.iter().flatten())
        .collect();
    let mut found = data::read_by_tests(git, look, &all, gates);
    let agreed = step.agreed().parsed_gates();
    found.retain(|path, _| !data::is_planned(step.agreed(), &agreed, path));
    found
}

/// Part of a file that decides how tests run and is another one than in a commit; empty for a whole file.
fn deciding(
    git: &Git<'_>,
    base: Option<&str>,
    path: &str,
    (commands, is_apart): (&[Runner], &dyn Fn() -> bool),
) -> Option<String> {
    let mut runners = commands.iter().filter(|runner| runner.runs(path)).peekable();
    if runners.peek().is_some() {
        let is_made = make::is_file(path) && runners.all(|runner| make::is_call(&runner.words));
        let (old, new) = texts(git, base, path);
        if !is_made || make::differs(&old, &new, commands) {
            return Some(String::new());
        }
    }
    sets(git, base, path, (commands, is_apart))
}

/// Settings of tests that a file has and that are others than in a commit; empty if they have no names. A manifest that
/// is apart is that of a new package.
fn sets(
    git: &Git<'_>,
    base: Option<&str>,
    path: &str,
    (commands, is_apart): (&[Runner], &dyn Fn() -> bool),
) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_package = name == "package.json";
    let is_manifest = is_package || name == "Cargo.toml" || name.ends_with("config.json");
    if (!is_package && settings::of(path, "").is_none()) || (is_manifest && is_apart()) {
        return None;
    }
    let (old, new) = texts(git, base, path);
    if is_package {
        let parts = package::differing(&old, &new, commands);
        return (!parts.is_empty()).then(|| parts.join(", "));
    }
    (settings::of(path, &old) != settings::of(path, &new)).then(String::new)
}

/// Texts of a file in a commit and now.
fn texts(git: &Git<'_>, base: Option<&str>, path: &str) -> (String, String) {
    let old = base.and_then(|base| git.text_in(base, path));
    (old.unwrap_or_default(), git.text_now(path).unwrap_or_default())
}

/// Checks whether there was nothing in the directory of a new file, which is not the top.
fn is_apart(look: &Look, changed: &BTreeSet<(&String, bool)>, path: &str) -> bool {
    let Some((directory, _)) = path.rsplit_once('/') else {
        return false;
    };
    let inside = format!("{directory}/");
    let below = look.times.range(inside.clone()..).map(|(other, _)| other);
    let mut below = below.take_while(|other| other.starts_with(&inside));
    below.all(|other| changed.contains(&(other, true)))
}

/// Commands that the gates of a step run, and the test `default`.
pub(super) fn commands(access: &Result<Access<'_>, String>, gates: &[Gate]) -> Vec<Runner> {
    let Ok(access) = access else {
        return Vec::new();
    };
    let info = access.workspace.info();
    let named = gates.iter().flat_map(|gate| {
        let is_test = gate.tests().is_some();
        let needs = gate.needs().into_iter();
        needs.filter_map(move |need| match need {
            Need::Command(words) => Some((words.to_vec(), is_test)),
            _ => None,
        })
    });
    let default = info.test("default").map(|_| (vec!["default".to_owned()], true));
    named
        .chain(default)
        .map(|(words, is_test)| Runner {
            words: access::command(info, &words).to_vec(),
            is_test,
        })
        .collect()
}

/// Numbers of the tests that ran, added to those of earlier runs.
pub(super) fn tallies(facts: &Facts, gates: &[Gate]) -> BTreeMap<String, Tally> {
    let mut tallies = facts.before.clone();
    for words in gates.iter().filter_map(Gate::tests) {
        if let Some(Ok(run)) = facts.commands.get(words) {
            let before = tallies.get(&words.join(" ")).copied();
            tallies.insert(words.join(" "), suite::tally(run, words).after(before));
        }
    }
    tallies
}
