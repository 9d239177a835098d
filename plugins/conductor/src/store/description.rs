//! Descriptions of files, one line each. All jobs with the same repository share them.

use conductor_repo::describe::Descriptions;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::entity;
use crate::model::JobId;

/// Rows per query.
const PAGE_ROWS: u32 = 2_000;

/// All descriptions of the files of a job's repository. Lines that came with an imported job hold for that job
/// alone, and go before the shared ones.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Descriptions, DbError> {
    let mut all = Descriptions::new();
    if let Some(shared) = super::job::place(db, job)? {
        read(db, &shared, &mut all)?;
    }
    read(db, job.as_str(), &mut all)?;
    Ok(all)
}

/// Adds the lines of a repository or of a job.
fn read(db: &Db<'_>, place: &str, all: &mut Descriptions) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = db.query(
            "SELECT path, description FROM conductor_file_notes WHERE place = ?1 AND path > ?2 \
             ORDER BY path LIMIT ?3",
            params![place, after, PAGE_ROWS],
        )?;
        for row in &rows {
            after = row.get(0)?;
            all.insert(after.clone(), row.get(1)?);
        }
        if rows.len() < PAGE_ROWS as usize {
            return Ok(());
        }
    }
}

/// Sets the description of a file for all jobs with the same repository.
pub(crate) fn set(
    db: &Db<'_>,
    job: &JobId,
    path: &str,
    description: &str,
    at: Timestamp,
) -> Result<(), DbError> {
    entity::part(job, "descriptions");
    let place = super::job::place(db, job)?.unwrap_or_else(|| job.to_string());
    if place != job.as_str() {
        delete(db, job.as_str(), path)?;
    }
    insert(db, &place, path, description, at)
}

/// Sets descriptions of files for one job alone.
pub(crate) fn set_own(db: &Db<'_>, job: &JobId, all: &Descriptions, at: Timestamp) -> Result<(), DbError> {
    for (path, description) in all {
        entity::part(job, "descriptions");
        insert(db, job.as_str(), path, description, at)?;
    }
    Ok(())
}

fn insert(db: &Db<'_>, place: &str, path: &str, description: &str, at: Timestamp) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO conductor_file_notes (place, path, description, updated_at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (place, path) DO UPDATE SET description = excluded.description, \
         updated_at = excluded.updated_at",
        params![place, path, description, at],
    )?;
    Ok(())
}

/// Removes the description of a file. Returns whether there was one.
pub(crate) fn remove(db: &Db<'_>, job: &JobId, path: &str) -> Result<bool, DbError> {
    entity::part(job, "descriptions");
    let own = delete(db, job.as_str(), path)?;
    let shared = match super::job::place(db, job)? {
        Some(place) => delete(db, &place, path)?,
        None => false,
    };
    Ok(own || shared)
}

fn delete(db: &Db<'_>, place: &str, path: &str) -> Result<bool, DbError> {
    let removed = db.execute(
        "DELETE FROM conductor_file_notes WHERE place = ?1 AND path = ?2",
        params![place, path],
    )?;
    Ok(removed > 0)
}
