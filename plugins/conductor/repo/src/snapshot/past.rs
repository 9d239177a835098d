//! What a walk knows from the one before it.

use serde::{Deserialize, Serialize};

use super::{FileRecord, Snapshot};
use crate::path;

/// A directory that a walk went through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Where; `""` for the root.
    pub path: String,
    /// What tells that it is still the same; none if nothing does.
    pub stamp: Option<Stamp>,
    /// All entries, also those that do not belong to a snapshot.
    pub entries: u32,
    /// How many of them are in the snapshot. Files that were added to it are not counted.
    pub files: u32,
    /// Names of those that were gone into, in this order.
    pub subdirectories: Vec<String>,
    /// Names of those that `.gitignore` excludes.
    pub excluded: Vec<String>,
}

impl Directory {
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.files).unwrap_or(usize::MAX)
    }

    /// The paths of entries with these names.
    pub(super) fn below<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = String> + 'a {
        names.iter().map(|name| path::below(&self.path, name))
    }
}

/// What a directory's files in a snapshot hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The tree's fingerprint of it.
    pub fingerprint: u64,
    /// A hash of the ignore files that hold in it.
    pub rules: u64,
}

/// The snapshot before.
pub trait Past {
    /// When its walk began, in milliseconds since 1970 UTC.
    fn taken(&self) -> i64;

    /// The directories it went through, if that is known. Files of a directory with a stamp are those that
    /// [`Past::files`] gives: none were added that `.gitignore` excludes.
    fn directories(&self) -> &[Directory];

    /// Its files directly below a directory, by path. What is not known is read again.
    fn files(&self, directory: &str) -> Vec<FileRecord>;
}

impl Past for Snapshot {
    fn taken(&self) -> i64 {
        self.taken
    }

    fn directories(&self) -> &[Directory] {
        &[]
    }

    fn files(&self, directory: &str) -> Vec<FileRecord> {
        let first = path::below(directory, "");
        let from = self.files.partition_point(|file| file.path < first);
        let rest = self.files.get(from..).unwrap_or_default();
        rest.iter()
            .take_while(|file| file.path.starts_with(&first))
            .filter(|file| path::parent(&file.path) == directory)
            .cloned()
            .collect()
    }
}
