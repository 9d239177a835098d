//! Files of a snapshot by path, by directory and by their facts.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::facts::{FactBook, Facts};
use crate::language::{Language, Role};
use crate::manifest::Manifest;
use crate::path;
use crate::snapshot::{FileRecord, Snapshot};
use crate::tree::Above;

/// Files of a snapshot with their facts.
pub(crate) struct Index<'a> {
    files: &'a [FileRecord],
    above: &'a Above,
    places: HashMap<&'a str, usize, FixedState>,
    facts: Vec<Option<&'a Facts>>,
    kinds: Vec<(Role, Option<Language>)>,
    /// Files directly in each directory, for all directories with files below them.
    directories: HashMap<&'a str, Directory<'a>, FixedState>,
}

/// Direct children of a directory.
#[derive(Default)]
struct Directory<'a> {
    files: Vec<usize>,
    directories: Vec<&'a str>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, book: &'a FactBook) -> Index<'a> {
        let mut directories: HashMap<&str, Directory<'_>, FixedState> = HashMap::default();
        for (at, file) in snapshot.files.iter().enumerate() {
            let mut inside = path::parent(&file.path);
            let is_new = !directories.contains_key(inside);
            directories.entry(inside).or_default().files.push(at);
            // A new directory is new to all directories above it, up to a known one.
            for above in path::ancestors(inside).take_while(|_| is_new) {
                let above_is_known = directories.contains_key(above);
                directories.entry(above).or_default().directories.push(inside);
                inside = above;
                if above_is_known {
                    break;
                }
            }
        }
        let places = snapshot
            .files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path.as_str(), at));
        Index {
            files: &snapshot.files,
            above: &snapshot.above,
            places: places.collect(),
            facts: snapshot.files.iter().map(|file| book.of(file)).collect(),
            kinds: snapshot
                .files
                .iter()
                .map(|file| (Role::of(&file.path), Language::of(&file.path)))
                .collect(),
            directories,
        }
    }

    /// Ignore files above the root.
    pub(crate) fn above(&self) -> &'a Above {
        self.above
    }

    /// Index of the file at a path.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        self.places.get(path).copied()
    }

    /// Index of the first of these paths that exists.
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

    /// Role of a file, by its path.
    pub(crate) fn role(&self, file: usize) -> Role {
        self.kinds.get(file).map_or(Role::Asset, |(role, _)| *role)
    }

    pub(crate) fn language(&self, file: usize) -> Option<Language> {
        self.kinds.get(file).and_then(|(_, language)| *language)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn has_directory(&self, directory: &str) -> bool {
        self.directories.contains_key(directory)
    }

    /// Files below a directory, at any depth.
    pub(crate) fn below(&self, directory: &str) -> std::ops::Range<usize> {
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let start = self
            .files
            .partition_point(|file| file.path.as_str() < prefix.as_str());
        let rest = self.files.get(start..).unwrap_or_default();
        start..start + rest.partition_point(|file| file.path.starts_with(&prefix))
    }

    /// Files directly in a directory.
    pub(crate) fn in_directory(&self, directory: &str) -> &[usize] {
        self.directories.get(directory).map_or(&[], |found| &found.files)
    }

    /// Directories directly in a directory.
    pub(crate) fn directories_in(&self, directory: &str) -> &[&'a str] {
        self.directories
            .get(directory)
            .map_or(&[], |found| &found.directories)
    }

    /// All directories, by path.
    pub(crate) fn directories(&self) -> Vec<&'a str> {
        let mut directories: Vec<&str> = self.directories.keys().copied().collect();
        directories.sort_unstable();
        directories
    }

    /// All manifests, each with the index of its file.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (usize, &'a Manifest)> {
        let manifest =
            |(at, facts): (usize, &Option<&'a Facts>)| Some((at, facts.as_ref()?.manifest.as_ref()?));
        self.facts.iter().enumerate().filter_map(manifest)
    }
}
