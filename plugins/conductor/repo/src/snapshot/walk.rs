//! Walk that takes a snapshot.

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::slice;

use super::content::{Reader, piece_limit};
use super::past::{Directory, Past, Stamp};
use super::taken::{Effort, Taken, Walked};
use super::{Content, Digest, FileRecord, Limits, Problem, Snapshot, Trouble};
use crate::ignore::Rules;
use crate::path;
use crate::tree::{Entry, Kind, Listing, Tree, TreeError, TreeResult, Upcoming};

/// Entries per request.
const PAGE_ENTRIES: u32 = 1_000;

/// Maximum bytes read of an ignore file; real ones are far smaller.
const IGNORE_BYTES: u32 = 256 << 10;

/// A file modified less than this before the last snapshot is read again. File systems round times, so that a
/// change just after the snapshot may look older than it.
const SETTLED_MS: i64 = 1_000;

/// Receives each text file that is read, with its content.
pub type Observer<'a> = dyn FnMut(&FileRecord, &[u8]) + 'a;

/// Walks a tree. `now` is the current time in milliseconds since 1970 UTC.
///
/// A file that cannot be read is a problem of the snapshot, not an error. An error means that the tree cannot
/// be read at all.
pub fn take<T: Tree + ?Sized>(
    tree: &T,
    limits: &Limits,
    past: Option<&dyn Past>,
    now: i64,
    observe: &mut Observer<'_>,
) -> TreeResult<Taken> {
    let taken = Walk::new(tree, limits, past, now, observe).all()?;
    if !is_cut(&taken.snapshot) || taken.same().next().is_none() {
        return Ok(taken);
    }
    // Whether there is room depends on the order, which is that of single files.
    let mut walk = Walk::new(tree, limits, past, now, observe);
    walk.known.clear();
    walk.all()
}

/// Adds files that `.gitignore` excludes but Git tracks. Their names are in Git's index, which a walk does not
/// read. Missing paths, other kinds of entries and known files are skipped.
pub fn add<T: Tree + ?Sized>(
    tree: &T,
    limits: &Limits,
    past: Option<&dyn Past>,
    mut taken: Taken,
    tracked: &[String],
    observe: &mut Observer<'_>,
) -> TreeResult<Taken> {
    if tracked.is_empty() {
        return Ok(taken);
    }
    let mut walk = Walk::new(tree, limits, past, taken.snapshot.taken, observe);
    walk.files = taken.snapshot.files.len() + taken.same().map(Directory::count).sum::<usize>();
    let mut before = ("", Vec::new());
    for path in tracked {
        if taken.snapshot.file(path).is_some() {
            continue;
        }
        match tree.stat(path) {
            Ok(entry) if entry.kind == Kind::Directory => {}
            Ok(entry) => {
                let directory = path::parent(path);
                if before.0 != directory || before.1.is_empty() {
                    before = (directory, walk.files_before(directory));
                }
                let known = walk.unchanged(&entry, &mut before.1.iter().peekable());
                walk.file(entry, known)?;
            }
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => {}
        }
    }
    let added: HashSet<&str> = tracked.iter().map(|path| path::parent(path)).collect();
    for walked in &mut taken.directories {
        if added.contains(walked.directory.path.as_str()) {
            walked.directory.stamp = None;
        }
    }
    walk.snapshot.files.extend(taken.snapshot.files);
    walk.snapshot.problems.extend(taken.snapshot.problems);
    walk.snapshot.above = taken.snapshot.above;
    walk.directories = taken.directories;
    let mut both = walk.finish();
    both.snapshot.files.dedup_by(|a, b| a.path == b.path);
    both.effort.listed += taken.effort.listed;
    both.effort.ignored += taken.effort.ignored;
    both.effort.read += taken.effort.read;
    both.effort.bytes += taken.effort.bytes;
    Ok(both)
}

/// Known content of unchanged files, by path.
type Known<'k> = Peekable<slice::Iter<'k, FileRecord>>;

