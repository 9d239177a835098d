//! Facts by which gates are decided.

use std::collections::{BTreeMap, BTreeSet};

use test_readers::Ended;

use super::newcomers::Newcomer;
use super::red::Between;
use super::{Gate, commit};
use crate::repo::reach::Reach;
use crate::store::job::Tally;

/// Facts gathered for the gates of one submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Git's view of the repository, or the reason why there is none.
    pub git: Option<Result<GitFacts, String>>,
    /// Each path, or the reason why it is unknown.
    pub paths: BTreeMap<String, Result<Presence, String>>,
    /// Content of files, or the reason why it is unknown.
    pub contents: BTreeMap<String, Result<String, String>>,
    /// Results of commands.
    pub commands: BTreeMap<Vec<String>, Result<Run, String>>,
    /// True if a person approved the step.
    pub approved: bool,
    /// Files that have a description.
    pub described: BTreeSet<String>,
    /// Runs of tests when the step began or before, by the words of the command.
    pub before: BTreeMap<String, Tally>,
    /// Files that no entry point leads to, or the reason why that is unknown.
    pub unreachable: Option<Result<Reach, String>>,
    /// True if Git could be read when the step began.
    pub had_git: bool,
    /// Gates of the step, as they are checked here.
    pub gates: Vec<Gate>,
    /// Registered commands of the gates whose words are not those of the agreed plan.
    pub rewritten: Vec<String>,
    /// Deliverables of the job that are paths, before the job may end.
    pub deliverables: Vec<(String, Presence)>,
    /// Rules for the submitted commit.
    pub rules: commit::Rules,
}

/// Kind of what is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Nothing.
    Missing,
    /// A regular file with content.
    File,
    /// A regular file without content.
    Empty,
    /// A directory.
    Directory,
    /// A link or anything else.
    Other,
}

/// Git's view of the changes since the step began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitFacts {
    /// Changes since then, committed or not.
    pub changed: Vec<Change>,
    /// Changes since the last step that looked at changes, if other steps came between.
    pub carried: Option<Vec<Change>>,
    /// Uncommitted paths.
    pub uncommitted: Vec<String>,
    /// Facts about the submitted commit, if there is one.
    pub commit: Option<CommitFacts>,
    /// Changed files that decide how the tests run, each with the part that does; empty for the whole file.
    pub settings: BTreeMap<String, String>,
    /// New files that may change how the tests run, each with the reason.
    pub newcomers: BTreeMap<String, Newcomer>,
    /// Changed files that the plan names as work of the step.
    pub asked: BTreeSet<String>,
    /// Files that decide how tests run and that commands of the gates wrote.
    pub planted: Vec<String>,
    /// Changed data that tests read and the plan does not name, each with the test.
    pub data: BTreeMap<String, String>,
    /// Tests and settings of tests that steps before changed, whose gates do not judge tests and whose texts do not
    /// want it.
    pub owed: Vec<String>,
    /// Changes since the recorded runs of test commands, by the words of the command.
    pub between: BTreeMap<String, Between>,
    /// Tests that changed files defined when the step began, and that no changed file defines now.
    pub gone: Vec<String>,
    /// Paths whose changes the index began to hide during the step.
    pub hides: Vec<String>,
    /// Paths that changed while the commands of the gates ran.
    pub unsteady: Vec<String>,
    /// Paths that were written meanwhile, and have the same content afterwards.
    pub touched: Vec<String>,
}

/// Facts about a submitted commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommitFacts {
    /// Full hash.
    pub hash: String,
    pub standing: Commit,
    /// True if the commit changes nothing.
    pub is_empty: bool,
    /// True if all that the commit changes is at HEAD as it was when the step began.
    pub is_undone: bool,
    /// Paths that the commit changes, below the job's repository.
    pub files: Vec<String>,
    /// Whole message.
    pub message: String,
}

/// A path that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub path: String,
    /// Lines added and removed; 0 if nothing asked for them.
    pub lines: u64,
    /// The most lines by which the work tree, the index or a commit of the step differs; 0 as above.
    pub most: u64,
    /// True if only the index or a commit has the change, and the work tree does not show it.
    pub undone: bool,
    /// True if the path did not exist before.
    pub new: bool,
}

/// A commit that a submission names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Unknown to Git.
    #[default]
    Unknown,
    /// Not an ancestor of HEAD.
    Elsewhere,
    /// Older than the step.
    Old,
    /// Made during the step.
    New,
}

/// Result of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Exit code; `None` if the command was killed.
    pub exit: Option<i32>,
    /// Standard output and standard error.
    pub output: String,
    /// End of the command.
    pub ended: Ended,
    /// True if the command was ended before its own time was over, as at the end of an envelope.
    pub is_cut_off: bool,
}
