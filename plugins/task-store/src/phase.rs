//! The phases of a task and the moves between them, as pure functions.

use tollgate_sdk::text_enum;

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
    /// The phases that a transition may lead to. Every phase except the terminal ones leads to `failed`. An open
    /// circuit leads to every phase that a task may have come from; [`Place::next`] narrows that.
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
            CircuitOpen => &[
                SpecDraft,
                SpecReview,
                ExecutionReady,
                Executing,
                SpecGate,
                QualityGate,
                AwaitingApproval,
                ReadyToResume,
                Failed,
            ],
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

    /// Returns whether an attempt may start in this phase.
    pub(crate) const fn starts_attempts(self) -> bool {
        matches!(
            self,
            Phase::ExecutionReady | Phase::Executing | Phase::ReadyToResume
        )
    }

    /// Returns whether work on the task has begun, so that the task may go back to `execution_ready`.
    const fn goes_back(self) -> bool {
        matches!(
            self,
            Phase::Executing | Phase::SpecGate | Phase::QualityGate | Phase::AwaitingApproval
        )
    }
}

/// Phase of a task, with the phase that its open circuit returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub phase: Phase,
    /// The phase that the task left when the circuit opened. `None` while the circuit is closed, and if a version
    /// without this field opened the circuit.
    pub circuit_from: Option<Phase>,
}

impl Place {
    /// The phases that a transition of this task may lead to. An open circuit returns to the phase that the task
    /// left, or to `execution_ready` if that phase leads there without conditions.
    pub(crate) fn next(self) -> Vec<Phase> {
        match (self.phase, self.circuit_from) {
            (Phase::CircuitOpen, Some(from)) if from.goes_back() => {
                vec![from, Phase::ExecutionReady, Phase::Failed]
            }
            (Phase::CircuitOpen, Some(from)) => vec![from, Phase::Failed],
            (Phase::CircuitOpen, None) => vec![Phase::SpecDraft, Phase::ExecutionReady, Phase::Failed],
            (phase, _) => phase.next().to_vec(),
        }
    }

    /// Returns whether a transition of this task to a phase is legal.
    pub(crate) fn leads_to(self, to: Phase) -> bool {
        self.next().contains(&to)
    }

    /// The place after a transition to a phase.
    pub(crate) fn moved(self, to: Phase) -> Place {
        Place {
            phase: to,
            circuit_from: (to == Phase::CircuitOpen).then_some(self.phase),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

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
                 circuit_open x x x x x x x x . x .
        "#]]
        .assert_eq(&matrix);
    }

    #[test]
    fn an_open_circuit_returns_where_the_task_came_from() {
        let mut words = String::new();
        let origins = Phase::ALL.iter().map(|&from| Some(from)).chain([None]);
        for circuit_from in origins {
            let place = Place {
                phase: Phase::CircuitOpen,
                circuit_from,
            };
            let next: Vec<_> = place.next().iter().map(|to| to.as_str()).collect();
            let from = circuit_from.map_or("unknown", Phase::as_str);
            let is_origin = circuit_from.is_none_or(|from| !from.is_terminal() && from != Phase::CircuitOpen);
            if is_origin {
                let _ = writeln!(words, "{from} -> {}", next.join(" | "));
            }
        }
        expect![[r#"
            spec_draft -> spec_draft | failed
            spec_review -> spec_review | failed
            execution_ready -> execution_ready | failed
            executing -> executing | execution_ready | failed
            spec_gate -> spec_gate | execution_ready | failed
            quality_gate -> quality_gate | execution_ready | failed
            awaiting_approval -> awaiting_approval | execution_ready | failed
            ready_to_resume -> ready_to_resume | failed
            unknown -> spec_draft | execution_ready | failed
        "#]]
        .assert_eq(&words);
    }
}
