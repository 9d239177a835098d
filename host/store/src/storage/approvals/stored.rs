//! Requests for approval as stored, and their conversion to and from rows.

use serde_json::{Map, Value, json};
use tollgate_core::hash;
use tollgate_sdk::{
    Answerers, Answering, Approval, ApprovalRequest, ApprovalStatus, NextCall, canonical_json,
};

use super::super::engine::Row;
use super::super::error::StoreResult;
use super::super::recollection::Recollection;

/// Columns of a request, for [`stored`].
pub(super) const COLUMNS: &str = "id, component, key, round, title, detail, answering, answerers, status, op_id, envelope_id,
    tool, requested_by, identity, connection, asked_at, until_ms, answered_by, answered_identity, answered_op, note,
    answered_at";

/// Call in which a component made a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedBy {
    /// Id of the operation.
    pub op_id: String,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Tool of the call.
    pub tool: String,
    /// Caller as the ledger names it.
    pub actor: Option<String>,
    /// Identity of the caller, if the transport authenticated one.
    pub identity: Option<String>,
    /// Connection of the call.
    pub connection: String,
}

/// A request that is not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewApproval {
    /// Id derived from the content, so that hosts that make the same request concurrently agree on it.
    pub id: String,
    /// Component that makes the request.
    pub component: String,
    /// Content of the request.
    pub request: ApprovalRequest,
    /// Call in which the request is made.
    pub by: AskedBy,
    /// Time in milliseconds since 1970 UTC.
    pub at_ms: i64,
}

/// A policy's row, written in the commit with the record of the call that the policy judged.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyRow {
    /// A request for approval.
    Ask(Box<NewApproval>),
    /// Decision on a request.
    Settle {
        /// Component name of the policy.
        component: String,
        /// Key of the request.
        key: String,
        /// Decision.
        answer: Answered,
    },
    /// A change to the policy's memory.
    Remember(Box<Recollection>),
}

/// Decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Decision: approved, rejected or withdrawn.
    pub status: ApprovalStatus,
    /// Name of the approver.
    pub by: Option<String>,
    /// Identity of the approver, if the transport authenticated one.
    pub identity: Option<String>,
    /// Operation of the answer.
    pub op_id: String,
    /// Note of the approver.
    pub note: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub at_ms: i64,
}

/// A stored request.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredApproval {
    /// Request and answer, as the component sees them. An expired request is still pending here.
    pub approval: Approval,
    /// Component that asked.
    pub component: String,
    /// Sequence number among the requests with the same key.
    pub round: i64,
    /// Title for people.
    pub title: String,
    /// Content of the decision.
    pub detail: Map<String, Value>,
    /// Calls that answer, if the component answers itself.
    pub answering: Option<Answering>,
    /// Restrictions on who may answer.
    pub answerers: Option<Answerers>,
    /// Call in which the request was made.
    pub by: AskedBy,
    /// Time at which it expires.
    pub until_ms: Option<i64>,
    /// Operation of the answer.
    pub answered_op: Option<String>,
}

impl StoredApproval {
    /// State of the request at a time.
    pub fn status(&self, now_ms: i64) -> ApprovalStatus {
        let is_late = self.until_ms.is_some_and(|until| now_ms >= until);
        match self.approval.status {
            ApprovalStatus::Pending if is_late => ApprovalStatus::Expired,
            status => status,
        }
    }

    /// Request as its component sees it at a time.
    pub fn seen(&self, now_ms: i64) -> Approval {
        Approval {
            status: self.status(now_ms),
            ..self.approval.clone()
        }
    }

    /// True if a request has the same content.
    fn is_same(&self, request: &ApprovalRequest) -> bool {
        (&self.title, &self.detail, &self.answering, &self.answerers)
            == (
                &request.title,
                &request.detail,
                &request.answering,
                &request.answerers,
            )
    }

    /// True if this request is equal and still valid at a time, so that it need not be made again.
    pub fn stands(&self, request: &ApprovalRequest, now_ms: i64) -> bool {
        self.is_same(request)
            && match self.status(now_ms) {
                ApprovalStatus::Pending => true,
                ApprovalStatus::Approved | ApprovalStatus::Rejected => !request.renew,
                ApprovalStatus::Withdrawn | ApprovalStatus::Expired => false,
            }
    }
}

/// Filter for requests.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Status. Expired requests are not pending.
    pub status: Option<ApprovalStatus>,
    /// Component that asked.
    pub component: Option<String>,
    /// Identity that asked.
    pub identity: Option<String>,
    /// Only requests after this one, in the order of the list.
    pub after: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub now_ms: i64,
}

