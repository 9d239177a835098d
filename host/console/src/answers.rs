//! Answers to requests for approval: the console hands them to the program around it, which takes them to the gate.

use futures::future::BoxFuture;
use tollgate_core::identity::Identity;

/// Answer of a person who is logged in.
#[derive(Debug, Clone)]
pub struct PersonAnswer {
    /// The request.
    pub approval_id: String,
    /// True to approve, false to reject.
    pub approves: bool,
    /// Comment, kept with the answer.
    pub note: Option<String>,
    /// Proven identity of the person; `None` for the owner of the data directory.
    pub identity: Option<Identity>,
}

/// Reason why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Stable code, for example `APPROVAL_ANSWERED`.
    pub code: String,
    /// Description.
    pub message: String,
    /// The remedy.
    pub remediation: String,
}

/// Takes answers through the gate, which judges and records them as calls of `approval_resolve`.
pub trait Answering: Send + Sync + 'static {
    /// Answers a request. The first answer counts.
    fn answer(&self, answer: PersonAnswer) -> BoxFuture<'_, Result<(), Refusal>>;
}
