//! Recorded mistakes. All jobs with the same repository share them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::model::{AttemptId, JobId, MistakeId, StepId};

/// A mistake and its lesson.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Mistake {
    pub mistake_id: MistakeId,
    /// Job that recorded the mistake, if that is another one with the same repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
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
    /// Cause of the mistake; blank until somebody names it.
    pub why: String,
    /// Lesson learned; blank until somebody writes one.
    pub lesson: String,
    /// Behaviour to avoid next time.
    pub avoid_next_time: String,
    /// Tags. Prompts of steps that share a tag show this mistake.
    pub tags: Vec<String>,
    /// Time of recording.
    pub at: Timestamp,
    /// True if a rejection recorded it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

from_row! {
    Mistake {
        mistake_id, job_id, related_step_id, attempt_id, title, what_happened, why, lesson, avoid_next_time,
        tags: json, at, automatic,
    }
}

/// Columns, with the job only where it is another one than `?1`.
const COLUMNS: &str = "id, nullif(job_id, ?1), related_step_id, attempt_id, title, what_happened, why, lesson, \
    avoid_next_time, tags_json, at, automatic";

/// Repository of the job `?1`, or the job itself.
const PLACE_SQL: &str = "coalesce((SELECT repo_root FROM conductor_jobs WHERE id = ?1), ?1)";

/// Stores a mistake in the memory of a job's repository.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, mistake: &Mistake) -> Result<(), DbError> {
    let place = super::job::place(db, job)?;
    insert_at(db, job, place.as_deref().unwrap_or(job.as_str()), mistake)
}

/// Stores a mistake of one job alone.
pub(crate) fn insert_own(db: &Db<'_>, job: &JobId, mistake: &Mistake) -> Result<(), DbError> {
    insert_at(db, job, job.as_str(), mistake)
}

fn insert_at(db: &Db<'_>, job: &JobId, place: &str, mistake: &Mistake) -> Result<(), DbError> {
    entity::part(job, mistake.mistake_id.as_str());
    db.execute(
        "INSERT INTO conductor_lessons (job_id, place, id, related_step_id, attempt_id, title, what_happened, why, \
         lesson, avoid_next_time, tags_json, at, automatic) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            job,
            place,
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
            mistake.automatic,
        ],
    )?;
    Ok(())
}

/// Replaces the texts and tags of a recorded mistake.
pub(crate) fn update(db: &Db<'_>, mistake: &Mistake) -> Result<(), DbError> {
    entity::apart("lessons", mistake.mistake_id.as_str());
    db.execute(
        "UPDATE conductor_lessons SET related_step_id = ?2, title = ?3, what_happened = ?4, why = ?5, lesson = ?6, \
         avoid_next_time = ?7, tags_json = ?8, automatic = ?9 WHERE id = ?1",
        params![
            mistake.mistake_id,
            mistake.related_step_id,
            mistake.title,
            mistake.what_happened,
            mistake.why,
            mistake.lesson,
            mistake.avoid_next_time,
            to_json(&mistake.tags)?,
            mistake.automatic,
        ],
    )?;
    Ok(())
}

/// Latest mistakes of a job and of others on the same repository, newest first.
pub(crate) fn latest(db: &Db<'_>, job: &JobId, limit: u32) -> Result<Vec<Mistake>, DbError> {
    before(db, job, None, limit)
}

/// The same, only those that were recorded before another one.
pub(crate) fn before(
    db: &Db<'_>,
    job: &JobId,
    other: Option<&MistakeId>,
    limit: u32,
) -> Result<Vec<Mistake>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM conductor_lessons WHERE (job_id = ?1 OR place = {PLACE_SQL}) \
             AND (?3 IS NULL OR number < (SELECT number FROM conductor_lessons WHERE id = ?3)) \
             ORDER BY number DESC LIMIT ?2"
        ),
        params![job, limit, other],
    )
}

/// All mistakes that a job recorded, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<Mistake>, DbError> {
    super::in_pages(|offset, limit| {
        db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM conductor_lessons WHERE job_id = ?1 ORDER BY number LIMIT ?2 OFFSET ?3"
            ),
            params![job, limit, offset],
        )
    })
}

/// Mistakes that rejections of a step recorded by themselves and that have no lesson yet, oldest first.
pub(crate) fn unlearned(db: &Db<'_>, job: &JobId, step: &StepId) -> Result<Vec<Mistake>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM conductor_lessons \
             WHERE job_id = ?1 AND related_step_id = ?2 AND automatic = 1 AND lesson = '' ORDER BY number LIMIT 100"
        ),
        params![job, step],
    )
}

/// Mistake that is recorded for a submission.
pub(crate) fn of_attempt(db: &Db<'_>, job: &JobId, attempt: &AttemptId) -> Result<Option<Mistake>, DbError> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM conductor_lessons WHERE job_id = ?1 AND attempt_id = ?2 ORDER BY number LIMIT 1"
        ),
        params![job, attempt],
    )
}

/// Checks whether a lesson is recorded for a submission.
pub(crate) fn learns_from(db: &Db<'_>, job: &JobId, attempt: &AttemptId) -> Result<bool, DbError> {
    let row = db.query_row(
        "SELECT id FROM conductor_lessons WHERE job_id = ?1 AND attempt_id = ?2 AND lesson <> '' LIMIT 1",
        params![job, attempt],
    )?;
    Ok(row.is_some())
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &MistakeId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_lessons WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
