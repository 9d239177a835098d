//! Requests to allow side effects, and their answers.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use crate::model::{ApprovalId, ApprovalStatus, AttemptId, TaskId};

/// A request to allow a side effect, with its answer once there is one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Approval {
    /// The approval's id.
    pub id: ApprovalId,
    /// The task it is about.
    pub task_id: TaskId,
    /// The attempt that wants the side effect.
    pub attempt_id: AttemptId,
    /// What is to be done.
    pub requested_action: String,
    /// What kind of side effect it is.
    pub side_effect_kind: String,
    /// Names the side effect, so that asking again is not asking for another.
    pub idempotency_key: String,
    /// How far it is.
    pub status: ApprovalStatus,
    /// Who asked.
    pub requested_by: String,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// What was said with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, task_id, attempt_id, requested_action, side_effect_kind, idempotency_key, status, \
    requested_by, resolved_by, note, created_at, resolved_at";

impl TryFrom<Row> for Approval {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Approval, DbError> {
        Ok(Approval {
            id: row.get(0)?,
            task_id: row.get(1)?,
            attempt_id: row.get(2)?,
            requested_action: row.get(3)?,
            side_effect_kind: row.get(4)?,
            idempotency_key: row.get(5)?,
            status: row.get(6)?,
            requested_by: row.get(7)?,
            resolved_by: row.get(8)?,
            note: row.get(9)?,
            created_at: row.get(10)?,
            resolved_at: row.get(11)?,
        })
    }
}

/// Stores a new request.
pub(crate) fn insert(db: &Db<'_>, approval: &Approval) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO task_store_approvals (id, task_id, attempt_id, requested_action, side_effect_kind, \
         idempotency_key, status, requested_by, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            approval.id,
            approval.task_id,
            approval.attempt_id,
            approval.requested_action,
            approval.side_effect_kind,
            approval.idempotency_key,
            approval.status,
            approval.requested_by,
            approval.created_at,
        ],
    )?;
    Ok(())
}

/// An approval of a task.
pub(crate) fn get(db: &Db<'_>, task_id: &TaskId, id: &ApprovalId) -> Result<Option<Approval>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 AND id = ?2"),
        params![task_id, id],
    )
}

/// The request for the same side effect, if it was made before.
pub(crate) fn find(
    db: &Db<'_>,
    task_id: &TaskId,
    kind: &str,
    key: &str,
) -> Result<Option<Approval>, DbError> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM task_store_approvals \
             WHERE task_id = ?1 AND side_effect_kind = ?2 AND idempotency_key = ?3"
        ),
        params![task_id, kind, key],
    )
}

/// Up to `limit` approvals of a task, latest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Approval>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"),
        params![task_id, limit],
    )
}

/// Up to `limit` unanswered approvals of a task, oldest first.
pub(crate) fn pending(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Approval>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 AND status = 'pending' \
             ORDER BY seq LIMIT ?2"
        ),
        params![task_id, limit],
    )
}

/// Stores the answer to a pending approval. `false` if it was answered meanwhile.
pub(crate) fn resolve(db: &Db<'_>, answered: &Approval) -> Result<bool, DbError> {
    let changed = db.execute(
        "UPDATE task_store_approvals SET status = ?2, resolved_by = ?3, note = ?4, resolved_at = ?5 \
         WHERE id = ?1 AND status = 'pending'",
        params![
            answered.id,
            answered.status,
            answered.resolved_by,
            answered.note,
            answered.resolved_at,
        ],
    )?;
    Ok(changed == 1)
}
