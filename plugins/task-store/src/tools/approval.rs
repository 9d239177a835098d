//! Asking for side effects to be allowed, and answering.

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

/// Ask for a side effect to be allowed. Asking again with the same `side_effect_kind` and `idempotency_key`
/// returns the first request, answered or not, and says `replayed`. Does not move the task. Roles:
/// orchestrator, gateway.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRequestApproval {
    /// The task.
    task_id: TaskId,
    /// The attempt that wants the side effect.
    attempt_id: AttemptId,
    /// What is to be done, in words.
    #[schemars(length(min = 1, max = TITLE))]
    requested_action: String,
    /// What kind of side effect it is, such as `deploy`.
    #[schemars(length(min = 1, max = LABEL))]
    side_effect_kind: String,
    /// Names this side effect among those of its kind.
    #[schemars(length(min = 1, max = REFERENCE))]
    idempotency_key: String,
    /// Who asks. The actor, if left out.
    #[schemars(length(min = 1, max = REFERENCE))]
    requested_by: Option<String>,
    /// A request starts out as `pending`, said or not.
    #[expect(dead_code, reason = "its only value is what happens anyway")]
    status: Option<RequestedStatus>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// In which role.
    actor_role: Role,
}

/// An approval, and whether the call changed it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The approval.
    approval: Approval,
    /// It was so before, and nothing changed.
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
    /// The same request, if it was made before. A refusal if it cannot be made.
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

/// Answer a request for approval. The same answer again changes nothing and says `replayed`; another one is
/// refused with ALREADY_RESOLVED. Does not move the task. Roles: gateway, human.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskResolveApproval {
    /// The task.
    task_id: TaskId,
    /// The approval.
    approval_id: ApprovalId,
    /// The answer.
    resolution: Resolution,
    /// Who answers.
    #[schemars(length(min = 1, max = REFERENCE))]
    resolved_by: String,
    /// What there is to say about it.
    #[schemars(length(min = 1, max = TEXT))]
    note: Option<String>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// In which role.
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
    /// The approval, if it is pending or was answered the same way before.
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
