//! File tree behind a trait: the host's `workspace` capability, a directory or a test's map.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Result of reading a tree.
pub type TreeResult<T> = Result<T, TreeError>;

/// Files below a root. Paths are relative to it, use `/`, and the root is `""`.
pub trait Tree {
    /// Entries directly below a directory, sorted by name, after the entry named `after`.
    fn list(&self, directory: &str, after: Option<&str>, limit: u32) -> TreeResult<Vec<Entry>>;

    /// First entries, unless the directory's fingerprint is the known one. By default there are no
    /// fingerprints.
    fn list_unless(&self, directory: &str, known: Option<u64>, limit: u32) -> TreeResult<Option<Listing>> {
        let _ = known;
        Ok(Some(Listing {
            entries: self.list(directory, None, limit)?,
            fingerprint: None,
        }))
    }

    /// Entry at a path. A symbolic link is not followed.
    fn stat(&self, path: &str) -> TreeResult<Entry>;

    /// At most `limit` bytes of a file from `offset`; empty at its end.
    fn read(&self, path: &str, offset: u64, limit: u32) -> TreeResult<Vec<u8>>;

    /// Ignore files of the directories above the root, for a root below the top of its repository. By default there
    /// are none.
    fn above(&self) -> TreeResult<Above> {
        Ok(Above::default())
    }

    /// Announces the next requests, in this order and before the rest of earlier announcements, for trees that
    /// can prefetch.
    fn expect(&self, _next: &[Upcoming<'_>]) {}
}

/// Ignore files that apply in a tree and are above its root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Above {
    /// Root relative to the top of the repository, with a slash at its end. Empty if the root is the top.
    pub prefix: String,
    /// Ignore files by their path relative to the top, from the top down. Those that apply everywhere come first,
    /// under a path without a directory.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A future request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcoming<'a> {
    /// [`Tree::list_unless`], with the known fingerprint and this limit.
    List(&'a str, Option<u64>, u32),
    /// [`Tree::read`] from the beginning, with this limit.
    Read(&'a str, u32),
}

/// First entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Entries sorted by name.
    pub entries: Vec<Entry>,
    /// Fingerprint that changes when entries are added, removed or changed (kind, size or time, not the content
    /// of subdirectories), if the tree has one. The fingerprint is not newer than `entries`.
    pub fingerprint: Option<u64>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the root.
    pub path: String,
    /// Kind of the entry.
    pub kind: Kind,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// Time of modification in milliseconds since 1970 UTC.
    pub modified: i64,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// File with content.
    File,
    /// A directory.
    Directory,
    /// Symbolic link to any target.
    Symlink,
    /// Device, socket or pipe.
    Other,
    /// Entry whose name is not UTF-8. The path is the output of [`crate::path::from_bytes`] and opens nothing.
    Unnamed,
}

/// Error of a tree.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    /// Unknown or not granted workspace.
    #[error("workspace `{0}` is unknown or not granted")]
    UnknownWorkspace(String),
    /// Path outside the tree.
    #[error("`{0}` is outside of the readable files")]
    Denied(String),
    /// Path that does not exist.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// Path of the wrong kind for the request.
    #[error("`{0}` is of the wrong kind")]
    WrongKind(String),
    /// Path that exists and cannot be read, with the reason.
    #[error("{0}")]
    Unreadable(String),
    /// Content beyond a size limit.
    #[error("`{0}` is too large")]
    TooLarge(String),
    /// Failure of the tree itself.
    #[error("reading the workspace failed")]
    Internal,
}

impl TreeError {
    /// Checks whether nothing else in the tree can be read either.
    pub(crate) const fn is_fatal(&self) -> bool {
        match self {
            TreeError::UnknownWorkspace(_) | TreeError::Internal => true,
            TreeError::Denied(_)
            | TreeError::Unreadable(_)
            | TreeError::NotFound(_)
            | TreeError::WrongKind(_)
            | TreeError::TooLarge(_) => false,
        }
    }
}
