//! Identifiers and the enums that columns, arguments and replies share.

use tollgate_sdk::{id, text_enum};

id!(
    /// A job: `JOB-` and a few base32 characters.
    JobId, "JOB"
);
id!(
    /// A step of a job: `S1`, `S2`, …
    StepId, "S"
);
id!(
    /// A context block: `CTX-` and a few base32 characters.
    ContextId, "CTX"
);
id!(
    /// A submission for a step.
    AttemptId, "ATT"
);
id!(
    /// An entry of a job's log.
    LogId, "LOG"
);
id!(
    /// A recorded mistake.
    MistakeId, "MIS"
);
id!(
    /// Leave to commit later.
    BatchId, "BCT"
);
id!(
    /// A snapshot of a job's repository.
    SnapshotId, "SNP"
);

text_enum! {
    /// Where a step stands.
    pub(crate) enum StepStatus {
        Pending = "PENDING",
        Active = "ACTIVE",
        Done = "DONE",
    }
}

text_enum! {
    /// What a submission says about its own success.
    pub(crate) enum Claim {
        Met = "MET",
        NotMet = "NOT_MET",
        Partial = "PARTIAL",
    }
}

text_enum! {
    /// What a context block holds.
    pub(crate) enum BlockType {
        Research = "RESEARCH",
        Notes = "NOTES",
        Plan = "PLAN",
        RepoMap = "REPO_MAP",
        Decision = "DECISION",
        Constraints = "CONSTRAINTS",
        Snippet = "SNIPPET",
        Output = "OUTPUT",
    }
}

text_enum! {
    /// What a log entry is.
    pub(crate) enum LogType {
        Devlog = "DEVLOG",
        Decision = "DECISION",
        Postmortem = "POSTMORTEM",
        Checkpoint = "CHECKPOINT",
        System = "SYSTEM",
    }
}

text_enum! {
    /// What comes after a submission.
    pub(crate) enum NextAction {
        Retry = "RETRY",
        NextStepAvailable = "NEXT_STEP_AVAILABLE",
        JobComplete = "JOB_COMPLETE",
        PauseForHuman = "PAUSE_FOR_HUMAN",
        FailJob = "FAIL_JOB",
    }
}

text_enum! {
    /// How much a policy wants of evidence.
    pub(crate) enum EvidenceMode {
        Loose = "loose",
        Strict = "strict",
    }
}

text_enum! {
    /// What happens when a step was rejected too often.
    pub(crate) enum Exhausted {
        PauseForHuman = "PAUSE_FOR_HUMAN",
        FailJob = "FAIL_JOB",
    }
}

text_enum! {
    /// The JSON type of a piece of evidence.
    pub(crate) enum EvidenceType {
        String = "string",
        Boolean = "boolean",
        Number = "number",
        Array = "array",
        Object = "object",
    }
}

impl StepId {
    /// The nth step, from 1.
    pub(crate) fn nth(number: usize) -> StepId {
        tollgate_sdk::Id::from_text(format!("S{number}"))
    }

    /// Its number, if it is one of ours.
    pub(crate) fn number(&self) -> Option<usize> {
        self.as_str().strip_prefix('S')?.parse().ok()
    }
}
