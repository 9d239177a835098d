//! Count of this pack's calls in each envelope that changed no work.

use tollgate_sdk::{Db, DbError, Timestamp, params};

/// Retention of an envelope's count.
const KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Mutations counted by an envelope that changed no work.
pub(crate) fn passed(db: &Db<'_>, id: &str) -> Result<i64, DbError> {
    db.query_row("SELECT passed FROM tasks_envelopes WHERE id = ?1", params![id])?
        .map_or(Ok(0), |row| row.get(0))
}

/// Adds one to the count. The first call of an envelope also deletes expired counts.
pub(crate) fn pass(db: &Db<'_>, id: &str, now: Timestamp) -> Result<(), DbError> {
    let passed = db.query_row(
        "INSERT INTO tasks_envelopes (id, passed, at) VALUES (?1, 1, ?2) \
         ON CONFLICT (id) DO UPDATE SET passed = tasks_envelopes.passed + 1, at = excluded.at RETURNING passed",
        params![id, now],
    )?;
    if passed.map_or(Ok(0), |row| row.get::<i64>(0))? == 1 {
        db.execute(
            "DELETE FROM tasks_envelopes WHERE at < ?1",
            params![now.plus_ms(-KEPT_MS)],
        )?;
    }
    Ok(())
}
