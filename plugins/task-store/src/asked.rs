//! Requests for approval in the host's list, where persons see them beside those of other packs.

use serde_json::json;
use tollgate_sdk::approvals::{MAX_NAME, MAX_TITLE};
use tollgate_sdk::{Answering, ApprovalRequest, ApprovalStatus as Listed, Cx, NextCall, ToolError};

use crate::arguments::MAX_TITLE_CHARS;
use crate::error::explained;
use crate::model::{ApprovalStatus, Resolution, TaskId};
use crate::role::Role;
use crate::store::approval::{self, Approval};

/// Most pending approvals of a task that its end withdraws in one go.
const MAX_WITHDRAWN: u32 = 1_000;

fn clipped(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// The call that answers an approval, in the role of a person.
fn answer(approval: &Approval, resolution: Resolution) -> NextCall {
    NextCall::new(
        "task_resolve_approval",
        json!({
            "task_id": approval.task_id, "approval_id": approval.id, "resolution": resolution,
            "actor_role": Role::Human,
        }),
    )
}

/// Most denied requests that the list shows of a request that replaces them.
const MAX_REPLACED: usize = 3;

/// Lists a pending approval, with the latest denied ones that it replaces. Listing it again changes nothing.
pub(crate) fn list(cx: &Cx<'_>, approval: &Approval, replaced: &[Approval]) -> Result<(), ToolError> {
    if approval.status != ApprovalStatus::Pending {
        return Ok(());
    }
    let mut detail = json!({
        "requested_action": approval.requested_action, "side_effect_kind": approval.side_effect_kind,
        "idempotency_key": approval.idempotency_key, "task_id": approval.task_id, "attempt_id": approval.attempt_id,
        "task_approval_id": approval.id,
    });
    if !replaced.is_empty() {
        let denied = |denied: &Approval| {
            json!({
                "task_approval_id": denied.id, "requested_action": denied.requested_action, "status": denied.status,
                "note": denied.note.as_deref().map(|note| clipped(note, MAX_TITLE_CHARS)),
            })
        };
        detail["replaces"] = replaced.iter().take(MAX_REPLACED).map(denied).collect();
    }
    let title = clipped(&approval.requested_action, MAX_TITLE);
    let request = ApprovalRequest {
        requested_by: Some(clipped(&approval.requested_by, MAX_NAME)),
        answering: Some(Answering {
            reject: Some(answer(approval, Resolution::Rejected)),
            by: Some("resolved_by".to_owned()),
            note: Some("note".to_owned()),
            ..Answering::new(answer(approval, Resolution::Approved))
        }),
        ..ApprovalRequest::new(approval.id.as_str(), title, detail)
    };
    cx.approvals()
        .ask(&request)
        .map(drop)
        .map_err(|err| explained(err.into()))
}

/// Takes an answered approval out of the list.
pub(crate) fn settle(cx: &Cx<'_>, approval: &Approval) -> Result<(), ToolError> {
    let status = match approval.status {
        ApprovalStatus::Pending => return Ok(()),
        ApprovalStatus::Approved => Listed::Approved,
        ApprovalStatus::Rejected | ApprovalStatus::RequestChanges => Listed::Rejected,
    };
    let (by, note) = (approval.resolved_by.as_deref(), approval.note.as_deref());
    cx.approvals().settle(approval.id.as_str(), status, by, note)?;
    Ok(())
}

/// Takes all approvals of a task out of the list that has ended.
pub(crate) fn withdraw(cx: &Cx<'_>, task: &TaskId) -> Result<(), ToolError> {
    for pending in approval::pending(&cx.db, task, MAX_WITHDRAWN)? {
        cx.approvals().withdraw(pending.id.as_str())?;
    }
    Ok(())
}
