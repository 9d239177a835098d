//! Identifiers and the enums that columns, arguments and replies share.

use tollgate_sdk::{id, text_enum};

id!(
    /// A job: `JOB-` and a few base32 characters.
    JobId, "JOB", "Job id from conductor_init. For example JOB-7F2A."
);
id!(
    /// A step of a job: `S1`, `S2`, …
    StepId, "S", "Step id, for example S1. job_get lists the steps."
);
id!(
    /// A context block: `CTX-` and a few base32 characters.
    ContextId, "CTX", "Id of a context block from context_add_block or context_search, for example CTX-9K3Q."
);
id!(
    /// A submission for a step: `ATT-` and a few base32 characters.
    AttemptId, "ATT", "Id of a submission from job_submit_step_result, for example ATT-5D1X."
);
id!(
    /// An entry of a job's log: `LOG-` and a few base32 characters.
    LogId, "LOG", "Id of a log entry, for example LOG-4M8D."
);
id!(
    /// A recorded mistake: `MIS-` and a few base32 characters.
    MistakeId, "MIS", "Id of a recorded mistake, for example MIS-2C5H."
);
id!(
    /// A batch-commit token: `BCT-` and a few base32 characters.
    BatchId, "BCT", "Batch-commit token from git_commit with defer_reason, for example BCT-6T1R."
);
id!(
    /// A snapshot of a job's repository: `SNP-` and a few base32 characters.
    SnapshotId, "SNP", "Id of a snapshot, for example SNP-3W7J."
);

text_enum! {
    /// Status of a step.
    pub(crate) enum StepStatus {
        Pending = "PENDING",
        Active = "ACTIVE",
        Done = "DONE",
    }
}

text_enum! {
    /// Claim of a submission about its own success.
    pub(crate) enum Claim {
        Met = "MET",
        NotMet = "NOT_MET",
        Partial = "PARTIAL",
    }
}

text_enum! {
    /// Kind of content of a context block.
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
    /// Type of a log entry.
    pub(crate) enum LogType {
        Devlog = "DEVLOG",
        Decision = "DECISION",
        Postmortem = "POSTMORTEM",
        Checkpoint = "CHECKPOINT",
        System = "SYSTEM",
    }
}

text_enum! {
    /// Next action after a submission.
    pub(crate) enum NextAction {
        Retry = "RETRY",
        NextStepAvailable = "NEXT_STEP_AVAILABLE",
        JobComplete = "JOB_COMPLETE",
        PauseForHuman = "PAUSE_FOR_HUMAN",
        FailJob = "FAIL_JOB",
    }
}

text_enum! {
    /// Strictness of a policy about evidence.
    pub(crate) enum EvidenceMode {
        Loose = "loose",
        Strict = "strict",
    }
}

text_enum! {
    /// Action when a step has used up its rejections.
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
    /// Id of the nth step, from 1.
    pub(crate) fn nth(number: usize) -> StepId {
        tollgate_sdk::Id::from_text(format!("S{number}"))
    }

    /// Number of the step, if the pack made the id.
    pub(crate) fn number(&self) -> Option<usize> {
        self.as_str().strip_prefix('S')?.parse().ok()
    }
}
