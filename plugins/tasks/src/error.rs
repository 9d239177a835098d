//! The reasons to refuse a call.

use std::fmt;

use serde_json::{Value as Json, json};
use thiserror::Error;
pub(crate) use tollgate_kit::refusal;
pub(crate) use tollgate_kit::text::clip;
use tollgate_kit::text::counted;
pub(crate) use tollgate_kit::{INVALID_ARGUMENTS, NOT_FOUND};
use tollgate_sdk::Timestamp;

use crate::model::{Checkpoint, Status};
use crate::store::Kind;
use crate::store::operation::{Operation, State};

/// One reason why a call is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum Reason {
    #[error("{field} {fault}")]
    Input { field: String, fault: String },
    #[error("workspace {0} has no plans or tasks")]
    UnknownWorkspace(String),
    #[error("there is no {what} {id}")]
    UnknownId { what: String, id: String },
    #[error("{given} and {other} are different targets")]
    TargetMismatch { given: String, other: String },
    #[error("{id} is at revision {actual}, not at the expected revision {expected}")]
    RevisionMismatch {
        id: String,
        expected: i64,
        actual: i64,
        changed: Vec<String>,
        /// There are later changes than these.
        more: bool,
    },
    #[error("checkpoint `{checkpoint}` of step {path} is not confirmed")]
    NotConfirmed { path: String, checkpoint: Checkpoint },
    #[error("{parent} has an open child: {child}")]
    ChildOpen { parent: String, child: String },
    #[error("step {path} is blocked{}", .reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    StepBlocked { path: String, reason: Option<String> },
    #[error("{id} depends on {dependency}, which is {}", .status.map_or("deleted", Status::as_str))]
    DependencyOpen {
        id: String,
        dependency: String,
        status: Option<Status>,
    },
    #[error("{id} depends on {dependency}, which would no longer exist")]
    DependencyGone { id: String, dependency: String },
    #[error("{dependency} would become open, but {id}, which is DONE, depends on it")]
    DependentDone { id: String, dependency: String },
    #[error("{kind} {id} belongs to {parent}, which would no longer exist{}", .maker.as_ref().map(|maker| format!("; {maker} created it")).unwrap_or_default())]
    Orphan {
        kind: Kind,
        id: String,
        parent: String,
        maker: Option<Author>,
    },
    #[error("operation {seq} is {state} and cannot be {wanted}")]
    OperationState {
        seq: i64,
        state: State,
        wanted: &'static str,
    },
    #[error("depends_on would form a cycle: {}", .0.join(" → "))]
    DependencyCycle(Vec<String>),
    #[error("{id} is {status}")]
    NotOpen { id: String, status: Status },
    #[error("step {0} is closed")]
    StepClosed(String),
    #[error("{0} has no step")]
    NoSteps(String),
    #[error("there is nothing to undo")]
    NothingToUndo,
    #[error("there is nothing to redo")]
    NothingToRedo,
    #[error("{kind} {id} was changed after operation {operation}{}", .since.as_ref().map(|since| format!(", by {since}")).unwrap_or_default())]
    UndoConflict {
        operation: i64,
        kind: Kind,
        id: String,
        /// The later operation, if it is known.
        since: Option<Author>,
    },
    #[error("{before} comes before operation {operation}; both changed {root}")]
    OutOfOrder {
        operation: i64,
        before: Author,
        root: String,
    },
    #[error("operation {place} of the batch, {tool}, failed: {code}: {message}")]
    BatchFailed {
        place: usize,
        tool: String,
        code: String,
        message: String,
    },
    #[error("no operation of the batch succeeded")]
    NothingSucceeded,
    #[error("{tool} cannot be part of a batch")]
    NotInBatch { place: usize, tool: String },
    #[error("step {path} is leased by {holder} until {until}, or for {}", counted(*.left, "more event"))]
    LeaseHeld {
        path: String,
        holder: String,
        left: i64,
        until: Timestamp,
    },
    #[error("{owner} does not hold a lease on step {path}")]
    LeaseNotHeld { path: String, owner: String },
    #[error("{field} has {size}; at most {limit} are allowed")]
    EvidenceTooLarge {
        field: String,
        size: usize,
        limit: usize,
    },
    #[error("checkpoint `{checkpoint}` of step {path} {fault}")]
    EvidenceRequired {
        path: String,
        checkpoint: Checkpoint,
        fault: String,
    },
    #[error("{0} cannot become DONE, because none of its tasks is DONE and this workspace requires evidence")]
    NothingDone(String),
    #[error("operation {operation} {fault}")]
    UnknownRun { operation: String, fault: String },
    #[error("max_chars is {0}, less than the 2 bytes of the shortest reply")]
    BudgetTooSmall(i64),
    #[error("max_chars is {given}, but the next part needs {least}")]
    PageTooSmall { given: i64, least: usize },
}

