//! State of a task in one statement, for decisions on transitions and attempts.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, params};

use super::approval::CIRCUIT_RESET;
use super::task::{HEAD_COLUMNS, TaskHead};
use crate::condition::{Condition, Facts, SPEC_NEEDS, unmet, unmet_of};
use crate::model::{AttemptId, AttemptStatus, TaskId, Verdict};
use crate::phase::Phase;
use crate::retry::{Policy, Turn};

/// A task with everything that its next step depends on.
#[derive(Debug)]
pub(crate) struct Standing {
    pub task: TaskHead,
    attempt: Option<AttemptStatus>,
    acceptance: bool,
    spec_review: Option<Verdict>,
    attempt_review: Option<Verdict>,
    quality_review: Option<Verdict>,
    approval_pending: bool,
    approved: bool,
    approval_denied: bool,
    reset_approved: bool,
}

from_row! {
    Standing {
        task: nested, attempt, acceptance, spec_review, attempt_review, quality_review, approval_pending, approved,
        approval_denied, reset_approved
    }
}

impl Standing {
    /// The running attempt. One runs at most, and it is the latest.
    pub(crate) fn running(&self) -> Option<&AttemptId> {
        let is_running = self.attempt == Some(AttemptStatus::Running);
        self.task.current_attempt_id.as_ref().filter(|_| is_running)
    }

    /// Facts for the conditions of transitions.
    pub(crate) fn facts(&self, policy: &Policy) -> Facts {
        let is_exhausted = policy.turn(self.task.attempts_used()) == Turn::Exhausted;
        Facts {
            acceptance: self.acceptance,
            spec_review: self.spec_review,
            attempt_review: self.attempt_review,
            quality_review: self.quality_review,
            attempt: self.attempt,
            is_exhausted: is_exhausted && self.running().is_none(),
            approval_pending: self.approval_pending,
            approved: self.approved,
            approval_denied: self.approval_denied,
            is_reset_barred: self.task.resets_retries()
                && self.task.circuit_resets >= policy.max_resets
                && !self.reset_approved,
        }
    }

    /// Returns whether every approval of the current attempt was granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.approved && !self.approval_denied
    }

    /// Every condition of a legal transition that does not hold.
    pub(crate) fn unmet(&self, policy: &Policy, to: Phase) -> Vec<Condition> {
        unmet(self.task.place(), to, &self.facts(policy))
    }

    /// Every condition of the spec that does not hold.
    pub(crate) fn unmet_of_spec(&self, policy: &Policy) -> Vec<Condition> {
        unmet_of(SPEC_NEEDS, &self.facts(policy))
    }
}

/// The latest verdict of a type on the current spec, and on an attempt or none. Reviews and approvals of an attempt count
/// for that attempt alone, and reviews from before its end for none.
fn verdict(review_type: &str, of: &str) -> String {
    format!(
        "(SELECT r.verdict FROM task_store_reviews r WHERE r.task_id = t.id AND r.review_type = '{review_type}' \
         AND r.spec_revision = t.spec_revision AND r.too_early = 0 AND r.attempt_id {of} ORDER BY r.seq DESC LIMIT 1)"
    )
}

/// The latest verdict on the current spec itself.
pub(super) fn spec_verdict() -> String {
    verdict("spec", "IS NULL")
}

/// The condition that an approval `p` has a say in the steps of its task `t`: it is of the current attempt, was not
/// requested again, and is not of a reset.
pub(super) fn gating() -> String {
    format!(
        "p.task_id = t.id AND p.attempt_id = t.current_attempt_id AND p.replaced_by IS NULL \
         AND p.side_effect_kind <> '{CIRCUIT_RESET}'"
    )
}

/// The columns that [`Standing`] is read from, with `t` as the table of tasks.
pub(super) fn columns() -> String {
    let exists = |approval: String| {
        format!("CASE WHEN EXISTS (SELECT 1 FROM task_store_approvals p WHERE {approval}) THEN 1 ELSE 0 END")
    };
    let approvals = |status: &str| exists(format!("{} AND p.status {status}", gating()));
    [
        HEAD_COLUMNS.to_owned(),
        "(SELECT a.status FROM task_store_attempts a WHERE a.id = t.current_attempt_id)".to_owned(),
        "CASE WHEN t.acceptance_json = '[]' THEN 0 ELSE 1 END".to_owned(),
        spec_verdict(),
        verdict("spec", "= t.current_attempt_id"),
        verdict("quality", "= t.current_attempt_id"),
        approvals("= 'pending'"),
        approvals("= 'approved'"),
        approvals("IN ('rejected', 'request_changes')"),
        exists(format!(
            "p.task_id = t.id AND p.attempt_id = t.current_attempt_id \
             AND p.side_effect_kind = '{CIRCUIT_RESET}' AND p.status = 'approved'"
        )),
    ]
    .join(", ")
}

/// State of a task.
pub(crate) fn get(db: &Db<'_>, id: &TaskId) -> Result<Option<Standing>, DbError> {
    db.query_one(
        &format!("SELECT {} FROM task_store_tasks t WHERE t.id = ?1", columns()),
        params![id],
    )
}
