//! Identifiers and the enums that records, arguments and replies share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, text_enum};

/// Name of a workspace. Workspaces share no plans, tasks or templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Workspace(String);

impl Workspace {
    /// Regular expression of a valid name.
    pub(crate) const PATTERN: &'static str = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$";

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the name matches the pattern, for calls that no schema has checked.
    pub(crate) fn is_valid(&self) -> bool {
        let first = self.0.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_alphanumeric())
            && self.0.len() <= 128
            && self
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
    }
}

impl JsonSchema for Workspace {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Workspace".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": Workspace::PATTERN,
            "description": "Plan namespace. One name for all calls, such as the repo's.",
        })
    }
}

impl tollgate_sdk::ToValue for Workspace {
    fn to_value(&self) -> tollgate_sdk::Value {
        self.0.to_value()
    }
}

/// A new identifier such as `STEP-8QZ3M0T4`, from eight base32 characters of a host-made id.
pub(crate) fn short_id(cx: &Cx<'_>, prefix: &'static str) -> String {
    struct Made(String);
    impl tollgate_sdk::Id for Made {
        const PREFIX: &'static str = "short";
        fn from_text(text: String) -> Self {
            Made(text)
        }
    }
    let Made(made) = cx.new_id::<Made>();
    let random = made.rsplit('_').next().unwrap_or_default().to_ascii_uppercase();
    let tail = random.get(random.len().saturating_sub(8)..).unwrap_or_default();
    format!("{prefix}-{tail:0>8}")
}

text_enum! {
    /// Status of a plan, task or node.
    pub(crate) enum Status {
        Todo = "TODO",
        Active = "ACTIVE",
        Done = "DONE",
        Parked = "PARKED",
        Canceled = "CANCELED",
    }
}

impl Status {
    /// Returns whether no work is left. CANCELED counts as finished everywhere.
    pub(crate) const fn is_finished(self) -> bool {
        matches!(self, Status::Done | Status::Canceled)
    }
}

text_enum! {
    /// Priority of a plan, task or node.
    pub(crate) enum Priority {
        Low = "LOW",
        Medium = "MEDIUM",
        High = "HIGH",
        Critical = "CRITICAL",
    }
}

impl Priority {
    /// The number by which storage sorts.
    pub(crate) const fn rank(self) -> i64 {
        match self {
            Priority::Low => 0,
            Priority::Medium => 1,
            Priority::High => 2,
            Priority::Critical => 3,
        }
    }

    /// The priority with a rank.
    pub(crate) const fn of_rank(rank: i64) -> Priority {
        match rank {
            ..=0 => Priority::Low,
            1 => Priority::Medium,
            2 => Priority::High,
            3.. => Priority::Critical,
        }
    }
}

text_enum! {
    /// Checkpoint that is confirmed before a step closes.
    pub(crate) enum Checkpoint {
        Criteria = "criteria",
        Tests = "tests",
        Security = "security",
        Perf = "perf",
        Docs = "docs",
    }
}

text_enum! {
    /// Kind of a piece of evidence.
    pub(crate) enum EvidenceKind {
        CmdOutput = "cmd_output",
        Diff = "diff",
        Url = "url",
        File = "file",
    }
}

text_enum! {
    /// A plan or a task.
    pub(crate) enum RootKind {
        Plan = "plan",
        Task = "task",
    }
}

impl RootKind {
    /// The kind that an identifier's prefix stands for.
    pub(crate) fn of(id: &str) -> Option<RootKind> {
        match id.split_once('-') {
            Some(("PLAN", _)) => Some(RootKind::Plan),
            Some(("TASK", _)) => Some(RootKind::Task),
            _ => None,
        }
    }
}

text_enum! {
    /// Kind of an event.
    pub(crate) enum EventType {
        PlanCreated = "plan_created",
        TaskCreated = "task_created",
        PlanEdited = "plan_edited",
        TaskEdited = "task_edited",
        PlanDeleted = "plan_deleted",
        TaskDeleted = "task_deleted",
        StatusChanged = "status_changed",
        ChecklistUpdated = "checklist_updated",
        ContractSet = "contract_set",
        ContractCleared = "contract_cleared",
        StepsAdded = "steps_added",
        StepDefined = "step_defined",
        StepVerified = "step_verified",
        StepDone = "step_done",
        StepReopened = "step_reopened",
        StepBlocked = "step_blocked",
        StepUnblocked = "step_unblocked",
        StepDeleted = "step_deleted",
        StepMoved = "step_moved",
        NoteAdded = "note_added",
        EvidenceCaptured = "evidence_captured",
        NodeAdded = "node_added",
        NodeDefined = "node_defined",
        NodeDeleted = "node_deleted",
        StepClaimed = "step_claimed",
        LeaseRenewed = "lease_renewed",
        LeaseReleased = "lease_released",
        TemplateSaved = "template_saved",
        Undone = "operation_undone",
        Redone = "operation_redone",
    }
}
