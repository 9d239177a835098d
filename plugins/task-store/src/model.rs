//! Identifiers and the enums that columns, arguments and replies share.

use tollgate_sdk::{id, text_enum};

use crate::phase::Phase;

id!(
    /// A task.
    TaskId, "tsk"
);
id!(
    /// One try at executing a task.
    AttemptId, "att"
);
id!(
    /// A review of a spec or of an attempt.
    ReviewId, "rev"
);
id!(
    /// Something an executor or reviewer produced.
    ArtifactId, "art"
);
id!(
    /// A request to allow a side effect.
    ApprovalId, "apr"
);

text_enum! {
    /// A phase that a task may be created in.
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
    /// Whether execution is barred until somebody looks into it.
    pub(crate) enum CircuitStatus {
        Closed = "closed",
        Open = "open",
    }
}

text_enum! {
    /// What an attempt is for.
    pub(crate) enum AttemptPhase {
        Executing = "executing",
    }
}

text_enum! {
    /// Where an attempt runs.
    pub(crate) enum Runtime {
        Local = "local",
        Acp = "acp",
        Other = "other",
    }
}

text_enum! {
    /// What kind of executor works on an attempt.
    pub(crate) enum ExecutorKind {
        Builder = "builder",
        Research = "research",
        ExternalCoder = "external_coder",
    }
}

text_enum! {
    /// How far an attempt is.
    pub(crate) enum AttemptStatus {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Aborted = "aborted",
    }
}

text_enum! {
    /// How an attempt ended.
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
    /// What a review is about.
    pub(crate) enum ReviewType {
        Spec = "spec",
        Quality = "quality",
    }
}

text_enum! {
    /// What a reviewer concludes.
    pub(crate) enum Verdict {
        Approved = "approved",
        ChangesRequested = "changes_requested",
        Blocked = "blocked",
    }
}

text_enum! {
    /// How much a finding matters.
    pub(crate) enum Severity {
        Critical = "critical",
        Major = "major",
        Minor = "minor",
    }
}

text_enum! {
    /// What an artifact is.
    pub(crate) enum ArtifactKind {
        PrimaryOutput = "primary_output",
        TestReport = "test_report",
        Diff = "diff",
        ReviewReport = "review_report",
        Other = "other",
    }
}

text_enum! {
    /// How far an approval is.
    pub(crate) enum ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        RequestChanges = "request_changes",
    }
}

text_enum! {
    /// The only status a request can ask for.
    pub(crate) enum RequestedStatus {
        Pending = "pending",
    }
}

text_enum! {
    /// The answer to a request for approval.
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
    /// What an event in the log says happened.
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
