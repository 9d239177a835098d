//! `git diff -U0`: the headers of its hunks, and the commits of submodules.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{RepoPath, symbol};

/// Maximum number of symbols of one diff.
const MAX_SYMBOLS: usize = 10_000;

/// Something with a name in a file that changed, or right before the change: Git takes the last
/// line above a hunk that looks like the head of a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Symbol {
    /// The file.
    pub path: RepoPath,
    /// The name.
    pub name: String,
}

/// Result of reading a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// The symbols of all hunks, in order and without repetition.
    pub symbols: Vec<Symbol>,
    /// Submodules with the commit they are at now, with `-dirty` behind it if there is more.
    pub submodules: Vec<(RepoPath, String)>,
    /// Other files with the hash of their content now, as the difference has it: whole with
    /// `--full-index`.
    pub blobs: Vec<(RepoPath, String)>,
    /// The last hunk was not cut off.
    pub complete: bool,
}

impl Diff {
    /// Current content of each path: the commit of a submodule, the hash of anything else.
    pub fn contents(self) -> impl Iterator<Item = (RepoPath, String)> {
        self.blobs.into_iter().chain(self.submodules)
    }
}

/// Reads `git diff -U0`. Of the lines in a hunk only as many are skipped as its header says, so that
/// a removed line `-- a` is no header.
#[must_use]
pub fn parse_diff(output: &[u8]) -> Diff {
    let mut reading = Reading::default();
    for line in output.split(|byte| *byte == b'\n') {
        reading.line(line);
    }
    Diff {
        complete: reading.hunk.as_ref().is_none_or(Hunk::is_read),
        symbols: reading.symbols.into_iter().collect(),
        submodules: reading.submodules,
        blobs: reading.blobs,
    }
}

#[derive(Default)]
struct Reading {
    before: Option<RepoPath>,
    path: Option<RepoPath>,
    hunk: Option<Hunk>,
    symbols: BTreeSet<Symbol>,
    submodules: Vec<(RepoPath, String)>,
    /// The hash behind the dots of the last `index` line.
    after: Option<String>,
    blobs: Vec<(RepoPath, String)>,
}

impl Reading {
    fn line(&mut self, line: &[u8]) {
        if self.hunk.as_mut().is_some_and(|hunk| hunk.take(line)) {
            self.submodule(line);
        } else if let Some((hunk, context)) = Hunk::new(line) {
            self.hunk = Some(hunk);
            self.symbol(context);
        } else if line.starts_with(b"diff --") {
            (self.before, self.path, self.hunk) = (None, None, None);
            self.after = None;
        } else if let Some(hashes) = line.strip_prefix(b"index ") {
            self.after = hash_after(hashes);
        } else if let Some(path) = line.strip_prefix(b"--- ") {
            self.before = header_path(path, b"a/");
        } else if let Some(path) = line.strip_prefix(b"+++ ") {
            self.path = header_path(path, b"b/").or_else(|| self.before.take());
            self.blobs.extend(self.path.clone().zip(self.after.take()));
        }
    }

    fn symbol(&mut self, context: &[u8]) {
        let name = symbol::name(&String::from_utf8_lossy(context));
        if let (Some(path), Some(name)) = (self.path.clone(), name)
            && self.symbols.len() < MAX_SYMBOLS
        {
            self.symbols.insert(Symbol { path, name });
        }
    }

    fn submodule(&mut self, line: &[u8]) {
        let commit = line
            .strip_prefix(b"+Subproject commit ")
            .and_then(|commit| std::str::from_utf8(commit).ok());
        if let (Some(path), Some(commit)) = (&self.path, commit) {
            self.submodules.push((path.clone(), commit.trim().to_owned()));
        }
    }
}

/// Number of remaining lines of a hunk, for each side. The diff of a merge has several sides before, and a column of
/// marks for each.
struct Hunk {
    before: Vec<u64>,
    after: u64,
}

impl Hunk {
    /// `@@ -9,0 +10,2 @@ def divide(a, b):`, with what is behind it.
    fn new(line: &[u8]) -> Option<(Hunk, &[u8])> {
        let marks = line.iter().take_while(|byte| **byte == b'@').count();
        let parents = marks
            .checked_sub(1)
            .filter(|parents| (1..=16).contains(parents))?;
        let mut words = line.splitn(parents.checked_add(4)?, |byte| *byte == b' ').skip(1);
        let mut before = Vec::with_capacity(parents);
        for _ in 0..parents {
            before.push(length(words.next()?.strip_prefix(b"-")?)?);
        }
        let after = length(words.next()?.strip_prefix(b"+")?)?;
        let end = words.next()?;
        let closed = end.len() == marks && end.iter().all(|byte| *byte == b'@');
        closed.then(|| (Hunk { before, after }, words.next().unwrap_or_default()))
    }

    fn is_read(&self) -> bool {
        self.after == 0 && self.before.iter().all(|left| *left == 0)
    }

    /// Counts a line off, if it is one of the hunk.
    fn take(&mut self, line: &[u8]) -> bool {
        // `\ No newline at end of file` belongs to the line before it.
        if line.starts_with(b"\\") {
            return true;
        }
        let Some(marks) = line.get(..self.before.len()).filter(|_| !self.is_read()) else {
            return false;
        };
        if !marks.iter().all(|mark| matches!(mark, b' ' | b'+' | b'-')) {
            return false;
        }
        for (left, mark) in self.before.iter_mut().zip(marks) {
            *left = left.saturating_sub(u64::from(*mark != b'+'));
        }
        self.after = self.after.saturating_sub(u64::from(!marks.contains(&b'-')));
        true
    }
}

/// The length in `9,2`; alone, a number is where a hunk of one line begins.
/// `def` of `abc..def 100644`, unless it consists of zeros.
fn hash_after(hashes: &[u8]) -> Option<String> {
    let hashes = std::str::from_utf8(hashes).ok()?;
    let after = hashes.split(' ').next()?.split_once("..")?.1;
    tollgate_kit::git::hash(after)
}

fn length(range: &[u8]) -> Option<u64> {
    let range = std::str::from_utf8(range).ok()?;
    match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    }
}

/// The path behind `--- ` or `+++ `; none for `/dev/null`.
fn header_path(path: &[u8], prefix: &[u8]) -> Option<RepoPath> {
    let path = path.strip_suffix(b"\r").unwrap_or(path);
    let path = path.strip_suffix(b"\t").unwrap_or(path);
    let quoted = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\""));
    let path = quoted.map_or_else(|| path.to_vec(), unquoted);
    let path = path.strip_prefix(prefix).unwrap_or(&path);
    (path != b"/dev/null" && !path.is_empty()).then(|| RepoPath::from_bytes(path))
}

/// Decodes a path that Git quoted like a string of C: `\n`, `\"`, `\303`.
fn unquoted(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut bytes = path.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'a') => plain.push(7),
            Some(b'b') => plain.push(8),
            Some(b't') => plain.push(b'\t'),
            Some(b'n') => plain.push(b'\n'),
            Some(b'v') => plain.push(11),
            Some(b'f') => plain.push(12),
            Some(b'r') => plain.push(b'\r'),
            Some(digit @ b'0'..=b'7') => {
                let mut code = u32::from(digit - b'0');
                while let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7') && code < 32) {
                    code = code * 8 + u32::from(digit - b'0');
                }
                plain.push(u8::try_from(code).unwrap_or(b'?'));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}
