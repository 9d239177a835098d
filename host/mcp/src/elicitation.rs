//! Elicitation: questions of policies and tools to a client and its user, in both eras of the protocol.
//!
//! Before protocol version 2026-07-28, the server asks while the request is open. Since that version, the response
//! contains the questions and a sealed state, and the client sends the request again with the answers.

use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{
    ErrorCode, ErrorData, InputRequiredResult, InputResponses, RequestStateCodec, RequestStateError,
    SealOptions,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_core::hash;
use tollgate_core::identity::Identity;
use tollgate_gate::{Answers, Asked, CallOutcome, Consent, Gate};
use tollgate_sdk::{Answer, Question};

use super::elicitation_form::{self, ANSWER_TIMEOUT, Abilities, When, Who};
use super::handler::Handler;
use super::request::{self, ClientRequest, ENVELOPE};

/// Maximum number of rounds of questions in one request.
const MAX_ROUNDS: usize = 10;
/// Maximum number of answers that a request may contain without having been asked.
const MAX_UNASKED: usize = 20;

/// Seals the state of the questions, so that a client can answer only questions that it was asked.
#[derive(Clone)]
pub(super) struct Seal(Option<RequestStateCodec>);

impl Seal {
    pub(super) fn new(key: &[u8; 32]) -> Seal {
        Seal(RequestStateCodec::try_new(key.as_slice()).ok())
    }

    /// Seals a state under a new id. Each id is accepted once.
    fn close(&self, kept: &mut Kept, subject: &str) -> Option<String> {
        kept.id = uuid::Uuid::new_v4().to_string();
        let kept = &*kept;
        let options = SealOptions::new().ttl(ANSWER_TIMEOUT);
        let options = options.associated_data(subject.as_bytes());
        self.0.as_ref()?.seal_json_with(kept, &options).ok()
    }

    fn open(&self, sealed: &str, subject: &str) -> Result<Kept, ErrorData> {
        let opened = self
            .0
            .as_ref()
            .map(|codec| codec.open_json_with(sealed, subject.as_bytes()));
        match opened {
            Some(Ok(kept)) => Ok(kept),
            // The user took too long, so the question is asked again.
            Some(Err(RequestStateError::Expired)) => Ok(Kept::default()),
            Some(Err(err)) => {
                tracing::debug!(%err, "the requestState of a request is not authentic");
                let why = "the requestState does not match this request";
                Err(ErrorData::invalid_params(why, None))
            }
            None => Ok(Kept::default()),
        }
    }
}

/// State of a request that asked questions. In the newer era, the client keeps it sealed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Unique id of the state.
    id: String,
    /// Number of rounds so far.
    rounds: usize,
    /// Latest questions, with the party that answers each.
    asked: BTreeMap<String, Who>,
    /// Policy's open question, if a policy asked.
    open: Option<String>,
    /// Policy's question that the user agreed to.
    agreed: Option<String>,
    /// State that the tool gets back when it runs again.
    remembered: Option<String>,
    /// Answers to the tool's latest questions. A policy that asks before the tool runs again does not discard them.
    given: BTreeMap<String, (Who, Value)>,
}

impl Kept {
    /// State assumed for a request that contains answers but no state. The answers are for questions that the tool may
    /// ask. Policies do not accept such answers.
    fn unasked(responses: &InputResponses) -> Kept {
        let asked = responses.iter().take(MAX_UNASKED);
        let asked = asked.filter_map(|(key, response)| Some((key.clone(), Who::from_answer(response)?)));
        Kept {
            asked: asked.collect(),
            ..Kept::default()
        }
    }

    /// Returns the state if no host has seen it before. A repeated state counts as unanswered, so the question is asked
    /// again.
    async fn once(self, gate: &Gate) -> Kept {
        if !self.id.is_empty() && gate.use_answer(&self.id).await {
            return self;
        }
        Kept {
            rounds: self.rounds,
            ..Kept::default()
        }
    }
}

/// A request, its client, and the state of its questions.
pub(super) struct Conversation<'a> {
    context: &'a RequestContext<RoleServer>,
    seal: &'a Seal,
    /// Subject that the request's states are valid for, if the client sent a state or may get one.
    subject: Option<String>,
    abilities: Abilities,
    kept: Kept,
}

