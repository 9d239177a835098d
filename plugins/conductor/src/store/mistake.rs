//! Recorded mistakes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use super::{json_column, to_json};
use crate::model::{AttemptId, JobId, MistakeId, StepId};

/// A mistake and its lesson.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Mistake {
    pub mistake_id: MistakeId,
    /// Step in which the mistake happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_step_id: Option<StepId>,
    /// Rejected submission that the mistake explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// Short name of the mistake.
    pub title: String,
    /// Description of what happened.
    pub what_happened: String,
    /// Cause of the mistake.
    pub why: String,
    /// Lesson learned.
    pub lesson: String,
    /// Behaviour to avoid next time.
    pub avoid_next_time: String,
    /// Tags; steps that share one are reminded.
    pub tags: Vec<String>,
    /// Time of recording.
    pub at: Timestamp,
}

impl TryFrom<Row> for Mistake {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Mistake, DbError> {
        Ok(Mistake {
            mistake_id: row.get(0)?,
            related_step_id: row.get(1)?,
            attempt_id: row.get(2)?,
            title: row.get(3)?,
            what_happened: row.get(4)?,
            why: row.get(5)?,
            lesson: row.get(6)?,
            avoid_next_time: row.get(7)?,
            tags: json_column(&row, 8)?,
            at: row.get(9)?,
        })
    }
}

const COLUMNS: &str =
    "id, related_step_id, attempt_id, title, what_happened, why, lesson, avoid_next_time, tags_json, at";

/// Stores a mistake.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, mistake: &Mistake) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO conductor_mistakes (job_id, id, related_step_id, attempt_id, title, what_happened, why, lesson, \
         avoid_next_time, tags_json, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            job,
            mistake.mistake_id,
            mistake.related_step_id,
            mistake.attempt_id,
            mistake.title,
            mistake.what_happened,
            mistake.why,
            mistake.lesson,
            mistake.avoid_next_time,
            to_json(&mistake.tags)?,
            mistake.at,
        ],
    )?;
    Ok(())
}

/// Mistakes of a job, newest first, at most `limit`.
pub(crate) fn latest(db: &Db<'_>, job: &JobId, limit: u32) -> Result<Vec<Mistake>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM conductor_mistakes WHERE job_id = ?1 ORDER BY number DESC LIMIT ?2"),
        params![job, limit],
    )
}

/// All mistakes of a job, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<Mistake>, DbError> {
    super::in_pages(|offset, limit| {
        db.query_as(
            &format!("SELECT {COLUMNS} FROM conductor_mistakes WHERE job_id = ?1 ORDER BY number LIMIT ?2 OFFSET ?3"),
            params![job, limit, offset],
        )
    })
}

/// Checks whether a mistake is recorded for a submission.
pub(crate) fn learns_from(db: &Db<'_>, job: &JobId, attempt: &AttemptId) -> Result<bool, DbError> {
    let row = db.query_row(
        "SELECT id FROM conductor_mistakes WHERE job_id = ?1 AND attempt_id = ?2 LIMIT 1",
        params![job, attempt],
    )?;
    Ok(row.is_some())
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &MistakeId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_mistakes WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