struct Walk<'a, 'o, T: ?Sized> {
    tree: &'a T,
    limits: &'a Limits,
    past: Option<&'a dyn Past>,
    /// Directories of the previous snapshot.
    known: HashMap<&'a str, &'a Directory>,
    observe: &'a mut Observer<'o>,
    rules: Rules,
    /// Hash of the ignore files in force.
    ruled: u64,
    reader: Reader,
    /// Number of files found, including those that are not repeated.
    files: usize,
    snapshot: Snapshot,
    directories: Vec<Walked>,
    effort: Effort,
}

impl<'a, 'o, T: Tree + ?Sized> Walk<'a, 'o, T> {
    fn new(
        tree: &'a T,
        limits: &'a Limits,
        past: Option<&'a dyn Past>,
        now: i64,
        observe: &'a mut Observer<'o>,
    ) -> Walk<'a, 'o, T> {
        let known = past.map(Past::directories).unwrap_or_default().iter();
        Walk {
            tree,
            limits,
            past,
            known: known
                .map(|directory| (directory.path.as_str(), directory))
                .collect(),
            observe,
            rules: Rules::default(),
            ruled: 0,
            reader: Reader::default(),
            files: 0,
            snapshot: Snapshot {
                taken: now,
                ..Snapshot::default()
            },
            directories: Vec::new(),
            effort: Effort::default(),
        }
    }

    fn finish(mut self) -> Taken {
        if is_cut(&self.snapshot) {
            // Files are missing, and it is unknown where.
            for walked in &mut self.directories {
                walked.directory.stamp = None;
            }
        }
        self.effort.bytes += self.reader.bytes;
        self.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.snapshot.problems.sort();
        Taken {
            snapshot: self.snapshot,
            directories: self.directories,
            effort: self.effort,
        }
    }

    fn all(mut self) -> TreeResult<Taken> {
        self.rules_above()?;
        // The root is always listed: most have an ignore file.
        if let Some(listing) = self.entries("", None)? {
            self.directory("", listing, 0)?;
        }
        Ok(self.finish())
    }

    /// Rules that apply in the root, but for those of its own ignore file.
    fn rules_above(&mut self) -> TreeResult<()> {
        let above = self.tree.above()?;
        self.rules = Rules::above(&above);
        if above.prefix.is_empty() {
            if let Some(content) = self.ignore_file(".git/info/exclude")? {
                self.rules.exclude(&content);
                self.rule("", &content);
            }
        } else {
            self.rule("", above.prefix.as_bytes());
            for (path, content) in &above.files {
                self.rule(path, content);
            }
        }
        self.snapshot.above = above;
        Ok(())
    }

    fn subdirectory(&mut self, path: &str, depth: usize) -> TreeResult<()> {
        if depth >= self.limits.depth {
            self.problem(path, Trouble::TooDeep);
            return Ok(());
        }
        let known = self.known.get(path).copied();
        let listing = match self.entries(path, self.fingerprint(path)) {
            Ok(listing) => listing,
            Err(error) => return self.unreadable(path, error),
        };
        match (listing, known) {
            (None, Some(known)) => self.same(known, depth + 1),
            (None, None) => Ok(()),
            (Some(listing), _) => {
                let git = path::below(path, ".git");
                if listing.entries.iter().any(|entry| entry.path == git) {
                    self.problem(path, Trouble::OtherRepository);
                    return Ok(());
                }
                self.directory(path, listing, depth + 1)
            }
        }
    }

    /// Fingerprint that a directory would have if nothing in it, nor its rules, had changed.
    fn fingerprint(&self, path: &str) -> Option<u64> {
        let stamp = self.known.get(path)?.stamp?;
        (stamp.rules == self.ruled).then_some(stamp.fingerprint)
    }

    /// Continues below an unchanged directory.
    fn same(&mut self, known: &Directory, depth: usize) -> TreeResult<()> {
        self.effort.listed += u64::from(known.entries);
        self.effort.ignored += u64::try_from(known.excluded.len()).unwrap_or(u64::MAX);
        self.files += known.count();
        if self.files > self.limits.entries {
            self.problem(&known.path, Trouble::TooMany);
        }
        let below: Vec<String> = known.below(&known.subdirectories).collect();
        self.directories.push(Walked {
            directory: known.clone(),
            is_same: true,
        });
        let next = below.iter().filter_map(|path| self.upcoming(path, depth));
        self.expect(&next.collect::<Vec<_>>());
        for path in &below {
            if self.is_full() {
                break;
            }
            self.subdirectory(path, depth)?;
        }
        Ok(())
    }

