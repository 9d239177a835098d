//! The files of a snapshot by path, by directory and by what they say.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::facts::{FactBook, Facts};
use crate::manifest::Manifest;
use crate::path;
use crate::snapshot::{FileRecord, Snapshot};

/// The files of a snapshot with their facts.
pub(crate) struct Index<'a> {
    files: &'a [FileRecord],
    places: HashMap<&'a str, usize>,
    facts: Vec<Option<&'a Facts>>,
    /// The files directly in each directory, and each directory above one with files.
    directories: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, book: &'a FactBook) -> Index<'a> {
        let mut directories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, file) in snapshot.files.iter().enumerate() {
            directories.entry(path::parent(&file.path)).or_default().push(at);
            for directory in path::ancestors(path::parent(&file.path)) {
                directories.entry(directory).or_default();
            }
        }
        let places = snapshot
            .files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path.as_str(), at));
        Index {
            files: &snapshot.files,
            places: places.collect(),
            facts: snapshot.files.iter().map(|file| book.of(file)).collect(),
            directories,
        }
    }

    /// The place of the file at a path.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        self.places.get(path).copied()
    }

    /// The place of the first of these paths that exists.
    pub(crate) fn first<S: AsRef<str>>(&self, paths: impl IntoIterator<Item = S>) -> Option<usize> {
        paths.into_iter().find_map(|path| self.find(path.as_ref()))
    }

    pub(crate) fn path(&self, file: usize) -> &'a str {
        self.files.get(file).map_or("", |file| &file.path)
    }

    pub(crate) fn record(&self, file: usize) -> Option<&'a FileRecord> {
        self.files.get(file)
    }

    pub(crate) fn facts(&self, file: usize) -> Option<&'a Facts> {
        self.facts.get(file).copied().flatten()
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn has_directory(&self, directory: &str) -> bool {
        self.directories.contains_key(directory)
    }

    /// The files directly in a directory.
    pub(crate) fn in_directory(&self, directory: &str) -> &[usize] {
        self.directories.get(directory).map_or(&[], Vec::as_slice)
    }

    /// The directories directly in a directory.
    pub(crate) fn directories_in(&self, directory: &str) -> Vec<&'a str> {
        let prefix = path::below(directory, "");
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let inside = self.directories.range::<str, _>(from).map(|(path, _)| *path);
        inside
            .take_while(|path| path.starts_with(&prefix))
            .filter(|path| !path.is_empty() && path::parent(path) == directory)
            .collect()
    }

    /// All directories, by path.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &'a str> {
        self.directories.keys().copied()
    }

    /// Each manifest with the file it is in.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (usize, &'a Manifest)> {
        let manifest =
            |(at, facts): (usize, &Option<&'a Facts>)| Some((at, facts.as_ref()?.manifest.as_ref()?));
        self.facts.iter().enumerate().filter_map(manifest)
    }
}
