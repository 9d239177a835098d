//! Progress of the log files.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, params};

use super::Result;

/// Progress of a log's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    /// Id of the last row in the file.
    pub last_id: i64,
    /// Size of the file with all rows up to that one.
    pub size: u64,
}

from_row! {
    Extent { last_id, size }
}

/// Progress of a file, `None` if it was never written.
pub(crate) fn get(db: &Db<'_>, workspace: &str, path: &str) -> Result<Option<Extent>> {
    db.query_one(
        "SELECT last_id, size FROM gsd_files WHERE workspace = ?1 AND path = ?2",
        params![workspace, path],
    )
}

/// Stores the progress of a file.
pub(crate) fn put(db: &Db<'_>, workspace: &str, path: &str, extent: Extent) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_files (workspace, path, last_id, size) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (workspace, path) DO UPDATE SET last_id = excluded.last_id, size = excluded.size",
        params![
            workspace,
            path,
            extent.last_id,
            i64::try_from(extent.size).unwrap_or(i64::MAX),
        ],
    )?;
    Ok(())
}
