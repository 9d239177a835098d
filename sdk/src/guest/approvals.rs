//! Access to `approvals` through the component's imports.

use serde_json::Value as Json;

use super::bindings::tollgate::host::approvals as wit;
use super::wire_next_call;
use crate::{Approval, ApprovalError, ApprovalRequest, ApprovalStatus};

pub(super) fn ask(request: &ApprovalRequest) -> Result<Approval, ApprovalError> {
    wit::ask(&wit::Request {
        key: request.key.clone(),
        title: request.title.clone(),
        detail: Json::Object(request.detail.clone()).to_string(),
        requested_by: request.requested_by.clone(),
        renew: request.renew,
        until: request.until_ms,
        answering: request.answering.clone().map(|answering| wit::Answering {
            approve: wire_next_call(answering.approve),
            reject: answering.reject.map(wire_next_call),
            by: answering.by,
            note: answering.note,
        }),
        answerers: request.answerers.clone().map(|answerers| wit::Answerers {
            names: answerers.names,
            proven: answerers.proven,
            another: answerers.another,
        }),
    })
    .map(approval)
    .map_err(error)
}

pub(super) fn find(key: &str) -> Result<Option<Approval>, ApprovalError> {
    Ok(wit::find(key).map_err(error)?.map(approval))
}

pub(super) fn settle(
    key: &str,
    status: ApprovalStatus,
    by: Option<&str>,
    note: Option<&str>,
) -> Result<bool, ApprovalError> {
    let status = match status {
        ApprovalStatus::Pending => wit::Status::Pending,
        ApprovalStatus::Approved => wit::Status::Approved,
        ApprovalStatus::Rejected => wit::Status::Rejected,
        ApprovalStatus::Withdrawn => wit::Status::Withdrawn,
        ApprovalStatus::Expired => wit::Status::Expired,
    };
    wit::settle(key, status, by, note).map_err(error)
}

fn approval(found: wit::Approval) -> Approval {
    Approval {
        id: found.id,
        key: found.key,
        status: match found.status {
            wit::Status::Pending => ApprovalStatus::Pending,
            wit::Status::Approved => ApprovalStatus::Approved,
            wit::Status::Rejected => ApprovalStatus::Rejected,
            wit::Status::Withdrawn => ApprovalStatus::Withdrawn,
            wit::Status::Expired => ApprovalStatus::Expired,
        },
        requested_by: found.requested_by,
        requester: found.requester,
        answered_by: found.answered_by,
        approver: found.approver,
        note: found.note,
        asked_at_ms: found.asked_at,
        answered_at_ms: found.answered_at,
    }
}

fn error(err: wit::Error) -> ApprovalError {
    match err {
        wit::Error::ReadOnly => ApprovalError::ReadOnly,
        wit::Error::Invalid(why) => ApprovalError::Invalid(why),
        wit::Error::Full(limit) => ApprovalError::Full(limit),
        wit::Error::Internal => ApprovalError::Internal,
    }
}
