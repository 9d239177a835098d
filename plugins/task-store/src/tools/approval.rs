//! Requesting approval of side effects, and deciding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{BudgetError, Cx, Effect, Hints, Tool, ToolError};

use super::find_attempt;
use crate::arguments::{MAX_LABEL_CHARS, MAX_REFERENCE_CHARS, MAX_TEXT_CHARS, MAX_TITLE_CHARS, clip};
use crate::asked;
use crate::caller::{Caller, Change};
use crate::error::{Reason, Refusals, explained, look_call};
use crate::model::{ApprovalId, ApprovalStatus, AttemptId, EventType, RequestedStatus, Resolution, TaskId};
use crate::role::{Action, Role};
use crate::store::MAX_SHOWN_ROWS;
use crate::store::approval::{self, Approval, CIRCUIT_RESET};
use crate::store::task::{self, TaskHead};

/// Request approval of a side effect of the current attempt. A second request with the same `side_effect_kind` and
/// `idempotency_key` returns the first one with `replayed`. Another key replaces denied requests of the kind. Takes a
/// unit of the budget `approvals`, if the envelope has it. Does not move the task. Next: task_resolve_approval. Roles:
/// orchestrator, gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// No scope: the host counts the open requests of all tasks and refuses one too many.
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct TaskRequestApproval {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt that needs the side effect.
    attempt_id: AttemptId,
    /// Action to approve, in words.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    requested_action: String,
    /// Kind of side effect, for example `deploy`. `circuit_reset` lets an open circuit be reset once more.
    #[schemars(length(min = 1, max = MAX_LABEL_CHARS))]
    side_effect_kind: String,
    /// Key that is unique for this side effect within its kind, for example `v1.4.0`.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    idempotency_key: String,
    /// Name of the requester (default: `actor`).
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    requested_by: Option<String>,
    /// Initial status. The only value, `pending`, is the default.
    #[expect(dead_code, reason = "its only value is the default")]
    status: Option<RequestedStatus>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// An approval, and whether this call changed it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The request with its decision.
    approval: Approval,
    /// True if an earlier call had the same effect, so that nothing changed.
    replayed: bool,
    /// Denied requests that this one replaces, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaces: Vec<ApprovalId>,
    /// Reasons why the approval does not count for the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for TaskRequestApproval {
    const NAME: &'static str = "task_request_approval";
    const TITLE: &'static str = "Request an approval";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Answer;

    fn run(self, cx: &Cx<'_>) -> Result<Answer, ToolError> {
        let caller = Caller::writer(
            cx,
            Action::RequestApproval,
            self.actor.as_deref(),
            self.actor_role,
        )?;
        let earlier = self.check(cx, &caller)?;
        if let Some(approval) = earlier {
            let replaced = approval::replaced(&cx.db, &approval, MAX_SHOWN_ROWS)?;
            asked::list(cx, &approval, &replaced)?;
            return Ok(Answer {
                warnings: self.warnings(&approval),
                approval,
                replayed: true,
                replaces: ids(&replaced),
            });
        }
        take_unit(cx, &self.task_id)?;
        let id: ApprovalId = cx.new_id();
        let approval = Approval {
            approval_id: id.clone(),
            id,
            task_id: self.task_id,
            attempt_id: self.attempt_id,
            requested_action: self.requested_action,
            side_effect_kind: self.side_effect_kind,
            idempotency_key: self.idempotency_key,
            status: ApprovalStatus::Pending,
            requested_by: self.requested_by.unwrap_or_else(|| caller.actor.clone()),
            resolved_by: None,
            note: None,
            created_at: cx.now(),
            resolved_at: None,
            replaced_by: None,
        };
        approval::insert(&cx.db, &approval)?;
        approval::replace_denied(&cx.db, &approval)?;
        let replaced = approval::replaced(&cx.db, &approval, MAX_SHOWN_ROWS)?;
        asked::list(cx, &approval, &replaced)?;
        let replaces = ids(&replaced);
        let mut payload = json!({"after": approval});
        if !replaces.is_empty() {
            payload["replaces"] = json!(replaces);
        }
        caller.log(cx, change(EventType::ApprovalRequested, &approval, payload))?;
        Ok(Answer {
            approval,
            replayed: false,
            replaces,
            warnings: Vec::new(),
        })
    }
}

/// A change of an approval.
fn change(event_type: EventType, approval: &Approval, payload: Json) -> Change<'_> {
    Change::of(event_type, &approval.task_id, payload)
        .in_attempt(Some(&approval.attempt_id))
        .part(approval.id.as_str())
}

fn ids(approvals: &[Approval]) -> Vec<ApprovalId> {
    approvals.iter().map(|approval| approval.id.clone()).collect()
}

impl TaskRequestApproval {
    /// The earlier identical request, if there is one. Fails if the request is not allowed.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Option<Approval>, ToolError> {
        let mut refusals = caller.check();
        refusals.text("requested_action", &self.requested_action, MAX_TITLE_CHARS);
        refusals.text("side_effect_kind", &self.side_effect_kind, MAX_LABEL_CHARS);
        refusals.text("idempotency_key", &self.idempotency_key, MAX_REFERENCE_CHARS);
        refusals.optional_text("requested_by", self.requested_by.as_deref(), MAX_REFERENCE_CHARS);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        let named = find_attempt(cx, &mut refusals, &self.task_id, Some(&self.attempt_id))?;
        let (kind, key) = (&self.side_effect_kind, &self.idempotency_key);
        let earlier = approval::find(&cx.db, &self.task_id, kind, key)?;
        if let (Some(task), None) = (&task, &earlier) {
            refusals.unfinished(Self::NAME, task);
            refusals.current(task, named.as_ref());
        }
        refusals.finish_with(task)?;
        Ok(earlier)
    }

    /// A warning if the earlier request does not count for this attempt: it was made in another one, or was denied.
    fn warnings(&self, earlier: &Approval) -> Vec<String> {
        let warning = if earlier.attempt_id != self.attempt_id {
            format!(
                "the approval belongs to attempt {}; for attempt {} use another idempotency_key",
                earlier.attempt_id, self.attempt_id
            )
        } else if earlier.status.is_denied() {
            format!(
                "the approval was answered with {}; to request it again, use another idempotency_key",
                earlier.status
            )
        } else {
            return Vec::new();
        };
        vec![warning]
    }
}

