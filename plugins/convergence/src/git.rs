//! Reads what Git writes about a work tree, in the forms that end entries with NUL.
//!
//! Run Git with `--no-optional-locks -c core.quotePath=off` and the diffs with `--no-renames
//! --no-ext-diff --no-textconv --no-color --src-prefix=a/ --dst-prefix=b/`, so that no
//! configuration of the user changes what is read. Renames are understood all the same.

mod diff;
mod lists;
mod status;
mod symbol;

use std::fmt;

use serde::{Serialize, Serializer};

pub use diff::{Diff, Symbol, parse_diff};
pub use lists::{FileStat, Staged, parse_numstat, parse_paths, parse_raw, parse_staged};
pub use status::parse_status;

/// How many entries of one output are read.
pub const MAX_ENTRIES: usize = 100_000;

/// What was read of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The entries, in the order of Git.
    pub entries: Vec<T>,
    /// Nothing was cut off, malformed, or beyond [`MAX_ENTRIES`].
    pub complete: bool,
}

/// What stands before a path that is not UTF-8.
const MARK: &str = "bytes:";

/// A path in a repository, relative to its top. It may hold line ends and need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath {
    text: String,
    is_utf8: bool,
}

impl RepoPath {
    /// Bytes that are no UTF-8 are told as `\xe9` behind the mark `bytes:`, with backslashes
    /// doubled, so that no two paths read the same.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> RepoPath {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return RepoPath {
                text: text.to_owned(),
                is_utf8: true,
            };
        }
        let mut text = String::from(MARK);
        for chunk in bytes.utf8_chunks() {
            text.push_str(&chunk.valid().replace('\\', "\\\\"));
            for byte in chunk.invalid() {
                text.push_str(&format!("\\x{byte:02x}"));
            }
        }
        RepoPath { text, is_utf8: false }
    }

    /// The path, or what stands for it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the file can be opened under the name [`RepoPath::as_str`] tells.
    #[must_use]
    pub const fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    /// The path below a folder, which ends with a slash or is empty. None if it is elsewhere.
    #[must_use]
    pub fn below(&self, folder: &str) -> Option<RepoPath> {
        let bytes = self.bytes();
        let rest = bytes.strip_prefix(folder.as_bytes())?;
        Some(RepoPath::from_bytes(rest))
    }

    /// The path as C would quote it, which is how Git reads paths that are not plain.
    #[must_use]
    pub fn quoted(&self) -> String {
        let mut quoted = String::from("\"");
        for byte in self.bytes() {
            match byte {
                b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                b' '..=b'~' => quoted.push(char::from(byte)),
                _ => quoted.push_str(&format!("\\{byte:03o}")),
            }
        }
        quoted.push('"');
        quoted
    }

    /// The bytes it was made from.
    fn bytes(&self) -> Vec<u8> {
        let Some(marked) = self.text.strip_prefix(MARK).filter(|_| !self.is_utf8) else {
            return self.text.clone().into_bytes();
        };
        let mut bytes = Vec::with_capacity(marked.len());
        let mut rest = marked;
        while let Some((before, escape)) = rest.split_once('\\') {
            bytes.extend_from_slice(before.as_bytes());
            let byte = escape
                .strip_prefix('x')
                .and_then(|digits| u8::from_str_radix(digits.get(..2)?, 16).ok());
            bytes.push(byte.unwrap_or(b'\\'));
            rest = escape
                .get(if byte.is_some() { 3 } else { 1 }..)
                .unwrap_or_default();
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }

    /// The path on one line: control characters are escaped.
    #[must_use]
    pub fn one_line(&self) -> String {
        let escaped = |c: char| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                String::from(c)
            }
        };
        self.text.chars().map(escaped).collect()
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for RepoPath {
    fn from(path: &str) -> RepoPath {
        RepoPath::from_bytes(path.as_bytes())
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// New, and known to Git.
    Added,
    /// New, and not known to Git.
    Untracked,
    /// Another content, mode or type.
    Modified,
    /// Gone.
    Deleted,
    /// Left by a merge for somebody to resolve.
    Conflicted,
}

/// A path that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which.
    pub path: RepoPath,
    /// What happened to it.
    pub status: Status,
    /// The mode it has now, as Git writes it in octal: `0o100644`, `0o100755`, `0o120000` for a link,
    /// `0o160000` for a submodule. Git does not tell it of untracked files; none counts as `0o100644`.
    pub mode: Option<u32>,
    /// The hash of its content now, where Git tells it: the work tree is as the index says. Hash the
    /// others with `git hash-object`, so that staging a file does not change what is told of it.
    pub content: Option<String>,
}

impl Change {
    /// Whether somebody has to hash the file, because Git did not.
    #[must_use]
    pub fn needs_content(&self) -> bool {
        self.content.is_none() && self.status != Status::Deleted
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.mode == Some(LINK)
    }

    /// Whether it is another repository, whose commit [`parse_diff`] tells.
    #[must_use]
    pub fn is_submodule(&self) -> bool {
        self.mode == Some(SUBMODULE)
    }
}

/// The mode of a symbolic link.
const LINK: u32 = 0o120_000;
/// The mode of a submodule.
const SUBMODULE: u32 = 0o160_000;

/// Entries that end with NUL, one after the other.
struct Entries<'a> {
    rest: &'a [u8],
    count: usize,
    complete: bool,
}

impl<'a> Entries<'a> {
    const fn new(output: &'a [u8]) -> Entries<'a> {
        Entries {
            rest: output,
            count: 0,
            complete: true,
        }
    }

    /// The next entry. Without the NUL at its end it was cut off.
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.count = self.count.saturating_add(1);
        let end = self.rest.iter().position(|byte| *byte == 0);
        let Some((entry, rest)) = end
            .filter(|_| self.count <= MAX_ENTRIES)
            .and_then(|end| self.rest.split_at_checked(end))
        else {
            (self.complete, self.rest) = (false, &[]);
            return None;
        };
        self.rest = rest.get(1..).unwrap_or_default();
        Some(entry)
    }

    /// Reads every entry with `read`, which may take more entries. What it cannot read is left out.
    fn read<T>(
        mut self,
        mut read: impl FnMut(&'a [u8], &mut Entries<'a>, &mut Vec<T>) -> Option<()>,
    ) -> Listing<T> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next() {
            if read(entry, &mut self, &mut entries).is_none() {
                self.complete = false;
            }
        }
        Listing {
            entries,
            complete: self.complete,
        }
    }
}

/// Splits the fields before a path, which are separated by blanks, from the path.
fn fields<const N: usize>(entry: &[u8]) -> Option<([&str; N], &[u8])> {
    let mut parts = entry.splitn(N.checked_add(1)?, |byte| *byte == b' ');
    let mut fields = [""; N];
    for field in &mut fields {
        *field = std::str::from_utf8(parts.next()?).ok()?;
    }
    let path = parts.next().filter(|path| !path.is_empty())?;
    Some((fields, path))
}

fn mode(octal: &str) -> Option<u32> {
    u32::from_str_radix(octal, 8).ok()
}

/// A hash, unless it consists of zeros, which is how Git says that it did not compute one.
fn hash(hash: &str) -> Option<String> {
    hash.bytes().any(|byte| byte != b'0').then(|| hash.to_owned())
}
