//! `approval_list`, `approval_resolve`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sdk::approvals::{MAX_NAME, MAX_NOTE};
use tollgate_sdk::{ApprovalStatus, Blocker, NextCall, Timestamp, ToolError};
use tollgate_store::storage::{Answered, ApprovalFilter, StoredApproval};

use super::{CoreCx, CoreError, Tool, storage};

/// Tool that answers. The gate replaces it by the component's own tool, if there is one.
pub const RESOLVE: &str = "approval_resolve";

/// Size after which a page ends, in bytes. A single request can be larger.
const MAX_PAGE: usize = 256 << 10;

/// Status of requests in a list.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Pending,
    Approved,
    Rejected,
    Withdrawn,
    Expired,
    Any,
}

impl Wanted {
    fn status(self) -> Option<ApprovalStatus> {
        match self {
            Wanted::Pending => Some(ApprovalStatus::Pending),
            Wanted::Approved => Some(ApprovalStatus::Approved),
            Wanted::Rejected => Some(ApprovalStatus::Rejected),
            Wanted::Withdrawn => Some(ApprovalStatus::Withdrawn),
            Wanted::Expired => Some(ApprovalStatus::Expired),
            Wanted::Any => None,
        }
    }
}

/// List requests for a person's approval from all packs and policies, oldest first. To answer one, call
/// approval_resolve.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Status of the requests. Default pending.
    status: Option<Wanted>,
    /// Id of one request, for example from APPROVAL_REQUIRED. All filters are combined with AND.
    #[schemars(length(max = 64))]
    approval_id: Option<String>,
    /// Component that asked, for example `task-store` or `policy-side-effect-approval`.
    #[schemars(length(max = 64))]
    component: Option<String>,
    /// Maximum number of requests, 1 to 100. Default 20.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// `next_cursor` of the previous page.
    #[schemars(length(max = 64))]
    cursor: Option<String>,
}

fn default_limit() -> u32 {
    20
}

/// A page of requests for approval.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// Requests, oldest first.
    approvals: Vec<View>,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A request for approval.
#[derive(Serialize, JsonSchema)]
pub(super) struct View {
    /// Id for approval_resolve.
    approval_id: String,
    /// Title for people.
    title: String,
    /// pending, approved, rejected, withdrawn or expired.
    status: &'static str,
    /// Component that asked.
    component: String,
    /// Content of the decision, for example tool and arguments. Invisible characters are written as escapes such as
    /// `\u202e`.
    detail: Map<String, Value>,
    /// Name of the requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_by: Option<String>,
    /// Identity of the requester, if proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// Tool whose call asked.
    tool: String,
    /// Operation of that call.
    op_id: String,
    /// Envelope of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope_id: Option<String>,
    /// Time of the request.
    asked_at: String,
    /// Time at which the request expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Tool of the component that an answer runs. Without one, the host keeps the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_with: Option<String>,
    /// Reason why the caller of this tool may not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_by_you: Option<String>,
    /// Name of the approver.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<String>,
    /// Operation of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_op: Option<String>,
    /// Time of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<String>,
    /// Note of the approver.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl View {
    fn of(found: StoredApproval, cx: &CoreCx<'_>) -> View {
        let time = |ms: i64| Timestamp::from_ms(ms).to_string();
        let status = found.status(cx.now_ms);
        let objection = (status == ApprovalStatus::Pending)
            .then(|| cx.answerer().objection(&found, cx.approvals))
            .flatten();
        let approval = found.approval;
        View {
            approval_id: approval.id,
            title: found.title,
            status: status.as_str(),
            component: found.component,
            detail: visible_in(found.detail),
            requested_by: approval.requested_by,
            identity: approval.requester,
            tool: found.by.tool,
            op_id: found.by.op_id,
            envelope_id: found.by.envelope_id,
            asked_at: time(approval.asked_at_ms),
            until: found.until_ms.map(time),
            answered_with: found.answering.map(|answering| answering.approve.tool),
            not_by_you: objection.map(|err| err.message),
            answered_by: approval.answered_by,
            answered_op: found.answered_op,
            answered_at: approval.answered_at_ms.map(time),
            note: approval.note,
        }
    }
}

/// Text in which every invisible character is written as an escape.
fn visible(said: String) -> String {
    if !text::hides(&said) {
        return said;
    }
    let json = Value::String(said).to_string();
    let escaped = text::escape_json(&json);
    let inner = escaped.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(&escaped).to_owned()
}

fn visible_in(members: Map<String, Value>) -> Map<String, Value> {
    fn shown(value: Value) -> Value {
        match value {
            Value::String(said) => Value::String(visible(said)),
            Value::Array(items) => Value::Array(items.into_iter().map(shown).collect()),
            Value::Object(members) => Value::Object(visible_in(members)),
            plain => plain,
        }
    }
    let members = members.into_iter();
    members
        .map(|(name, value)| (visible(name), shown(value)))
        .collect()
}

impl Tool for List {
    const NAME: &'static str = "approval_list";
    const TITLE: &'static str = "List approvals";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Page;

