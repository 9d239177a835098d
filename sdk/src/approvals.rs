//! Requests for decisions that a component waits for, in the one list that people answer.

use serde_json::{Map, Value};
use thiserror::Error;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::host::HostRef;
use crate::{NextCall, ToolError};

/// Longest key in bytes.
///
/// ```
/// # use tollgate_sdk::approvals::MAX_KEY;
/// let key = format!("release/{}", "v1.4.0");
/// assert!(key.len() <= MAX_KEY);
/// ```
pub const MAX_KEY: usize = 200;
/// Longest title in characters.
///
/// ```
/// # use tollgate_sdk::approvals::MAX_TITLE;
/// let title: String = "Publish v1.4.0 ".repeat(20).chars().take(MAX_TITLE).collect();
/// assert_eq!(title.chars().count(), 200);
/// ```
pub const MAX_TITLE: usize = 200;
/// Longest detail in bytes of JSON.
///
/// ```
/// # use tollgate_sdk::approvals::MAX_DETAIL;
/// let detail = serde_json::json!({"files": ["CHANGELOG.md", "Cargo.toml"]});
/// assert!(detail.to_string().len() <= MAX_DETAIL);
/// ```
pub const MAX_DETAIL: usize = 32 << 10;
/// Longest name of a requester or approver in characters.
///
/// ```
/// # use tollgate_sdk::approvals::MAX_NAME;
/// assert!("build-agent-7".chars().count() <= MAX_NAME);
/// ```
pub const MAX_NAME: usize = 200;
/// Longest note of an approver in characters.
///
/// ```
/// # use tollgate_sdk::approvals::MAX_NOTE;
/// let note = "The changelog names every change.";
/// assert!(note.chars().count() <= MAX_NOTE);
/// ```
pub const MAX_NOTE: usize = 2_000;
/// Most names in [`Answerers::names`].
///
/// ```
/// # use tollgate_sdk::approvals::MAX_ANSWERERS;
/// let reviewers = ["mara", "tom"];
/// assert!(reviewers.len() <= MAX_ANSWERERS);
/// ```
pub const MAX_ANSWERERS: usize = 100;

/// Calls to the pack's own tools that answer a request.
///
/// ```
/// use serde_json::json;
/// use tollgate_sdk::{Answering, NextCall};
///
/// let approve = NextCall::new("release_confirm", json!({"release": "v1.4.0"}));
/// let answering = Answering { by: Some("confirmed_by".to_owned()), ..Answering::new(approve) };
/// assert_eq!(answering.reject, None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Answering {
    /// Call that approves.
    pub approve: NextCall,
    /// Call that rejects. If `None`, the host stores a rejection.
    pub reject: Option<NextCall>,
    /// Argument that takes the approver's name.
    pub by: Option<String>,
    /// Argument that takes the approver's note.
    pub note: Option<String>,
}

impl Answering {
    /// Creates the answering calls with only the call that approves.
    #[must_use]
    pub fn new(approve: NextCall) -> Answering {
        Answering {
            approve,
            reject: None,
            by: None,
            note: None,
        }
    }
}

/// Restrictions on who may answer, in addition to those of the operator.
///
/// ```
/// use tollgate_sdk::Answerers;
///
/// let four_eyes = Answerers { another: true, ..Answerers::default() };
/// assert!(four_eyes.names.is_empty(), "everybody else may answer");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answerers {
    /// Names or identities; empty for everybody.
    pub names: Vec<String>,
    /// If true, only callers whose identity the transport proved may answer.
    pub proven: bool,
    /// If true, the requester may not answer.
    pub another: bool,
}

