//! Gathering of the facts that the gates of a submission need.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_sdk::{Command, Cx, Ending, Workspace, WorkspaceError};

use super::decide::{Facts, Run};
use super::{Gate, Need};
use crate::access::{self, Access};
use crate::git::Git;
use crate::store::job::Job;
use crate::store::step::Step;

/// Maximum size of a file that is checked against a schema, in bytes.
const CONTENT: usize = 1 << 20;
/// Maximum bytes of a command's output that are read.
const OUTPUT: u32 = 256 << 10;

/// Gathers all facts that the gates of a step need, and Git's view if Git is available.
pub(crate) fn gather(cx: &Cx<'_>, job: &Job, step: &Step, commit: Option<&str>, wants_git: bool) -> Facts {
    let gates = step.spec.parsed_gates();
    let mut facts = Facts {
        approved: step.approval.is_some(),
        git: git(cx, job, commit, wants_git || needs_git(&gates)),
        ..Facts::default()
    };
    let access = access::open(cx, job.repo_root.as_deref());
    for need in gates.iter().flat_map(Gate::needs) {
        look(&access, need, &mut facts);
    }
    facts
}

fn needs_git(gates: &[Gate]) -> bool {
    gates.iter().flat_map(Gate::needs).any(|need| need == Need::Git)
}

/// Git's view. Missing access is reported only if something needs Git.
fn git(
    cx: &Cx<'_>,
    job: &Job,
    commit: Option<&str>,
    needed: bool,
) -> Option<Result<super::decide::GitFacts, String>> {
    let facts = Git::open(cx, job.repo_root.as_deref())
        .and_then(|git| git.facts(job.baseline.as_ref(), commit))
        .map_err(|fault| fault.to_string());
    (needed || facts.is_ok()).then_some(facts)
}

fn look(access: &Result<Access<'_>, String>, need: Need<'_>, facts: &mut Facts) {
    match need {
        Need::Git => {}
        Need::Path(path) => {
            let known = with(access, |access| exists(access, path));
            facts.paths.insert(path.to_owned(), known);
        }
        Need::Content(path) => {
            let known = with(access, |access| content(access, path));
            facts.contents.insert(path.to_owned(), known);
        }
        // A command that several gates name runs once.
        Need::Command(words) if facts.commands.contains_key(words) => {}
        Need::Command(words) => {
            let known = with(access, |access| run(&access.workspace, words));
            facts.commands.insert(words.to_vec(), known);
        }
    }
}

fn with<T>(
    access: &Result<Access<'_>, String>,
    look: impl FnOnce(&Access<'_>) -> Result<T, String>,
) -> Result<T, String> {
    match access {
        Ok(access) => look(access),
        Err(why) => Err(why.clone()),
    }
}

fn exists(access: &Access<'_>, path: &str) -> Result<bool, String> {
    match access.workspace.stat(&access.root.join(path)) {
        Ok(_) => Ok(true),
        Err(WorkspaceError::NotFound(_)) => Ok(false),
        Err(err) => Err(err.to_string()),
    }
}

fn content(access: &Access<'_>, path: &str) -> Result<String, String> {
    let bytes = access.workspace.read(&access.root.join(path), CONTENT);
    let bytes = bytes.map_err(|err| err.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn run(workspace: &Workspace<'_>, words: &[String]) -> Result<Run, String> {
    let words = access::command(workspace.info(), words);
    let (program, arguments) = words.split_first().ok_or("no program is named")?;
    let command = Command::new(program.as_str())
        .args(arguments.iter().cloned())
        .timeout(Duration::from_secs(600))
        .output_limit(OUTPUT);
    let outcome = workspace.run(&command).map_err(|err| err.to_string())?;
    let mut output = outcome.stdout.text().into_owned();
    output += &outcome.stderr.text();
    Ok(Run {
        exit: match outcome.ending {
            Ending::Exited(code) => Some(code),
            Ending::Signalled(_) | Ending::TimedOut => None,
        },
        output,
    })
}

/// Commands that the gates of a step ran, with their results, for the reply.
pub(crate) fn runs(facts: &Facts) -> BTreeMap<String, String> {
    let told = facts.commands.iter().map(|(words, run)| {
        let ending = match run {
            Ok(Run { exit: Some(code), .. }) => format!("exit code {code}"),
            Ok(Run { exit: None, .. }) => "killed".to_owned(),
            Err(why) => why.clone(),
        };
        (words.join(" "), ending)
    });
    told.collect()
}
