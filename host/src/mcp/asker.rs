//! Questions to the user: in the result for clients that call again with the answers, as a request of
//! their own for clients with a session, not at all for clients that cannot ask.

use std::sync::LazyLock;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion, RequestStateCodec,
    SealOptions,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};
use tollgate_sdk::{Action, Answer, Asking, Question};
use uuid::Uuid;

use super::handler;
use crate::auth::Identity;
use crate::gate::{Answers, Outcome};
use crate::hash;

/// How long the user has. Longer questions are asked again.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often one call may ask.
pub(super) const MAX_ROUNDS: usize = 10;
/// Most answers that a call brings.
const MAX_ANSWERS: usize = 20;
/// Longest answer, in bytes of JSON.
const MAX_ANSWER: usize = 64 << 10;

/// Seals what calls remember, for as long as this process lives.
static CODEC: LazyLock<RequestStateCodec> = LazyLock::new(|| {
    let key = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
    // The key is as long as it must be.
    RequestStateCodec::new_unchecked(key)
});

/// How a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It gets the questions as a result, and calls again.
    Result,
    /// It is sent requests while its call waits.
    Requests,
}

/// A call that may come again: what it is, in case it has to be known.
pub(super) struct Repeated<'a> {
    way: Option<Way>,
    identity: Option<Identity>,
    kind: &'static str,
    name: &'a str,
    /// Kept only for clients that can be asked.
    arguments: Map<String, Value>,
}

/// What follows a call.
pub(super) enum Step {
    /// Nothing: its result is its result.
    Over,
    /// The client gets questions instead.
    Required(InputRequiredResult),
    /// The user answered, and the call is made again.
    Again(Answers),
}

impl<'a> Repeated<'a> {
    /// A call as it came.
    pub(super) fn of(
        context: &RequestContext<RoleServer>,
        kind: &'static str,
        name: &'a str,
        arguments: &Map<String, Value>,
        way: Option<Way>,
    ) -> Repeated<'a> {
        Repeated {
            way,
            identity: handler::identity(context),
            kind,
            name,
            arguments: way.map(|_| arguments.clone()).unwrap_or_default(),
        }
    }

    /// Its arguments, for the next round.
    pub(super) fn arguments(&self) -> Map<String, Value> {
        self.arguments.clone()
    }

    /// What the user answered, and what was remembered for it. An error if somebody changed that, or took
    /// it from another call.
    pub(super) fn answers(
        &self,
        responses: Option<InputResponses>,
        state: Option<&str>,
    ) -> Result<Answers, ErrorData> {
        let open = |sealed: &str| {
            let opened = CODEC.open_with(sealed, self.seal().as_bytes()).ok()?;
            String::from_utf8(opened).ok()
        };
        let state = match state.map(open) {
            Some(None) => {
                let why = "the requestState is over, or is not what this call was given";
                return Err(ErrorData::invalid_params(why, None));
            }
            Some(opened) => opened,
            None => None,
        };
        let answers = responses.into_iter().flatten();
        let answers = answers.filter_map(|(key, response)| answer(key, response));
        Ok(Answers {
            answers: answers.take(MAX_ANSWERS).collect(),
            state,
        })
    }

    /// What follows its outcome.
    pub(super) async fn after(&self, context: &RequestContext<RoleServer>, outcome: &Outcome) -> Step {
        let refusal = outcome.result.as_ref().err();
        let Some(asking) = refusal.and_then(|refusal| refusal.asking.as_deref()) else {
            return Step::Over;
        };
        match self.way {
            None => Step::Over,
            Some(Way::Result) => Step::Required(required(&self.seal(), asking)),
            Some(Way::Requests) => {
                let answers = tokio::select! {
                    answers = ask(&context.peer, asking) => answers,
                    () = context.ct.cancelled() => None,
                };
                answers.map_or(Step::Over, Step::Again)
            }
        }
    }

    /// What is sealed is good for this only: whose call, of what, with which arguments.
    fn seal(&self) -> String {
        let identity = self.identity.as_ref().map_or("", Identity::as_str);
        let arguments = tollgate_sdk::canonical_json(&Value::Object(self.arguments.clone()));
        let call = format!("{identity}\n{}\n{}\n{arguments}", self.kind, self.name);
        hash::sha256_hex(call.as_bytes())
    }
}

/// A call that asks and asks.
pub(super) fn too_often() -> ErrorData {
    ErrorData::invalid_params(format!("the call asked {MAX_ROUNDS} times"), None)
}

/// Questions as a result. What the call wants to remember is sealed, for this call alone and for as
/// long as a user has.
fn required(call: &str, asking: &Asking) -> InputRequiredResult {
    let requests: InputRequests = asking
        .questions
        .iter()
        .filter_map(|question| {
            let request = InputRequest::Elicitation(ElicitRequest::new(form(question)?));
            Some((question.key.clone(), request))
        })
        .collect();
    let sealed = asking.state.as_ref().map(|state| {
        let options = SealOptions::new().associated_data(call.as_bytes()).ttl(PATIENCE);
        CODEC.seal_with(state.as_bytes(), &options)
    });
    InputRequiredResult::new(Some(requests), sealed)
}

/// How a client can be asked, if it says that it can.
pub(super) fn way(context: &RequestContext<RoleServer>) -> Option<Way> {
    let can = |capabilities: &ClientCapabilities| capabilities.elicitation.is_some();
    if context
        .client_capabilities()
        .as_ref()
        .is_none_or(|said| !can(said))
    {
        return None;
    }
    let version = context.protocol_version()?;
    Some(match version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() {
        true => Way::Result,
        false => Way::Requests,
    })
}

/// Asks one question after the other. `None` if the client does not answer.
async fn ask(peer: &Peer<RoleServer>, asking: &Asking) -> Option<Answers> {
    let mut answers = Vec::new();
    for question in &asking.questions {
        let asked = peer.create_elicitation_with_timeout(form(question)?, Some(PATIENCE));
        match asked.await {
            Ok(result) => answers.extend(read(question.key.clone(), result)),
            Err(err) => {
                tracing::debug!(%err, "a question was not answered");
                return None;
            }
        }
    }
    Some(Answers {
        answers,
        state: asking.state.clone(),
    })
}

fn form(question: &Question) -> Option<ElicitRequestParams> {
    let requested_schema = serde_json::from_value(question.form.clone());
    match requested_schema {
        Ok(requested_schema) => Some(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: question.message.clone(),
            requested_schema,
        }),
        Err(err) => {
            tracing::warn!(%err, question = question.key, "a form that MCP does not have");
            None
        }
    }
}

/// An answer as a client writes it. What is none is left out: the call asks again.
fn answer(key: String, response: Value) -> Option<Answer> {
    read(key, serde_json::from_value(response).ok()?)
}

fn read(key: String, result: ElicitResult) -> Option<Answer> {
    let content = result.content.unwrap_or_default();
    (content.to_string().len() <= MAX_ANSWER).then(|| Answer {
        key,
        action: match result.action {
            ElicitationAction::Accept => Action::Accept,
            ElicitationAction::Decline => Action::Decline,
            // What is not known today is no consent.
            _ => Action::Cancel,
        },
        content,
    })
}
