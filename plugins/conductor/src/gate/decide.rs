//! Verdicts of gates on gathered facts: pure.

use serde_json::{Map, Value};

use super::known::{Change, Facts, GitFacts, Presence, Run};
use super::red;
use super::unchanged::tests_changed;
use super::{Gate, Source, commit, glob_set, suite};
use crate::arguments::{clip, clip_to, counted};

/// Fields of a submission that gates read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub evidence: &'a Map<String, Value>,
    pub commit: Option<&'a str>,
    pub criteria: usize,
}

/// Returns why a gate does not hold, or `None` if the gate holds.
pub(crate) fn unmet(gate: &Gate, said: &Said<'_>, facts: &Facts) -> Option<String> {
    let reason = match gate {
        Gate::TestsPassed(command) => tests_passed(said.evidence).or_else(|| match command {
            Some(command) => with_run(facts, command, |run| suite::passed(run, command, facts)),
            None => None,
        }),
        Gate::TestsFail(command) => tests_failed(said.evidence).or_else(|| match command {
            Some(command) => with_run(facts, command, |run| red::failed(run, command, facts)),
            None => None,
        }),
        Gate::FailToPass(command) => tests_passed(said.evidence).or_else(|| match command {
            Some(command) => with_run(facts, command, |run| suite::fail_to_pass(run, command, facts)),
            None => None,
        }),
        Gate::TestsUnchanged(globs) => with_all(facts, |git| tests_changed(git, globs)),
        Gate::LintPassed(command) => lint_passed(said.evidence).or_else(|| optional(command, facts)),
        Gate::EvidenceBoolTrue(key) => not_true(said.evidence, key),
        Gate::CriteriaChecklistComplete => unchecked(said.evidence, said.criteria),
        Gate::ChangedFilesAllowlist(globs) => with_all(facts, |git| allowlist(git, globs)),
        Gate::ForbidPaths(globs) => with_all(facts, |git| forbidden(git, globs)),
        Gate::ChangedFilesMinimum(min) => with_git(facts, |git| {
            let count = git.changed.iter().filter(|change| !change.undone).count();
            (count < *min as usize)
                .then(|| format!("{} changed; at least {min} must change", counted(count, "file")))
        }),
        Gate::FileExists(paths) => existence(facts, paths, true),
        Gate::FileNotExists(paths) => existence(facts, paths, false),
        Gate::FileContains(path, pattern) => with_content(facts, path, |text| {
            (!pattern.is_in(text)).then(|| format!("{path} does not contain {}", pattern.shown()))
        }),
        Gate::FileLacks(path, pattern) => with_content(facts, path, |text| {
            pattern
                .is_in(text)
                .then(|| format!("{path} contains {}", pattern.shown()))
        }),
        Gate::Reachable(paths) => unreachable(facts, paths),
        Gate::NoUncommittedChanges => with_git(facts, |git| {
            (!git.uncommitted.is_empty()).then(|| format!("not committed: {}", some(&git.uncommitted)))
        }),
        Gate::DiffMaxLines(max) => with_all(facts, |git| {
            let lines = sum(git, |change| change.most.max(change.lines));
            (lines > u64::from(*max))
                .then(|| format!("{} changed; at most {max} may change", counted(lines, "line")))
        }),
        Gate::DiffMinLines(min) => with_git(facts, |git| {
            let lines = sum(git, |change| change.lines);
            (lines < u64::from(*min))
                .then(|| format!("{} changed; at least {min} must change", counted(lines, "line")))
        }),
        Gate::CommitExists => with_git(facts, |git| match said.commit {
            Some(hash) => commit::fault(git, hash, said.evidence, &facts.rules),
            None => Some("commit_hash is missing".to_owned()),
        }),
        Gate::CommandExit0(command) => with_run(facts, command, failed),
        Gate::CommandOutputContains(command, text) => with_run(facts, command, |run| {
            failed(run).or_else(|| {
                (!run.output.contains(text))
                    .then(|| format!("its output does not contain {text:?}: {}", tail(run)))
            })
        }),
        Gate::CommandOutputRegex(command, regex) => with_run(facts, command, |run| {
            let matches = regex_lite::Regex::new(regex).is_ok_and(|regex| regex.is_match(&run.output));
            failed(run).or_else(|| {
                (!matches).then(|| format!("nothing in its output matches /{regex}/: {}", tail(run)))
            })
        }),
        Gate::JsonSchemaValid(source, schema) => misfit(source, schema, said.evidence, facts),
        Gate::HumanApproval => (!facts.approved).then(|| "nobody has approved the step".to_owned()),
    };
    reason.map(|reason| format!("gate {}: {reason}", gate.kind()))
}

