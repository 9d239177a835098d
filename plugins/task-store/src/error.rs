//! The reasons to refuse a call.

use serde_json::{Value, json};
use thiserror::Error;
use tollgate_kit::{INVALID_ARGUMENTS, NOT_FOUND};
use tollgate_sdk::{Blocker, NextCall, Tier, Timestamp, ToolError};

use crate::condition::Condition;
use crate::config::{Binding, Misclaim};
use crate::model::{ApprovalStatus, AttemptStatus, TaskId};
use crate::phase::{Phase, Place};
use crate::retry::Hold;
use crate::role::{Action, Role};
use crate::store::approval::Approval;
use crate::store::attempt::Attempt;

/// One reason why a call is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum Reason {
    #[error("{role} may not call {action}")]
    RoleForbidden { role: Role, action: Action },
    #[error("this caller may not act as {role} in {tool}")]
    RoleMisclaimed {
        role: Role,
        tool: &'static str,
        why: Misclaim,
    },
    #[error("{field} {fault}")]
    Argument { field: String, fault: String },
    #[error("there is no task {0}")]
    TaskNotFound(String),
    #[error("attempt {attempt} does not exist or belongs to another task")]
    AttemptNotFound { attempt: String },
    #[error("approval {approval} does not exist or belongs to another task")]
    ApprovalNotFound { approval: String },
    #[error("{field} {cursor} is not a next_cursor of {tool}")]
    UnknownCursor {
        field: &'static str,
        cursor: String,
        tool: &'static str,
    },
    #[error("the task is in {}, not in {expected}", .actual.phase)]
    PhaseConflict { expected: Phase, actual: Place },
    #[error("no transition leads from {} to {to}{}", .from.phase, origin(*.from))]
    IllegalTransition { from: Place, to: Phase },
    #[error("{tool} is not allowed in phase {phase}")]
    WrongPhase {
        tool: &'static str,
        phase: Phase,
        allowed: Vec<Phase>,
    },
    #[error("attempt {given} is not the task's current one, which is {current}")]
    StaleAttempt { given: String, current: String },
    #[error("a quality review concerns an attempt, so attempt_id is required")]
    AttemptRequired,
    #[error("the spec is approved already; a review of an attempt needs its attempt_id")]
    SpecApproved,
    #[error("attempt {0} is still running; only a finished attempt can be reviewed")]
    ReviewTooEarly(String),
    #[error("attempt {attempt} already ended as {status}")]
    AttemptFinished { attempt: String, status: AttemptStatus },
    #[error("approval {approval} was already answered with {status}")]
    AlreadyResolved {
        approval: String,
        status: ApprovalStatus,
        resolved_by: Option<String>,
        resolved_at: Option<Timestamp>,
    },
    #[error(transparent)]
    Condition(#[from] Condition),
    #[error(transparent)]
    Hold(#[from] Hold),
}

/// Way out of a phase that nothing leads out of.
const TASK_ENDED: &str =
    "The task has ended and cannot change. For further work, create a new task with task_create.";

fn origin(place: Place) -> String {
    match place.circuit_from {
        Some(from) => format!("; the circuit was opened in {from}"),
        None => String::new(),
    }
}

impl Reason {
    /// An attempt that ended another way.
    pub(crate) fn attempt_finished(attempt: &Attempt) -> Reason {
        Reason::AttemptFinished {
            attempt: attempt.id.to_string(),
            status: attempt.status,
        }
    }

    /// An approval that was answered another way.
    pub(crate) fn already_resolved(approval: &Approval) -> Reason {
        Reason::AlreadyResolved {
            approval: approval.id.to_string(),
            status: approval.status,
            resolved_by: approval.resolved_by.clone(),
            resolved_at: approval.resolved_at,
        }
    }
}

impl tollgate_kit::Reason for Reason {
    fn argument(field: String, fault: String) -> Reason {
        Reason::Argument { field, fault }
    }

    fn code(&self) -> &'static str {
        match self {
            Reason::RoleForbidden { .. } | Reason::RoleMisclaimed { .. } => "ROLE_FORBIDDEN",
            Reason::Argument { .. } | Reason::UnknownCursor { .. } => INVALID_ARGUMENTS,
            Reason::TaskNotFound(_) | Reason::AttemptNotFound { .. } | Reason::ApprovalNotFound { .. } => {
                NOT_FOUND
            }
            Reason::PhaseConflict { .. } => "PHASE_CONFLICT",
            Reason::IllegalTransition { .. } => "ILLEGAL_TRANSITION",
            Reason::WrongPhase { .. } => "WRONG_PHASE",
            Reason::StaleAttempt { .. } => "STALE_ATTEMPT",
            Reason::AttemptRequired | Reason::SpecApproved => "ATTEMPT_REQUIRED",
            Reason::ReviewTooEarly(_) => "ATTEMPT_RUNNING",
            Reason::AttemptFinished { .. } => "ATTEMPT_FINISHED",
            Reason::AlreadyResolved { .. } => "ALREADY_RESOLVED",
            Reason::Condition(condition) => condition.code(),
            Reason::Hold(hold) => hold.code(),
        }
    }

    fn remediation(&self) -> &'static str {
        match self {
            Reason::RoleForbidden { .. } => "Let a caller with one of allowed_roles make the call.",
            Reason::RoleMisclaimed { .. } => {
                "Act in your own role. The operator binds roles to callers in the pack's config."
            }
            Reason::Argument { .. } => "Correct the argument.",
            Reason::TaskNotFound(_) => "Look the task up with task_list.",
            Reason::AttemptNotFound { .. } | Reason::StaleAttempt { .. } | Reason::AttemptRequired => {
                "Look the attempt up with task_get."
            }
            Reason::SpecApproved => {
                "To review the attempt, pass its attempt_id from task_get. To withdraw the approval of the spec, append \
                 a review with verdict changes_requested or blocked."
            }
            Reason::ReviewTooEarly(_) => "End the attempt with task_finish_attempt, then append the review.",
            Reason::ApprovalNotFound { .. } => "Look the approval up with task_get.",
            Reason::UnknownCursor { .. } => {
                "Pass next_cursor of the previous page, or start without a cursor."
            }
            Reason::PhaseConflict { actual: at, .. } | Reason::IllegalTransition { from: at, .. }
                if at.phase.is_terminal() =>
            {
                TASK_ENDED
            }
            Reason::WrongPhase { phase, .. } if phase.is_terminal() => TASK_ENDED,
            Reason::PhaseConflict { .. } => {
                "Read the task with task_recover and decide from its actual phase."
            }
            Reason::IllegalTransition { .. } => "Choose one of the legal transitions of task_recover.",
            Reason::WrongPhase { .. } => {
                "Move the task to an allowed phase first; task_recover lists the transitions."
            }
            Reason::AttemptFinished { .. } => {
                "Read the task with task_recover. The outcome of an attempt cannot change. Continue in another attempt."
            }
            Reason::AlreadyResolved { .. } => "Request a new approval with another idempotency_key.",
            Reason::Condition(condition) => condition.remediation(),
            Reason::Hold(hold) => hold.remediation(),
        }
    }

    fn field(&self) -> Option<&str> {
        match self {
            Reason::RoleForbidden { .. } | Reason::RoleMisclaimed { .. } => Some("actor_role"),
            Reason::Argument { field, .. } => Some(field),
            Reason::TaskNotFound(_) => Some("task_id"),
            Reason::AttemptNotFound { .. }
            | Reason::StaleAttempt { .. }
            | Reason::AttemptRequired
            | Reason::SpecApproved
            | Reason::ReviewTooEarly(_)
            | Reason::AttemptFinished { .. } => Some("attempt_id"),
            Reason::ApprovalNotFound { .. } => Some("approval_id"),
            Reason::UnknownCursor { field, .. } => Some(field),
            Reason::PhaseConflict { .. } => Some("from_phase"),
            Reason::IllegalTransition { .. } => Some("to_phase"),
            Reason::AlreadyResolved { .. } => Some("resolution"),
            Reason::WrongPhase { .. } | Reason::Condition(_) | Reason::Hold(_) => None,
        }
    }

    fn context(&self) -> Value {
        match self {
            Reason::RoleForbidden { role, action } => {
                json!({"role": role, "tool": action.tool(), "allowed_roles": action.roles()})
            }
            Reason::RoleMisclaimed { role, tool, why } => match why {
                Misclaim::CallerBound(roles) => json!({"role": role, "tool": tool, "your_roles": roles}),
                Misclaim::RoleBound(Binding { clients, identities }) => json!({
                    "role": role,
                    "tool": tool,
                    "bound_to": {"clients": clients, "identities": identities},
                }),
            },
            Reason::PhaseConflict { actual, .. } => {
                json!({"actual_phase": actual.phase, "legal_transitions": actual.next()})
            }
            Reason::IllegalTransition { from, .. } => json!({"legal_transitions": from.next()}),
            Reason::WrongPhase { phase, allowed, .. } => json!({"phase": phase, "allowed_phases": allowed}),
            Reason::AlreadyResolved {
                status,
                resolved_by,
                resolved_at,
                ..
            } => json!({"status": status, "resolved_by": resolved_by, "resolved_at": resolved_at}),
            Reason::Hold(Hold::TooEarly(at)) => json!({"next_retry_at": at}),
            Reason::Hold(Hold::AttemptRunning(attempt)) => json!({"running_attempt_id": attempt}),
            Reason::Hold(Hold::Exhausted(max)) => json!({"max_attempts": max}),
            Reason::Hold(Hold::CircuitOpen | Hold::WrongPhase(_))
            | Reason::Argument { .. }
            | Reason::TaskNotFound(_)
            | Reason::AttemptNotFound { .. }
            | Reason::ApprovalNotFound { .. }
            | Reason::UnknownCursor { .. }
            | Reason::StaleAttempt { .. }
            | Reason::AttemptRequired
            | Reason::SpecApproved
            | Reason::AttemptFinished { .. }
            | Reason::Condition(_) => Value::Null,
            Reason::ReviewTooEarly(attempt) => json!({"running_attempt_id": attempt}),
        }
    }

    /// Names the call that lists the tasks, unless the error names another or only arguments are at fault.
    fn complete(mut err: ToolError) -> ToolError {
        let is_of_arguments = |blocker: &Blocker| blocker.code == INVALID_ARGUMENTS;
        let is_about_arguments = !err.blockers.is_empty() && err.blockers.iter().all(is_of_arguments);
        if err.next_call.is_none() && !is_about_arguments {
            err.next_call = Some(look_call(None));
        }
        explained(err)
    }
}

