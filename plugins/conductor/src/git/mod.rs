//! The real git, run with fixed arguments through the process capability.
//!
//! Which subcommands and options may run, and that hooks, pagers and the network stay out of it, is the
//! host's part; here are the commands, and the reading of what they print.

pub(crate) mod change;
mod commit;
mod history;
pub(crate) mod look;
mod pages;
pub(crate) mod parse;
pub(crate) mod untracked;
mod veil;

use std::time::Duration;

use tollgate_kit::git::{RepoPath, text};
use tollgate_sdk::workspace::{MAX_ENTRIES, MAX_READ};
use tollgate_sdk::{Command, Cx, Ending, GitAccess, Outcome, ProcessError, Workspace};

use crate::access::{self, Access};
use crate::error::GitFault;

/// Longest output that is read, in bytes of each stream.
const MAX_OUTPUT_BYTES: u32 = 1 << 20;
/// Longest time one command takes.
const GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings of commands that read: names that differ in case are two files, and commits have the parents that they
/// name.
const EXACT_SETTINGS: [&str; 4] = ["-c", "core.ignoreCase=false", "-c", "core.commitGraph=false"];
/// Commands that write, for which the repository's own settings hold.
const WRITING_COMMANDS: [&str; 8] = [
    "add", "branch", "commit", "reset", "restore", "rm", "switch", "tag",
];

/// States that a repository can be in the middle of, by the reference that tells.
const IN_PROGRESS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("REBASE_HEAD", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// A repository that git may be run in.
pub(crate) struct Git<'a> {
    workspace: Workspace<'a>,
    /// The job's repository below the top of Git's, with a slash at its end, or empty.
    prefix: Vec<u8>,
    /// The job's repository below the workspace, with a slash at its end, or empty.
    directory: String,
}

impl<'a> Git<'a> {
    /// Opens a job's repository for git.
    pub(crate) fn open(cx: &Cx<'a>, repo_root: Option<&str>) -> Result<Git<'a>, GitFault> {
        let Access { root, workspace } = access::open(cx, repo_root).map_err(GitFault::Unavailable)?;
        if workspace.info().git.is_none() {
            let why = format!(
                "workspace {0} does not allow Git; set git = \"read\" in [workspaces.{0}]",
                root.workspace
            );
            return Err(GitFault::Unavailable(why));
        }
        let mut git = Git {
            directory: with_slash(&root.directory),
            prefix: Vec::new(),
            workspace,
        };
        let shown = git.raw(&["rev-parse", "--show-prefix"], &[])?;
        if !shown.succeeded() {
            return Err(GitFault::NoRepository(root.workspace));
        }
        git.prefix = [shown.stdout.bytes.trim_ascii_end(), git.directory.as_bytes()].concat();
        git.refuse_filters()?;
        Ok(git)
    }

    /// Refuses a repository whose own configuration names programs for filters, unless the host lets git run
    /// with them: the operator may have accepted them. Those of the user's configuration are the user's own.
    fn refuse_filters(&self) -> Result<(), GitFault> {
        let listed = self.run(&["config", "--list", "--show-scope", "--name-only", "-z"])?;
        let filters = parse::own_filters(&listed);
        if filters.is_empty() {
            return Ok(());
        }
        // A command for which the host looks at filters, and which reads no file.
        match self.raw(&["for-each-ref", "--count=1"], &[]) {
            Err(GitFault::Unavailable(_)) => Err(GitFault::Filters(filters)),
            other => other.map(drop),
        }
    }

    /// Checks whether Git's configuration names who commits.
    pub(crate) fn knows_committer(&self) -> Result<bool, GitFault> {
        let listed = self.run(&["config", "--list", "--show-scope", "--name-only", "-z"])?;
        Ok(parse::names_committer(&listed))
    }

    /// Fails as `git commit` would if Git cannot tell who commits, with these settings.
    pub(crate) fn check_identity(&self, settings: &[&str]) -> Result<(), GitFault> {
        for identity in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let outcome = self.raw(&[settings, ["var", identity].as_slice()].concat(), &[])?;
            self.printed(&["commit"], outcome)?;
        }
        Ok(())
    }

