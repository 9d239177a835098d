//! Attempts at executing a task.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::model::{AttemptId, AttemptPhase, AttemptStatus, ExecutorKind, Runtime, TaskId};

/// Attempt at executing a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Attempt {
    /// Id of the attempt.
    pub id: AttemptId,
    /// The same id, under the name of the argument for it.
    pub attempt_id: AttemptId,
    /// Id of the task, from task_create.
    pub task_id: TaskId,
    /// Number of the attempt within the task, from 1.
    pub ordinal: u32,
    /// Purpose of the attempt.
    pub phase: AttemptPhase,
    /// Runtime that runs the attempt.
    pub runtime: Runtime,
    /// Kind of executor that works on the attempt.
    pub executor_kind: ExecutorKind,
    /// Name of the executor, for example worker-3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_ref: Option<String>,
    /// Id of the executor's session in another system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_session_ref: Option<String>,
    /// Envelope in which the attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// Name of the MCP client that started the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Status of the attempt.
    pub status: AttemptStatus,
    /// True to use a stronger executor or a person, because earlier attempts failed.
    pub escalate: bool,
    /// Summary of the error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<String>,
    /// Start of the attempt.
    pub started_at: Timestamp,
    /// End of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// True if the attempt was aborted because its worker was gone, so that it does not count as a retry.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

const COLUMNS: &str = "id, task_id, ordinal, phase, runtime, executor_kind, worker_ref, external_session_ref, \
    status, escalate, error_summary, started_at, finished_at, envelope_id, client, lost";

from_row! {
    Attempt {
        id, attempt_id: copy id, task_id, ordinal, phase, runtime, executor_kind, worker_ref, external_session_ref,
        status, escalate, error_summary, started_at, finished_at, envelope_id, client, lost
    }
}

/// Stores a new attempt.
pub(crate) fn insert(db: &Db<'_>, attempt: &Attempt) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO task_store_attempts (id, task_id, ordinal, phase, runtime, executor_kind, worker_ref, \
         external_session_ref, status, escalate, started_at, envelope_id, client) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            attempt.id,
            attempt.task_id,
            attempt.ordinal,
            attempt.phase,
            attempt.runtime,
            attempt.executor_kind,
            attempt.worker_ref,
            attempt.external_session_ref,
            attempt.status,
            attempt.escalate,
            attempt.started_at,
            attempt.envelope_id,
            attempt.client,
        ],
    )?;
    Ok(())
}

/// An attempt of any task.
pub(crate) fn get(db: &Db<'_>, id: &AttemptId) -> Result<Option<Attempt>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM task_store_attempts WHERE id = ?1"),
        params![id],
    )
}

/// The running attempt of a task.
pub(crate) fn running(db: &Db<'_>, task_id: &TaskId) -> Result<Option<Attempt>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM task_store_attempts WHERE task_id = ?1 AND status = 'running'"),
        params![task_id],
    )
}

/// Up to `limit` attempts of a task, newest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Attempt>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_attempts WHERE task_id = ?1 ORDER BY ordinal DESC LIMIT ?2"
        ),
        params![task_id, limit],
    )
}

/// Stores the outcome of a running attempt. `false` if it has already ended.
pub(crate) fn finish(db: &Db<'_>, ended: &Attempt) -> Result<bool, DbError> {
    let changed = db.execute(
        "UPDATE task_store_attempts SET status = ?2, error_summary = ?3, finished_at = ?4, lost = ?5 \
         WHERE id = ?1 AND status = 'running'",
        params![
            ended.id,
            ended.status,
            ended.error_summary,
            ended.finished_at,
            ended.lost,
        ],
    )?;
    Ok(changed == 1)
}

/// Number of a task's attempts whose workers were gone.
pub(crate) fn lost(db: &Db<'_>, task_id: &TaskId) -> Result<u32, DbError> {
    db.query_row(
        "SELECT count(*) FROM task_store_attempts WHERE task_id = ?1 AND lost = 1",
        params![task_id],
    )?
    .map_or(Ok(0), |row| row.get(0))
}