tollgate_kit::refusals! {
    /// Every reason found so far why a call has to be refused.
    pub(crate) struct Refusals of Reason;
}

impl Refusals {
    /// Remembers the task that the call is about, for the next call of a refusal.
    pub(crate) fn about(&mut self, task: &TaskId) {
        self.fallback(look_call(Some(task)));
    }

    /// The call's subject, unless it was not found or the call has to be refused.
    pub(crate) fn finish_with<T>(self, subject: Option<T>) -> Result<T, ToolError> {
        match subject {
            Some(subject) if self.is_empty() => Ok(subject),
            _ => Err(self.into()),
        }
    }
}

/// The call that shows a task or, if no task is known, the tasks.
pub(crate) fn look_call(task: Option<&TaskId>) -> NextCall {
    match task {
        Some(id) => NextCall::new("task_recover", json!({"task_id": id})),
        None => NextCall::new("task_list", json!({})),
    }
}

/// An error that tells how to call tools which the default tier does not list, if the error names one.
pub(crate) fn explained(mut err: ToolError) -> ToolError {
    let unlisted = || crate::PACK.tools.iter().filter(|tool| tool.tier != Tier::Core);
    let is_called = |name: &str| err.next_call.as_ref().is_some_and(|call| call.tool == name);
    if unlisted().any(|tool| is_called(tool.name) || err.remediation.contains(tool.name)) {
        err.remediation += " If the tool is not in your list, call it through tool_call.";
    }
    err
}