/// A request for a decision.
///
/// ```
/// use serde_json::json;
/// use tollgate_sdk::ApprovalRequest;
///
/// let request = ApprovalRequest::new("release v1.4.0", "Release v1.4.0", json!({"version": "v1.4.0"}));
/// assert!(request.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// Key chosen by the component, 1 to 200 bytes. The same key is the same request.
    pub key: String,
    /// Title for people, 1 to 200 characters.
    pub title: String,
    /// Content of the decision, for example tool and arguments. At most 32 KiB of JSON.
    pub detail: Map<String, Value>,
    /// Name of the requester. If `None`, the actor of the call.
    pub requested_by: Option<String>,
    /// If true, asks again if the request with this key was already answered.
    pub renew: bool,
    /// Time from which the request is no longer open, in milliseconds since 1970 UTC.
    pub until_ms: Option<i64>,
    /// Calls that answer, if the component's own tools do.
    pub answering: Option<Answering>,
    /// Restrictions on who may answer.
    pub answerers: Option<Answerers>,
}

impl ApprovalRequest {
    /// Creates a request whose answer the host keeps. A detail that is not an object becomes the field `value`.
    #[must_use]
    pub fn new(key: impl Into<String>, title: impl Into<String>, detail: Value) -> ApprovalRequest {
        ApprovalRequest {
            key: key.into(),
            title: title.into(),
            detail: match detail {
                Value::Object(detail) => detail,
                other => Map::from_iter([("value".to_owned(), other)]),
            },
            requested_by: None,
            renew: false,
            until_ms: None,
            answering: None,
            answerers: None,
        }
    }

    /// Checks the sizes. The error names the invalid field. Backends call this.
    pub fn check(&self) -> Result<(), ApprovalError> {
        let within = |what: &str, size: usize, max: usize| {
            let is_within = (1..=max).contains(&size);
            is_within.then_some(()).ok_or_else(|| {
                ApprovalError::Invalid(format!(
                    "the size of {what} is {size}, but must be from 1 to {max}"
                ))
            })
        };
        check_key(&self.key)?;
        within("the title", self.title.trim().chars().count(), MAX_TITLE)?;
        let detail = Value::Object(self.detail.clone()).to_string();
        within("the detail", detail.len(), MAX_DETAIL)?;
        if let Some(name) = &self.requested_by {
            within("requested_by", name.chars().count(), MAX_NAME)?;
        }
        if let Some(answering) = &self.answering {
            for call in std::iter::once(&answering.approve).chain(&answering.reject) {
                within("a tool name in `answering`", call.tool.len(), MAX_NAME)?;
                let arguments = Value::Object(call.arguments.clone()).to_string();
                within("the arguments in `answering`", arguments.len(), MAX_DETAIL)?;
            }
            for name in answering.by.iter().chain(&answering.note) {
                within("an argument name in `answering`", name.len(), MAX_NAME)?;
            }
        }
        if let Some(answerers) = &self.answerers {
            within(
                "the names of answerers",
                answerers.names.len() + 1,
                MAX_ANSWERERS + 1,
            )?;
            for name in &answerers.names {
                within("a name of answerers", name.chars().count(), MAX_NAME)?;
            }
        }
        Ok(())
    }
}

/// Checks a key.
pub(crate) fn check_key(key: &str) -> Result<(), ApprovalError> {
    if (1..=MAX_KEY).contains(&key.len()) {
        return Ok(());
    }
    let size = key.len();
    Err(ApprovalError::Invalid(format!(
        "the key has {size} bytes, but must have 1 to {MAX_KEY}"
    )))
}

/// State of a request.
///
/// ```
/// use tollgate_sdk::ApprovalStatus;
/// assert_eq!(ApprovalStatus::Pending.as_str(), "pending");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalStatus {
    /// Nobody has answered.
    Pending,
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
    /// The component no longer needs an answer.
    Withdrawn,
    /// Nobody answered in time.
    Expired,
}

impl ApprovalStatus {
    /// Text of the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalStatus::Pending => "pending",
            ApprovalStatus::Approved => "approved",
            ApprovalStatus::Rejected => "rejected",
            ApprovalStatus::Withdrawn => "withdrawn",
            ApprovalStatus::Expired => "expired",
        }
    }
}