    /// Visits a directory that may have changed.
    fn directory(&mut self, path: &str, listing: Listing, depth: usize) -> TreeResult<()> {
        let outside = (self.rules.depth(), self.ruled);
        let (entries, directory) = self.wanted(path, listing)?;
        let entries = self.with_known(path, entries);
        self.look_ahead(&entries, depth);
        let place = self.directories.len();
        self.directories.push(Walked {
            directory,
            is_same: false,
        });
        for (entry, known) in entries {
            if self.is_full() {
                break;
            }
            if entry.kind == Kind::Directory {
                self.subdirectory(&entry.path, depth)?;
            } else if !self.file(entry, known)?
                && let Some(walked) = self.directories.get_mut(place)
            {
                // The file is tried again.
                walked.directory.stamp = None;
            }
        }
        self.rules.leave(outside.0);
        self.ruled = outside.1;
        Ok(())
    }

    /// Entries that belong to the snapshot, and the directory's state if all of them can be read. The
    /// directory's own rules apply from here on.
    fn wanted(&mut self, path: &str, listing: Listing) -> TreeResult<(Vec<Entry>, Directory)> {
        let mut entries = listing.entries;
        let all = count(entries.len());
        let ignore_file = path::below(path, ".gitignore");
        let has_rules = entries.iter().any(|entry| entry.path == ignore_file);
        if has_rules && let Some(content) = self.ignore_file(&ignore_file)? {
            self.rules.enter(&ignore_file, &content);
            self.rule(&ignore_file, &content);
        }
        entries.retain(|entry| path::name(&entry.path) != ".git");
        let rules = &self.rules;
        let excluded = entries.extract_if(.., |entry| {
            rules.excludes(&entry.path, entry.kind == Kind::Directory)
        });
        let excluded: Vec<String> = excluded.map(|entry| name_of(&entry)).collect();
        self.effort.ignored += u64::try_from(excluded.len()).unwrap_or(u64::MAX);
        let (below, files): (Vec<&Entry>, Vec<&Entry>) =
            entries.iter().partition(|entry| entry.kind == Kind::Directory);
        // The fingerprint does not cover an ignore file that is a link to another file.
        let tells = !has_rules && files.iter().all(|file| self.is_settled(file));
        let fingerprint = listing.fingerprint.filter(|_| tells);
        let directory = Directory {
            path: path.to_owned(),
            stamp: fingerprint.map(|fingerprint| Stamp {
                fingerprint,
                rules: self.ruled,
            }),
            entries: all,
            files: count(files.len()),
            subdirectories: below.into_iter().map(name_of).collect(),
            excluded,
        };
        Ok((entries, directory))
    }

    /// Checks whether a change of a file would change its time.
    fn is_settled(&self, entry: &Entry) -> bool {
        match entry.kind {
            Kind::File => is_settled(entry.modified, self.snapshot.taken),
            Kind::Unnamed => false,
            Kind::Directory | Kind::Symlink | Kind::Other => true,
        }
    }

    /// Adds an ignore file to the hash of those in force.
    fn rule(&mut self, path: &str, content: &[u8]) {
        let rules = [&self.ruled.to_le_bytes(), path.as_bytes(), b"\0", content].concat();
        self.ruled = Digest::of(&rules).short();
    }

    /// Entries with the known content of unchanged files.
    fn with_known(&self, directory: &str, entries: Vec<Entry>) -> Vec<(Entry, Option<Content>)> {
        let files = self.files_before(directory);
        let mut known = files.iter().peekable();
        let with_known = |entry: Entry| {
            let known = self.unchanged(&entry, &mut known);
            (entry, known)
        };
        entries.into_iter().map(with_known).collect()
    }

    fn files_before(&self, directory: &str) -> Vec<FileRecord> {
        self.past.map(|past| past.files(directory)).unwrap_or_default()
    }

