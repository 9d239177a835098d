//! The reasons to refuse a call.

use serde_json::{Value, json};
use thiserror::Error;
use tollgate_sdk::{Timestamp, ToolError};

use crate::config::{Binding, Misclaim};
use crate::model::{ApprovalStatus, AttemptStatus};
use crate::phase::{Condition, Phase};
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
    #[error("the task is in {actual}, not in {expected}")]
    PhaseConflict { expected: Phase, actual: Phase },
    #[error("no transition leads from {from} to {to}")]
    IllegalTransition { from: Phase, to: Phase },
    #[error("{tool} is not allowed in phase {phase}")]
    WrongPhase {
        tool: &'static str,
        phase: Phase,
        allowed: Vec<Phase>,
    },
    #[error("attempt {given} is not the task's current one, which is {current}")]
    StaleAttempt { given: String, current: String },
    #[error("attempt_id is required, except for a spec review in spec_review")]
    AttemptRequired,
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
            Reason::Argument { .. } => "INVALID_ARGUMENTS",
            Reason::TaskNotFound(_) => "TASK_NOT_FOUND",
            Reason::AttemptNotFound { .. } => "ATTEMPT_NOT_FOUND",
            Reason::ApprovalNotFound { .. } => "APPROVAL_NOT_FOUND",
            Reason::PhaseConflict { .. } => "PHASE_CONFLICT",
            Reason::IllegalTransition { .. } => "ILLEGAL_TRANSITION",
            Reason::WrongPhase { .. } => "WRONG_PHASE",
            Reason::StaleAttempt { .. } => "STALE_ATTEMPT",
            Reason::AttemptRequired => "ATTEMPT_REQUIRED",
            Reason::AttemptFinished { .. } => "ATTEMPT_FINISHED",
            Reason::AlreadyResolved { .. } => "ALREADY_RESOLVED",
            Reason::Condition(condition) => condition.code(),
            Reason::Hold(hold) => hold.code(),
        }
    }

    fn remediation(&self) -> &'static str {
        match self {
            Reason::RoleForbidden { .. } => "Leave the call to one of allowed_roles.",
            Reason::RoleMisclaimed { .. } => {
                "Act in your own role. The operator binds roles to callers in the pack's config."
            }
            Reason::Argument { .. } => "Correct the argument.",
            Reason::TaskNotFound(_) => "Look the task up with task_list.",
            Reason::AttemptNotFound { .. } | Reason::StaleAttempt { .. } | Reason::AttemptRequired => {
                "Look the attempt up with task_get."
            }
            Reason::ApprovalNotFound { .. } => "Look the approval up with task_get.",
            Reason::PhaseConflict { .. } => {
                "Read the task with task_recover and decide from its actual phase."
            }
            Reason::IllegalTransition { .. } => "Choose one of the legal transitions.",
            Reason::WrongPhase { .. } => "Bring the task into an allowed phase first.",
            Reason::AttemptFinished { .. } => "Start another attempt instead of ending this one again.",
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
            | Reason::AttemptFinished { .. } => Some("attempt_id"),
            Reason::ApprovalNotFound { .. } => Some("approval_id"),
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
                json!({"actual_phase": actual, "legal_transitions": actual.next()})
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
            | Reason::StaleAttempt { .. }
            | Reason::AttemptRequired
            | Reason::AttemptFinished { .. }
            | Reason::Condition(_) => Value::Null,
        }
    }
}

tollgate_kit::refusals! {
    /// Every reason found so far why a call has to be refused.
    pub(crate) struct Refusals of Reason;
}

impl Refusals {
    /// The call's subject, unless it was not found or the call has to be refused.
    pub(crate) fn finish_with<T>(self, subject: Option<T>) -> Result<T, ToolError> {
        match subject {
            Some(subject) if self.is_empty() => Ok(subject),
            _ => Err(self.into()),
        }
    }
}
