//! Saved templates.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::template::Body;

/// A template saved from a finished job.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub name: String,
    pub summary: String,
    pub source_job_id: String,
    pub body: Body,
}

from_row! {
    Saved { name, summary, source_job_id, body: json }
}

const COLUMNS: &str = "name, summary, source_job_id, body_json";

/// Reads a saved template by name.
pub(crate) fn get(db: &Db<'_>, name: &str) -> Result<Option<Saved>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM conductor_templates WHERE name = ?1"),
        params![name],
    )
}

fn names(db: &Db<'_>) -> Result<Vec<String>, DbError> {
    db.query("SELECT name FROM conductor_templates ORDER BY name", params![])?
        .iter()
        .map(|row| row.get(0))
        .collect()
}

/// Visits all saved templates by name, one after the other, because each may be large.
pub(crate) fn each(db: &Db<'_>, mut visit: impl FnMut(Saved)) -> Result<(), DbError> {
    for name in names(db)? {
        if let Some(saved) = get(db, &name)? {
            visit(saved);
        }
    }
    Ok(())
}

/// Saves a template, in place of one with the same name.
pub(crate) fn save(db: &Db<'_>, saved: &Saved, now: Timestamp) -> Result<(), DbError> {
    entity::apart("templates", &saved.name);
    db.execute(
        "INSERT INTO conductor_templates (name, summary, source_job_id, created_at, body_json) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE SET summary = excluded.summary, \
         source_job_id = excluded.source_job_id, created_at = excluded.created_at, body_json = excluded.body_json",
        params![
            saved.name,
            saved.summary,
            saved.source_job_id,
            now,
            to_json(&saved.body)?
        ],
    )?;
    Ok(())
}
