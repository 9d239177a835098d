//! Ids of deleted records, which are never given again: whoever knows one must not find another record under it.

use tollgate_sdk::{Db, DbError, params};

/// Keeps an id.
pub(crate) fn keep(db: &Db<'_>, id: &str) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO conductor_gone (id) VALUES (?1) ON CONFLICT (id) DO NOTHING",
        params![id],
    )?;
    Ok(())
}

/// Checks whether an id was of a deleted record.
pub(crate) fn has(db: &Db<'_>, id: &str) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_gone WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
