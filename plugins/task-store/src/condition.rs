//! Evidence that transitions need, as a pure function over the table of phases.

use thiserror::Error;

use crate::model::{AttemptStatus, Verdict};
use crate::phase::{Phase, Place};

/// Facts for the conditions of a transition. All of them are of the current spec and the current attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Facts {
    /// True if the spec has acceptance criteria.
    pub acceptance: bool,
    /// The latest review of the current spec itself.
    pub spec_review: Option<Verdict>,
    /// The latest review of the current attempt against the spec, after the attempt ended.
    pub attempt_review: Option<Verdict>,
    /// The latest quality review of the current attempt, after the attempt ended.
    pub quality_review: Option<Verdict>,
    /// Status of the current attempt, which is the latest.
    pub attempt: Option<AttemptStatus>,
    /// True if no attempt runs and none may start.
    pub is_exhausted: bool,
    /// True if an approval for the current attempt is pending.
    pub approval_pending: bool,
    /// True if an approval for the current attempt was granted.
    pub approved: bool,
    /// True if an approval for the current attempt was denied and not requested again.
    pub approval_denied: bool,
    /// True if leaving the open circuit would reset the retry count once more than is allowed without an approval.
    pub is_reset_barred: bool,
}

/// Evidence that an edge of the table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Acceptance,
    SpecApproved,
    AttemptApproved,
    QualityApproved,
    AttemptRunning,
    AttemptSucceeded,
    RetriesLeft,
    NothingDenied,
    Approved,
    NothingPending,
    ResetAllowed,
}

/// Conditions on the spec for every transition into `executing`.
pub(crate) const SPEC_NEEDS: &[Need] = &[Need::Acceptance, Need::SpecApproved];

/// Everything that a legal transition needs. Entries of `executing` and `completed` depend on the target alone, so
/// that no edge leads around them. Nothing keeps a task from failing.
pub(crate) const fn needs(place: Place, to: Phase) -> &'static [Need] {
    match (place.phase, to) {
        (_, Phase::Failed) => &[],
        // Leaving the circuit counts retries anew.
        (Phase::CircuitOpen, Phase::Executing) => &[
            Need::ResetAllowed,
            Need::Acceptance,
            Need::SpecApproved,
            Need::AttemptRunning,
        ],
        (_, Phase::Executing) => &[
            Need::Acceptance,
            Need::SpecApproved,
            Need::AttemptRunning,
            Need::RetriesLeft,
        ],
        (_, Phase::Completed) => &[
            Need::SpecApproved,
            Need::AttemptApproved,
            Need::QualityApproved,
            Need::AttemptSucceeded,
            Need::NothingDenied,
            Need::NothingPending,
        ],
        (Phase::SpecReview, Phase::ExecutionReady) => SPEC_NEEDS,
        (Phase::CircuitOpen, Phase::ExecutionReady) if place.circuit_from.is_none() => {
            &[Need::ResetAllowed, Need::Acceptance, Need::SpecApproved]
        }
        (Phase::CircuitOpen, _) => &[Need::ResetAllowed],
        (Phase::SpecGate, Phase::QualityGate) => &[Need::AttemptApproved],
        (Phase::AwaitingApproval, Phase::ReadyToResume) => {
            &[Need::NothingDenied, Need::Approved, Need::NothingPending]
        }
        _ => &[],
    }
}

impl Need {
    /// The condition that the facts do not meet.
    fn unmet(self, facts: &Facts) -> Option<Condition> {
        let approved = Some(Verdict::Approved);
        let (is_met, condition) = match self {
            Need::Acceptance => (facts.acceptance, Condition::AcceptanceMissing),
            Need::SpecApproved => (
                facts.spec_review == approved,
                Condition::SpecNotApproved(facts.spec_review),
            ),
            Need::AttemptApproved => (
                facts.attempt_review == approved,
                Condition::AttemptNotApproved(facts.attempt_review),
            ),
            Need::QualityApproved => (
                facts.quality_review == approved,
                Condition::QualityNotApproved(facts.quality_review),
            ),
            Need::AttemptRunning => (
                facts.attempt == Some(AttemptStatus::Running),
                Condition::NoRunningAttempt,
            ),
            Need::AttemptSucceeded => (
                facts.attempt == Some(AttemptStatus::Succeeded),
                Condition::AttemptNotSucceeded(facts.attempt),
            ),
            Need::RetriesLeft => (!facts.is_exhausted, Condition::CircuitOpen),
            Need::NothingDenied => (!facts.approval_denied, Condition::ApprovalDenied),
            // Of a denied approval, its denial says more.
            Need::Approved => (
                facts.approved || facts.approval_denied,
                Condition::ApprovalMissing,
            ),
            Need::NothingPending => (!facts.approval_pending, Condition::ApprovalPending),
            Need::ResetAllowed => (!facts.is_reset_barred, Condition::ResetsExhausted),
        };
        (!is_met).then_some(condition)
    }
}

/// Every condition of a legal transition that does not hold.
pub(crate) fn unmet(place: Place, to: Phase, facts: &Facts) -> Vec<Condition> {
    unmet_of(needs(place, to), facts)
}

