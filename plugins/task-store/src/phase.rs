//! The phases of a task and the moves between them, as pure functions.

use thiserror::Error;
use tollgate_sdk::text_enum;

use crate::model::Verdict;

text_enum! {
    /// Phase of a task.
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
    /// The phases that a transition may lead to. Every phase except the terminal ones leads to `failed`.
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

    /// Returns whether a transition to a phase is legal.
    pub(crate) fn leads_to(self, to: Phase) -> bool {
        self.next().contains(&to)
    }

    /// Returns whether nothing leads out of this phase.
    pub(crate) const fn is_terminal(self) -> bool {
        self.next().is_empty()
    }
}

/// Facts for the conditions of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// True if the spec has acceptance criteria.
    pub acceptance: bool,
    /// The latest spec review of the current attempt or, before the first, of the spec itself.
    pub spec_review: Option<Verdict>,
    /// The latest quality review of the current attempt.
    pub quality_review: Option<Verdict>,
    /// True if an attempt is running.
    pub attempt_running: bool,
    /// True if the circuit is open, or must be because no retry is left.
    pub circuit_open: bool,
    /// True if an approval is pending.
    pub approval_pending: bool,
    /// True if an approval was granted.
    pub approved: bool,
}

/// Unmet condition of a legal transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Condition {
    #[error("the spec has no acceptance criteria")]
    AcceptanceMissing,
    #[error("the spec is not approved: {}", latest(*.0))]
    SpecNotApproved(Option<Verdict>),
    #[error("the quality is not approved: {}", latest(*.0))]
    QualityNotApproved(Option<Verdict>),
    #[error("no attempt is running")]
    NoRunningAttempt,
    #[error("no retry is left, so the circuit must be opened")]
    CircuitOpen,
    #[error("an approval is still pending")]
    ApprovalPending,
    #[error("no approval was granted")]
    ApprovalMissing,
}

impl Condition {
    /// Stable code in UPPER_SNAKE_CASE.
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

    /// Way to resolve the condition.
    pub(crate) const fn remediation(self) -> &'static str {
        match self {
            Condition::AcceptanceMissing => {
                "Move the task back to spec_draft and add acceptance criteria with task_update_spec."
            }
            Condition::SpecNotApproved(_) => "Have a spec_reviewer approve the spec with task_append_review.",
            Condition::QualityNotApproved(_) => {
                "Have a quality_reviewer approve the quality with task_append_review."
            }
            Condition::NoRunningAttempt => "Start an attempt with task_start_attempt.",
            Condition::CircuitOpen => {
                "Open the circuit with task_open_circuit, investigate the failures, then move the task to \
                 execution_ready, which resets the retry count."
            }
            Condition::ApprovalPending => "Have a gateway or human decide it with task_resolve_approval.",
            Condition::ApprovalMissing => "Request approval with task_request_approval and have it granted.",
        }
    }
}

fn latest(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(verdict) => format!("the latest verdict is {verdict}"),
        None => "there is no review".to_owned(),
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    /// Facts without evidence and without obstacles.
    const BARE: Facts = Facts {
        acceptance: false,
        spec_review: None,
        quality_review: None,
        attempt_running: false,
        circuit_open: false,
        approval_pending: false,
        approved: false,
    };

    /// Facts with every possible obstacle.
    const WORST: Facts = Facts {
        spec_review: Some(Verdict::Blocked),
        quality_review: Some(Verdict::ChangesRequested),
        circuit_open: true,
        approval_pending: true,
        ..BARE
    };

    /// Facts that meet every condition.
    const BEST: Facts = Facts {
        acceptance: true,
        spec_review: Some(Verdict::Approved),
        quality_review: Some(Verdict::Approved),
        attempt_running: true,
        circuit_open: false,
        approval_pending: false,
        approved: true,
    };

    #[test]
    fn every_phase_to_every_phase() {
        let mut matrix = String::new();
        for &from in Phase::ALL {
            let _ = write!(matrix, "{:>17}", from.as_str());
            for &to in Phase::ALL {
                matrix += if from.leads_to(to) { " x" } else { " ." };
            }
            matrix.push('\n');
        }
        expect![[r#"
                   spec_draft . x . . . . . . . x .
                  spec_review x . x . . . . . . x .
              execution_ready . . . x . . . . . x .
                    executing . . x . x . . . . x x
                    spec_gate . . x . . x . . . x x
                 quality_gate . . x . . . x . x x x
            awaiting_approval . . x . . . . x . x .
              ready_to_resume . . . x . . . . x x .
                    completed . . . . . . . . . . .
                       failed . . . . . . . . . . .
                 circuit_open . . x . . . . . . x .
        "#]]
        .assert_eq(&matrix);
    }

    #[test]
    fn legal_transitions_in_words() {
        let mut words = String::new();
        for &from in Phase::ALL {
            let next: Vec<_> = from.next().iter().map(|to| to.as_str()).collect();
            let _ = writeln!(words, "{from} -> {}", next.join(" | "));
        }
        expect![[r#"
            spec_draft -> spec_review | failed
            spec_review -> spec_draft | execution_ready | failed
            execution_ready -> executing | failed
            executing -> spec_gate | execution_ready | circuit_open | failed
            spec_gate -> quality_gate | execution_ready | circuit_open | failed
            quality_gate -> completed | execution_ready | awaiting_approval | circuit_open | failed
            awaiting_approval -> ready_to_resume | execution_ready | failed
            ready_to_resume -> executing | completed | failed
            completed -> 
            failed -> 
            circuit_open -> execution_ready | failed
        "#]]
        .assert_eq(&words);
    }

    #[test]
    fn every_unmet_condition_of_every_transition() {
        let mut words = String::new();
        for &from in Phase::ALL {
            for &to in from.next() {
                for (name, facts) in [("bare", BARE), ("worst", WORST), ("best", BEST)] {
                    let unmet = unmet(from, to, &facts);
                    if !unmet.is_empty() {
                        let codes: Vec<_> = unmet.iter().map(|condition| condition.code()).collect();
                        let _ = writeln!(words, "{from} -> {to}, {name}: {}", codes.join(" "));
                    }
                }
            }
        }
        expect![[r#"
            spec_review -> execution_ready, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED
            spec_review -> execution_ready, worst: ACCEPTANCE_MISSING SPEC_NOT_APPROVED
            execution_ready -> executing, bare: NO_RUNNING_ATTEMPT
            execution_ready -> executing, worst: NO_RUNNING_ATTEMPT CIRCUIT_OPEN
            spec_gate -> quality_gate, bare: SPEC_NOT_APPROVED
            spec_gate -> quality_gate, worst: SPEC_NOT_APPROVED
            quality_gate -> completed, bare: QUALITY_NOT_APPROVED
            quality_gate -> completed, worst: QUALITY_NOT_APPROVED APPROVAL_PENDING
            awaiting_approval -> ready_to_resume, bare: APPROVAL_MISSING
            awaiting_approval -> ready_to_resume, worst: APPROVAL_MISSING APPROVAL_PENDING
            ready_to_resume -> executing, bare: NO_RUNNING_ATTEMPT
            ready_to_resume -> executing, worst: NO_RUNNING_ATTEMPT CIRCUIT_OPEN
        "#]]
        .assert_eq(&words);
    }

    #[test]
    fn a_verdict_that_does_not_approve_is_named() {
        assert_eq!(
            Condition::SpecNotApproved(Some(Verdict::Blocked)).to_string(),
            "the spec is not approved: the latest verdict is blocked"
        );
        assert_eq!(
            Condition::QualityNotApproved(None).to_string(),
            "the quality is not approved: there is no review"
        );
    }
}
