//! Attempts at executing a task.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use crate::model::{AttemptId, AttemptPhase, AttemptStatus, ExecutorKind, Runtime, TaskId};

/// One try at executing a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Attempt {
    /// The attempt's id.
    pub id: AttemptId,
    /// The task it is about.
    pub task_id: TaskId,
    /// Counts the task's attempts from 1, for good.
    pub ordinal: u32,
    /// What it is for.
    pub phase: AttemptPhase,
    /// Where it runs.
    pub runtime: Runtime,
    /// What kind of executor works on it.
    pub executor_kind: ExecutorKind,
    /// The executor, by a name of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_ref: Option<String>,
    /// The session it runs in elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_session_ref: Option<String>,
    /// How far it is.
    pub status: AttemptStatus,
    /// Earlier attempts failed: use a stronger executor or a person.
    pub escalate: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, task_id, ordinal, phase, runtime, executor_kind, worker_ref, external_session_ref, \
    status, escalate, error_summary, started_at, finished_at";

impl TryFrom<Row> for Attempt {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Attempt, DbError> {
        Ok(Attempt {
            id: row.get(0)?,
            task_id: row.get(1)?,
            ordinal: row.get(2)?,
            phase: row.get(3)?,
            runtime: row.get(4)?,
            executor_kind: row.get(5)?,
            worker_ref: row.get(6)?,
            external_session_ref: row.get(7)?,
            status: row.get(8)?,
            escalate: row.get(9)?,
            error_summary: row.get(10)?,
            started_at: row.get(11)?,
            finished_at: row.get(12)?,
        })
    }
}

/// Stores a new attempt.
pub(crate) fn insert(db: &Db<'_>, attempt: &Attempt) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO task_store_attempts (id, task_id, ordinal, phase, runtime, executor_kind, worker_ref, \
         external_session_ref, status, escalate, started_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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

/// Up to `limit` attempts of a task, latest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Attempt>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_attempts WHERE task_id = ?1 ORDER BY ordinal DESC LIMIT ?2"
        ),
        params![task_id, limit],
    )
}

/// Stores how a running attempt ended. `false` if it ended meanwhile.
pub(crate) fn finish(db: &Db<'_>, ended: &Attempt) -> Result<bool, DbError> {
    let changed = db.execute(
        "UPDATE task_store_attempts SET status = ?2, error_summary = ?3, finished_at = ?4 \
         WHERE id = ?1 AND status = 'running'",
        params![ended.id, ended.status, ended.error_summary, ended.finished_at],
    )?;
    Ok(changed == 1)
}
