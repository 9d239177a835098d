//! What this pack did in each envelope that changed nothing of the work.

use tollgate_sdk::{Db, DbError, Timestamp, params};

/// For how long an envelope is remembered.
const KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// How many mutations that an envelope counted changed nothing.
pub(crate) fn passed(db: &Db<'_>, id: &str) -> Result<i64, DbError> {
    db.query_row("SELECT passed FROM tasks_envelopes WHERE id = ?1", params![id])?
        .map_or(Ok(0), |row| row.get(0))
}

/// Counts one more. With the first of an envelope, those of long ago are forgotten.
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
