//! Answers to requests for approval, passed through the surrounding program to the gate.

use futures::future::BoxFuture;
use tollgate_core::identity::Identity;

/// Answer of a logged-in person.
#[derive(Debug, Clone)]
pub struct PersonAnswer {
    /// Id of the request.
    pub approval_id: String,
    /// True to approve, false to reject.
    pub approves: bool,
    /// Comment, kept with the answer.
    pub note: Option<String>,
    /// Proven identity of the person; `None` for the owner of the data directory.
    pub identity: Option<Identity>,
}

/// Reason why an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Stable code, for example `APPROVAL_ANSWERED`.
    pub code: String,
    /// Description.
    pub message: String,
    /// Remedy.
    pub remediation: String,
}

/// Passes answers through the gate, which evaluates and records them as calls of `approval_resolve`.
pub trait Answering: Send + Sync + 'static {
    /// Answers a request. The first answer counts.
    fn answer(&self, answer: PersonAnswer) -> BoxFuture<'_, Result<(), Refusal>>;
}
