//! The walk that makes a snapshot.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::content::{Reader, piece_limit};
use super::{Content, FileRecord, Limits, Problem, Snapshot, Trouble};
use crate::ignore::Rules;
use crate::path;
use crate::tree::{Entry, Kind, Tree, TreeError, Upcoming};

/// Entries asked for at once.
const PAGE: u32 = 1_000;

/// Bytes of an ignore file that are read; Git's own are far below.
const IGNORE_BYTES: u32 = 256 << 10;

/// A file whose time is less than this before the last snapshot is read again: file systems round
/// times, so that a change just after the snapshot may look older than it.
const SETTLED_MS: i64 = 1_000;

/// Sees each text file that is read, with its content.
pub type Observer<'a> = dyn FnMut(&FileRecord, &[u8]) + 'a;

/// A snapshot and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What was found.
    pub snapshot: Snapshot,
    /// What it took.
    pub effort: Effort,
    /// Entries that `.gitignore` excludes. What is below a directory among them was not looked at.
    pub excluded: Vec<String>,
}

impl Taken {
    /// Those of some files that are excluded, or below what is.
    pub fn excluded_of<'a>(&self, files: impl Iterator<Item = &'a str>) -> Vec<String> {
        let excluded: HashSet<&str> = self.excluded.iter().map(String::as_str).collect();
        let mut known = self.snapshot.files.iter().peekable();
        let mut is_excluded = |file: &str| {
            // Both are mostly sorted, so that what was found is passed without a search.
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

/// What a walk did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Entries of directories looked at.
    pub listed: u64,
    /// Entries that `.gitignore` excluded.
    pub ignored: u64,
    /// Files whose content was read.
    pub read: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Walks a tree. `now` is when, in milliseconds since 1970 UTC.
///
/// A file that cannot be read is a problem of the snapshot, not an error: only a tree that cannot
/// be read at all is.
pub fn take<T: Tree + ?Sized>(
    tree: &T,
    limits: &Limits,
    previous: Option<&Snapshot>,
    now: i64,
    observe: &mut Observer<'_>,
) -> Result<Taken, TreeError> {
    let mut walk = Walk::new(tree, limits, previous, observe);
    walk.snapshot.taken = now;
    walk.root(None)?;
    Ok(walk.finish())
}

/// [`take`] with a snapshot before it that takes a while to be had: the tree is told of directories first,
/// so that it can look ahead meanwhile.
pub fn take_after<'a, T: Tree + ?Sized>(
    tree: &'a T,
    limits: &'a Limits,
    previous: &dyn Fn() -> Option<&'a Snapshot>,
    now: i64,
    observe: &'a mut Observer<'_>,
) -> Result<Taken, TreeError> {
    let mut walk = Walk::new(tree, limits, None, observe);
    walk.snapshot.taken = now;
    walk.root(Some(previous))?;
    Ok(walk.finish())
}

/// Adds files that `.gitignore` excludes and Git tracks all the same: their names are in Git's index,
/// which a walk does not read. What is not there, no file, or known already is passed over.
pub fn add<T: Tree + ?Sized>(
    tree: &T,
    limits: &Limits,
    previous: Option<&Snapshot>,
    taken: Taken,
    tracked: &[String],
    observe: &mut Observer<'_>,
) -> Result<Taken, TreeError> {
    if tracked.is_empty() {
        return Ok(taken);
    }
    let mut walk = Walk::new(tree, limits, previous, observe);
    for path in tracked {
        if taken.snapshot.file(path).is_some() {
            continue;
        }
        match tree.stat(path) {
            Ok(entry) if entry.kind == Kind::Directory => {}
            Ok(entry) if taken.snapshot.files.len() + walk.snapshot.files.len() < limits.entries => {
                let known = walk.unchanged(&entry);
                walk.file(entry, known)?;
            }
            Ok(_) => walk.problem(path, Trouble::TooMany),
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => {}
        }
    }
    walk.snapshot.taken = taken.snapshot.taken;
    walk.snapshot.files.extend(taken.snapshot.files);
    walk.snapshot.problems.extend(taken.snapshot.problems);
    let mut both = walk.finish();
    both.snapshot.files.dedup_by(|a, b| a.path == b.path);
    both.excluded = taken.excluded;
    both.effort.listed += taken.effort.listed;
    both.effort.ignored += taken.effort.ignored;
    both.effort.read += taken.effort.read;
    both.effort.bytes += taken.effort.bytes;
    Ok(both)
}

struct Walk<'a, 'o, T: ?Sized> {
    tree: &'a T,
    limits: &'a Limits,
    previous: Option<&'a Snapshot>,
    /// Where the next file is expected in it: both are in nearly the same order.
    expected: usize,
    observe: &'a mut Observer<'o>,
    rules: Rules,
    reader: Reader,
    snapshot: Snapshot,
    effort: Effort,
    excluded: Vec<String>,
}

impl<'a, 'o, T: Tree + ?Sized> Walk<'a, 'o, T> {
    fn new(
        tree: &'a T,
        limits: &'a Limits,
        previous: Option<&'a Snapshot>,
        observe: &'a mut Observer<'o>,
    ) -> Walk<'a, 'o, T> {
        Walk {
            tree,
            limits,
            previous,
            expected: 0,
            observe,
            rules: Rules::default(),
            reader: Reader::default(),
            snapshot: Snapshot::default(),
            effort: Effort::default(),
            excluded: Vec::new(),
        }
    }

    fn finish(mut self) -> Taken {
        self.effort.bytes += self.reader.bytes;
        self.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.snapshot.problems.sort();
        Taken {
            snapshot: self.snapshot,
            effort: self.effort,
            excluded: self.excluded,
        }
    }

    /// Walks everything. With a snapshot before it, hints are given before that is asked for: only of
    /// directories, because nobody knows yet which files will be read.
    fn root(&mut self, previous: Option<&dyn Fn() -> Option<&'a Snapshot>>) -> Result<(), TreeError> {
        if let Some(content) = self.ignore_file(".git/info/exclude")? {
            self.rules.exclude(&content);
        }
        let entries = self.entries("")?;
        let entries = self.wanted("", entries)?;
        match previous {
            None => {
                let entries = self.with_known(entries);
                self.look_ahead(&entries, 0);
                self.each(entries, 0)
            }
            Some(previous) => {
                let directories = entries.iter().filter(|entry| entry.kind == Kind::Directory);
                let next = directories.map(|entry| Upcoming::List(&entry.path, PAGE));
                self.tree.expect(&next.collect::<Vec<_>>());
                self.previous = previous();
                let entries = self.with_known(entries);
                self.each(entries, 0)
            }
        }
    }

    fn directory(&mut self, directory: &str, entries: Vec<Entry>, depth: usize) -> Result<(), TreeError> {
        let outside = self.rules.depth();
        let entries = self.wanted(directory, entries)?;
        let entries = self.with_known(entries);
        self.look_ahead(&entries, depth);
        self.each(entries, depth)?;
        self.rules.leave(outside);
        Ok(())
    }

    /// What belongs to a snapshot. Rules of the directory's own hold from here on.
    fn wanted(&mut self, directory: &str, mut entries: Vec<Entry>) -> Result<Vec<Entry>, TreeError> {
        let ignore_file = path::below(directory, ".gitignore");
        if entries.iter().any(|entry| entry.path == ignore_file)
            && let Some(content) = self.ignore_file(&ignore_file)?
        {
            self.rules.enter(&ignore_file, &content);
        }
        entries.retain(|entry| path::name(&entry.path) != ".git");
        let rules = &self.rules;
        let excluded = entries.extract_if(.., |entry| {
            rules.excludes(&entry.path, entry.kind == Kind::Directory)
        });
        let known = self.excluded.len();
        self.excluded.extend(excluded.map(|entry| entry.path));
        self.effort.ignored += u64::try_from(self.excluded.len() - known).unwrap_or(u64::MAX);
        Ok(entries)
    }

    /// Entries with what is known of files that have not changed.
    fn with_known(&mut self, entries: Vec<Entry>) -> Vec<(Entry, Option<Content>)> {
        let with_known = |entry: Entry| {
            let known = self.unchanged(&entry);
            (entry, known)
        };
        entries.into_iter().map(with_known).collect()
    }

    /// Goes into directories and notes everything else.
    fn each(&mut self, entries: Vec<(Entry, Option<Content>)>, depth: usize) -> Result<(), TreeError> {
        for (entry, known) in entries {
            if self.is_full() {
                break;
            }
            match entry.kind {
                Kind::Directory => self.subdirectory(&entry, depth)?,
                _ => self.file(entry, known)?,
            }
        }
        Ok(())
    }

    /// Tells the tree what will be listed and read.
    fn look_ahead(&self, entries: &[(Entry, Option<Content>)], depth: usize) {
        let next = entries.iter().filter_map(|(entry, known)| match entry.kind {
            Kind::Directory if depth < self.limits.depth => Some(Upcoming::List(&entry.path, PAGE)),
            Kind::File if known.is_none() && entry.size > 0 => {
                Some(Upcoming::Read(&entry.path, piece_limit(entry.size)))
            }
            _ => None,
        });
        let next: Vec<Upcoming<'_>> = next.collect();
        if !next.is_empty() {
            self.tree.expect(&next);
        }
    }

    fn subdirectory(&mut self, entry: &Entry, depth: usize) -> Result<(), TreeError> {
        if depth >= self.limits.depth {
            self.problem(&entry.path, Trouble::TooDeep);
            return Ok(());
        }
        let entries = match self.entries(&entry.path) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(&entry.path, error),
        };
        let git = path::below(&entry.path, ".git");
        if entries.iter().any(|entry| entry.path == git) {
            self.problem(&entry.path, Trouble::OtherRepository);
            return Ok(());
        }
        self.directory(&entry.path, entries, depth + 1)
    }

    fn file(&mut self, entry: Entry, known: Option<Content>) -> Result<(), TreeError> {
        if self.snapshot.files.len() >= self.limits.entries {
            self.problem(&entry.path, Trouble::TooMany);
            return Ok(());
        }
        let content = match (known, entry.kind) {
            (Some(content), _) => content,
            (None, Kind::Symlink) => Content::Symlink,
            (None, Kind::File) => return self.read(entry),
            (None, Kind::Other | Kind::Directory) => Content::Other,
            (None, Kind::Unnamed) => {
                self.problem(&entry.path, Trouble::NameNotUtf8);
                Content::Other
            }
        };
        self.snapshot.files.push(record(entry, content));
        Ok(())
    }

    /// What is known of a file that has not changed since.
    fn unchanged(&mut self, entry: &Entry) -> Option<Content> {
        let previous = self.previous?;
        let next = previous.files.get(self.expected);
        if next.is_none_or(|next| next.path != entry.path) {
            let path = entry.path.as_str();
            let found = previous
                .files
                .binary_search_by(|file| file.path.as_str().cmp(path));
            self.expected = found.ok()?;
        }
        let known = previous.files.get(self.expected)?;
        self.expected += 1;
        let settled = known.modified < previous.taken.saturating_sub(SETTLED_MS);
        let same = known.size == entry.size && known.modified == entry.modified;
        let was_file = !matches!(known.content, Content::Symlink | Content::Other | Content::Unread);
        (settled && same && was_file && entry.kind == Kind::File).then_some(known.content)
    }

    fn read(&mut self, entry: Entry) -> Result<(), TreeError> {
        self.effort.read += 1;
        match self.reader.read(self.tree, &entry, self.limits) {
            Ok((content, observed)) => {
                let record = record(entry, content);
                if let Some(bytes) = observed {
                    (self.observe)(&record, bytes);
                }
                self.snapshot.files.push(record);
            }
            Err(error) => {
                self.unreadable(&entry.path, error)?;
                self.snapshot.files.push(record(entry, Content::Unread));
            }
        }
        Ok(())
    }

    /// All entries of a directory. They are few, or the snapshot will be full of them.
    fn entries(&mut self, directory: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries: Vec<Entry> = Vec::new();
        while entries.len() <= self.limits.entries {
            let after = entries.last().map(|entry| path::name(&entry.path).to_owned());
            let page = self.tree.list(directory, after.as_deref(), PAGE)?;
            let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            entries.extend(page);
            if is_last {
                break;
            }
        }
        self.effort.listed += u64::try_from(entries.len()).unwrap_or(u64::MAX);
        Ok(entries)
    }

    /// An ignore file that cannot be read rules nothing, as for Git.
    fn ignore_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        match self.tree.read(path, 0, IGNORE_BYTES) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_fatal() => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn is_full(&self) -> bool {
        let full = |problem: &Problem| problem.what == Trouble::TooMany;
        self.snapshot.problems.last().is_some_and(full)
    }

    fn unreadable(&mut self, path: &str, error: TreeError) -> Result<(), TreeError> {
        if error.is_fatal() {
            return Err(error);
        }
        self.problem(path, Trouble::Unreadable(error.to_string()));
        Ok(())
    }

    fn problem(&mut self, path: &str, what: Trouble) {
        let path = path.to_owned();
        self.snapshot.problems.push(Problem { path, what });
    }
}

fn record(entry: Entry, content: Content) -> FileRecord {
    FileRecord {
        path: entry.path,
        content,
        size: entry.size,
        modified: entry.modified,
    }
}
