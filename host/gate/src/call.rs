//! An incoming call and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tollgate_core::budget::Budget;
use tollgate_core::client_name;
use tollgate_core::deadline::Cancel;
use tollgate_core::envelope::Standing;
use tollgate_core::failure_class::FailureClass;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;
use tollgate_sandbox::progress::{Line, Progress};
use tollgate_sdk::{Answer, Asking, ToolError};

use super::consent::{Consent, Pending};
use super::left::Left;
use super::mutation::Mutation;
use super::reply::Reply;
use crate::task_slot::Tasking;
use crate::telemetry::Parent;

/// An incoming call.
#[derive(Debug)]
pub struct Call {
    /// Tool name or alias.
    pub tool: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
    /// Syntax errors of the message, found before the arguments could be read.
    pub malformed: Vec<String>,
    /// Envelope in the request's `_meta`, if any.
    pub envelope: Option<Value>,
    /// Caller.
    pub caller: Caller,
    /// Lets the caller cancel the call.
    pub cancel: Cancel,
    /// Reports progress to the caller.
    pub progress: Progress,
    /// Answers, if the call is repeated after it asked.
    pub answers: Answers,
    /// Use of tasks: whether a task may take the place of the reply.
    pub task: Tasking,
}

impl Call {
    /// Call that names no envelope, has no answers, and is not cancelled.
    pub fn new(tool: &str, arguments: Map<String, Value>, caller: Caller) -> Call {
        Call {
            tool: tool.to_owned(),
            arguments,
            malformed: Vec::new(),
            envelope: None,
            caller,
            cancel: Cancel::default(),
            progress: Progress::default(),
            answers: Answers::default(),
            task: Tasking::default(),
        }
    }
}

/// Answers in a call that asked before.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Answer of the client's user to a policy's question.
    pub consent: Option<Consent>,
    /// Answers to the tool's own questions.
    pub answers: Vec<Answer>,
    /// State that the tool stored between the rounds.
    pub remembered: Option<String>,
}

impl Answers {
    /// Answers that hold for the next round, after a call that had these. A yes to a policy's question covers all
    /// rounds up to the first call that has effects.
    pub(crate) fn after(self, outcome: &CallOutcome) -> Answers {
        let holds = |consent: &Consent| consent.agreed && !outcome.has_effects;
        Answers {
            consent: self.consent.filter(holds),
            ..self
        }
    }
}

/// Question of a call that was refused without an answer. The client can repeat the call with one.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A policy asks whether the call may run.
    Policy(Pending),
    /// The tool asks for input.
    Tool(Asking),
}

/// Caller, as far as the host knows it.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Authenticated identity. Absent for a user of this machine.
    pub identity: Option<Identity>,
    /// Holder in whose share of readers, runners and writer turns the caller is counted.
    pub share: Share,
    /// Name that the client claims. Names that begin with `tollgate` are reserved: see
    /// [`tollgate_core::client_name`].
    pub client: Option<String>,
    /// Version that the client claims, in the form of [`tollgate_core::client_name::version`].
    pub client_version: Option<String>,
    /// Connection. Stateless HTTP requests have one connection for each identity, or for each peer.
    pub connection: String,
    /// True if later calls come over the same connection, so that an envelope can be assigned to it.
    pub stateful: bool,
    /// Request id from the client.
    pub request_id: Option<String>,
    /// Parent span from the request.
    pub span: Option<Parent>,
    /// True if the session used the request's id before. Such a call does not run.
    pub is_repeated: bool,
    /// Cancelled when the token of the identity is removed or expires.
    pub revoked: Option<CancellationToken>,
}

impl Caller {
    /// True if the token of the identity was removed or has expired.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Client as the ledger names it, with its version.
    pub(crate) fn recorded_client(&self) -> Option<String> {
        let name = self.client.as_deref()?;
        Some(client_name::with_version(name, self.client_version.as_deref()))
    }
}

/// Outcome of a call that reached the gate.
#[derive(Debug)]
pub struct CallOutcome {
    /// Id of the operation in the ledger.
    pub op_id: String,
    /// Reply or refusal.
    pub result: Result<Reply, ToolError>,
    /// Class of the failure, whether the call was admitted or not. `None` if the call succeeded, and for the stored
    /// reply of a task.
    pub(crate) cause: Option<FailureClass>,
    /// Time from the call's arrival at the gate to the reply.
    pub duration: Duration,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// State of that envelope with this call counted, if the call was admitted.
    pub standing: Option<Standing>,
    /// Remaining units of that envelope, if they are few.
    pub left: Option<Left>,
    /// Named budgets of that envelope after the call.
    pub budgets: BTreeMap<String, Budget>,
    /// Change that the call made.
    pub mutation: Option<Mutation>,
    /// Reasons for which files in workspaces differ from what the call requested, although it is committed.
    pub stale: Vec<String>,
    /// Reason for which content of the call is not stored, or not completely, although the operator wants it.
    pub not_kept: Option<ToolError>,
    /// Question for the client, if an answer could change the outcome.
    pub asked: Option<Asked>,
    /// Open requests for approval whose answers could change the outcome.
    pub approvals: Vec<String>,
    /// True if another call used the permit that let this one pass, so that nothing ran.
    pub is_overtaken: bool,
    /// True if the call may have left something that outlasts it, apart from its record. A yes to a policy's question
    /// then does not cover another round.
    pub has_effects: bool,
    /// Log lines of the component for the client, if they were held back until policies judged the result.
    pub lines: Vec<Line>,
}

/// A call that never reached the gate, because it names an unknown tool.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "there is no tool `{name}`{}{}",
    .nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default(),
    if .preparing.is_empty() { String::new() } else { format!("; the tools of {} are available after preparation, so \
        try again soon", .preparing.join(", ")) }
)]
pub struct UnknownTool {
    /// Name of the called tool.
    pub name: String,
    /// Most similar name.
    pub nearest: Option<String>,
    /// Packs that are still loading, any of which may have the tool.
    pub preparing: Vec<String>,
}
