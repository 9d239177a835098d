//! Requesting approval of side effects, and deciding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::find_attempt;
use crate::arguments::{LABEL, REFERENCE, TEXT, TITLE, clip};
use crate::caller::Caller;
use crate::error::Reason;
use crate::model::{ApprovalId, ApprovalStatus, AttemptId, EventType, RequestedStatus, Resolution, TaskId};
use crate::role::{Action, Role};
use crate::store::approval::{self, Approval};
use crate::store::task;

/// Request approval of a side effect. A second request with the same `side_effect_kind` and `idempotency_key`
/// returns the first one with `replayed`. Does not move the task. Next: task_resolve_approval. Roles:
/// orchestrator, gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRequestApproval {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt that needs the side effect.
    attempt_id: AttemptId,
    /// Action to approve, in words.
    #[schemars(length(min = 1, max = TITLE))]
    requested_action: String,
    /// Kind of side effect, for example `deploy`.
    #[schemars(length(min = 1, max = LABEL))]
    side_effect_kind: String,
    /// Key that is unique for this side effect within its kind, for example `v1.4.0`.
    #[schemars(length(min = 1, max = REFERENCE))]
    idempotency_key: String,
    /// Name of the requester (default: `actor`).
    #[schemars(length(min = 1, max = REFERENCE))]
    requested_by: Option<String>,
    /// Initial status. The only value, `pending`, is the default.
    #[expect(dead_code, reason = "its only value is the default")]
    status: Option<RequestedStatus>,
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
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
}

impl Tool for TaskRequestApproval {
    const NAME: &'static str = "task_request_approval";
    const TITLE: &'static str = "Request an approval";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Answer;

    fn run(self, cx: &Cx<'_>) -> Result<Answer, ToolError> {
        let caller = Caller::writer(cx, Action::RequestApproval, &self.actor, self.actor_role)?;
        let earlier = self.check(cx, &caller)?;
        if let Some(approval) = earlier {
            return Ok(Answer {
                approval,
                replayed: true,
            });
        }
        let approval = Approval {
            id: cx.new_id(),
            task_id: self.task_id,
            attempt_id: self.attempt_id,
            requested_action: self.requested_action,
            side_effect_kind: self.side_effect_kind,
            idempotency_key: self.idempotency_key,
            status: ApprovalStatus::Pending,
            requested_by: self.requested_by.unwrap_or(self.actor),
            resolved_by: None,
            note: None,
            created_at: cx.now(),
            resolved_at: None,
        };
        approval::insert(&cx.db, &approval)?;
        caller.log(
            cx,
            EventType::ApprovalRequested,
            &approval.task_id,
            Some(&approval.attempt_id),
            json!({"after": approval}),
        )?;
        Ok(Answer {
            approval,
            replayed: false,
        })
    }
}

impl TaskRequestApproval {
    /// The earlier identical request, if there is one. Fails if the request is not allowed.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Option<Approval>, ToolError> {
        let mut refusals = caller.check();
        refusals.text("requested_action", &self.requested_action, TITLE);
        refusals.text("side_effect_kind", &self.side_effect_kind, LABEL);
        refusals.text("idempotency_key", &self.idempotency_key, REFERENCE);
        refusals.optional_text("requested_by", self.requested_by.as_deref(), REFERENCE);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, Some(&self.attempt_id))?;
        let (kind, key) = (&self.side_effect_kind, &self.idempotency_key);
        let earlier = approval::find(&cx.db, &self.task_id, kind, key)?;
        if let (Some(task), None) = (&task, &earlier) {
            refusals.unfinished(Self::NAME, task);
        }
        refusals.finish_with(task)?;
        Ok(earlier)
    }
}

/// Decide a request for approval. Repeating the decision changes nothing and returns `replayed`. Fails with
/// ALREADY_RESOLVED if the other decision was made. Does not move the task. Roles: gateway, human.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskResolveApproval {
    /// Task id from task_create.
    task_id: TaskId,
    /// Approval id from task_request_approval.
    approval_id: ApprovalId,
    /// Decision: approved, rejected or request_changes.
    resolution: Resolution,
    /// Name of the person or agent who decides.
    #[schemars(length(min = 1, max = REFERENCE))]
    resolved_by: String,
    /// Note on the decision, for example a condition.
    #[schemars(length(min = 1, max = TEXT))]
    note: Option<String>,
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
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
        let caller = Caller::writer(cx, Action::ResolveApproval, &self.actor, self.actor_role)?;
        let pending = self.check(cx, &caller)?;
        if pending.status != ApprovalStatus::Pending {
            return Ok(Answer {
                approval: pending,
                replayed: true,
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
            return Err(Reason::already_resolved(&approval).into());
        }
        caller.log(
            cx,
            EventType::ApprovalResolved,
            &approval.task_id,
            Some(&approval.attempt_id),
            json!({"before": {"status": ApprovalStatus::Pending}, "after": approval}),
        )?;
        Ok(Answer {
            approval,
            replayed: false,
        })
    }
}

impl TaskResolveApproval {
    /// The approval, if it is pending or was decided the same way before.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Approval, ToolError> {
        let mut refusals = caller.check();
        refusals.text("resolved_by", &self.resolved_by, REFERENCE);
        refusals.optional_text("note", self.note.as_deref(), TEXT);
        refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
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
        refusals.finish_with(approval)
    }
}