/// Every condition of some needs that does not hold.
pub(crate) fn unmet_of(needs: &[Need], facts: &Facts) -> Vec<Condition> {
    needs.iter().filter_map(|need| need.unmet(facts)).collect()
}

/// Returns whether the spec itself may be reviewed in a phase: once it is complete, until the task is over.
pub(crate) const fn takes_spec_review(phase: Phase) -> bool {
    !matches!(phase, Phase::SpecDraft | Phase::Completed | Phase::Failed)
}

/// Returns whether a verdict on the spec itself says something new. After `spec_review`, another approval of an
/// approved spec is most likely meant for an attempt. Other verdicts withdraw the approval.
pub(crate) fn tells_of_spec(phase: Phase, facts: &Facts, verdict: Verdict) -> bool {
    let approved = Verdict::Approved;
    phase == Phase::SpecReview || verdict != approved || facts.spec_review != Some(approved)
}

/// Unmet condition of a legal transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Condition {
    #[error("the spec has no acceptance criteria")]
    AcceptanceMissing,
    #[error("the spec is not approved: {}", latest(*.0))]
    SpecNotApproved(Option<Verdict>),
    #[error("the current attempt is not approved against the spec: {}", latest(*.0))]
    AttemptNotApproved(Option<Verdict>),
    #[error("the quality of the current attempt is not approved: {}", latest(*.0))]
    QualityNotApproved(Option<Verdict>),
    #[error("no attempt is running")]
    NoRunningAttempt,
    #[error("the current attempt has not succeeded: {}", status(*.0))]
    AttemptNotSucceeded(Option<AttemptStatus>),
    #[error("all retries are used up, so the circuit must be opened first")]
    CircuitOpen,
    #[error("an approval for the current attempt is still pending")]
    ApprovalPending,
    #[error("no approval was granted for the current attempt")]
    ApprovalMissing,
    #[error("an approval for the current attempt was denied")]
    ApprovalDenied,
    #[error("the circuit was reset as often as is allowed without an approval")]
    ResetsExhausted,
}

impl Condition {
    /// Stable code in UPPER_SNAKE_CASE.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Condition::AcceptanceMissing => "ACCEPTANCE_MISSING",
            Condition::SpecNotApproved(_) | Condition::AttemptNotApproved(_) => "SPEC_NOT_APPROVED",
            Condition::QualityNotApproved(_) => "QUALITY_NOT_APPROVED",
            Condition::NoRunningAttempt => "NO_RUNNING_ATTEMPT",
            Condition::AttemptNotSucceeded(_) => "ATTEMPT_NOT_SUCCEEDED",
            Condition::CircuitOpen => "CIRCUIT_OPEN",
            Condition::ApprovalPending => "APPROVAL_PENDING",
            Condition::ApprovalMissing => "APPROVAL_MISSING",
            Condition::ApprovalDenied => "APPROVAL_DENIED",
            Condition::ResetsExhausted => "RESETS_EXHAUSTED",
        }
    }

    /// Way to resolve the condition.
    pub(crate) const fn remediation(self) -> &'static str {
        match self {
            Condition::AcceptanceMissing => {
                "Add acceptance criteria with task_update_spec, in spec_draft or execution_ready."
            }
            Condition::SpecNotApproved(_) => {
                "Have a spec_reviewer approve the spec with task_append_review, without attempt_id."
            }
            Condition::AttemptNotApproved(_) => {
                "When the attempt has ended, have a spec_reviewer approve it with task_append_review, with its attempt_id."
            }
            Condition::QualityNotApproved(_) => {
                "When the attempt has ended, have a quality_reviewer approve it with task_append_review, with its \
                 attempt_id."
            }
            Condition::NoRunningAttempt => "Start an attempt with task_start_attempt.",
            Condition::AttemptNotSucceeded(Some(AttemptStatus::Running)) => {
                "End the attempt with task_finish_attempt when its work is done."
            }
            Condition::AttemptNotSucceeded(_) => {
                "Start another attempt with task_start_attempt, in execution_ready or ready_to_resume."
            }
            Condition::CircuitOpen => {
                "Open the circuit with task_open_circuit, investigate the failures, then move the task back, which \
                 resets the retry count."
            }
            Condition::ApprovalPending => "Have a gateway or human decide it with task_resolve_approval.",
            Condition::ApprovalMissing => {
                "Request approval for the current attempt with task_request_approval and have it granted."
            }
            Condition::ApprovalDenied => {
                "Request the side effect again with task_request_approval, with the same side_effect_kind and another \
                 idempotency_key, which replaces the denied request, or start another attempt."
            }
            Condition::ResetsExhausted => {
                "Request a person's approval with task_request_approval, with side_effect_kind circuit_reset and the \
                 current attempt_id, or move the task to failed."
            }
        }
    }
}

fn latest(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(verdict) => format!("the latest verdict is {verdict}"),
        None => "there is no review".to_owned(),
    }
}

fn status(status: Option<AttemptStatus>) -> String {
    match status {
        Some(status) => format!("its status is {status}"),
        None => "there is no attempt".to_owned(),
    }
}

#[cfg(test)]
mod tests;