/// An operation with its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub seq: i64,
    /// Name of the caller, if the operation has one.
    pub actor: Option<String>,
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.actor {
            Some(actor) => write!(f, "operation {} of {actor}", self.seq),
            None => write!(f, "operation {}", self.seq),
        }
    }
}

impl From<&Operation> for Author {
    fn from(operation: &Operation) -> Author {
        Author {
            seq: operation.seq,
            actor: operation.actor.clone(),
        }
    }
}

impl Reason {
    /// A fault of one argument.
    pub(crate) fn input(field: impl Into<String>, fault: impl Into<String>) -> Reason {
        Reason::Input {
            field: field.into(),
            fault: fault.into(),
        }
    }

    /// A reference to nothing of a kind.
    pub(crate) fn unknown(what: impl Into<String>, id: &str) -> Reason {
        Reason::UnknownId {
            what: what.into(),
            id: clip(id),
        }
    }
}

impl tollgate_kit::Reason for Reason {
    fn argument(field: String, fault: String) -> Reason {
        Reason::Input { field, fault }
    }

    fn code(&self) -> &'static str {
        match self {
            Reason::Input { .. } => INVALID_ARGUMENTS,
            Reason::UnknownWorkspace(_) | Reason::UnknownId { .. } => NOT_FOUND,
            Reason::TargetMismatch { .. } => "TARGET_MISMATCH",
            Reason::RevisionMismatch { .. } => "REVISION_MISMATCH",
            Reason::NotConfirmed { .. } => "CHECKPOINTS_NOT_CONFIRMED",
            Reason::ChildOpen { .. } => "CHILDREN_OPEN",
            Reason::StepBlocked { .. } => "STEP_BLOCKED",
            Reason::DependencyOpen { .. } => "DEPENDENCY_OPEN",
            Reason::DependencyGone { .. } => "DEPENDENCY_MISSING",
            Reason::DependentDone { .. } => "DEPENDENT_DONE",
            Reason::DependencyCycle(_) => "DEPENDENCY_CYCLE",
            Reason::NotOpen { .. } => "NOT_OPEN",
            Reason::StepClosed(_) => "STEP_CLOSED",
            Reason::NoSteps(_) => "NO_STEPS",
            Reason::NothingToUndo => "NOTHING_TO_UNDO",
            Reason::NothingToRedo => "NOTHING_TO_REDO",
            Reason::UndoConflict { .. }
            | Reason::OutOfOrder { .. }
            | Reason::Orphan { .. }
            | Reason::OperationState { .. } => "UNDO_CONFLICT",
            Reason::BatchFailed { .. } | Reason::NothingSucceeded | Reason::NotInBatch { .. } => {
                "BATCH_FAILED"
            }
            Reason::LeaseHeld { .. } => "STEP_LEASE_HELD",
            Reason::LeaseNotHeld { .. } => "STEP_LEASE_NOT_HELD",
            Reason::EvidenceTooLarge { .. } => "EVIDENCE_TOO_LARGE",
            Reason::EvidenceRequired { .. } | Reason::NothingDone(_) | Reason::UnknownRun { .. } => {
                "EVIDENCE_REQUIRED"
            }
            Reason::BudgetTooSmall(_) | Reason::PageTooSmall { .. } => "BUDGET_TOO_SMALL",
        }
    }

    fn source_code(&self) -> Option<&'static str> {
        match self {
            Reason::Input { .. } => Some("INVALID_INPUT"),
            Reason::UnknownWorkspace(_) => Some("UNKNOWN_WORKSPACE"),
            Reason::UnknownId { .. } => Some("UNKNOWN_ID"),
            _ => None,
        }
    }

    fn remediation(&self) -> &'static str {
        match self {
            Reason::Input { .. } => "Correct every field named in blockers and call again.",
            Reason::UnknownWorkspace(_) => "Check the name, or start a new workspace with tasks_bootstrap.",
            Reason::UnknownId { .. } => "Look the id or path up with tasks_context or tasks_mirror.",
            Reason::TargetMismatch { .. } => "Name one target, preferably by step_id.",
            Reason::RevisionMismatch { .. } => {
                "Look at what changed, then call again with the current revision."
            }
            Reason::NotConfirmed { .. } => "Check the work, then confirm each checkpoint that is met.",
            Reason::ChildOpen { .. } => "Close the open children first.",
            Reason::StepBlocked { .. } => "Remove the obstacle, then unblock the step.",
            Reason::DependencyOpen { .. } => "Finish the dependencies first, or edit depends_on.",
            Reason::DependencyGone { .. } => "First edit depends_on of the plan or task that depends on it.",
            Reason::DependentDone { .. } => "First reopen the plan or task that depends on it.",
            Reason::Orphan { .. } => "First undo or redo the operation that created the other record.",
            Reason::OperationState { .. } => "Call tasks_history to see the state of each operation.",
            Reason::DependencyCycle(_) => "Remove one of the dependencies in the cycle.",
            Reason::NotOpen { .. } => "First reopen the plan or task with tasks_complete and status ACTIVE.",
            Reason::StepClosed(_) => "Reopen the step with tasks_progress and completed=false first.",
            Reason::NoSteps(_) => {
                "Add steps with tasks_decompose. Where evidence is optional, allow_empty=true completes the task \
                 without steps."
            }
            Reason::NothingToUndo | Reason::NothingToRedo => {
                "Call tasks_history to see which operations can be undone or redone."
            }
            Reason::OutOfOrder { .. } => {
                "Undo and redo in order: start with the operation that the message names first."
            }
            Reason::UndoConflict { .. } => {
                "Edit the record by hand, or undo the later operations first if they are yours to undo."
            }
            Reason::BatchFailed { .. } | Reason::NothingSucceeded => {
                "No operation of the batch was kept. Correct the operations named in blockers."
            }
            Reason::NotInBatch { .. } => "Call the tool outside of a batch.",
            Reason::LeaseHeld { .. } => {
                "Choose another step or wait. Take the lease over only if its owner is gone, with force=true and a reason."
            }
            Reason::LeaseNotHeld { .. } => "Claim the step with tasks_step_claim first.",
            Reason::EvidenceTooLarge { .. } => "Send less, or refer to a file or URL.",
            Reason::EvidenceRequired { .. } => {
                "Run test_run, attach its operation_id with tasks_evidence_capture, then confirm."
            }
            Reason::NothingDone(_) => "Cancel the plan with status CANCELED.",
            Reason::UnknownRun { .. } => {
                "Run the tests with test_run, and pass the operation_id of its reply."
            }
            Reason::PageTooSmall { .. } => "Call again with a larger max_chars, for example 20000.",
            Reason::BudgetTooSmall(_) => "Set max_chars to several hundred or more; the minimum is 2.",
        }
    }

    fn field(&self) -> Option<&str> {
        match self {
            Reason::Input { field, .. } | Reason::EvidenceTooLarge { field, .. } => Some(field),
            Reason::UnknownWorkspace(_) => Some("workspace"),
            Reason::RevisionMismatch { .. } => Some("expected_revision"),
            Reason::OperationState { .. } => Some("operation"),
            Reason::DependencyCycle(_) => Some("depends_on"),
            Reason::BudgetTooSmall(_) | Reason::PageTooSmall { .. } => Some("max_chars"),
            _ => None,
        }
    }

    fn context(&self) -> Json {
        match self {
            Reason::RevisionMismatch {
                id,
                expected,
                actual,
                changed,
                more,
            } => {
                json!({"task": id, "expected": expected, "actual": actual, "changed": changed, "more": more})
            }
            Reason::DependencyCycle(cycle) => json!({"cycle": cycle}),
            Reason::LeaseHeld {
                holder, left, until, ..
            } => json!({"holder": holder, "events_left": left, "expires_at": until}),
            Reason::EvidenceTooLarge { size, limit, .. } => json!({"size": size, "limit": limit}),
            Reason::TargetMismatch { given, other } => json!({"given": given, "other": other}),
            Reason::OutOfOrder {
                operation,
                before,
                root,
            } => json!({"operation": operation, "before": before.seq, "actor": before.actor, "id": root}),
            Reason::PageTooSmall { least, .. } => json!({"least": least}),
            Reason::UndoConflict {
                operation, id, since, ..
            } => {
                let actor = since.as_ref().and_then(|since| since.actor.as_ref());
                let since = since.as_ref().map(|since| since.seq);
                json!({"operation": operation, "since": since, "actor": actor, "id": id})
            }
            _ => Json::Null,
        }
    }
}

tollgate_kit::refusals! {
    /// Every reason found so far why a call has to be refused.
    pub(crate) struct Refusals of Reason;
}
