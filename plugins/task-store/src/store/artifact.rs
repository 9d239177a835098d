//! What executors and reviewers produced, by reference.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use crate::model::{ArtifactId, ArtifactKind, AttemptId, TaskId};

/// Something that was produced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Artifact {
    /// The artifact's id.
    pub id: ArtifactId,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The attempt that produced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// What it is.
    pub kind: ArtifactKind,
    /// Where it is: a path or a URI.
    pub uri: String,
    /// What is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who produced it.
    pub produced_by: String,
    /// When it was recorded.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "id, task_id, attempt_id, kind, uri, summary, produced_by, created_at";

impl TryFrom<Row> for Artifact {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Artifact, DbError> {
        Ok(Artifact {
            id: row.get(0)?,
            task_id: row.get(1)?,
            attempt_id: row.get(2)?,
            kind: row.get(3)?,
            uri: row.get(4)?,
            summary: row.get(5)?,
            produced_by: row.get(6)?,
            created_at: row.get(7)?,
        })
    }
}

/// Stores a new artifact.
pub(crate) fn insert(db: &Db<'_>, artifact: &Artifact) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO task_store_artifacts (id, task_id, attempt_id, kind, uri, summary, produced_by, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            artifact.id,
            artifact.task_id,
            artifact.attempt_id,
            artifact.kind,
            artifact.uri,
            artifact.summary,
            artifact.produced_by,
            artifact.created_at,
        ],
    )?;
    Ok(())
}

/// Up to `limit` artifacts of a task, latest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Artifact>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM task_store_artifacts WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"),
        params![task_id, limit],
    )
}