/// Budget of requests for approval.
pub(crate) const APPROVALS_BUDGET: &str = "approvals";

/// Takes a unit of the budget. Requests are not limited without an envelope, and if the operator has not configured the
/// budget or not granted it.
fn take_unit(cx: &Cx<'_>, task: &TaskId) -> Result<(), ToolError> {
    let refused = |err: BudgetError| {
        let err = ToolError::from(err);
        let next_call = err.next_call.clone().or_else(|| Some(look_call(Some(task))));
        explained(ToolError { next_call, ..err })
    };
    match cx.budget().reserve(APPROVALS_BUDGET, 1) {
        Ok(unit) => unit.commit(1).map_err(refused),
        Err(BudgetError::NoEnvelope | BudgetError::Unknown(_)) => Ok(()),
        Err(err) => Err(refused(err)),
    }
}

/// A warning if an approval belongs to an attempt that is no longer the task's current one.
fn stale(task: &TaskHead, approval: &Approval) -> Vec<String> {
    let is_current = task.current_attempt_id.as_ref() == Some(&approval.attempt_id);
    let warning = || {
        format!(
            "attempt {} is not the task's current one, so the answer does not advance the task",
            approval.attempt_id
        )
    };
    (!is_current).then(warning).into_iter().collect()
}

/// Decide a request for approval. Repeating the decision changes nothing and returns `replayed`. Fails with
/// ALREADY_RESOLVED if the other decision was made. Does not move the task. Roles: gateway, human (only human to
/// approve a `circuit_reset`).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskResolveApproval {
    /// Task id from task_create.
    task_id: TaskId,
    /// Approval id from task_request_approval.
    approval_id: ApprovalId,
    /// Decision: approved, rejected or request_changes.
    resolution: Resolution,
    /// Name of the person or agent who decides.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    resolved_by: String,
    /// Note on the decision, for example a condition.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    note: Option<String>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

impl Tool for TaskResolveApproval {
    const NAME: &'static str = "task_resolve_approval";
    const TITLE: &'static str = "Answer an approval";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Answer;

    fn run(self, cx: &Cx<'_>) -> Result<Answer, ToolError> {
        let caller = Caller::writer(
            cx,
            Action::ResolveApproval,
            self.actor.as_deref(),
            self.actor_role,
        )?;
        let (task, pending) = self.check(cx, &caller)?;
        if pending.status != ApprovalStatus::Pending {
            return Ok(Answer {
                warnings: stale(&task, &pending),
                approval: pending,
                replayed: true,
                replaces: Vec::new(),
            });
        }
        let approval = Approval {
            status: self.resolution.into(),
            resolved_by: Some(self.resolved_by),
            note: self.note,
            resolved_at: Some(cx.now()),
            ..pending
        };
        if !approval::resolve(&cx.db, &approval)? {
            let mut refusals = Refusals::default();
            refusals.about(&approval.task_id);
            refusals.add(Reason::already_resolved(&approval));
            return Err(refusals.into());
        }
        asked::settle(cx, &approval)?;
        let payload = json!({"before": {"status": ApprovalStatus::Pending}, "after": approval});
        caller.log(cx, change(EventType::ApprovalResolved, &approval, payload))?;
        Ok(Answer {
            warnings: stale(&task, &approval),
            approval,
            replayed: false,
            replaces: Vec::new(),
        })
    }
}

impl TaskResolveApproval {
    /// The task and the approval, if that is pending or was decided the same way before.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<(TaskHead, Approval), ToolError> {
        let mut refusals = caller.check();
        refusals.text("resolved_by", &self.resolved_by, MAX_REFERENCE_CHARS);
        refusals.optional_text("note", self.note.as_deref(), MAX_TEXT_CHARS);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        let approval = approval::get(&cx.db, &self.task_id, &self.approval_id)?;
        let answer = ApprovalStatus::from(self.resolution);
        match &approval {
            None => refusals.add(Reason::ApprovalNotFound {
                approval: clip(self.approval_id.as_str()),
            }),
            Some(found) if found.status != ApprovalStatus::Pending && found.status != answer => {
                refusals.add(Reason::already_resolved(found));
            }
            Some(_) => {}
        }
        // A yes lets the side effect happen, so it is for work that goes on.
        if let (Some(task), Some(found)) = (&task, &approval)
            && found.status == ApprovalStatus::Pending
            && answer == ApprovalStatus::Approved
        {
            refusals.unfinished(Self::NAME, task);
            let attempt = find_attempt(cx, &mut refusals, &self.task_id, Some(&found.attempt_id))?;
            refusals.current(task, attempt.as_ref());
            let action = Action::GrantReset;
            if found.side_effect_kind == CIRCUIT_RESET && !action.roles().contains(&caller.role()) {
                refusals.add(Reason::RoleForbidden {
                    role: caller.role(),
                    action,
                });
            }
        }
        refusals.finish_with(task.zip(approval))
    }
}
