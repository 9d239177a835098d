//! How far the files of the logs go.

use tollgate_sdk::{Db, DbError, Row, params};

/// How far a log's file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    /// The last row in it.
    pub last_id: i64,
    /// How long it has to be with all rows up to that one.
    pub size: u64,
}

impl TryFrom<Row> for Extent {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Extent, DbError> {
        Ok(Extent {
            last_id: row.get(0)?,
            size: row.get(1)?,
        })
    }
}

/// How far a file goes, if it was ever written.
pub(crate) fn get(db: &Db<'_>, workspace: &str, path: &str) -> Result<Option<Extent>, DbError> {
    db.query_one(
        "SELECT last_id, size FROM gsd_files WHERE workspace = ?1 AND path = ?2",
        params![workspace, path],
    )
}

/// Notes how far a file goes from now on.
pub(crate) fn put(db: &Db<'_>, workspace: &str, path: &str, extent: Extent) -> Result<(), DbError> {
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
