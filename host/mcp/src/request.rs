//! Execution of a request by the gate: one call, or several if the client is asked questions in between.

use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, InputRequiredResult, InputResponses, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tollgate_core::client_name;
use tollgate_core::deadline::Cancel;
use tollgate_core::hash;
use tollgate_core::identity::Identity;
use tollgate_core::text;
use tollgate_gate::core_tools;
use tollgate_gate::telemetry::Parent;
use tollgate_gate::{Answers, Call, CallOutcome, Caller, Reply, Tasking};
use tollgate_sandbox::progress::{ClientMessage, Line, Progress, Wanted};

use super::elicitation::{Conversation, Step};
use super::handler::Handler;
use super::sender::Sender;
use super::{logs, replies, sanitize};

/// Key in a request's `_meta` for the envelope of its call.
pub(super) const ENVELOPE: &str = "tollgate/envelope_id";

/// A client's request.
pub(super) struct ClientRequest<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) arguments: Map<String, Value>,
}

/// Kind of the called item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Prompt,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Prompt => "prompt",
        }
    }
}

/// One call of a request.
struct Called<'a> {
    kind: Kind,
    name: &'a str,
    arguments: Map<String, Value>,
    /// True if no earlier request had the same id.
    is_first: bool,
}

/// Outcome of one round of a request.
#[allow(
    clippy::large_enum_variant,
    reason = "the large one is what nearly every request comes to"
)]
pub(super) enum Round {
    /// The request is done.
    Done(CallOutcome),
    /// The client must answer questions first.
    Required(InputRequiredResult),
}

impl Handler {
    /// Runs a request, and asks the client as often as necessary.
    pub(super) async fn execute(
        &self,
        context: &RequestContext<RoleServer>,
        mut client_request: ClientRequest<'_>,
        answered: (Option<InputResponses>, Option<String>),
    ) -> Result<Round, ErrorData> {
        let is_first = self.is_first(&context.id);
        let (mut conversation, mut answers) =
            Conversation::begin(context, self, &client_request, answered).await?;
        loop {
            // Arguments are kept only if the call may run again.
            let arguments = if conversation.is_possible() {
                client_request.arguments.clone()
            } else {
                std::mem::take(&mut client_request.arguments)
            };
            let called = Called {
                kind: client_request.kind,
                name: client_request.name,
                arguments,
                is_first,
            };
            let mut outcome = self.run(context, called, answers).await?;
            match conversation.after(&mut outcome).await? {
                Step::Over => return Ok(Round::Done(outcome)),
                Step::Required(required) => {
                    return Ok(Round::Required(required.with_meta(replies::meta(&outcome))));
                }
                Step::Again(given) => answers = given,
            }
        }
    }

    /// Calls a tool for a lookup that asks no questions. The tool is named by a pack, only reads, and belongs to the
    /// pack or the host. `None` if the tool does not exist here or refuses.
    pub(super) async fn look_up(
        &self,
        context: &RequestContext<RoleServer>,
        pack: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Option<Reply> {
        let owners = [pack, core_tools::PACK];
        let run = |call| self.gate.look_up(call, owners);
        let called = Called {
            kind: Kind::Tool,
            name: tool,
            arguments,
            is_first: true,
        };
        let called = self.attend(context, called, Answers::default(), run);
        called.await?.result.ok()
    }

    /// Passes one call through the gate, and reports its progress to the client.
    async fn run(
        &self,
        context: &RequestContext<RoleServer>,
        called: Called<'_>,
        answers: Answers,
    ) -> Result<CallOutcome, ErrorData> {
        let kind = called.kind;
        let run = |call| self.enter(kind, call);
        self.attend(context, called, answers, run).await
    }

    /// Makes a call of a request, and reports its progress to the client until it ends.
    async fn attend<T: Finished>(
        &self,
        context: &RequestContext<RoleServer>,
        called: Called<'_>,
        answers: Answers,
        run: impl AsyncFnOnce(Call) -> T,
    ) -> T {
        let cancel = CancelOnDrop(Cancel::default());
        let token = context.meta.get_progress_token();
        let (progress, mut messages) = Progress::listened(Wanted {
            notes: token.is_some(),
            lines: if is_stateless(context) {
                logs::wanted_by(context)
            } else {
                self.wanted_lines().get()
            },
        });
        let call = Call {
            tool: called.name.to_owned(),
            arguments: called.arguments,
            malformed: malformed(context),
            envelope: context.meta.get(ENVELOPE).cloned(),
            caller: Caller {
                is_repeated: !called.is_first,
                ..self.caller(context)
            },
            cancel: cancel.0.clone(),
            progress,
            answers,
            task: Tasking::Lacking,
        };
        // On the heap, because otherwise each caller's frame would hold a copy of everything that a call carries
        // through the gate.
        let mut running = Box::pin(run(call));
        let given_up = given_up(context);
        tokio::pin!(given_up);
        let mut outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = &mut given_up => {
                    cancel.0.cancel();
                    break running.await;
                }
                Some(message) = messages.recv() => tell(context, token.as_ref(), message).await,
            }
        };
        while let Ok(message) = messages.try_recv() {
            tell(context, token.as_ref(), message).await;
        }
        for line in outcome.lines() {
            tell(context, token.as_ref(), ClientMessage::Line(line)).await;
        }
        outcome
    }

    async fn enter(&self, kind: Kind, call: Call) -> Result<CallOutcome, ErrorData> {
        let missing = match kind {
            Kind::Tool => match self.gate.call(call).await {
                Ok(outcome) => return Ok(outcome),
                Err(unknown) => unknown.to_string(),
            },
            Kind::Prompt => {
                let name = text::clean(text::cut(&call.tool, 100));
                match self.gate.prompt(call).await {
                    Some(outcome) => return Ok(outcome),
                    None => format!("there is no prompt `{name}`"),
                }
            }
        };
        Err(ErrorData::invalid_params(missing, None))
    }

    pub(super) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        Caller {
            identity: identity(context),
            share: sender(context)
                .map(|sender| sender.share.clone())
                .unwrap_or_default(),
            client: context
                .client_info()
                .map(|info| client_name::of_client(&info.name)),
            client_version: context
                .client_info()
                .map(|info| client_name::version(&info.version)),
            connection: lasting_connection(context).unwrap_or_else(|| self.connection().to_owned()),
            stateful: !is_stateless(context),
            // The client chooses the id freely, like its name.
            request_id: Some(text::clean(text::cut(&context.id.to_string(), 100))),
            span: context
                .meta
                .get("traceparent")
                .and_then(Value::as_str)
                .and_then(Parent::parse),
            is_repeated: false,
            revoked: sender(context).and_then(|sender| sender.revoked.clone()),
        }
    }
}

