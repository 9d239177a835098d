//! Data that looks at the work tree of a workspace keep for later looks.

mod stamp;
mod sum;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

pub(crate) use stamp::Stamp;
pub(crate) use sum::Sum;

/// Data of earlier looks at a workspace, for reuse by later ones.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Sums of commits.
    pub(crate) commits: HashMap<String, Sum>,
    /// Hashes of files that differed when they were last looked at.
    pub(crate) hashes: Hashes,
    /// Contents of files that differ or lately did, by hash, so that the next change of them can be told.
    pub(crate) contents: HashMap<String, Arc<[u8]>>,
    /// Facts of the index that Git does not show.
    pub(crate) index: Known,
    /// Texts of ignore files, by commit and path.
    pub(crate) rules: HashMap<(String, String), Vec<u8>>,
    /// Files that test runs write.
    pub(crate) of_tests: OfTests,
    /// The latest look that took too long, such as one in which Git waits for a pipe that is named like a file of its own.
    pub(crate) timed_out: Option<Instant>,
}

/// Hashes of files by path, with the metadata that they had.
pub(crate) type Hashes = HashMap<Vec<u8>, (Stamp, String)>;

/// Untracked files that test runs made, or changed though nobody had edited them before.
pub(crate) type OfTests = BTreeSet<String>;

/// A file as a commit or the work tree has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Mode, as `100644`.
    pub(crate) mode: String,
    /// Hash of the content. Absent where Git does not tell it.
    pub(crate) hash: Option<String>,
}

/// An entry of the index that `git status` does not look at closely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) file: File,
    /// True if Git was told not to look at the file.
    pub(crate) is_flagged: bool,
    /// True if the file may be absent, as files outside of a sparse checkout are.
    pub(crate) is_skipped: bool,
}

/// Entries of interest, and the index that they were read from.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) index: Option<Stamp>,
    pub(crate) entries: Vec<IndexEntry>,
}
