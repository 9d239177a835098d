//! Git for packs: where it may run, and the checks before it does.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use tollgate_core::deadline::Deadline;
use tollgate_sdk::permit::{self, GitBounds, GitCommand, Unusable};
use tollgate_sdk::process::MAX_OUTPUT;
use tollgate_sdk::{Outcome, ProcessError};

use crate::process::{Job, Launcher, Sink, Stream};
use crate::workspaces::Workspace;

/// Interval at which a call checks whether another call's git has ended.
const GIT_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// Memory limit of Git, in bytes. A few small objects, or one line of a repository's configuration, can make Git
/// request any amount.
pub(crate) const MEMORY_BYTES: u64 = 2 << 30;
/// Longest configuration file of the operator that is read, in bytes.
const MAX_CONFIG: u64 = 1 << 20;

/// Git, ready to run.
pub(crate) struct Prepared<'a> {
    pub(crate) argv: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    /// True if git may start no other program.
    pub(crate) alone: bool,
    /// Held while git writes, so that the results of the checks stay valid.
    turn: Option<MutexGuard<'a, ()>>,
    workspace: &'a Workspace,
    /// Path of the workspace below the top of the work tree.
    pub(crate) top: String,
}

impl Prepared<'_> {
    /// True if the command writes, or git may start filters for it: programs that may do anything.
    pub(crate) fn has_effects(&self, git: &GitCommand) -> bool {
        !git.reads_only() || !self.alone
    }

    /// Checks the state that the command left, and lets the next command that writes run.
    pub(crate) fn finish(self, git: &GitCommand) -> Result<(), ProcessError> {
        let kept = git.kept_within(bounds(self.workspace, &self.top));
        drop(self.turn);
        kept
    }
}

fn bounds<'a>(workspace: &'a Workspace, top: &'a str) -> GitBounds<'a> {
    GitBounds {
        tree: workspace.tree.dir(),
        top,
        prefixes: &workspace.info.write_prefixes,
    }
}

/// Checks a workspace's repository for a command. Fails if there is none.
pub(crate) fn prepare<'a>(
    workspace: &'a Workspace,
    git: &GitCommand,
    launcher: &Launcher,
    deadline: &Deadline,
) -> Result<Result<Prepared<'a>, Outcome>, ProcessError> {
    let turn = match git.reads_only() {
        true => None,
        false => Some(wait(&workspace.git_writes, deadline)?),
    };
    let name = &workspace.info.name;
    let found = match permit::repository(name, workspace.tree.dir(), &workspace.git, git) {
        Ok(found) => found,
        Err(Unusable::Missing) => return Ok(Err(permit::no_repository(name))),
        Err(Unusable::Refused(why)) => return Err(ProcessError::Denied(why)),
    };
    let prepared = |arguments: &[String], turn| Prepared {
        argv: std::iter::once("git".to_owned())
            .chain(arguments.iter().cloned())
            .collect(),
        variables: found.environment.clone(),
        alone: git.runs_no_filter() || (workspace.git.accepted.is_empty() && !has_filters(launcher)),
        turn,
        workspace,
        top: found.prefix.clone(),
    };
    git.keep_within(bounds(workspace, &found.prefix), &mut |question| {
        ask(workspace, prepared(question, None), launcher, deadline)
    })?;
    Ok(Ok(prepared(&git.arguments, turn)))
}

fn ask(
    workspace: &Workspace,
    prepared: Prepared<'_>,
    launcher: &Launcher,
    deadline: &Deadline,
) -> Result<Outcome, ProcessError> {
    let job = Job {
        dir: workspace.tree.dir(),
        argv: prepared.argv,
        variables: prepared.variables,
        alone: prepared.alone,
        memory: Some(MEMORY_BYTES),
        stdin: Vec::new(),
        timeout: deadline.remaining(),
        output_limit: MAX_OUTPUT,
    };
    launcher.run(job, deadline, &mut Unseen)
}

/// Sink for output that is discarded.
struct Unseen;

impl Sink for Unseen {
    fn bytes(&mut self, _: Stream, _: &[u8]) {}

    fn tick(&mut self) {}
}

/// Waits until no other git writes in the workspace.
fn wait<'a>(turn: &'a Mutex<()>, deadline: &Deadline) -> Result<MutexGuard<'a, ()>, ProcessError> {
    loop {
        match turn.try_lock() {
            Ok(held) => return Ok(held),
            Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) if deadline.is_cancelled() => return Err(ProcessError::Cancelled),
            Err(TryLockError::WouldBlock) if deadline.is_over() => {
                return Err(ProcessError::NotStarted(
                    "another call's git is writing to the workspace; call again".to_owned(),
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(GIT_CHECK_INTERVAL),
        }
    }
}

/// True if the operator's own configuration has filters, such as those of Git LFS: git must start programs for them.
fn has_filters(launcher: &Launcher) -> bool {
    let home = launcher.variable("HOME").map(|home| {
        [".gitconfig", ".config/git/config"].map(|name| format!("{}/{name}", home.trim_end_matches('/')))
    });
    let files = home.into_iter().flatten().chain(["/etc/gitconfig".to_owned()]);
    files
        .into_iter()
        .any(|file| bounded(&file).is_some_and(|content| permit::names_filters(&content)))
}

fn bounded(file: &str) -> Option<Vec<u8>> {
    use std::io::Read as _;
    #[allow(
        clippy::disallowed_methods,
        reason = "where git looks for the operator's own configuration"
    )]
    let opened = std::fs::File::open(file).ok()?;
    let mut content = Vec::new();
    opened.take(MAX_CONFIG).read_to_end(&mut content).ok()?;
    Some(content)
}