/// Proven identity of a request's sender.
pub(super) fn identity(context: &RequestContext<RoleServer>) -> Option<Identity> {
    sender(context)?.identity.clone()
}

/// Sender of a request, if it came over HTTP.
fn sender(context: &RequestContext<RoleServer>) -> Option<&Sender> {
    let parts = context.extensions.get::<axum::http::request::Parts>()?;
    parts.extensions.get::<Sender>()
}

/// Connection name for stateless requests over HTTP. Each request would otherwise be its own connection, and limits by
/// connection would count only one request. Requests of one identity therefore share a connection, as do requests of
/// one peer if the server does not authenticate.
fn lasting_connection(context: &RequestContext<RoleServer>) -> Option<String> {
    let sender = sender(context)?;
    if !is_stateless(context) {
        return None;
    }
    let who = match &sender.identity {
        Some(identity) => format!("identity {identity}"),
        None => format!("peer {}", sender.peer?),
    };
    let name = hash::sha256_hex(who.as_bytes());
    Some(format!("con_{}", name.get(..26)?))
}

/// Returns whether a request is stateless, as all requests are since protocol version 2026-07-28.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_none_or(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Outcome of a call, if there is one.
trait Finished {
    /// Log lines of the component for its client, once the call has ended.
    fn lines(&mut self) -> Vec<Line>;
}

impl Finished for Option<CallOutcome> {
    fn lines(&mut self) -> Vec<Line> {
        let lines = self.as_mut().map(|outcome| &mut outcome.lines);
        lines.map(std::mem::take).unwrap_or_default()
    }
}

impl Finished for Result<CallOutcome, ErrorData> {
    fn lines(&mut self) -> Vec<Line> {
        let lines = self.as_mut().ok().map(|outcome| &mut outcome.lines);
        lines.map(std::mem::take).unwrap_or_default()
    }
}

/// Cancels a call on drop, when nothing waits for it any longer.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Resolves when nothing waits for a request any longer: it was cancelled, its session has ended, or its client is
/// gone.
pub(super) async fn given_up(context: &RequestContext<RoleServer>) {
    match sender(context).and_then(|sender| sender.given_up.as_ref()) {
        None => context.ct.cancelled().await,
        Some(given_up) => tokio::select! {
            () = context.ct.cancelled() => {}
            () = given_up.cancelled() => {}
        },
    }
}

/// Notifies the client about its call.
pub(super) async fn tell(
    context: &RequestContext<RoleServer>,
    token: Option<&ProgressToken>,
    message: ClientMessage,
) {
    let sending = async {
        match (message, token) {
            (ClientMessage::Note(note), Some(token)) => {
                let mut params = ProgressNotificationParam::new(token.clone(), note.done);
                params.message = Some(note.message).filter(|message| !message.is_empty());
                params.total = note.total;
                context.peer.notify_progress(params).await
            }
            (ClientMessage::Note(_), None) => Ok(()),
            (ClientMessage::Line(line), _) => logs::send(&context.peer, line).await,
        }
    };
    tokio::select! {
        sent = sending => {
            if let Err(err) = sent {
                tracing::debug!(%err, "sending a notification failed");
            }
        }
        // A client that does not read can still cancel the call.
        () = context.ct.cancelled() => {}
    }
}

/// Faults that [`sanitize::sanitize`] found in the message of this call.
pub(super) fn malformed(context: &RequestContext<RoleServer>) -> Vec<String> {
    let Some(Value::Array(problems)) = context.meta.get(sanitize::MALFORMED) else {
        return Vec::new();
    };
    problems
        .iter()
        .map(|problem| text::clean(text::cut(problem.as_str().unwrap_or("malformed"), 200)))
        .collect()
}
