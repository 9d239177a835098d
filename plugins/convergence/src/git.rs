//! Reads what Git writes about a work tree, in the forms that end entries with NUL.
//!
//! Run Git with `--no-optional-locks -c core.quotePath=off` and the diffs with `--no-renames
//! --no-ext-diff --no-textconv --no-color --src-prefix=a/ --dst-prefix=b/`, so that no
//! configuration of the user changes what is read. Renames are understood all the same.

mod diff;
mod status;
mod symbol;

use serde::Serialize;

pub use diff::{Diff, Symbol, parse_diff};
pub use status::parse_status;
pub use tollgate_kit::git::{FileStat, Listing, MAX_ENTRIES, RepoPath, parse_numstat, parse_paths};

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// New, and known to Git.
    Added,
    /// New, and not known to Git.
    Untracked,
    /// Another content, mode or type.
    Modified,
    /// Gone.
    Deleted,
    /// Left by a merge for somebody to resolve.
    Conflicted,
}

/// A path that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The path itself.
    pub path: RepoPath,
    /// Kind of the change.
    pub status: Status,
    /// The mode it has now, as Git writes it in octal: `0o100644`, `0o100755`, `0o120000` for a link,
    /// `0o160000` for a submodule. Git does not tell it of untracked files; none counts as `0o100644`.
    pub mode: Option<u32>,
    /// The hash of its content now, where Git tells it: the work tree is as the index says. Hash the
    /// others with `git hash-object`, so that staging a file does not change what is told of it.
    pub content: Option<String>,
}

impl Change {
    /// True if the file has to be hashed, because Git did not.
    #[must_use]
    pub fn needs_content(&self) -> bool {
        self.content.is_none() && self.status != Status::Deleted
    }

    /// True for a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.mode == Some(LINK_MODE)
    }

    /// True for another repository, whose commit [`parse_diff`] returns.
    #[must_use]
    pub fn is_submodule(&self) -> bool {
        self.mode == Some(SUBMODULE_MODE)
    }
}

/// The mode of a symbolic link.
const LINK_MODE: u32 = 0o120_000;
/// The mode of a submodule.
const SUBMODULE_MODE: u32 = 0o160_000;
