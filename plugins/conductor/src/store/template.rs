//! Saved templates.

use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use super::{json_column, to_json};
use crate::template::Body;

/// A template saved from a finished job.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub name: String,
    pub summary: String,
    pub source_job_id: String,
    pub body: Body,
}

impl TryFrom<Row> for Saved {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Saved, DbError> {
        Ok(Saved {
            name: row.get(0)?,
            summary: row.get(1)?,
            source_job_id: row.get(2)?,
            body: json_column(&row, 3)?,
        })
    }
}

const COLUMNS: &str = "name, summary, source_job_id, body_json";

/// A saved template.
pub(crate) fn get(db: &Db<'_>, name: &str) -> Result<Option<Saved>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM conductor_templates WHERE name = ?1"),
        params![name],
    )
}

/// Every saved template, by name.
pub(crate) fn all(db: &Db<'_>) -> Result<Vec<Saved>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM conductor_templates ORDER BY name LIMIT 200"),
        params![],
    )
}

/// Saves a template, in place of one of the same name.
pub(crate) fn save(db: &Db<'_>, saved: &Saved, now: Timestamp) -> Result<(), DbError> {
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