/// Next step after a run.
pub(super) enum Step {
    /// The outcome is final.
    Over,
    /// The client gets questions instead of an outcome.
    Required(InputRequiredResult),
    /// The call runs again with these answers.
    Again(Answers),
}

impl<'a> Conversation<'a> {
    /// Starts with the answers in the request, if the request asked questions before. Fails if the state was modified,
    /// or belongs to another request or caller.
    pub(super) async fn begin(
        context: &'a RequestContext<RoleServer>,
        handler: &'a Handler,
        client_request: &ClientRequest<'_>,
        (responses, state): (Option<InputResponses>, Option<String>),
    ) -> Result<(Conversation<'a>, Answers), ErrorData> {
        let responses = responses.unwrap_or_default();
        let abilities = Abilities::of(context);
        let may_get_state = abilities.any() && abilities.when == When::Between;
        let seal = handler.seal();
        let subject = || subject(context, handler.connection(), client_request);
        let (kept, subject) = match state {
            Some(state) => {
                let subject = subject();
                (
                    seal.open(&state, &subject)?.once(&handler.gate).await,
                    Some(subject),
                )
            }
            None => (Kept::unasked(&responses), may_get_state.then(subject)),
        };
        let mut conversation = Conversation {
            context,
            seal,
            subject,
            abilities,
            kept,
        };
        let answers = conversation.answered(responses);
        Ok((conversation, answers))
    }

    /// Returns whether the client can be asked anything.
    pub(super) fn is_possible(&self) -> bool {
        self.abilities.any()
    }

    /// Next step after an outcome.
    pub(super) async fn after(&mut self, outcome: &mut CallOutcome) -> Result<Step, ErrorData> {
        let Some(asked) = outcome.asked.take() else {
            return Ok(Step::Over);
        };
        let questions = self.take_up(asked, outcome.has_effects);
        let (can, cannot): (Vec<Question>, Vec<Question>) = questions
            .into_iter()
            .partition(|question| self.abilities.has(Who::of(question)));
        let requests = elicitation_form::requests(&can);
        if requests.is_empty() {
            return self.without(&cannot, outcome).map(|()| Step::Over);
        }
        self.kept.rounds += 1;
        if self.kept.rounds > MAX_ROUNDS {
            tracing::warn!("a call asked for input {MAX_ROUNDS} times, so its refusal is final");
            return Ok(Step::Over);
        }
        let asked = can.iter().filter(|question| requests.contains_key(&question.key));
        self.kept.asked = asked
            .map(|question| (question.key.clone(), Who::of(question)))
            .collect();
        match self.abilities.when {
            When::Between => {
                let subject = self.subject.as_deref();
                let state = subject.and_then(|subject| self.seal.close(&mut self.kept, subject));
                Ok(Step::Required(InputRequiredResult::new(Some(requests), state)))
            }
            When::Meanwhile => {
                let mut responses = InputResponses::new();
                for (key, request) in requests {
                    match self
                        .wait_for(elicitation_form::send(&self.context.peer, request))
                        .await
                    {
                        Some(result) => drop(responses.insert(key, result)),
                        None => return Ok(Step::Over),
                    }
                }
                Ok(Step::Again(self.answered(responses)))
            }
        }
    }

    /// Takes the questions of an outcome and records who asked them.
    fn take_up(&mut self, asked: Asked, has_effects: bool) -> Vec<Question> {
        match asked {
            Asked::Policy(pending) => {
                let question = pending.question();
                self.kept.open = Some(pending.about);
                self.kept.agreed = None;
                vec![question]
            }
            Asked::Tool(asking) => {
                self.kept.open = None;
                if has_effects {
                    self.kept.agreed = None;
                }
                self.kept.given.clear();
                self.kept.remembered = asking.state;
                asking.questions
            }
        }
    }

    /// Answers to the latest questions, for the gate.
    fn answered(&mut self, responses: InputResponses) -> Answers {
        let said = valid(std::mem::take(&mut self.kept.asked), responses);
        let consent = match self.kept.open.take() {
            Some(about) => {
                let consent = read(said).pop().map(|said| Consent::to(about, &said));
                let agreed = consent.as_ref().filter(|consent| consent.agreed);
                self.kept.agreed = agreed.map(|consent| consent.about.clone());
                consent
            }
            // An agreement covers all rounds up to the first call that has effects.
            None => {
                self.kept.given = said;
                let agreed = self.kept.agreed.clone();
                agreed.map(|about| Consent { about, agreed: true })
            }
        };
        Answers {
            consent,
            answers: read(self.kept.given.clone()),
            remembered: self.kept.remembered.clone(),
        }
    }

