//! Reviews of specs and attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use crate::arguments::{ENTRY, PATH};
use crate::model::{AttemptId, ReviewId, ReviewType, Severity, TaskId, Verdict};

/// Finding of a reviewer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    /// Severity of this finding.
    pub severity: Severity,
    /// Description of the finding.
    #[schemars(length(min = 1, max = ENTRY))]
    pub message: String,
    /// Path of the file with the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = PATH))]
    pub file: Option<String>,
    /// Line in the file, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// URI of the artifact with the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = PATH))]
    pub artifact_uri: Option<String>,
}

/// Review of a spec or an attempt, without its findings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ReviewLine {
    /// Id of the review.
    pub id: ReviewId,
    /// The same id, under a name of its own.
    pub review_id: ReviewId,
    /// Id of the task.
    pub task_id: TaskId,
    /// Id of the reviewed attempt, absent for a review of the spec alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// Subject of the review.
    pub review_type: ReviewType,
    /// Name of the reviewer, for example reviewer-1.
    pub reviewer_ref: String,
    /// Verdict of the reviewer.
    pub verdict: Verdict,
    /// Reasons for the verdict, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Number of findings.
    pub finding_count: u32,
    /// Revision of the reviewed spec.
    pub spec_revision: u32,
    /// Time of the review.
    pub created_at: Timestamp,
}

/// The columns that [`ReviewLine`] is read from.
const LINE: &str = "id, task_id, attempt_id, review_type, reviewer_ref, verdict, summary, finding_count, \
    spec_revision, created_at";

/// Number of columns in [`LINE`].
const LINE_COLUMNS: usize = 10;

impl ReviewLine {
    fn read(row: &Row) -> Result<ReviewLine, DbError> {
        let id: ReviewId = row.get(0)?;
        Ok(ReviewLine {
            review_id: id.clone(),
            id,
            task_id: row.get(1)?,
            attempt_id: row.get(2)?,
            review_type: row.get(3)?,
            reviewer_ref: row.get(4)?,
            verdict: row.get(5)?,
            summary: row.get(6)?,
            finding_count: row.get(7)?,
            spec_revision: row.get(8)?,
            created_at: row.get(9)?,
        })
    }
}

impl TryFrom<Row> for ReviewLine {
    type Error = DbError;

    fn try_from(row: Row) -> Result<ReviewLine, DbError> {
        ReviewLine::read(&row)
    }
}

/// A review with its findings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Review {
    /// The review without its findings.
    #[serde(flatten)]
    pub line: ReviewLine,
    /// Findings of the reviewer.
    pub findings: Vec<Finding>,
}

impl TryFrom<Row> for Review {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Review, DbError> {
        Ok(Review {
            line: ReviewLine::read(&row)?,
            findings: row.json(LINE_COLUMNS)?,
        })
    }
}

/// Stores a new review.
pub(crate) fn insert(db: &Db<'_>, review: &Review) -> Result<(), DbError> {
    let Review { line, findings } = review;
    db.execute(
        "INSERT INTO task_store_reviews (id, task_id, attempt_id, review_type, reviewer_ref, verdict, summary, \
         finding_count, spec_revision, created_at, findings_json) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            line.id,
            line.task_id,
            line.attempt_id,
            line.review_type,
            line.reviewer_ref,
            line.verdict,
            line.summary,
            line.finding_count,
            line.spec_revision,
            line.created_at,
            json!(findings),
        ],
    )?;
    Ok(())
}

/// The latest review of a task, of either type.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId) -> Result<Option<Review>, DbError> {
    db.query_one(
        &format!(
            "SELECT {LINE}, findings_json FROM task_store_reviews WHERE task_id = ?1 ORDER BY seq DESC LIMIT 1"
        ),
        params![task_id],
    )
}

/// Up to `limit` reviews of a task, newest first.
pub(crate) fn list(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<ReviewLine>, DbError> {
    db.query_as(
        &format!("SELECT {LINE} FROM task_store_reviews WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"),
        params![task_id, limit],
    )
}
