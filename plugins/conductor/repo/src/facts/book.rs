//! Facts by content, kept from one run to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::Facts;
use crate::language::Role;
use crate::snapshot::{Content, Digest, FileRecord, Limits, Snapshot};
use crate::tree::{Entry, Kind, Tree, TreeError};

/// Facts by what they hang on: a file's content, and its name as far as it says how to read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactBook {
    facts: BTreeMap<(Digest, String), Facts>,
}

impl FactBook {
    /// Reads a file that a walk shows.
    pub fn learn(&mut self, file: &FileRecord, bytes: &[u8]) {
        if let Some(key) = key(file) {
            self.facts
                .entry(key)
                .or_insert_with(|| Facts::read(&file.path, bytes));
        }
    }

    /// Reads the files of a snapshot that no walk showed. Says how many those were; a file that
    /// changed or went meanwhile stays without facts.
    pub fn complete<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> Result<usize, TreeError> {
        let mut read = 0;
        let unread: Vec<&FileRecord> = self.unread(snapshot, limits).collect();
        for file in unread {
            match content(tree, file, limits) {
                Ok(Some(bytes)) => self.learn(file, &bytes),
                Ok(None) => continue,
                Err(error) if error.is_fatal() => return Err(error),
                Err(_) => continue,
            }
            read += 1;
        }
        Ok(read)
    }

    /// The files of a snapshot that should have facts and have none.
    pub fn unread<'a>(
        &self,
        snapshot: &'a Snapshot,
        limits: &Limits,
    ) -> impl Iterator<Item = &'a FileRecord> {
        let most = limits.observed_bytes;
        let is_read = move |file: &&FileRecord| {
            !matches!(file.content, Content::Text { .. }) || file.size > most || self.of(file).is_some()
        };
        snapshot.files.iter().filter(move |file| !is_read(file))
    }

    /// The facts of a file.
    pub fn of(&self, file: &FileRecord) -> Option<&Facts> {
        self.facts.get(&key(file)?)
    }

    /// Forgets what no file of a snapshot holds any more.
    pub fn retain(&mut self, snapshot: &Snapshot) {
        let held: BTreeSet<_> = snapshot.files.iter().filter_map(key).collect();
        self.facts.retain(|key, _| held.contains(key));
    }

    /// Everything, to be kept: content, how it was read, facts.
    pub fn rows(&self) -> impl Iterator<Item = (Digest, &str, &Facts)> {
        self.facts
            .iter()
            .map(|((digest, reading), facts)| (*digest, reading.as_str(), facts))
    }

    /// Takes back what [`FactBook::rows`] gave.
    pub fn insert(&mut self, digest: Digest, reading: String, facts: Facts) {
        self.facts.insert((digest, reading), facts);
    }
}

/// A manifest is read by its name, everything else by its extension.
fn key(file: &FileRecord) -> Option<(Digest, String)> {
    let Content::Text { digest } = file.content else {
        return None;
    };
    let name = crate::path::name(&file.path);
    let reading = if matches!(Role::of(name), Role::Manifest | Role::Generated) {
        name
    } else {
        crate::path::extension(name)
    };
    Some((digest, reading.to_owned()))
}

/// A file's content, if it still is what the snapshot saw.
fn content<T: Tree + ?Sized>(
    tree: &T,
    file: &FileRecord,
    limits: &Limits,
) -> Result<Option<Vec<u8>>, TreeError> {
    let entry = Entry {
        path: file.path.clone(),
        kind: Kind::File,
        size: file.size,
        modified: file.modified,
    };
    let mut reader = crate::snapshot::Reader::default();
    let (content, bytes) = reader.read(tree, &entry, limits)?;
    Ok(bytes.filter(|_| content == file.content).map(<[u8]>::to_vec))
}
