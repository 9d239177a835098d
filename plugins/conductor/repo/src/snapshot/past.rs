//! Knowledge of a walk about the previous one.

use serde::{Deserialize, Serialize};

use super::{FileRecord, Snapshot};
use crate::path;

/// A directory that a walk visited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Path of the directory; `""` for the root.
    pub path: String,
    /// Stamp that shows whether the directory is unchanged; `None` if nothing shows it.
    pub stamp: Option<Stamp>,
    /// Number of entries, including those that are not part of a snapshot.
    pub entries: u32,
    /// Number of entries in the snapshot. Files added to the snapshot later are not counted.
    pub files: u32,
    /// Names of the visited subdirectories, in this order.
    pub subdirectories: Vec<String>,
    /// Names of the entries that `.gitignore` excludes.
    pub excluded: Vec<String>,
}

impl Directory {
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.files).unwrap_or(usize::MAX)
    }

    /// Paths of entries with these names.
    pub(super) fn below<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = String> + 'a {
        names.iter().map(|name| path::below(&self.path, name))
    }
}

/// State that determines a directory's files in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Fingerprint of the directory from the tree.
    pub fingerprint: u64,
    /// Hash of the ignore files in force.
    pub rules: u64,
}

/// The previous snapshot.
pub trait Past {
    /// Start of its walk, in milliseconds since 1970 UTC.
    fn taken(&self) -> i64;

    /// Directories that its walk visited, if known. The files of a directory with a stamp are those from
    /// [`Past::files`]: no excluded files were added.
    fn directories(&self) -> &[Directory];

    /// Its files directly below a directory, by path. Unknown files are read again.
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
