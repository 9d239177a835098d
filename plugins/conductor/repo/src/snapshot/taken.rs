//! Result of a walk.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use super::past::Directory;

/// A snapshot, and the work done for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Files of directories that changed since the previous snapshot.
    pub snapshot: Snapshot,
    /// All visited directories, in the order of the visit.
    pub directories: Vec<Walked>,
    /// Work done by the walk.
    pub effort: Effort,
}

/// A visited directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Current state of the directory.
    pub directory: Directory,
    /// True if its files are those of the previous snapshot, which are not repeated.
    pub is_same: bool,
}

impl Taken {
    /// Directories whose files are those of the previous snapshot.
    pub fn same(&self) -> impl Iterator<Item = &Directory> {
        let same = self.directories.iter().filter(|walked| walked.is_same);
        same.map(|walked| &walked.directory)
    }

    /// Entries that `.gitignore` excludes. Excluded directories were not visited.
    pub fn excluded(&self) -> impl Iterator<Item = String> {
        let directories = self.directories.iter().map(|walked| &walked.directory);
        directories.flat_map(|directory| directory.below(&directory.excluded))
    }

    /// Selects the given files that are excluded or below an excluded directory.
    pub fn excluded_of<'a>(&self, files: impl Iterator<Item = &'a str>) -> Vec<String> {
        let excluded: HashSet<String> = self.excluded().collect();
        let mut known = self.snapshot.files.iter().peekable();
        let mut is_excluded = |file: &str| {
            // Both lists are mostly sorted, so that found entries are passed without a search.
            while known.next_if(|known| known.path.as_str() < file).is_some() {}
            if known.peek().is_some_and(|known| known.path == file) {
                return false;
            }
            let slashes = file.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
            let mut directories = slashes.filter_map(|(at, _)| file.get(..at));
            excluded.contains(file) || directories.any(|directory| excluded.contains(directory))
        };
        files
            .filter(|file| is_excluded(file))
            .map(str::to_owned)
            .collect()
    }
}

/// Work done by a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Directory entries listed.
    pub listed: u64,
    /// Entries that `.gitignore` excludes.
    pub ignored: u64,
    /// Files whose content was read.
    pub read: u64,
    /// Bytes read.
    pub bytes: u64,
}