    /// Decides the result for a client that cannot answer the questions: usually the refusal. In the newer era, a
    /// tool's refusal without a remediation or next call becomes MCP's error for a missing client capability.
    fn without(&self, cannot: &[Question], outcome: &CallOutcome) -> Result<(), ErrorData> {
        let Err(refusal) = &outcome.result else {
            return Ok(());
        };
        let has_way_out = !refusal.remediation.is_empty() || refusal.next_call.is_some();
        let is_refusal = has_way_out || self.kept.open.is_some() || self.abilities.when == When::Meanwhile;
        if cannot.is_empty() || is_refusal {
            return Ok(());
        }
        let required = cannot.iter().map(|question| Who::of(question).capability());
        let required: Map<String, Value> = required.map(|(name, value)| (name.to_owned(), value)).collect();
        Err(ErrorData::new(
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
            refusal.message.clone(),
            Some(json!({"requiredCapabilities": required, "error": refusal})),
        ))
    }

    /// Waits for a client's answer. `None` if none arrives.
    async fn wait_for(
        &self,
        asking: impl Future<Output = Result<Value, rmcp::ServiceError>>,
    ) -> Option<Value> {
        let answer = tokio::select! {
            answer = asking => answer,
            () = self.context.ct.cancelled() => return None,
        };
        match answer {
            Ok(answer) => Some(answer),
            Err(err) => {
                tracing::debug!(%err, "a client did not answer");
                None
            }
        }
    }
}

/// Results of a client that are answers to these questions. Others would only enlarge the state that the client keeps.
fn valid(asked: BTreeMap<String, Who>, mut responses: InputResponses) -> BTreeMap<String, (Who, Value)> {
    let said = asked.into_iter().filter_map(|(key, who)| {
        let response = responses.remove(&key)?;
        let is_valid = elicitation_form::answer(who, &key, response.clone()).is_some();
        is_valid.then_some((key, (who, response)))
    });
    said.collect()
}

/// Answers from a client's results, by key. Invalid results are ignored.
fn read(said: BTreeMap<String, (Who, Value)>) -> Vec<Answer> {
    let answers = said.into_iter();
    let answers = answers.filter_map(|(key, (who, response))| elicitation_form::answer(who, &key, response));
    answers.collect()
}

/// Subject that a state is valid for: the sender, the connection if it lasts, the called tool or prompt, the arguments
/// and the envelope.
fn subject(
    context: &RequestContext<RoleServer>,
    connection: &str,
    client_request: &ClientRequest<'_>,
) -> String {
    let identity = request::identity(context);
    let all = json!([
        identity.as_ref().map(Identity::as_str),
        (!request::is_stateless(context)).then_some(connection),
        client_request.kind.as_str(),
        client_request.name,
        tollgate_sdk::canonical_json(&Value::Object(client_request.arguments.clone())),
        context.meta.get(ENVELOPE),
    ]);
    hash::sha256_hex(all.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_to_the_questions_are_kept() {
        let roots = json!({"roots": [{"uri": "file:///a"}]});
        let long = json!({"type": "text", "text": "x".repeat(100 << 10)});
        let mut responses = InputResponses::new();
        for (key, response) in [
            ("folders", roots.clone()),
            ("more", json!({"role": "assistant", "content": long})),
            ("name", json!({"content": {"name": "Ada"}})),
            ("unasked", roots.clone()),
        ] {
            responses.insert(key.to_owned(), response);
        }
        let asked = [
            ("folders", Who::Roots),
            ("missing", Who::User),
            ("more", Who::Model),
            ("name", Who::User),
        ];
        let asked = asked.map(|(key, who)| (key.to_owned(), who));
        let kept = valid(BTreeMap::from(asked), responses);
        assert_eq!(
            kept,
            BTreeMap::from([("folders".to_owned(), (Who::Roots, roots))])
        );
    }
}