impl NewApproval {
    /// Creates the request that is number `round` with its key.
    pub fn new(
        component: &str,
        request: ApprovalRequest,
        by: AskedBy,
        (round, at_ms): (i64, i64),
    ) -> NewApproval {
        let content = json!([
            component,
            request.key,
            request.title,
            request.detail,
            request.answering.as_ref().map(answering_json),
            request.answerers.as_ref().map(answerers_json),
            round,
        ]);
        let digest = hash::sha256_hex(canonical_json(&content).as_bytes());
        let id = format!("apv_{}", digest.get(..26).unwrap_or(&digest));
        NewApproval {
            id,
            component: component.to_owned(),
            request,
            by,
            at_ms,
        }
    }

    /// Request as its component sees it before the answer.
    pub fn seen(&self) -> Approval {
        Approval {
            id: self.id.clone(),
            key: self.request.key.clone(),
            status: ApprovalStatus::Pending,
            requested_by: self
                .request
                .requested_by
                .clone()
                .or_else(|| self.by.actor.clone()),
            requester: self.by.identity.clone(),
            answered_by: None,
            approver: None,
            note: None,
            asked_at_ms: self.at_ms,
            answered_at_ms: None,
        }
    }
}

fn call_json(call: &NextCall) -> Value {
    json!({"tool": call.tool, "arguments": call.arguments})
}

pub(super) fn answering_json(answering: &Answering) -> Value {
    json!({
        "approve": call_json(&answering.approve),
        "reject": answering.reject.as_ref().map(call_json),
        "by": answering.by,
        "note": answering.note,
    })
}

pub(super) fn answerers_json(answerers: &Answerers) -> Value {
    json!({"names": answerers.names, "proven": answerers.proven, "another": answerers.another})
}

fn read_answering(text: &str) -> Option<Answering> {
    let read: Value = serde_json::from_str(text).ok()?;
    let call = |name: &str| serde_json::from_value(read.get(name)?.clone()).ok();
    let word = |name: &str| Some(read.get(name)?.as_str()?.to_owned());
    Some(Answering {
        approve: call("approve")?,
        reject: call("reject"),
        by: word("by"),
        note: word("note"),
    })
}

fn read_answerers(text: &str) -> Option<Answerers> {
    let read: Value = serde_json::from_str(text).ok()?;
    let flag = |name: &str| read.get(name).and_then(Value::as_bool).unwrap_or(true);
    Some(Answerers {
        names: serde_json::from_value(read.get("names")?.clone()).ok()?,
        proven: flag("proven"),
        another: flag("another"),
    })
}

fn read_status(text: &str) -> ApprovalStatus {
    match text {
        "approved" => ApprovalStatus::Approved,
        "rejected" => ApprovalStatus::Rejected,
        "withdrawn" => ApprovalStatus::Withdrawn,
        _ => ApprovalStatus::Pending,
    }
}

/// Restrictions that nobody meets, used if the stored ones cannot be read.
pub(super) fn nobody() -> Answerers {
    Answerers {
        names: vec![String::new()],
        proven: true,
        another: true,
    }
}

pub(super) fn stored(row: &Row<'_>) -> StoreResult<StoredApproval> {
    let detail: String = row.get(5)?;
    let answering: Option<String> = row.get(6)?;
    let answerers: Option<String> = row.get(7)?;
    let status: String = row.get(8)?;
    Ok(StoredApproval {
        approval: Approval {
            id: row.get(0)?,
            key: row.get(2)?,
            status: read_status(&status),
            requested_by: row.get(12)?,
            requester: row.get(13)?,
            answered_by: row.get(17)?,
            approver: row.get(18)?,
            note: row.get(20)?,
            asked_at_ms: row.get(15)?,
            answered_at_ms: row.get(21)?,
        },
        component: row.get(1)?,
        round: row.get(3)?,
        title: row.get(4)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
        answering: answering.as_deref().and_then(read_answering),
        answerers: answerers
            .as_deref()
            .map(|text| read_answerers(text).unwrap_or_else(nobody)),
        by: AskedBy {
            op_id: row.get(9)?,
            envelope_id: row.get(10)?,
            tool: row.get(11)?,
            actor: row.get(12)?,
            identity: row.get(13)?,
            connection: row.get(14)?,
        },
        until_ms: row.get(16)?,
        answered_op: row.get(19)?,
    })
}