    fn run(self, cx: &CoreCx<'_>) -> Result<Page, CoreError> {
        let answerer = cx.answerer();
        if let Some(id) = &self.approval_id {
            let found = cx.session.approvals().get(id).map_err(storage)?;
            let found = found.filter(|found| answerer.sees(found, cx.approvals));
            let found = found.ok_or_else(|| not_found(id))?;
            return Ok(Page {
                approvals: vec![View::of(found, cx)],
                next_cursor: None,
            });
        }
        let limit = self.limit.clamp(1, 100);
        let own = cx.identity.filter(|_| !answerer.sees_all(cx.approvals));
        let filter = ApprovalFilter {
            status: self.status.unwrap_or(Wanted::Pending).status(),
            component: self.component,
            identity: own.map(|identity| identity.as_str().to_owned()),
            after: self.cursor,
            now_ms: cx.now_ms,
        };
        let mut found = cx.session.approvals().list(&filter, limit + 1).map_err(storage)?;
        let mut has_more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let (mut approvals, mut size) = (Vec::new(), 0);
        for found in found {
            let view = View::of(found, cx);
            size += serde_json::to_vec(&view).map_or(0, |json| json.len());
            if size > MAX_PAGE && !approvals.is_empty() {
                has_more = true;
                break;
            }
            approvals.push(view);
        }
        let last = approvals.last().filter(|_| has_more);
        Ok(Page {
            next_cursor: last.map(|last| last.approval_id.clone()),
            approvals,
        })
    }
}

/// A decision.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Approve,
    Reject,
}

/// Answer a request for approval on behalf of a person. If the component that asked has a tool for it, that tool runs
/// instead. Fails for the requester, and if the request has another answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resolve {
    /// Id from approval_list or APPROVAL_REQUIRED, for example apv_0c1d….
    #[schemars(length(min = 1, max = 64))]
    pub(crate) approval_id: String,
    /// The person's decision: approve or reject.
    pub(crate) decision: Decision,
    /// The person's comment, kept with the answer. Default none.
    #[schemars(length(max = MAX_NOTE))]
    pub(crate) note: Option<String>,
    /// Name of the person, if the connection does not prove one. Default none.
    #[schemars(length(min = 1, max = MAX_NAME))]
    #[expect(dead_code, reason = "the gate takes it as the claim of who calls")]
    actor: Option<String>,
}

/// The answered request.
#[derive(Serialize, JsonSchema)]
pub(super) struct Resolved {
    /// The request with its answer.
    approval: View,
    /// True if the same answer was recorded before, so that nothing changed.
    unchanged: bool,
}

impl Tool for Resolve {
    const NAME: &'static str = RESOLVE;
    const TITLE: &'static str = "Answer an approval";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Standard;
    type Output = Resolved;

    fn run(self, cx: &CoreCx<'_>) -> Result<Resolved, CoreError> {
        let found = cx.session.approvals().get(&self.approval_id).map_err(storage)?;
        let answerer = cx.answerer();
        let found = found.filter(|found| answerer.sees(found, cx.approvals));
        let found = found.ok_or_else(|| not_found(&self.approval_id))?;
        let status = match self.decision {
            Decision::Approve => ApprovalStatus::Approved,
            Decision::Reject => ApprovalStatus::Rejected,
        };
        let by = answerer.name().unwrap_or("a user of this machine").to_owned();
        match found.status(cx.now_ms) {
            ApprovalStatus::Pending => {}
            now if now == status && found.approval.answered_by.as_deref() == Some(&by) => {
                return Ok(Resolved {
                    approval: View::of(found, cx),
                    unchanged: true,
                });
            }
            _ => return Err(answered(&found, cx.now_ms).into()),
        }
        if let Some(objection) = answerer.objection(&found, cx.approvals) {
            return Err(objection.into());
        }
        if let Some(call) = self.decision.call(&found) {
            return Err(not_here(&call).into());
        }
        let answer = Answered {
            status,
            by: Some(by),
            identity: cx.identity.map(|identity| identity.as_str().to_owned()),
            op_id: cx.op_id.to_owned(),
            note: self.note.map(|note| text::visible_prose(&note)),
            at_ms: cx.now_ms,
        };
        let is_first = cx
            .session
            .approvals()
            .answer(&self.approval_id, &answer)
            .map_err(storage)?;
        let now = cx.session.approvals().get(&self.approval_id).map_err(storage)?;
        let now = now.ok_or_else(|| not_found(&self.approval_id))?;
        if !is_first {
            return Err(answered(&now, cx.now_ms).into());
        }
        Ok(Resolved {
            approval: View::of(now, cx),
            unchanged: false,
        })
    }
}

impl Decision {
    /// Call of the component's tool that takes this decision, if there is one.
    pub(crate) fn call(self, asked: &StoredApproval) -> Option<NextCall> {
        let answering = asked.answering.clone()?;
        match self {
            Decision::Approve => Some(answering.approve),
            Decision::Reject => answering.reject,
        }
    }
}

fn not_found(id: &str) -> ToolError {
    let id = text::clean(text::cut(id, 64));
    let message = format!("there is no request for approval {id}");
    ToolError::new("APPROVAL_NOT_FOUND", message.clone())
        .remediation("Get the id from approval_list.")
        .blocker(Blocker::new("APPROVAL_NOT_FOUND", message).field("approval_id"))
        .next_call(NextCall::new(List::NAME, json!({})))
}

fn answered(found: &StoredApproval, now_ms: i64) -> ToolError {
    let status = found.status(now_ms).as_str();
    let by = found.approval.answered_by.as_deref();
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let at = found.approval.answered_at_ms;
    let at = at
        .map(|at| format!(" at {}", Timestamp::from_ms(at)))
        .unwrap_or_default();
    ToolError::new(
        "APPROVAL_ANSWERED",
        format!("the request {} is {status}{by}{at}", found.approval.id),
    )
    .remediation("An answer is final. List pending requests with approval_list.")
    .context("status", status)
    .next_call(NextCall::new(List::NAME, json!({})))
}

/// Refusal because the component's tool does not exist here.
fn not_here(call: &NextCall) -> ToolError {
    let tool = text::clean(&call.tool);
    ToolError::new(
        "ANSWER_UNAVAILABLE",
        format!("this request must be answered with {tool}, which this server does not have"),
    )
    .remediation("Answer where the pack is loaded and the tool exists.")
}
