//! Cached data of work tree scans, kept for each workspace.

mod stamp;
mod sum;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

pub(crate) use stamp::Stamp;
pub(crate) use sum::Sum;

/// Data of earlier scans of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Sums of commits.
    pub(crate) commits: HashMap<String, Sum>,
    /// Hashes of files that differed in the last scan.
    pub(crate) hashes: Hashes,
    /// Contents of files that differ or recently did, by hash, for diffs of their next change.
    pub(crate) contents: HashMap<String, Arc<[u8]>>,
    /// Differences in the index that Git does not show.
    pub(crate) index: Known,
    /// Texts of ignore files, by commit and path.
    pub(crate) rules: HashMap<(String, String), Vec<u8>>,
    /// Files that test runs write.
    pub(crate) of_tests: OfTests,
    /// Time of the last scan that timed out, for example because Git waited for a pipe in place of one of its own
    /// files.
    pub(crate) timed_out: Option<Instant>,
}

/// Hashes of files by path, with the metadata at the time of hashing.
pub(crate) type Hashes = HashMap<Vec<u8>, (Stamp, String)>;

/// Untracked files that test runs created, or changed without an earlier edit.
pub(crate) type OfTests = BTreeSet<String>;

/// A file in a commit or in the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Mode, such as `100644`.
    pub(crate) mode: String,
    /// Hash of the content. Absent if Git does not report it.
    pub(crate) hash: Option<String>,
}

/// An index entry that `git status` does not fully check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) file: File,
    /// True if Git was told not to check the file.
    pub(crate) is_flagged: bool,
    /// True if the file may be absent, like files outside a sparse checkout.
    pub(crate) is_skipped: bool,
}

/// Entries of interest, and the index that they were read from.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) index: Option<Stamp>,
    pub(crate) entries: Vec<IndexEntry>,
}
