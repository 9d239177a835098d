//! The phases of a task and the moves between them, as pure functions.

use thiserror::Error;
use tollgate_sdk::text_enum;

use crate::model::Verdict;

text_enum! {
    /// Where a task stands.
    pub(crate) enum Phase {
        SpecDraft = "spec_draft",
        SpecReview = "spec_review",
        ExecutionReady = "execution_ready",
        Executing = "executing",
        SpecGate = "spec_gate",
        QualityGate = "quality_gate",
        AwaitingApproval = "awaiting_approval",
        ReadyToResume = "ready_to_resume",
        Completed = "completed",
        Failed = "failed",
        CircuitOpen = "circuit_open",
    }
}

impl Phase {
    /// The phases a transition may lead to from here. Every phase but the terminal ones leads to
    /// `failed`.
    pub(crate) const fn next(self) -> &'static [Phase] {
        use Phase::*;
        match self {
            SpecDraft => &[SpecReview, Failed],
            SpecReview => &[SpecDraft, ExecutionReady, Failed],
            ExecutionReady => &[Executing, Failed],
            Executing => &[SpecGate, ExecutionReady, CircuitOpen, Failed],
            SpecGate => &[QualityGate, ExecutionReady, CircuitOpen, Failed],
            QualityGate => &[Completed, ExecutionReady, AwaitingApproval, CircuitOpen, Failed],
            AwaitingApproval => &[ReadyToResume, ExecutionReady, Failed],
            ReadyToResume => &[Executing, Completed, Failed],
            CircuitOpen => &[ExecutionReady, Failed],
            Completed | Failed => &[],
        }
    }

    /// Whether a transition may lead there.
    pub(crate) fn leads_to(self, to: Phase) -> bool {
        self.next().contains(&to)
    }

    /// Whether nothing leads out of this phase.
    pub(crate) const fn is_terminal(self) -> bool {
        self.next().is_empty()
    }
}

/// What the conditions of a transition look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The spec has acceptance criteria.
    pub acceptance: bool,
    /// The latest spec review of the current attempt or, before the first, of the spec itself.
    pub spec_review: Option<Verdict>,
    /// The latest quality review of the current attempt.
    pub quality_review: Option<Verdict>,
    /// An attempt is running.
    pub attempt_running: bool,
    /// The circuit is open, or has to be because no retry is left.
    pub circuit_open: bool,
    /// An approval waits for its answer.
    pub approval_pending: bool,
    /// An approval was given.
    pub approved: bool,
}

/// Something a legal transition still wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Condition {
    #[error("the spec has no acceptance criteria")]
    AcceptanceMissing,
    #[error("the spec review is missing an approval: {}", latest(*.0))]
    SpecNotApproved(Option<Verdict>),
    #[error("the quality review is missing an approval: {}", latest(*.0))]
    QualityNotApproved(Option<Verdict>),
    #[error("no attempt is running")]
    NoRunningAttempt,
    #[error("the circuit is open, or no retry is left")]
    CircuitOpen,
    #[error("an approval is still pending")]
    ApprovalPending,
    #[error("no approval was given")]
    ApprovalMissing,
}

impl Condition {
    /// Stable UPPER_SNAKE.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Condition::AcceptanceMissing => "ACCEPTANCE_MISSING",
            Condition::SpecNotApproved(_) => "SPEC_NOT_APPROVED",
            Condition::QualityNotApproved(_) => "QUALITY_NOT_APPROVED",
            Condition::NoRunningAttempt => "NO_RUNNING_ATTEMPT",
            Condition::CircuitOpen => "CIRCUIT_OPEN",
            Condition::ApprovalPending => "APPROVAL_PENDING",
            Condition::ApprovalMissing => "APPROVAL_MISSING",
        }
    }

    /// What removes it.
    pub(crate) const fn remediation(self) -> &'static str {
        match self {
            Condition::AcceptanceMissing => {
                "Move the task back to spec_draft and give the spec acceptance criteria with task_update_spec."
            }
            Condition::SpecNotApproved(_) => "A spec_reviewer appends an approving spec review.",
            Condition::QualityNotApproved(_) => "A quality_reviewer appends an approving quality review.",
            Condition::NoRunningAttempt => "Start an attempt with task_start_attempt.",
            Condition::CircuitOpen => {
                "Open the circuit if it is not, look into the failures, then move the task from circuit_open \
                 to execution_ready, which counts retries anew."
            }
            Condition::ApprovalPending => "A gateway or a human answers it with task_resolve_approval.",
            Condition::ApprovalMissing => "Ask with task_request_approval and have it approved.",
        }
    }
}

fn latest(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(verdict) => format!("the latest one says {verdict}"),
        None => "there is none".to_owned(),
    }
}

/// Every condition of a legal transition that does not hold.
pub(crate) fn unmet(from: Phase, to: Phase, facts: &Facts) -> Vec<Condition> {
    let conditions: &[(bool, Condition)] = match (from, to) {
        (Phase::SpecReview, Phase::ExecutionReady) => &[
            (facts.acceptance, Condition::AcceptanceMissing),
            spec_approved(facts),
        ],
        (_, Phase::Executing) => &[
            (facts.attempt_running, Condition::NoRunningAttempt),
            (!facts.circuit_open, Condition::CircuitOpen),
        ],
        (Phase::SpecGate, Phase::QualityGate) => &[spec_approved(facts)],
        (Phase::QualityGate, Phase::Completed) => &[
            (
                facts.quality_review == Some(Verdict::Approved),
                Condition::QualityNotApproved(facts.quality_review),
            ),
            (!facts.approval_pending, Condition::ApprovalPending),
        ],
        (Phase::AwaitingApproval, Phase::ReadyToResume) => &[
            (facts.approved, Condition::ApprovalMissing),
            (!facts.approval_pending, Condition::ApprovalPending),
        ],
        _ => &[],
    };
    conditions
        .iter()
        .filter(|(met, _)| !met)
        .map(|&(_, condition)| condition)
        .collect()
}

fn spec_approved(facts: &Facts) -> (bool, Condition) {
    (
        facts.spec_review == Some(Verdict::Approved),
        Condition::SpecNotApproved(facts.spec_review),
    )
}
