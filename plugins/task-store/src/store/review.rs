//! Reviews of specs and attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::arguments::{MAX_ENTRY_CHARS, MAX_PATH_CHARS};
use crate::model::{AttemptId, ReviewId, ReviewType, Severity, TaskId, Verdict};

/// Finding of a reviewer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    /// Severity of the finding. `critical` is the gravest.
    pub severity: Severity,
    /// Description of the finding.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    pub message: String,
    /// Path of the file with the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
    pub file: Option<String>,
    /// Line in the file, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// URI of the artifact with the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
    pub artifact_uri: Option<String>,
}

/// Review of a spec or an attempt, without its findings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ReviewLine {
    /// Id of the review.
    pub id: ReviewId,
    /// The same id, under a name that shows its kind.
    pub review_id: ReviewId,
    /// Id of the task, from task_create.
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
const LINE_COLUMNS: &str = "id, task_id, attempt_id, review_type, reviewer_ref, verdict, summary, finding_count, \
    spec_revision, created_at";

from_row! {
    ReviewLine {
        id, review_id: copy id, task_id, attempt_id, review_type, reviewer_ref, verdict, summary, finding_count,
        spec_revision, created_at
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

from_row! {
    Review { line: nested, findings: json }
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
            "SELECT {LINE_COLUMNS}, findings_json FROM task_store_reviews WHERE task_id = ?1 ORDER BY seq DESC LIMIT 1"
        ),
        params![task_id],
    )
}

/// Up to `limit` reviews of a task, newest first.
pub(crate) fn list(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<ReviewLine>, DbError> {
    db.query_as(
        &format!(
            "SELECT {LINE_COLUMNS} FROM task_store_reviews WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"
        ),
        params![task_id, limit],
    )
}
