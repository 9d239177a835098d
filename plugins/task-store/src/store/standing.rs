//! State of a task in one statement, for decisions on transitions and attempts.

use tollgate_sdk::{Db, DbError, Row, params};

use super::task::{HEAD, HEAD_COLUMNS, TaskHead};
use crate::model::{AttemptId, TaskId, Verdict};
use crate::phase::{Facts, Phase};
use crate::retry::{Policy, Turn};

/// A task with everything that its next step depends on.
#[derive(Debug)]
pub(crate) struct Standing {
    pub task: TaskHead,
    pub running: Option<AttemptId>,
    acceptance: bool,
    spec_review: Option<Verdict>,
    quality_review: Option<Verdict>,
    approval_pending: bool,
    approved: bool,
}

impl TryFrom<Row> for Standing {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Standing, DbError> {
        Ok(Standing {
            task: TaskHead::read(&row)?,
            running: row.get(HEAD_COLUMNS)?,
            acceptance: row.get(HEAD_COLUMNS + 1)?,
            spec_review: row.get(HEAD_COLUMNS + 2)?,
            quality_review: row.get(HEAD_COLUMNS + 3)?,
            approval_pending: row.get(HEAD_COLUMNS + 4)?,
            approved: row.get(HEAD_COLUMNS + 5)?,
        })
    }
}

impl Standing {
    /// Facts for the conditions of transitions.
    pub(crate) fn facts(&self, policy: &Policy) -> Facts {
        let exhausted = policy.turn(self.task.attempts_used()) == Turn::Exhausted;
        Facts {
            acceptance: self.acceptance,
            spec_review: self.spec_review,
            quality_review: self.quality_review,
            attempt_running: self.running.is_some(),
            circuit_open: self.task.phase == Phase::CircuitOpen || (exhausted && self.running.is_none()),
            approval_pending: self.approval_pending,
            approved: self.approved,
        }
    }
}

/// State of a task.
pub(crate) fn get(db: &Db<'_>, id: &TaskId) -> Result<Option<Standing>, DbError> {
    // The latest review of a type counts, if it is about the current spec and attempt. Before the
    // first attempt both sides of the comparison are absent.
    let verdict = |review_type: &str| {
        format!(
            "(SELECT r.verdict FROM task_store_reviews r WHERE r.task_id = t.id AND r.review_type = '{review_type}' \
             AND r.spec_revision = t.spec_revision \
             AND coalesce(r.attempt_id, '') = coalesce(t.current_attempt_id, '') ORDER BY r.seq DESC LIMIT 1)"
        )
    };
    let approvals = |status: &str| {
        format!(
            "CASE WHEN EXISTS (SELECT 1 FROM task_store_approvals p WHERE p.task_id = t.id AND p.status = '{status}') \
             THEN 1 ELSE 0 END"
        )
    };
    db.query_one(
        &format!(
            "SELECT {HEAD}, \
             (SELECT a.id FROM task_store_attempts a WHERE a.task_id = t.id AND a.status = 'running'), \
             CASE WHEN t.acceptance_json = '[]' THEN 0 ELSE 1 END, {}, {}, {}, {} \
             FROM task_store_tasks t WHERE t.id = ?1",
            verdict("spec"),
            verdict("quality"),
            approvals("pending"),
            approvals("approved"),
        ),
        params![id],
    )
}
