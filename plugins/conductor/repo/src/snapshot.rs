//! What files a tree holds: a walk that honours `.gitignore`, with a hash of each file's content.
//!
//! With the snapshot before it, a walk reads only files whose size or time changed. What it finds
//! is the same either way.

mod content;
mod diff;
mod walk;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use content::Reader;
pub use diff::{Diff, Rename, diff};
pub use walk::{Effort, Observer, Taken, take};

/// What a walk does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Files, links and others in one snapshot.
    pub entries: usize,
    /// Directories inside each other.
    pub depth: usize,
    /// Bytes of a file up to which its whole content is hashed; of a larger one only its two ends.
    pub hashed_bytes: u64,
    /// Bytes of a text file up to which its content is shown to the observer.
    pub observed_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            entries: 50_000,
            depth: 64,
            hashed_bytes: 8 << 20,
            observed_bytes: 1 << 20,
        }
    }
}

/// The files of a tree at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the walk began, in milliseconds since 1970 UTC.
    pub taken: i64,
    /// By path.
    pub files: Vec<FileRecord>,
    /// What could not be seen, by path.
    pub problems: Vec<Problem>,
}

impl Snapshot {
    /// The file at a path.
    pub fn file(&self, path: &str) -> Option<&FileRecord> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().and_then(|at| self.files.get(at))
    }

    /// Whether the walk ended before it had seen everything.
    pub fn is_partial(&self) -> bool {
        let ends = |problem: &Problem| matches!(problem.what, Trouble::TooMany | Trouble::TooDeep);
        self.problems.iter().any(ends)
    }
}

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Relative to the root.
    pub path: String,
    /// What it holds.
    #[serde(flatten)]
    pub content: Content,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since 1970 UTC.
    pub modified: i64,
}

impl FileRecord {
    /// The hash of the whole content, where the whole was hashed.
    pub fn digest(&self) -> Option<Digest> {
        match self.content {
            Content::Text { digest } | Content::Binary { digest } => Some(digest),
            Content::Huge { .. } | Content::Symlink | Content::Other | Content::Unread => None,
        }
    }
}

/// What a file of a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// No zero byte at its beginning.
    Text {
        /// Hash of the content.
        digest: Digest,
    },
    /// A zero byte in its first 8,000 bytes, as Git tells them apart.
    Binary {
        /// Hash of the content.
        digest: Digest,
    },
    /// Too large to be read whole.
    Huge {
        /// Hash of its size, its beginning and its end.
        ends: Digest,
    },
    /// A symbolic link; it is not followed.
    Symlink,
    /// A device, a socket, a pipe, or a name that is not UTF-8.
    Other,
    /// Reading it failed; the problem of the same path says why.
    Unread,
}

/// A BLAKE3 hash, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub(crate) [u8; 32]);

impl Digest {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Digest, &'static str> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| "a digest is 64 hexadecimal digits")?;
        Ok(Digest(*hash.as_bytes()))
    }
}

/// Something a walk could not see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Where.
    pub path: String,
    /// Why.
    pub what: Trouble,
}

/// Why a walk could not see something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The snapshot is full; what comes behind this path is missing.
    TooMany,
    /// The directory lies deeper than the limit; what is in it is missing.
    TooDeep,
    /// The directory is a repository of its own; what is in it belongs there.
    OtherRepository,
    /// The name is not UTF-8.
    NameNotUtf8,
    /// Reading failed, in the tree's words.
    Unreadable(String),
}
