//! Requests for approval of side effects, and their decisions.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::Where;
use super::standing::gating;
use crate::model::{ApprovalId, ApprovalStatus, AttemptId, TaskId};
use crate::phase::Phase;

/// Kind of an approval that lets a circuit be reset once more. It has no say in other steps.
pub(crate) const CIRCUIT_RESET: &str = "circuit_reset";

/// A request for approval of a side effect, with its decision.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Approval {
    /// Id of the approval, for task_resolve_approval.
    pub id: ApprovalId,
    /// The same id, under the name of the argument for it.
    pub approval_id: ApprovalId,
    /// Id of the task, from task_create.
    pub task_id: TaskId,
    /// Id of the attempt that needs the side effect.
    pub attempt_id: AttemptId,
    /// Action to approve.
    pub requested_action: String,
    /// Kind of side effect, for example deploy.
    pub side_effect_kind: String,
    /// Key of the side effect, so that a repeated request is recognized.
    pub idempotency_key: String,
    /// Status of the approval.
    pub status: ApprovalStatus,
    /// Name of the requester.
    pub requested_by: String,
    /// Name of the person or agent who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    /// Note on the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time of the request.
    pub created_at: Timestamp,
    /// Time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    /// Id of the later request that replaces this denied one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<ApprovalId>,
}

const COLUMNS: &str = "id, task_id, attempt_id, requested_action, side_effect_kind, idempotency_key, status, \
    requested_by, resolved_by, note, created_at, resolved_at, replaced_by";

from_row! {
    Approval {
        id, approval_id: copy id, task_id, attempt_id, requested_action, side_effect_kind, idempotency_key, status,
        requested_by, resolved_by, note, created_at, resolved_at, replaced_by
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

/// The earlier request for the same side effect, if there is one.
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

/// Up to `limit` approvals of a task, newest first.
pub(crate) fn latest(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Approval>, DbError> {
    db.query_as(
        &format!("SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 ORDER BY seq DESC LIMIT ?2"),
        params![task_id, limit],
    )
}

/// Up to `limit` pending approvals of a task, oldest first.
pub(crate) fn pending(db: &Db<'_>, task_id: &TaskId, limit: u32) -> Result<Vec<Approval>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 AND status = 'pending' \
             ORDER BY seq LIMIT ?2"
        ),
        params![task_id, limit],
    )
}

/// The approval that decides for a task: the latest denied one of its current attempt, else the latest one.
pub(crate) fn deciding(db: &Db<'_>, task_id: &TaskId) -> Result<Option<Approval>, DbError> {
    db.query_one(
        &format!(
            "SELECT {} FROM task_store_approvals p JOIN task_store_tasks t ON t.id = p.task_id \
             WHERE t.id = ?1 AND {} \
             ORDER BY CASE WHEN p.status IN ('rejected', 'request_changes') THEN 0 ELSE 1 END, p.seq DESC LIMIT 1",
            columns_of_p(),
            gating()
        ),
        params![task_id],
    )
}

/// Notes a new request as the replacement of denied ones of its kind in its attempt.
pub(crate) fn replace_denied(db: &Db<'_>, by: &Approval) -> Result<(), DbError> {
    db.execute(
        "UPDATE task_store_approvals SET replaced_by = ?1 WHERE task_id = ?2 AND attempt_id = ?3 \
         AND side_effect_kind = ?4 AND status IN ('rejected', 'request_changes') AND replaced_by IS NULL",
        params![by.id, by.task_id, by.attempt_id, by.side_effect_kind],
    )?;
    Ok(())
}

/// Up to `limit` denied requests that a request replaces, newest first.
pub(crate) fn replaced(db: &Db<'_>, by: &Approval, limit: u32) -> Result<Vec<Approval>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_approvals WHERE task_id = ?1 AND replaced_by = ?2 \
             ORDER BY seq DESC LIMIT ?3"
        ),
        params![by.task_id, by.id, limit],
    )
}

/// Filter of a list of approvals over all tasks.
#[derive(Debug, Default)]
pub(crate) struct Filter<'a> {
    pub status: Option<ApprovalStatus>,
    pub workspace: Option<&'a String>,
}

/// An approval with the task that it belongs to.
#[derive(Debug)]
pub(crate) struct Listed {
    pub approval: Approval,
    pub title: String,
    pub workspace: String,
    pub phase: Phase,
    /// True if the answer counts for the task: the task is not over, the attempt is its current one, and no later
    /// request replaces this one.
    pub is_current: bool,
}

/// The columns of a table `p`.
fn columns_of_p() -> String {
    let columns = COLUMNS.split(", ").map(|column| format!("p.{}", column.trim()));
    columns.collect::<Vec<_>>().join(", ")
}

from_row! {
    Listed {
        approval: nested, title, workspace, phase,
        is_current = |is_of_current_attempt: bool| is_of_current_attempt && !Phase::is_terminal(phase)
    }
}

/// Up to `limit` approvals of all tasks after an approval, oldest first.
pub(crate) fn list(
    db: &Db<'_>,
    filter: &Filter<'_>,
    after: Option<&ApprovalId>,
    limit: u32,
) -> Result<Vec<Listed>, DbError> {
    let mut wanted = Where::new("1 = 1");
    wanted.and_if("p.status =", filter.status.as_ref());
    wanted.and_if("t.workspace =", filter.workspace);
    if let Some(after) = after {
        let after = wanted.param(after);
        wanted.sql.push_str(&format!(
            " AND p.seq > (SELECT o.seq FROM task_store_approvals o WHERE o.id = {after})"
        ));
    }
    let limit = wanted.param(&limit);
    db.query_as(
        &format!(
            "SELECT {}, t.title, t.workspace, t.phase, \
             CASE WHEN p.attempt_id = t.current_attempt_id AND p.replaced_by IS NULL THEN 1 ELSE 0 END \
             FROM task_store_approvals p JOIN task_store_tasks t ON t.id = p.task_id \
             WHERE {} ORDER BY p.seq LIMIT {limit}",
            columns_of_p(),
            wanted.sql
        ),
        &wanted.params,
    )
}

/// Returns whether an approval exists.
pub(crate) fn exists(db: &Db<'_>, id: &ApprovalId) -> Result<bool, DbError> {
    let found = db.query_row("SELECT 1 FROM task_store_approvals WHERE id = ?1", params![id])?;
    Ok(found.is_some())
}

/// Stores the decision on a pending approval. `false` if it is no longer pending.
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
