//! Identifiers and the enums that columns, arguments and replies share.

use tollgate_sdk::{id, text_enum};

use crate::phase::Phase;

id!(
    /// Id of a task.
    TaskId, "tsk"
);
id!(
    /// Id of an attempt at executing a task.
    AttemptId, "att"
);
id!(
    /// Id of a review of a spec or an attempt.
    ReviewId, "rev"
);
id!(
    /// Id of an artifact of an executor or reviewer.
    ArtifactId, "art"
);
id!(
    /// Id of a request to approve a side effect.
    ApprovalId, "apr"
);

text_enum! {
    /// Initial phase of a task.
    pub(crate) enum InitialPhase {
        SpecDraft = "spec_draft",
        SpecReview = "spec_review",
    }
}

impl From<InitialPhase> for Phase {
    fn from(initial: InitialPhase) -> Phase {
        match initial {
            InitialPhase::SpecDraft => Phase::SpecDraft,
            InitialPhase::SpecReview => Phase::SpecReview,
        }
    }
}

text_enum! {
    /// Circuit breaker: execution stops while the circuit is open.
    pub(crate) enum CircuitStatus {
        Closed = "closed",
        Open = "open",
    }
}

text_enum! {
    /// Purpose of an attempt.
    pub(crate) enum AttemptPhase {
        Executing = "executing",
    }
}

text_enum! {
    /// Runtime of an attempt.
    pub(crate) enum Runtime {
        Local = "local",
        Acp = "acp",
        Other = "other",
    }
}

text_enum! {
    /// Kind of executor of an attempt.
    pub(crate) enum ExecutorKind {
        Builder = "builder",
        Research = "research",
        ExternalCoder = "external_coder",
    }
}

text_enum! {
    /// Status of an attempt.
    pub(crate) enum AttemptStatus {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Aborted = "aborted",
    }
}

text_enum! {
    /// Outcome of an attempt.
    pub(crate) enum AttemptOutcome {
        Succeeded = "succeeded",
        Failed = "failed",
        Aborted = "aborted",
    }
}

impl From<AttemptOutcome> for AttemptStatus {
    fn from(outcome: AttemptOutcome) -> AttemptStatus {
        match outcome {
            AttemptOutcome::Succeeded => AttemptStatus::Succeeded,
            AttemptOutcome::Failed => AttemptStatus::Failed,
            AttemptOutcome::Aborted => AttemptStatus::Aborted,
        }
    }
}

text_enum! {
    /// Subject of a review.
    pub(crate) enum ReviewType {
        Spec = "spec",
        Quality = "quality",
    }
}

text_enum! {
    /// Verdict of a reviewer.
    pub(crate) enum Verdict {
        Approved = "approved",
        ChangesRequested = "changes_requested",
        Blocked = "blocked",
    }
}

text_enum! {
    /// Severity of a finding.
    pub(crate) enum Severity {
        Critical = "critical",
        Major = "major",
        Minor = "minor",
    }
}

text_enum! {
    /// Kind of an artifact.
    pub(crate) enum ArtifactKind {
        PrimaryOutput = "primary_output",
        TestReport = "test_report",
        Diff = "diff",
        ReviewReport = "review_report",
        Other = "other",
    }
}

text_enum! {
    /// Status of an approval.
    pub(crate) enum ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        RequestChanges = "request_changes",
    }
}

impl ApprovalStatus {
    /// Returns whether the side effect was not allowed.
    pub(crate) const fn is_denied(self) -> bool {
        matches!(self, ApprovalStatus::Rejected | ApprovalStatus::RequestChanges)
    }
}

text_enum! {
    /// Initial status of a request, of which there is one.
    pub(crate) enum RequestedStatus {
        Pending = "pending",
    }
}

text_enum! {
    /// Decision on a request for approval.
    pub(crate) enum Resolution {
        Approved = "approved",
        Rejected = "rejected",
        RequestChanges = "request_changes",
    }
}

impl From<Resolution> for ApprovalStatus {
    fn from(resolution: Resolution) -> ApprovalStatus {
        match resolution {
            Resolution::Approved => ApprovalStatus::Approved,
            Resolution::Rejected => ApprovalStatus::Rejected,
            Resolution::RequestChanges => ApprovalStatus::RequestChanges,
        }
    }
}

text_enum! {
    /// Kind of an event in the log.
    pub(crate) enum EventType {
        TaskCreated = "task.created",
        SpecUpdated = "spec.updated",
        TaskTransitioned = "task.transitioned",
        AttemptStarted = "attempt.started",
        AttemptCheckpoint = "attempt.checkpoint",
        AttemptFinished = "attempt.finished",
        ArtifactRecorded = "artifact.recorded",
        ReviewAppended = "review.appended",
        ApprovalRequested = "approval.requested",
        ApprovalResolved = "approval.resolved",
        CircuitOpened = "circuit.opened",
    }
}
