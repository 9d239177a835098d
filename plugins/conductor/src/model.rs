//! Identifiers and the enums that columns, arguments and replies share.

use tollgate_sdk::text_enum;

/// Declares the type of a short id. People type and paste these ids, so letters of any case and blanks around them
/// are accepted.
macro_rules! short_id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal, $description:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl $name {
            /// Text of the id.
            #[allow(dead_code, reason = "some ids are only stored and shown")]
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl tollgate_sdk::Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_text(text: String) -> Self {
                Self(tidy_id(&text))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self(tidy_id(&text)))
            }
        }

        impl tollgate_sdk::ToValue for $name {
            fn to_value(&self) -> tollgate_sdk::Value {
                tollgate_sdk::Value::Text(self.0.clone())
            }
        }

        impl tollgate_sdk::FromValue for $name {
            fn from_value(value: &tollgate_sdk::Value) -> Option<Self> {
                <String as tollgate_sdk::FromValue>::from_value(value).map(Self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "description": $description})
            }
        }
    };
}

/// Id in the form that the pack makes: capitals, without blanks around it. The host folds the values of scopes in exactly
/// this way (`x-scope-folds`).
pub(crate) fn tidy_id(text: &str) -> String {
    text.trim().to_uppercase()
}

short_id!(
    /// A job: `JOB-` and a few base32 characters.
    JobId, "JOB", "Job id from conductor_init. For example JOB-7F2A."
);
short_id!(
    /// A step of a job: `S1`, `S2`, …
    StepId, "S", "Step id, for example S1. job_get lists the steps."
);
short_id!(
    /// A context block: `CTX-` and a few base32 characters.
    ContextId, "CTX", "Id of a context block from context_add_block or context_search, for example CTX-9K3Q."
);
short_id!(
    /// A submission for a step: `ATT-` and a few base32 characters.
    AttemptId, "ATT", "Id of a submission from job_submit_step_result, for example ATT-5D1X."
);
short_id!(
    /// An entry of a job's log: `LOG-` and a few base32 characters.
    LogId, "LOG", "Id of a log entry, for example LOG-4M8D."
);
short_id!(
    /// A recorded mistake: `MIS-` and a few base32 characters.
    MistakeId, "MIS", "Id of a recorded mistake, for example MIS-2C5H."
);
short_id!(
    /// A batch-commit token: `BCT-` and a few base32 characters.
    BatchId, "BCT", "Batch-commit token from git_commit with defer_reason, for example BCT-6T1R."
);
short_id!(
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