/// A request with its answer, if there is one.
///
/// ```
/// # use tollgate_sdk::{Approval, ApprovalStatus};
/// fn is_open(approval: &Approval) -> bool {
///     approval.status == ApprovalStatus::Pending
/// }
/// # let _ = is_open;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Id for `approval_resolve`.
    pub id: String,
    /// Key chosen by the component.
    pub key: String,
    /// State of the request.
    pub status: ApprovalStatus,
    /// Name of the requester.
    pub requested_by: Option<String>,
    /// Identity of the requester, if the transport proved one.
    pub requester: Option<String>,
    /// Name of the approver.
    pub answered_by: Option<String>,
    /// Identity of the approver, if the transport proved one.
    pub approver: Option<String>,
    /// Note of the approver.
    pub note: Option<String>,
    /// Time of the request in milliseconds since 1970 UTC.
    pub asked_at_ms: i64,
    /// Time of the answer.
    pub answered_at_ms: Option<i64>,
}

/// Reason why a request failed.
///
/// ```
/// use tollgate_sdk::{ApprovalError, ToolError};
/// assert_eq!(ToolError::from(ApprovalError::Full(200)).code, "APPROVALS_FULL");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApprovalError {
    /// The call is from a `Read` tool.
    #[error("a read tool cannot ask for an approval")]
    ReadOnly,
    /// A field has an invalid value.
    #[error("the request for an approval is invalid: {0}")]
    Invalid(String),
    /// Too many requests are open.
    #[error("{0} requests for approval are open; at most {0} are allowed")]
    Full(u32),
    /// The host failed.
    #[error("the host could not store the request for an approval")]
    Internal,
}

impl From<ApprovalError> for ToolError {
    fn from(err: ApprovalError) -> ToolError {
        let (code, remediation) = match &err {
            ApprovalError::Full(_) => (
                "APPROVALS_FULL",
                "Tell the user to answer open requests: `tollgate approvals list`, or approval_list.",
            ),
            ApprovalError::ReadOnly | ApprovalError::Invalid(_) => (
                "APPROVAL_INVALID",
                "Report this to the author of the pack: the call itself is right.",
            ),
            ApprovalError::Internal => ("STORAGE_FAILED", "Search the host's log for the operation's id."),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// Requests for decisions that the component waits for. Created by [`Cx::approvals`](crate::Cx::approvals).
///
/// ```
/// use serde_json::json;
/// use tollgate_sdk::{ApprovalRequest, ApprovalStatus, Cx, ToolError};
///
/// /// Publishes a note once a person agreed.
/// fn publish(cx: &Cx<'_>, note: &str) -> Result<bool, ToolError> {
///     let wanted = ApprovalRequest::new(note, format!("Publish {note}"), json!({"note": note}));
///     Ok(cx.approvals().ask(&wanted)?.status == ApprovalStatus::Approved)
/// }
/// # use tollgate_sdk::{CallInfo, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack { name: "notes", ..Pack::EMPTY }), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
/// assert!(!publish(&cx, "n1")?);
/// session.answer_approval("n1", true, "grace");
/// assert!(publish(&cx, "n1")?);
/// # Ok::<(), ToolError>(())
/// ```
pub struct Approvals<'a> {
    host: HostRef<'a>,
}

impl<'a> Approvals<'a> {
    pub(crate) fn new(host: HostRef<'a>) -> Approvals<'a> {
        Approvals { host }
    }

    /// Asks for a decision and returns the request at once, with the answer if there is one already.
    pub fn ask(&self, request: &ApprovalRequest) -> Result<Approval, ApprovalError> {
        self.host.ask_approval(request)
    }

    /// Returns the newest request with a key.
    pub fn find(&self, key: &str) -> Result<Option<Approval>, ApprovalError> {
        self.host.find_approval(key)
    }

    /// Reports that the component's own tool decided a request. Returns false if no request with this key was open.
    /// `by` is the approver's name.
    pub fn settle(
        &self,
        key: &str,
        status: ApprovalStatus,
        by: Option<&str>,
        note: Option<&str>,
    ) -> Result<bool, ApprovalError> {
        self.host.settle_approval(key, status, by, note)
    }

    /// Withdraws a request that no longer needs an answer. Returns false if no request with this key was open.
    pub fn withdraw(&self, key: &str) -> Result<bool, ApprovalError> {
        self.settle(key, ApprovalStatus::Withdrawn, None, None)
    }
}
