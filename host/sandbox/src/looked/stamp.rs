//! Metadata that identifies an unchanged file without reading it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::fs::{Metadata, MetadataExt as _};

/// Age from which a file's times show whether it was changed since.
const SETTLED_AGE_LIMIT: Duration = Duration::from_secs(2);

/// Metadata of a file that changes with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    pub(crate) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// True if a later change would show in the times, because the file system's clock has moved on.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let newest = self.modified.0.max(self.changed.0);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let limit = now.saturating_sub(SETTLED_AGE_LIMIT).as_secs();
        u64::try_from(newest).is_ok_and(|newest| newest < limit)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp {
            inode,
            size,
            modified,
            changed,
        } = self;
        write!(
            formatter,
            "{inode} {size} {}.{} {}.{}",
            modified.0, modified.1, changed.0, changed.1
        )
    }
}