fn tests_passed(evidence: &Map<String, Value>) -> Option<String> {
    let run = evidence.get("tests_run").and_then(Value::as_array);
    if run.is_none_or(Vec::is_empty) {
        return Some("tests_run lists no tests".to_owned());
    }
    not_true(evidence, "tests_passed")
}

/// A test that is meant to fail has to be reported as what it is.
fn tests_failed(evidence: &Map<String, Value>) -> Option<String> {
    let run = evidence.get("tests_run").and_then(Value::as_array);
    if run.is_none_or(Vec::is_empty) {
        return Some("tests_run lists no tests".to_owned());
    }
    match evidence.get("tests_passed") {
        Some(Value::Bool(false)) => None,
        _ => Some("tests_passed is not false, but a test must fail here".to_owned()),
    }
}

fn lint_passed(evidence: &Map<String, Value>) -> Option<String> {
    not_true(evidence, "lint_run").or_else(|| not_true(evidence, "lint_passed"))
}

fn not_true(evidence: &Map<String, Value>, key: &str) -> Option<String> {
    match evidence.get(key) {
        Some(Value::Bool(true)) => None,
        Some(other) => Some(format!("{key} is {}", clip(&other.to_string()))),
        None => Some(format!("{key} is missing")),
    }
}

/// Criteria that are not marked true, if any.
pub(crate) fn unchecked(evidence: &Map<String, Value>, criteria: usize) -> Option<String> {
    let checklist = evidence.get("criteria_checklist").and_then(Value::as_object);
    let open: Vec<String> = (1..=criteria)
        .map(|number| format!("c{number}"))
        .filter(|name| checklist.and_then(|list| list.get(name)) != Some(&Value::Bool(true)))
        .collect();
    (!open.is_empty()).then(|| format!("criteria_checklist is not true for {}", open.join(", ")))
}

fn with_git(facts: &Facts, judge: impl FnOnce(&GitFacts) -> Option<String>) -> Option<String> {
    match &facts.git {
        Some(Ok(git)) => judge(git),
        Some(Err(why)) => Some(format!("Git is not available: {why}")),
        None => Some("Git was not run".to_owned()),
    }
}

/// Like [`with_git`], also for the changes of steps before that no gate looked at.
fn with_all(facts: &Facts, judge: impl Fn(&GitFacts) -> Option<String>) -> Option<String> {
    with_git(facts, |git| {
        let Some(all) = &git.carried else {
            return judge(git);
        };
        let view = |changed: Vec<Change>| GitFacts {
            changed,
            settings: git.settings.clone(),
            newcomers: git.newcomers.clone(),
            asked: git.asked.clone(),
            data: git.data.clone(),
            owed: git.owed.clone(),
            ..GitFacts::default()
        };
        // To put back what such a step changed is no change.
        let own = git.changed.iter();
        let own = own.filter(|change| all.iter().any(|other| other.path == change.path));
        judge(&view(own.cloned().collect())).or_else(|| {
            judge(&view(all.clone())).map(|why| {
                format!(
                    "{why}; changes of earlier steps are included, because the gates of those steps did not check \
                     changes"
                )
            })
        })
    })
}

fn with_run(facts: &Facts, command: &[String], judge: impl FnOnce(&Run) -> Option<String>) -> Option<String> {
    let words = command.join(" ");
    let reason = match facts.commands.get(command) {
        Some(Ok(run)) => judge(run)?,
        Some(Err(why)) => format!("it cannot be run: {why}"),
        None => "it was not run".to_owned(),
    };
    Some(format!("`{}`: {reason}", clip(&words)))
}

