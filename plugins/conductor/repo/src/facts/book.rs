//! Facts by content, kept from one run to the next.

use std::collections::{BTreeSet, HashMap, HashSet};

use foldhash::fast::FixedState;

use super::Facts;
use crate::language;
use crate::snapshot::{Content, Digest, FileRecord, Limits, Snapshot};
use crate::tree::{Entry, Kind, Tree, TreeResult};

/// Facts by key: a file's content, and the part of its name that decides how it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactBook {
    /// Most contents are read in one way only.
    facts: HashMap<Digest, Vec<(String, Facts)>, FixedState>,
    changed: BTreeSet<Digest>,
}

impl FactBook {
    /// Reads a file that a walk passes on.
    pub fn learn(&mut self, file: &FileRecord, bytes: &[u8]) {
        let Some((digest, reading)) = key(file) else {
            return;
        };
        let readings = self.facts.entry(digest).or_default();
        if let Err(place) = readings.binary_search_by(|(known, _)| known.as_str().cmp(reading)) {
            readings.insert(place, (reading.to_owned(), Facts::read(&file.path, bytes)));
            self.changed.insert(digest);
        }
    }

    /// Reads the files of a snapshot that no walk passed on. Returns how many there were; a file that changed
    /// or disappeared since stays without facts.
    pub fn complete<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> TreeResult<usize> {
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

    /// True if there are no facts at all.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Files of a snapshot that should have facts and have none.
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

    /// Facts of a file.
    pub fn of(&self, file: &FileRecord) -> Option<&Facts> {
        let (digest, reading) = key(file)?;
        let mut readings = self.facts.get(&digest)?.iter();
        readings
            .find(|(known, _)| known == reading)
            .map(|(_, facts)| facts)
    }

    /// Drops facts that no file of a snapshot needs.
    pub fn retain(&mut self, snapshot: &Snapshot) {
        let held: HashSet<_, FixedState> = snapshot.files.iter().filter_map(key).collect();
        let changed = &mut self.changed;
        self.facts.retain(|digest, readings| {
            let before = readings.len();
            readings.retain(|(reading, _)| held.contains(&(*digest, reading.as_str())));
            if readings.len() < before {
                changed.insert(*digest);
            }
            !readings.is_empty()
        });
    }

    /// All facts as rows to store: content, reading, facts. Sorted by content, so that the same facts give the
    /// same bytes.
    pub fn rows(&self) -> impl Iterator<Item = (Digest, &str, &Facts)> {
        let mut all: Vec<_> = self.facts.iter().collect();
        all.sort_unstable_by_key(|(digest, _)| **digest);
        all.into_iter().flat_map(|(digest, readings)| {
            let rows = readings.iter();
            rows.map(|(reading, facts)| (*digest, reading.as_str(), facts))
        })
    }

    /// Contents whose facts were added or removed since they were loaded.
    pub fn changed(&self) -> impl Iterator<Item = Digest> {
        self.changed.iter().copied()
    }

    /// Adds a row of [`FactBook::rows`].
    pub fn insert(&mut self, digest: Digest, reading: String, facts: Facts) {
        let readings = self.facts.entry(digest).or_default();
        match readings.binary_search_by(|(known, _)| known.cmp(&reading)) {
            Ok(_) => {}
            Err(place) => readings.insert(place, (reading, facts)),
        }
    }
}

/// Key of a file's facts: its content, and how it is read. Manifests and settings are read by their name, other
/// files by their extension. `None` for files that are not text.
pub fn key(file: &FileRecord) -> Option<(Digest, &str)> {
    let Content::Text { digest } = file.content else {
        return None;
    };
    let name = crate::path::name(&file.path);
    let reading = if language::is_read_by_name(name) {
        name
    } else {
        crate::path::extension(name)
    };
    Some((digest, reading))
}

/// Content of a file, if it is still the one in the snapshot.
fn content<T: Tree + ?Sized>(tree: &T, file: &FileRecord, limits: &Limits) -> TreeResult<Option<Vec<u8>>> {
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
