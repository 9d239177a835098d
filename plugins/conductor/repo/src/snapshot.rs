//! What files a tree holds: a walk that honours `.gitignore`, with a hash of each file's content.
//!
//! With the snapshot before it, a walk reads only files whose size or time changed, and does not even list a
//! directory whose fingerprint is the same. What it finds is the same either way.

mod content;
mod diff;
mod past;
mod walk;

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::xxhash3_128::Hasher;

pub(crate) use content::Reader;
pub use diff::{Diff, Rename, diff};
pub use past::{Directory, Past, Stamp};
pub use walk::{Effort, Observer, Taken, Walked, add, take};

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

impl Limits {
    /// What snapshots are taken with unless somebody wants less.
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
#[serde(rename_all = "snake_case")]
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

/// A hash of some content, written in hexadecimal. It tells contents apart that nobody made to be
/// alike: XXH3 takes a fraction of what a cryptographic hash takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Hasher::oneshot(bytes))
    }

    /// Which of `count` shares it falls into.
    pub fn share(self, count: u32) -> u32 {
        u32::try_from(self.0 % u128::from(count.max(1))).unwrap_or_default()
    }

    /// Half of it, where a hash that nobody keeps for long is enough.
    pub fn short(self) -> u64 {
        u64::try_from(self.0 >> 64).unwrap_or_default()
    }

    /// The hash of what a hasher was fed.
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

/// Text for people, a number for storage.
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
