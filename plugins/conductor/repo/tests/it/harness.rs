//! Trees written as text, and what is made of them as text.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use conductor_repo::facts::FactBook;
use conductor_repo::map::{Notes, RepoMap};
use conductor_repo::snapshot::{Directory, FileRecord, Limits, Past, Snapshot, Taken, take};
use conductor_repo::tree::{Entry, Kind, Listing, Tree, TreeError, TreeResult};

/// A tree in memory. Paths end in `/` for nothing; directories follow from files.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) files: BTreeMap<String, (Vec<u8>, i64)>,
    /// Entries that are no files.
    pub(crate) others: BTreeMap<String, Kind>,
    /// Paths whose reading fails.
    pub(crate) broken: BTreeMap<String, TreeError>,
    pub(crate) reads: Cell<usize>,
    /// Directories whose entries were given.
    pub(crate) listed: RefCell<Vec<String>>,
}

/// All of a snapshot, with what is known of its directories.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Whole {
    pub(crate) snapshot: Snapshot,
    pub(crate) directories: Vec<Directory>,
}

impl Whole {
    /// Combines the result of a walk with the past files that the walk did not repeat.
    pub(crate) fn new(mut taken: Taken, past: Option<&dyn Past>) -> Whole {
        let same = taken
            .same()
            .flat_map(|directory| past.unwrap().files(&directory.path));
        let same: Vec<FileRecord> = same.collect();
        taken.snapshot.files.extend(same);
        taken.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        Whole {
            snapshot: taken.snapshot,
            directories: taken
                .directories
                .into_iter()
                .map(|walked| walked.directory)
                .collect(),
        }
    }
}

impl Past for Whole {
    fn taken(&self) -> i64 {
        self.snapshot.taken
    }

    fn directories(&self) -> &[Directory] {
        &self.directories
    }

    fn files(&self, directory: &str) -> Vec<FileRecord> {
        self.snapshot.files(directory)
    }
}

impl Memory {
    /// Files from text: a line `== path` starts each.
    pub(crate) fn new(text: &str) -> Memory {
        let mut tree = Memory::default();
        for part in text.split("== ").skip(1) {
            let (path, content) = part.split_once('\n').unwrap_or((part, ""));
            tree.put(path.trim(), content.as_bytes());
        }
        tree
    }

    pub(crate) fn put(&mut self, path: &str, content: &[u8]) {
        let modified = self.files.get(path).map_or(1_000, |(_, modified)| modified + 1);
        self.files.insert(path.to_owned(), (content.to_vec(), modified));
    }

    /// A snapshot taken long after the last change.
    pub(crate) fn take(&self, limits: &Limits, past: Option<&dyn Past>) -> (Taken, FactBook) {
        let mut book = FactBook::default();
        let mut observe = |file: &FileRecord, bytes: &[u8]| book.learn(file, bytes);
        let taken = take(self, limits, past, 1_000_000, &mut observe);
        (taken.unwrap(), book)
    }

    pub(crate) fn map(&self, notes: &Notes) -> RepoMap {
        let (taken, book) = self.take(&Limits::default(), None);
        RepoMap::build(&taken.snapshot, &book, notes)
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let below = format!("{path}/");
        let is_directory = || {
            self.files
                .keys()
                .chain(self.others.keys())
                .any(|key| key.starts_with(&below))
        };
        let (kind, size, modified) = if let Some((content, modified)) = self.files.get(path) {
            (Kind::File, content.len(), *modified)
        } else if let Some(kind) = self.others.get(path) {
            (*kind, 0, 0)
        } else if is_directory() {
            (Kind::Directory, 0, 0)
        } else {
            return None;
        };
        Some(Entry {
            path: path.to_owned(),
            kind,
            size: u64::try_from(size).unwrap(),
            modified,
        })
    }
}

impl Tree for Memory {
    fn list(&self, directory: &str, after: Option<&str>, limit: u32) -> TreeResult<Vec<Entry>> {
        if let Some(error) = self.broken.get(directory) {
            return Err(error.clone());
        }
        let prefix = if directory.is_empty() {
            String::new()
        } else {
            format!("{directory}/")
        };
        let mut names: Vec<&str> = self
            .files
            .keys()
            .chain(self.others.keys())
            .filter_map(|path| path.strip_prefix(&prefix)?.split('/').next())
            .filter(|name| after.is_none_or(|after| *name > after))
            .collect();
        names.sort_unstable();
        names.dedup();
        let entries = names
            .into_iter()
            .filter_map(|name| self.entry(&format!("{prefix}{name}")));
        Ok(entries.take(usize::try_from(limit).unwrap()).collect())
    }

    fn list_unless(&self, directory: &str, known: Option<u64>, limit: u32) -> TreeResult<Option<Listing>> {
        let entries = self.list(directory, None, u32::MAX)?;
        let mut hasher = DefaultHasher::new();
        for entry in &entries {
            (
                &entry.path,
                entry.size,
                entry.modified,
                format!("{:?}", entry.kind),
            )
                .hash(&mut hasher);
        }
        let fingerprint = hasher.finish();
        if known == Some(fingerprint) {
            return Ok(None);
        }
        self.listed.borrow_mut().push(directory.to_owned());
        Ok(Some(Listing {
            entries: entries
                .into_iter()
                .take(usize::try_from(limit).unwrap())
                .collect(),
            fingerprint: Some(fingerprint),
        }))
    }

    fn stat(&self, path: &str) -> TreeResult<Entry> {
        self.entry(path)
            .ok_or_else(|| TreeError::NotFound(path.to_owned()))
    }

    fn read(&self, path: &str, offset: u64, limit: u32) -> TreeResult<Vec<u8>> {
        if let Some(error) = self.broken.get(path) {
            return Err(error.clone());
        }
        let (content, _) = self
            .files
            .get(path)
            .ok_or_else(|| TreeError::NotFound(path.to_owned()))?;
        self.reads.set(self.reads.get() + 1);
        let from = usize::try_from(offset).unwrap().min(content.len());
        let to = content.len().min(from + usize::try_from(limit).unwrap());
        Ok(content[from..to].to_vec())
    }
}

/// The graph of a tree: who imports whom, then what came to nothing, then what is outside.
pub(crate) fn graph(text: &str) -> String {
    let export = Memory::new(text).map(&Notes::default()).export();
    let mut lines = String::new();
    for (from, to) in &export.imports {
        let _ = writeln!(lines, "{from} -> {}", to.join(", "));
    }
    for missing in &export.missing {
        let _ = writeln!(
            lines,
            "missing {}:{} {}",
            missing.path, missing.line, missing.import
        );
    }
    let external: Vec<&str> = export.external.keys().map(String::as_str).collect();
    let _ = writeln!(lines, "external {}", external.join(", "));
    for entry in &export.entry_points {
        let _ = writeln!(
            lines,
            "{:?} {} {}",
            entry.kind,
            entry.name,
            entry.file.as_deref().unwrap_or("-")
        );
    }
    lines
}