    /// Like [`Git::open`], for commands that write.
    pub(crate) fn open_to_write(cx: &Cx<'a>, repo_root: Option<&str>) -> Result<Git<'a>, GitFault> {
        let git = Git::open(cx, repo_root)?;
        match git.workspace.info().git {
            Some(GitAccess::Write) => Ok(git),
            _ => Err(GitFault::Unavailable(format!(
                "workspace {0} allows Git for reading only; set git = \"write\" in [workspaces.{0}]",
                git.workspace.name()
            ))),
        }
    }

    fn raw(&self, arguments: &[&str], stdin: &[u8]) -> Result<Outcome, GitFault> {
        let command = Command::new("git")
            // Without replace objects, so that no commit shows another one's content.
            .args(["--no-optional-locks", "--no-replace-objects"])
            .args(closely(arguments).iter().copied())
            // It takes no patterns, and refuses the option.
            .args(Some("--literal-pathspecs").filter(|_| arguments.first() != Some(&"check-ignore")))
            .args(arguments.iter().copied())
            .stdin(stdin)
            .timeout(GIT_TIMEOUT)
            .output_limit(MAX_OUTPUT_BYTES);
        self.workspace.run(&command).map_err(|err| match err {
            ProcessError::Denied(_) | ProcessError::UnknownWorkspace(_) | ProcessError::NotStarted(_) => {
                GitFault::Unavailable(err.to_string())
            }
            _ => GitFault::Failed {
                command: name_of(arguments),
                message: err.to_string(),
            },
        })
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, GitFault> {
        self.run_with(arguments, &[])
    }

    /// The whole records at the beginning of what a command prints, if it succeeds.
    pub(crate) fn beginning(&self, arguments: &[&str]) -> Result<Vec<u8>, GitFault> {
        let outcome = self.raw(arguments, &[])?;
        let is_cut = outcome.stdout.is_cut();
        match outcome.ending {
            Ending::Exited(0) if is_cut => {
                let mut printed = outcome.stdout.bytes;
                let end = printed.iter().rposition(|byte| *byte == 0);
                printed.truncate(end.map_or(0, |end| end.saturating_add(1)));
                Ok(printed)
            }
            _ => self.printed(arguments, outcome),
        }
    }

    /// The beginning of the text that a command prints, if it succeeds.
    fn beginning_of_text(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let outcome = self.raw(arguments, &[]).ok()?;
        outcome.succeeded().then_some(outcome.stdout.bytes)
    }

    /// Like [`Git::run`], with something to read.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Result<Vec<u8>, GitFault> {
        let outcome = self.raw(arguments, stdin)?;
        self.printed(arguments, outcome)
    }

    fn printed(&self, arguments: &[&str], outcome: Outcome) -> Result<Vec<u8>, GitFault> {
        let fault = |message: String| GitFault::Failed {
            command: name_of(arguments),
            message,
        };
        match outcome.ending {
            Ending::Exited(0) if outcome.stdout.is_cut() => Err(GitFault::TooMuch {
                command: name_of(arguments),
                bytes: outcome.stdout.total,
            }),
            Ending::Exited(0) => Ok(outcome.stdout.bytes),
            Ending::TimedOut => Err(fault("it took too long".to_owned())),
            Ending::Exited(_) | Ending::Signalled(_) => {
                let said = match outcome.stderr.bytes.is_empty() {
                    true => outcome.stdout.text(),
                    false => outcome.stderr.text(),
                };
                Err(fault(crate::arguments::clip_to(said.trim(), 1_000)))
            }
        }
    }

    /// Runs a command that answers by its exit code. True if the command succeeds.
    fn asks(&self, arguments: &[&str]) -> Result<bool, GitFault> {
        Ok(self.raw(arguments, &[])?.succeeded())
    }

    /// The full hash of a commit, if there is one of that name.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>, GitFault> {
        let wanted = format!("{name}^{{commit}}");
        let outcome = self.raw(
            &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted],
            &[],
        )?;
        Ok(outcome
            .succeeded()
            .then(|| text(outcome.stdout.bytes.trim_ascii_end())))
    }

    /// HEAD's commit; none before the first.
    pub(crate) fn head(&self) -> Result<Option<String>, GitFault> {
        self.commit("HEAD")
    }

    /// Absolute path of the repository's top directory.
    pub(crate) fn top(&self) -> Option<String> {
        let printed = self.run(&["rev-parse", "--show-toplevel"]).ok()?;
        Some(text(printed.trim_ascii_end()))
    }

    /// True if one commit is in the history of the other.
    pub(crate) fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, GitFault> {
        self.asks(&["merge-base", "--is-ancestor", ancestor, of])
    }

    /// Name of the unfinished operation in the repository, such as a merge, if there is one.
    pub(crate) fn in_progress(&self) -> Result<Option<&'static str>, GitFault> {
        for (reference, name) in IN_PROGRESS {
            if self.asks(&["rev-parse", "--verify", "--quiet", reference])? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Branch, and every path that differs from HEAD, below the job's repository.
    pub(crate) fn status(&self) -> Result<parse::Status, GitFault> {
        self.status_of("--untracked-files=all")
    }

    /// Like [`Git::status`], with the option about untracked files.
    fn status_of(&self, untracked: &str) -> Result<parse::Status, GitFault> {
        let arguments = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            untracked,
            "--no-renames",
        ];
        let mut status = parse::Status::default();
        for printed in self.pages(&arguments, &["HEAD"])? {
            let page = parse::status(&printed, &self.prefix);
            status.head = page.head;
            status.entries.extend(page.entries);
        }
        Ok(status)
    }

    /// A path of Git's as one of the job's repository. None if it is elsewhere.
    pub(crate) fn inside(&self, path: &RepoPath) -> Option<String> {
        path.below(&self.prefix).map(String::from)
    }

    /// Like [`Git::inside`], for files that are opened: a name that is not UTF-8 opens none.
    pub(crate) fn inside_utf8<'p>(&self, path: &'p [u8]) -> Option<&'p str> {
        std::str::from_utf8(path.strip_prefix(self.prefix.as_slice())?).ok()
    }

    /// A path of the job's repository as one of the workspace, which git is started in.
    pub(crate) fn pathspec(&self, path: &str) -> String {
        match path.trim_start_matches("./") {
            "" | "." if self.directory.is_empty() => ".".to_owned(),
            "" | "." => self.directory.clone(),
            path => format!("{}{path}", self.directory),
        }
    }

    /// Text of a file in a commit, if it has one.
    pub(crate) fn text_in(&self, commit: &str, path: &str) -> Option<String> {
        let top = self.prefix.as_slice();
        let name = format!("{commit}:{}{path}", String::from_utf8_lossy(top));
        let bytes = self.beginning_of_text(&["cat-file", "-p", &name])?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Text of a file of the work tree, if there is one.
    pub(crate) fn text_now(&self, path: &str) -> Option<String> {
        let bytes = self
            .workspace
            .read(&self.pathspec(path), MAX_READ as usize)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Checks whether there is anything at a path of the work tree.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.workspace
            .find(&self.pathspec(path))
            .is_ok_and(|found| found.is_some())
    }

    /// Paths of the first entries of a directory of the work tree.
    pub(crate) fn entries_in(&self, directory: &str) -> Vec<String> {
        let listed = self.workspace.list(&self.pathspec(directory), None, MAX_ENTRIES);
        let names = listed.unwrap_or_default().into_iter();
        names
            .filter_map(|entry| Some(format!("{directory}/{}", entry.path.rsplit('/').next()?)))
            .collect()
    }

    /// Number of lines in a file of the job's repository, whatever bytes it contains.
    fn lines_of(&self, path: &str) -> u64 {
        let (mut offset, mut ends, mut last) = (0_u64, 0_u64, b'\n');
        while let Ok(piece) = self.workspace.read_at(&self.pathspec(path), offset, MAX_READ) {
            let Some(end) = piece.last() else { break };
            last = *end;
            offset = offset.saturating_add(piece.len() as u64);
            ends = ends.saturating_add(change::ends(&piece).0);
        }
        ends.saturating_add(u64::from(!matches!(last, b'\n' | b'\r')))
    }
}

fn closely(arguments: &[&str]) -> &'static [&'static str] {
    let writes = arguments
        .first()
        .is_some_and(|name| WRITING_COMMANDS.contains(name));
    if writes { &[] } else { &EXACT_SETTINGS }
}

fn name_of(arguments: &[&str]) -> String {
    arguments.first().copied().unwrap_or_default().to_owned()
}

fn with_slash(directory: &str) -> String {
    match directory {
        "" => String::new(),
        directory => format!("{directory}/"),
    }
}
