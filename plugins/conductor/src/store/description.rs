//! Descriptions of files, one line each.

use conductor_repo::describe::Descriptions;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::model::JobId;

/// Rows per query.
const PAGE: u32 = 2_000;

/// All descriptions of a job's files.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Descriptions, DbError> {
    let mut all = Descriptions::new();
    loop {
        let after = all.last_key_value().map_or("", |(path, _)| path.as_str());
        let rows = db.query(
            "SELECT path, description FROM conductor_descriptions WHERE job_id = ?1 AND path > ?2 \
             ORDER BY path LIMIT ?3",
            params![job, after, PAGE],
        )?;
        for row in &rows {
            all.insert(row.get(0)?, row.get(1)?);
        }
        if rows.len() < PAGE as usize {
            return Ok(all);
        }
    }
}

/// Sets the description of a file.
pub(crate) fn set(
    db: &Db<'_>,
    job: &JobId,
    path: &str,
    description: &str,
    at: Timestamp,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO conductor_descriptions (job_id, path, description, updated_at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (job_id, path) DO UPDATE SET description = excluded.description, \
         updated_at = excluded.updated_at",
        params![job, path, description, at],
    )?;
    Ok(())
}

/// Removes the description of a file. Returns whether there was one.
pub(crate) fn remove(db: &Db<'_>, job: &JobId, path: &str) -> Result<bool, DbError> {
    let removed = db.execute(
        "DELETE FROM conductor_descriptions WHERE job_id = ?1 AND path = ?2",
        params![job, path],
    )?;
    Ok(removed > 0)
}
