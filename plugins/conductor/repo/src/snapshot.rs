//! Snapshot of the files in a tree: a walk that honours `.gitignore`, with a hash of each file's content.
//!
//! Given the previous snapshot, a walk reads only files whose size or time changed, and does not list
//! directories with an unchanged fingerprint. The result is the same either way.

mod content;
mod diff;
mod past;
mod taken;
mod walk;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::xxhash3_128::Hasher;

use crate::tree::Above;

pub(crate) use content::Reader;
pub use diff::{Diff, Rename, diff};
pub use past::{Directory, Past, Stamp};
pub use taken::{Effort, Taken, Walked};
pub use walk::{Observer, add, take};

/// Limits of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of files, links and other entries in one snapshot.
    pub entries: usize,
    /// Maximum depth of nested directories.
    pub depth: usize,
    /// Maximum size of a file that is hashed as a whole; of a larger one only both ends are hashed.
    pub hashed_bytes: u64,
    /// Maximum size of a text file whose content is passed to the observer.
    pub observed_bytes: u64,
}

impl Limits {
    /// Default limits.
    pub const DEFAULT: Limits = Limits {
        entries: 50_000,
        depth: 64,
        hashed_bytes: 8 << 20,
        observed_bytes: 1 << 20,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Files of a tree at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Start of the walk, in milliseconds since 1970 UTC.
    pub taken: i64,
    /// Files by path.
    pub files: Vec<FileRecord>,
    /// Paths that could not be read, sorted.
    pub problems: Vec<Problem>,
    /// Ignore files above the root.
    pub above: Above,
}

impl Snapshot {
    /// File at a path.
    pub fn file(&self, path: &str) -> Option<&FileRecord> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().and_then(|at| self.files.get(at))
    }

    /// Checks whether the walk ended before it had seen everything.
    pub fn is_partial(&self) -> bool {
        let ends = |problem: &Problem| matches!(problem.what, Trouble::TooMany | Trouble::TooDeep);
        self.problems.iter().any(ends)
    }
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Path relative to the root.
    pub path: String,
    /// Content of the file.
    pub content: Content,
    /// Size in bytes.
    pub size: u64,
    /// Time of modification in milliseconds since 1970 UTC.
    pub modified: i64,
}

impl FileRecord {
    /// Hash of the whole content, if the whole was hashed.
    pub fn digest(&self) -> Option<Digest> {
        match self.content {
            Content::Text { digest } | Content::Binary { digest } => Some(digest),
            Content::Huge { .. } | Content::Symlink | Content::Other | Content::Unread => None,
        }
    }
}

/// Content of a file in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Content without a zero byte at its beginning.
    Text {
        /// Hash of the content.
        digest: Digest,
    },
    /// Content with a zero byte in its first 8,000 bytes, the same rule as Git's.
    Binary {
        /// Hash of the content.
        digest: Digest,
    },
    /// Content that is too large to be read as a whole.
    Huge {
        /// Hash of its size, its beginning and its end.
        ends: Digest,
    },
    /// Symbolic link, which is not followed.
    Symlink,
    /// Device, socket, pipe, or name that is not UTF-8.
    Other,
    /// File that could not be read; the problem of the same path has the reason.
    Unread,
}

/// Hash of some content, written in hexadecimal. XXH3 is not collision resistant, but takes a fraction of the
/// time of a cryptographic hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u128);

impl Digest {
    /// Hashes some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Hasher::oneshot(bytes))
    }

    /// Assigns the hash to one of `count` shares.
    pub fn share(self, count: u32) -> u32 {
        u32::try_from(self.0 % u128::from(count.max(1))).unwrap_or_default()
    }

    /// Half of the hash, for uses that are not stored for long.
    pub fn short(self) -> u64 {
        u64::try_from(self.0 >> 64).unwrap_or_default()
    }

    /// Hash of the data that a hasher received.
    pub(crate) fn finished(hasher: &Hasher) -> Digest {
        Digest(hasher.finish_128())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Serialises as text for people and as a number for storage.
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.to_le_bytes().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        if !deserializer.is_human_readable() {
            return <[u8; 16]>::deserialize(deserializer).map(|bytes| Digest(u128::from_le_bytes(bytes)));
        }
        let text = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number
            .map(Digest)
            .ok_or_else(|| D::Error::custom("a digest is 32 hexadecimal digits"))
    }
}

/// A path that a walk could not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// Path of the entry.
    pub path: String,
    /// Reason.
    pub what: Trouble,
}

/// Reason why a walk could not read a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The snapshot is full; paths after this one are missing.
    TooMany,
    /// The directory is nested deeper than the limit; its content is missing.
    TooDeep,
    /// The directory is a repository of its own, to which its content belongs.
    OtherRepository,
    /// The name is not UTF-8.
    NameNotUtf8,
    /// Reading failed, with the tree's message.
    Unreadable(String),
    /// The file is read, but its settings are used only in part, with the reason.
    Settings(String),
}