    /// Known content of a file that has not changed since. Both lists come in the same order.
    fn unchanged(&self, entry: &Entry, known: &mut Known<'_>) -> Option<Content> {
        while known.next_if(|known| known.path < entry.path).is_some() {}
        let known = known.next_if(|known| known.path == entry.path)?;
        let settled = is_settled(known.modified, self.past?.taken());
        let same = known.size == entry.size && known.modified == entry.modified;
        let was_file = !matches!(known.content, Content::Symlink | Content::Other | Content::Unread);
        (settled && same && was_file && entry.kind == Kind::File).then_some(known.content)
    }

    /// Tells the tree which entries will be listed and read.
    fn look_ahead(&self, entries: &[(Entry, Option<Content>)], depth: usize) {
        let next = entries.iter().filter_map(|(entry, known)| match entry.kind {
            Kind::Directory => self.upcoming(&entry.path, depth),
            Kind::File if known.is_none() && entry.size > 0 => {
                Some(Upcoming::Read(&entry.path, piece_limit(entry.size)))
            }
            _ => None,
        });
        self.expect(&next.collect::<Vec<_>>());
    }

    /// Request for listing a subdirectory of a directory at this depth.
    fn upcoming<'p>(&self, path: &'p str, depth: usize) -> Option<Upcoming<'p>> {
        (depth < self.limits.depth).then(|| Upcoming::List(path, self.fingerprint(path), PAGE_ENTRIES))
    }

    fn expect(&self, next: &[Upcoming<'_>]) {
        if !next.is_empty() {
            self.tree.expect(next);
        }
    }

    /// Adds a file. Returns whether it could be read.
    fn file(&mut self, entry: Entry, known: Option<Content>) -> TreeResult<bool> {
        if self.files >= self.limits.entries {
            self.problem(&entry.path, Trouble::TooMany);
            return Ok(false);
        }
        self.files += 1;
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
        Ok(true)
    }

    fn read(&mut self, entry: Entry) -> TreeResult<bool> {
        self.effort.read += 1;
        match self.reader.read(self.tree, &entry, self.limits) {
            Ok((content, observed)) => {
                let record = record(entry, content);
                if let Some(bytes) = observed {
                    (self.observe)(&record, bytes);
                }
                self.snapshot.files.push(record);
                Ok(true)
            }
            Err(error) => {
                self.unreadable(&entry.path, error)?;
                self.snapshot.files.push(record(entry, Content::Unread));
                Ok(false)
            }
        }
    }

    /// All entries of a directory, unless its fingerprint is the known one. Their number is limited by the
    /// capacity of the snapshot.
    fn entries(&mut self, directory: &str, known: Option<u64>) -> TreeResult<Option<Listing>> {
        let Some(mut listing) = self.tree.list_unless(directory, known, PAGE_ENTRIES)? else {
            return Ok(None);
        };
        let entries = &mut listing.entries;
        let page = usize::try_from(PAGE_ENTRIES).unwrap_or(usize::MAX);
        let mut is_last = entries.len() < page;
        while !is_last && entries.len() <= self.limits.entries {
            let after = entries.last().map(|entry| path::name(&entry.path).to_owned());
            let next = self.tree.list(directory, after.as_deref(), PAGE_ENTRIES)?;
            is_last = next.len() < page;
            entries.extend(next);
        }
        self.effort.listed += u64::try_from(entries.len()).unwrap_or(u64::MAX);
        Ok(Some(listing))
    }

    /// Reads an ignore file. An unreadable one has no rules, as in Git.
    fn ignore_file(&mut self, path: &str) -> TreeResult<Option<Vec<u8>>> {
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

    fn unreadable(&mut self, path: &str, error: TreeError) -> TreeResult<()> {
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

/// Checks whether some files did not fit.
fn is_cut(snapshot: &Snapshot) -> bool {
    let full = |problem: &Problem| problem.what == Trouble::TooMany;
    snapshot.problems.iter().any(full)
}

fn is_settled(modified: i64, taken: i64) -> bool {
    modified < taken.saturating_sub(SETTLED_MS)
}

fn name_of(entry: &Entry) -> String {
    path::name(&entry.path).to_owned()
}

fn count(entries: usize) -> u32 {
    u32::try_from(entries).unwrap_or(u32::MAX)
}
