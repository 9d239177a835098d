//! Difference between two snapshots.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Content, Digest, FileRecord, Snapshot};
use crate::path;

/// Changed files, each list by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// New files.
    pub added: Vec<String>,
    /// Removed files.
    pub removed: Vec<String>,
    /// Files with other content.
    pub modified: Vec<String>,
    /// Files with the same content at another path.
    pub renamed: Vec<Rename>,
    /// Number of unchanged files.
    pub unchanged: usize,
}

impl Diff {
    /// Checks whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.modified.is_empty()
            && self.renamed.is_empty()
    }
}

/// A renamed file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rename {
    /// Old path.
    pub from: String,
    /// New path.
    pub to: String,
}

/// Compares a snapshot with a later one.
pub fn diff(before: &Snapshot, after: &Snapshot) -> Diff {
    let mut diff = Diff::default();
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let (mut old_files, mut new_files) = (before.files.iter().peekable(), after.files.iter().peekable());
    loop {
        match (old_files.peek(), new_files.peek()) {
            (None, None) => break,
            (Some(old), Some(file)) if old.path == file.path => {
                if is_same(old, file) {
                    diff.unchanged += 1;
                } else {
                    diff.modified.push(file.path.clone());
                }
                old_files.next();
                new_files.next();
            }
            (Some(old), file) if file.is_none_or(|file| old.path < file.path) => {
                gone.extend(old_files.next())
            }
            _ => new.extend(new_files.next()),
        }
    }
    diff.renamed = renames(&mut gone, &mut new);
    diff.removed = gone.into_iter().map(|file| file.path.clone()).collect();
    diff.added = new.into_iter().map(|file| file.path.clone()).collect();
    diff
}

/// Compares huge files by their ends, links by their length, and unread files by size and time.
fn is_same(old: &FileRecord, new: &FileRecord) -> bool {
    match new.content {
        Content::Text { .. } | Content::Binary { .. } => old.content == new.content,
        Content::Symlink => old.content == new.content && old.size == new.size,
        Content::Huge { .. } | Content::Other | Content::Unread => {
            old.content == new.content && old.size == new.size && old.modified == new.modified
        }
    }
}

/// Moves pairs with the same content from both lists into renames: first pairs that kept their name, then by
/// path. Empty files do not match each other.
fn renames(gone: &mut Vec<&FileRecord>, new: &mut Vec<&FileRecord>) -> Vec<Rename> {
    let mut found: Vec<Rename> = Vec::new();
    for keeps_name in [true, false] {
        let mut sources: BTreeMap<(Digest, &str), Vec<&FileRecord>> = BTreeMap::new();
        let key = |file: &FileRecord| file.digest().filter(|_| file.size > 0);
        let name = |path| if keeps_name { path::name(path) } else { "" };
        for file in gone.iter().rev() {
            if let Some(digest) = key(file) {
                sources.entry((digest, name(&file.path))).or_default().push(file);
            }
        }
        new.retain(|file| {
            let source = key(file)
                .and_then(|digest| sources.get_mut(&(digest, name(&file.path))))
                .and_then(Vec::pop);
            found.extend(source.map(|source| Rename {
                from: source.path.clone(),
                to: file.path.clone(),
            }));
            source.is_none()
        });
        let moved: BTreeSet<&str> = found.iter().map(|rename| rename.from.as_str()).collect();
        gone.retain(|file| !moved.contains(file.path.as_str()));
    }
    found.sort();
    found
}
