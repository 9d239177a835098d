//! A call as it comes in, and what becomes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tollgate_core::budget::Budget;
use tollgate_core::client_name;
use tollgate_core::deadline::Cancel;
use tollgate_core::envelope::Standing;
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

/// One call as it comes in.
#[derive(Debug)]
pub struct Call {
    /// A tool's name or alias.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Faults of the message before it could be read.
    pub malformed: Vec<String>,
    /// The envelope that the request's `_meta` names, if it does.
    pub envelope: Option<Value>,
    /// Caller.
    pub caller: Caller,
    /// Lets the caller give up.
    pub cancel: Cancel,
    /// Tells the caller how far it is.
    pub progress: Progress,
    /// Answers, if the call comes again after it asked.
    pub answers: Answers,
    /// Use of tasks: a task may take the place of the reply, or not.
    pub task: Tasking,
}

/// Answers that come with a call that asked before.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Answer of the client's user to a policy's question.
    pub consent: Option<Consent>,
    /// Answers to the tool's own questions.
    pub answers: Vec<Answer>,
    /// State that the tool remembered.
    pub remembered: Option<String>,
}

impl Answers {
    /// A yes to a policy's question, which holds for the rounds of questions that follow it.
    pub(crate) fn agreed(&self) -> Option<Consent> {
        self.consent.clone().filter(|consent| consent.agreed)
    }
}

/// Question of a call that was refused without an answer. The call can come again with one.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A policy asks whether the call may run.
    Policy(Pending),
    /// The tool asks.
    Tool(Asking),
}

/// Caller, as far as the host knows.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Proven by the transport. Absent for who has the machine itself.
    pub identity: Option<Identity>,
    /// With whom the caller shares what there is of readers, runners and turns to write.
    pub share: Share,
    /// The client's own name. Those that begin with `tollgate` are the host's: see [`tollgate_core::client_name`].
    pub client: Option<String>,
    /// The version that the client claims, as [`tollgate_core::client_name::version`] has it.
    pub client_version: Option<String>,
    /// Which connection. Requests over HTTP that stand alone have one for each identity, or for each peer.
    pub connection: String,
    /// True if later calls come over the same connection, so that it can stand for an envelope.
    pub stateful: bool,
    /// The client's id of the request.
    pub request_id: Option<String>,
    /// The span that the request says it is part of.
    pub span: Option<Parent>,
    /// The session used the request's id before, so that nothing runs.
    pub is_repeated: bool,
    /// Cancelled when the token that proved the identity is removed or expires.
    pub revoked: Option<CancellationToken>,
}

impl Caller {
    /// True if the token that proved the identity was removed or has expired.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// The client as the ledger names it, with its version.
    pub(crate) fn recorded_client(&self) -> Option<String> {
        let name = self.client.as_deref()?;
        Some(client_name::with_version(name, self.client_version.as_deref()))
    }
}

/// Outcome of a call that reached the gate.
#[derive(Debug)]
pub struct Outcome {
    /// The operation's id in the ledger.
    pub op_id: String,
    /// The reply, or the refusal.
    pub result: Result<Reply, ToolError>,
    /// From reaching the gate to the reply.
    pub duration: Duration,
    /// The envelope it belongs to.
    pub envelope_id: Option<String>,
    /// Standing of that envelope with this call in it, if the call got that far.
    pub standing: Option<Standing>,
    /// Remainder of that envelope, if it is small.
    pub left: Option<Left>,
    /// Named budgets of that envelope after the call.
    pub budgets: BTreeMap<String, Budget>,
    /// Change that the call made.
    pub mutation: Option<Mutation>,
    /// Reasons why files in workspaces differ from what the call wanted, though the call is committed.
    pub stale: Vec<String>,
    /// Reason why content of the call is not kept, or not all of it, though the operator wants it.
    pub not_kept: Option<ToolError>,
    /// Question for the client, if an answer could change the outcome.
    pub asked: Option<Asked>,
    /// Open requests for approval whose answers could change the outcome.
    pub approvals: Vec<String>,
    /// Another call used the permit that let this one pass, and nothing was run.
    pub is_overtaken: bool,
    /// Log lines of the component for the client, if they waited for policies that judge the result.
    pub lines: Vec<Line>,
}

/// A call that never reached the gate, because it names no tool.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "there is no tool `{name}`{}{}",
    .nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default(),
    if .preparing.is_empty() { String::new() } else { format!("; tools of {} come once it is prepared, so try again soon", .preparing.join(", ")) }
)]
pub struct UnknownTool {
    /// Name of the called tool.
    pub name: String,
    /// The name most like it.
    pub nearest: Option<String>,
    /// Packs that are still being prepared, any of which may have it.
    pub preparing: Vec<String>,
}
