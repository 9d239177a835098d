//! Permissions of roles, as a pure table.

use std::fmt;

use tollgate_sdk::text_enum;

use crate::model::ReviewType;

text_enum! {
    /// Role of a caller.
    pub(crate) enum Role {
        Orchestrator = "orchestrator",
        Executor = "executor",
        SpecReviewer = "spec_reviewer",
        QualityReviewer = "quality_reviewer",
        Gateway = "gateway",
        Human = "human",
    }
}

/// A change that needs a certain role. Every role may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Create,
    UpdateSpec,
    Transition,
    StartAttempt,
    FinishAttempt,
    RecordCheckpoint,
    RecordArtifact,
    AppendReview(ReviewType),
    RequestApproval,
    ResolveApproval,
    /// To grant another reset of a circuit.
    GrantReset,
    OpenCircuit,
}

impl Action {
    /// The roles that may make the change.
    pub(crate) const fn roles(self) -> &'static [Role] {
        use Role::*;
        match self {
            Action::Create
            | Action::UpdateSpec
            | Action::Transition
            | Action::StartAttempt
            | Action::OpenCircuit => &[Orchestrator],
            Action::FinishAttempt => &[Orchestrator, Executor],
            Action::RecordCheckpoint | Action::RecordArtifact => {
                &[Orchestrator, Executor, SpecReviewer, QualityReviewer, Gateway]
            }
            Action::AppendReview(ReviewType::Spec) => &[SpecReviewer],
            Action::AppendReview(ReviewType::Quality) => &[QualityReviewer],
            Action::RequestApproval => &[Orchestrator, Gateway],
            Action::ResolveApproval => &[Gateway, Human],
            Action::GrantReset => &[Human],
        }
    }

    /// The tool that makes the change.
    pub(crate) const fn tool(self) -> &'static str {
        match self {
            Action::Create => "task_create",
            Action::UpdateSpec => "task_update_spec",
            Action::Transition => "task_transition",
            Action::StartAttempt => "task_start_attempt",
            Action::FinishAttempt => "task_finish_attempt",
            Action::RecordCheckpoint => "task_record_checkpoint",
            Action::RecordArtifact => "task_record_artifact",
            Action::AppendReview(_) => "task_append_review",
            Action::RequestApproval => "task_request_approval",
            Action::ResolveApproval | Action::GrantReset => "task_resolve_approval",
            Action::OpenCircuit => "task_open_circuit",
        }
    }
}

/// The call that makes the change.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tool())?;
        match self {
            Action::AppendReview(review_type) => write!(f, " with review_type {review_type}"),
            Action::GrantReset => f.write_str(" to approve a circuit_reset"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_role_against_every_change() {
        let actions = [
            Action::Create,
            Action::UpdateSpec,
            Action::Transition,
            Action::StartAttempt,
            Action::FinishAttempt,
            Action::RecordCheckpoint,
            Action::RecordArtifact,
            Action::AppendReview(ReviewType::Spec),
            Action::AppendReview(ReviewType::Quality),
            Action::RequestApproval,
            Action::ResolveApproval,
            Action::GrantReset,
            Action::OpenCircuit,
        ];
        let mut matrix = String::new();
        for action in actions {
            let roles: Vec<_> = action.roles().iter().map(|role| role.as_str()).collect();
            matrix += &format!("{action:?}: {}\n", roles.join(" "));
        }
        expect![[r#"
            Create: orchestrator
            UpdateSpec: orchestrator
            Transition: orchestrator
            StartAttempt: orchestrator
            FinishAttempt: orchestrator executor
            RecordCheckpoint: orchestrator executor spec_reviewer quality_reviewer gateway
            RecordArtifact: orchestrator executor spec_reviewer quality_reviewer gateway
            AppendReview(Spec): spec_reviewer
            AppendReview(Quality): quality_reviewer
            RequestApproval: orchestrator gateway
            ResolveApproval: gateway human
            GrantReset: human
            OpenCircuit: orchestrator
        "#]]
        .assert_eq(&matrix);
    }
}
