//! A file tree as this crate sees it: the host's `workspace` capability, a directory or a test's map.

use thiserror::Error;

/// Files below a root. Paths are relative to it, use `/`, and the root is `""`.
pub trait Tree {
    /// The entries directly below a directory, sorted by name, after the entry named `after`.
    fn list(&self, directory: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, TreeError>;

    /// The first entries, unless the directory's fingerprint is what is known. By default there are no
    /// fingerprints.
    fn list_unless(
        &self,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, TreeError> {
        let _ = known;
        Ok(Some(Listing {
            entries: self.list(directory, None, limit)?,
            fingerprint: None,
        }))
    }

    /// What a path is. A symbolic link is not followed.
    fn stat(&self, path: &str) -> Result<Entry, TreeError>;

    /// At most `limit` bytes of a file from `offset`; none at its end.
    fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Vec<u8>, TreeError>;

    /// Says what will be asked for next, in this order and before what is left of earlier hints, for trees
    /// that can look ahead.
    fn expect(&self, _next: &[Upcoming<'_>]) {}
}

/// A request that will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcoming<'a> {
    /// [`Tree::list_unless`], with what is known and this limit.
    List(&'a str, Option<u64>, u32),
    /// [`Tree::read`] from the beginning, with this limit.
    Read(&'a str, u32),
}

/// The first entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by name.
    pub entries: Vec<Entry>,
    /// Another one when entries come, go or change, if the tree can tell: kind, size or time, not what is
    /// below a subdirectory. It is no newer than `entries`.
    pub fingerprint: Option<u64>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// Milliseconds since 1970 UTC.
    pub modified: i64,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with content.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, wherever it points.
    Symlink,
    /// A device, a socket or a pipe.
    Other,
    /// Its name is not UTF-8. The path is what [`crate::path::from_bytes`] makes of it and opens nothing.
    Unnamed,
}

/// Why the tree refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    /// No tree of this name, or it was not granted.
    #[error("workspace `{0}` is unknown or not granted")]
    UnknownWorkspace(String),
    /// The path leaves the tree.
    #[error("`{0}` is outside of what may be read")]
    Denied(String),
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// The path is not of the kind the request wants.
    #[error("`{0}` is of another kind than asked for")]
    WrongKind(String),
    /// It is there and cannot be read, for this reason.
    #[error("{0}")]
    Unreadable(String),
    /// The content passes a size cap.
    #[error("`{0}` is too large")]
    TooLarge(String),
    /// The tree itself failed.
    #[error("reading the workspace failed")]
    Internal,
}

impl TreeError {
    /// Whether nothing else in the tree can be read either.
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