fn optional(command: &Option<Vec<String>>, facts: &Facts) -> Option<String> {
    with_run(facts, command.as_ref()?, failed)
}

fn with_content(facts: &Facts, path: &str, judge: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    match facts.contents.get(path) {
        Some(Ok(text)) => judge(text),
        Some(Err(why)) => Some(format!("{path} cannot be read: {why}")),
        None => Some(format!("{path} was not read")),
    }
}

/// Checks whether a file is new in the step, or in one before whose gates limit nothing.
fn is_new(facts: &Facts, path: &str) -> bool {
    let Some(Ok(git)) = &facts.git else {
        return false;
    };
    let mut changes = git.changed.iter().chain(git.carried.iter().flatten());
    changes.any(|change| change.new && change.path == path)
}

/// Checks whether a command of the step's gates names a file.
fn is_run(facts: &Facts, path: &str) -> bool {
    let mut words = facts.commands.keys().flatten();
    words.any(|word| word.trim_start_matches("./") == path)
}

fn unreachable(facts: &Facts, paths: &[String]) -> Option<String> {
    match &facts.unreachable {
        Some(Ok(reach)) => {
            let is_apart = |path: &&String| reach.apart.contains(*path) || !reach.files.contains(*path);
            let found: Vec<String> = paths.iter().filter(is_apart).cloned().collect();
            if !found.is_empty() {
                return Some(format!("{} cannot be reached from any entry point", some(&found)));
            }
            let is_lone =
                |path: &&String| reach.lone.contains(*path) && is_new(facts, path) && !is_run(facts, path);
            let lone: Vec<String> = paths.iter().filter(is_lone).cloned().collect();
            (!lone.is_empty()).then(|| {
                format!(
                    "no code, manifest, configuration or registered command refers to {}; import it, or add such a \
                     reference",
                    some(&lone)
                )
            })
        }
        Some(Err(why)) => Some(format!("cannot determine the imports: {why}")),
        None => Some("the imports were not read".to_owned()),
    }
}

pub(super) fn failed(run: &Run) -> Option<String> {
    match run.exit {
        Some(0) => None,
        Some(code) => Some(format!("it ended with exit code {code}: {}", tail(run))),
        None => Some(format!("it was killed: {}", tail(run))),
    }
}

