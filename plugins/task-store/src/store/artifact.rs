//! Artifacts of executors and reviewers, by reference.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::model::{ArtifactId, ArtifactKind, AttemptId, TaskId};

/// Reference to an artifact.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Artifact {
    /// Id of the artifact.
    pub id: ArtifactId,
    /// The same id, under a name that shows its kind.
    pub artifact_id: ArtifactId,
    /// Id of the task, from task_create.
    pub task_id: TaskId,
    /// Id of the attempt that produced the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// Kind of artifact.
    pub kind: ArtifactKind,
    /// Location of the artifact: a path or URI.
    pub uri: String,
    /// Short description of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Name of the producer, for example a worker.
    pub produced_by: String,
    /// Time of recording.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "id, task_id, attempt_id, kind, uri, summary, produced_by, created_at";

from_row! {
    Artifact { id, artifact_id: copy id, task_id, attempt_id, kind, uri, summary, produced_by, created_at }
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

/// Up to `limit` artifacts of a task, newest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Artifact>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM task_store_artifacts WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"),
        params![task_id, limit],
    )
}