/// End of an output, where test tools print failures.
pub(super) fn tail(run: &Run) -> String {
    const MAX_TAIL_CHARS: usize = 600;
    let text = run.output.trim();
    let length = text.chars().count();
    match text.char_indices().nth(length.saturating_sub(MAX_TAIL_CHARS)) {
        Some((start, _)) if start > 0 => format!("…{}", text.get(start..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

fn allowlist(git: &GitFacts, globs: &[String]) -> Option<String> {
    let allowed = glob_set(globs);
    let outside: Vec<String> = paths(git, |path| !allowed.is_match(path));
    (!outside.is_empty()).then(|| format!("changed outside of {}: {}", globs.join(", "), some(&outside)))
}

fn forbidden(git: &GitFacts, globs: &[String]) -> Option<String> {
    let forbidden = glob_set(globs);
    let touched = paths(git, |path| forbidden.is_match(path));
    (!touched.is_empty()).then(|| format!("these must not change: {}", some(&touched)))
}

fn paths(git: &GitFacts, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let paths = git.changed.iter().map(|change| &change.path);
    paths.filter(|path| wanted(path)).cloned().collect()
}

fn sum(git: &GitFacts, lines: impl Fn(&Change) -> u64) -> u64 {
    let lines = git.changed.iter().map(lines);
    lines.fold(0, |sum: u64, lines| sum.saturating_add(lines))
}

fn existence(facts: &Facts, wanted: &[String], there: bool) -> Option<String> {
    let mut reasons = Vec::new();
    for path in wanted {
        let why = match (facts.paths.get(path), there) {
            (Some(Ok(Presence::File)), true) | (Some(Ok(Presence::Missing)), false) => continue,
            (Some(Ok(_)), false) => "exists".to_owned(),
            (Some(Ok(Presence::Missing)), true) => "does not exist".to_owned(),
            (Some(Ok(Presence::Empty)), true) => "is empty".to_owned(),
            (Some(Ok(Presence::Directory)), true) => "is a directory, not a file".to_owned(),
            (Some(Ok(Presence::Other)), true) => "is a link or a special file, not a regular file".to_owned(),
            (Some(Err(why)), _) => format!("cannot be checked: {why}"),
            (None, _) => "was not checked".to_owned(),
        };
        reasons.push(format!("{path} {why}"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn misfit(
    source: &Source,
    schema: &Map<String, Value>,
    evidence: &Map<String, Value>,
    facts: &Facts,
) -> Option<String> {
    let (name, value) = match source {
        Source::Evidence(key) => match evidence.get(key) {
            Some(value) => (key, value.clone()),
            None => return Some(format!("{key} is missing")),
        },
        Source::File(path) => match facts.contents.get(path) {
            Some(Ok(text)) => match serde_json::from_str(text) {
                Ok(value) => (path, value),
                Err(err) => return Some(format!("{path} is not JSON: {err}")),
            },
            Some(Err(why)) => return Some(format!("{path} cannot be read: {why}")),
            None => return Some(format!("{path} was not read")),
        },
    };
    let validator = match jsonschema::validator_for(&Value::Object(schema.clone())) {
        Ok(validator) => validator,
        Err(err) => return Some(format!("the schema cannot be used: {err}")),
    };
    let faults: Vec<String> = validator
        .iter_errors(&value)
        .take(10)
        .map(|err| {
            clip_to(
                &format!(
                    "{} at /{}",
                    err,
                    err.instance_path().to_string().trim_start_matches('/')
                ),
                300,
            )
        })
        .collect();
    (!faults.is_empty()).then(|| format!("{name} does not match the schema: {}", faults.join("; ")))
}

/// Paths up to a bound, in a form that shows control characters. Many are told by directory: `a/{b, c}`.
pub(crate) fn some(paths: &[String]) -> String {
    const MAX_SINGLE_PATHS: usize = 10;
    const MAX_SHOWN_PATHS: usize = 100;
    const MAX_TEXT_BYTES: usize = 3_000;
    let mut parts: Vec<String> = Vec::new();
    let (mut told, mut length) = (0_usize, 0_usize);
    let mut rest = paths;
    while let Some(first) = rest
        .first()
        .filter(|_| told < MAX_SHOWN_PATHS && length < MAX_TEXT_BYTES)
    {
        let directory = directory(first).filter(|_| paths.len() > MAX_SINGLE_PATHS);
        let same = rest.iter().take(MAX_SHOWN_PATHS.saturating_sub(told));
        let same = same.take_while(|path| directory.is_some() && self::directory(path) == directory);
        let count = same.count().max(1);
        let part = match directory {
            Some(directory) if count > 1 => {
                let names = rest.iter().take(count);
                let names = names
                    .map(|path| shown(path.get(directory.len().saturating_add(1)..).unwrap_or_default()));
                format!(
                    "{}/{{{}}}",
                    shown(directory),
                    names.collect::<Vec<_>>().join(", ")
                )
            }
            _ => shown(first),
        };
        length = length.saturating_add(part.len());
        told = told.saturating_add(count);
        parts.push(part);
        rest = rest.get(count..).unwrap_or_default();
    }
    if !rest.is_empty() {
        parts.push(format!("and {} more", rest.len()));
    }
    parts.join(", ")
}

/// Directory of a path that is shown as it is.
fn directory(path: &str) -> Option<&str> {
    let plain = !path.contains(' ') && !path.chars().any(char::is_control);
    path.rsplit_once('/')
        .filter(|_| plain)
        .map(|(directory, _)| directory)
}

fn shown(path: &str) -> String {
    match path.chars().any(char::is_control) {
        true => format!("{path:?}"),
        false => path.to_owned(),
    }
}
