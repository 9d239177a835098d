//! Asking a client and its user, in both eras of the protocol: for policies and for tools.
//!
//! Before 2026-07-28 the server asks while the request is open. Since then the request ends with the questions and
//! a sealed state, and the client sends it again with the answers.

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
use tollgate_gate::{Answers, Asked, Consent, Gate, Outcome};
use tollgate_sdk::{Answer, Question};

use super::elicitation_form::{self, Abilities, PATIENCE, When, Who};
use super::handler::Handler;
use super::request::{self, ClientRequest, ENVELOPE};

/// Maximum number of rounds of questions in one request.
const MAX_ROUNDS: usize = 10;
/// Most answers that a request brings to what it was not asked.
const MAX_UNASKED: usize = 20;

/// Seals what was asked, so that nobody answers what was not.
#[derive(Clone)]
pub(super) struct Seal(Option<RequestStateCodec>);

impl Seal {
    pub(super) fn new(key: &[u8; 32]) -> Seal {
        Seal(RequestStateCodec::try_new(key.as_slice()).ok())
    }

    /// Seals what is kept under an id of its own, which counts once.
    fn close(&self, kept: &mut Kept, subject: &str) -> Option<String> {
        kept.id = uuid::Uuid::new_v4().to_string();
        let kept = &*kept;
        let options = SealOptions::new().ttl(PATIENCE);
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
            // The user took too long. The question is asked again.
            Some(Err(RequestStateError::Expired)) => Ok(Kept::default()),
            Some(Err(err)) => {
                tracing::debug!(%err, "a request came with a state that is not to be trusted");
                let why = "the requestState is not what this request was given";
                Err(ErrorData::invalid_params(why, None))
            }
            None => Ok(Kept::default()),
        }
    }
}

/// State of a request that asked. In the newer era the client keeps it, sealed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Told from everything else that was ever sealed.
    id: String,
    /// Number of rounds so far.
    rounds: usize,
    /// Latest questions, with who answers each.
    asked: BTreeMap<String, Who>,
    /// Which question of a policy that was, if a policy asked.
    open: Option<String>,
    /// The policy's question that was agreed to.
    agreed: Option<String>,
    /// State that the tool wants back when it runs again.
    remembered: Option<String>,
}

impl Kept {
    /// Assumed state of a request that brings answers and no state: it tells a tool beforehand what that
    /// will ask. No policy takes that for an answer.
    fn unasked(responses: &InputResponses) -> Kept {
        let asked = responses.iter().take(MAX_UNASKED);
        let asked = asked.filter_map(|(key, response)| Some((key.clone(), Who::from_answer(response)?)));
        Kept {
            asked: asked.collect(),
            ..Kept::default()
        }
    }

    /// Itself, the first time that it comes back to any host. Later it is as if nobody had answered: the question is
    /// asked again.
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

/// A request, its client, and what became of its questions so far.
pub(super) struct Conversation<'a> {
    context: &'a RequestContext<RoleServer>,
    seal: &'a Seal,
    /// Subject of the request's states.
    subject: String,
    abilities: Abilities,
    kept: Kept,
}

/// Next step after a run.
pub(super) enum Step {
    /// Nothing: its outcome is the outcome.
    Over,
    /// The client gets questions instead.
    Required(InputRequiredResult),
    /// There are answers, and it runs again.
    Again(Answers),
}

impl<'a> Conversation<'a> {
    /// Begins with the answers that came with the request, if it asked before. An error if its state was
    /// changed, or belongs to another request or caller.
    pub(super) async fn begin(
        context: &'a RequestContext<RoleServer>,
        handler: &'a Handler,
        errand: &ClientRequest<'_>,
        (responses, state): (Option<InputResponses>, Option<String>),
    ) -> Result<(Conversation<'a>, Answers), ErrorData> {
        let responses = responses.unwrap_or_default();
        let subject = subject(context, handler.connection(), errand);
        let seal = handler.seal();
        let kept = match state {
            Some(state) => seal.open(&state, &subject)?.once(&handler.gate).await,
            None => Kept::unasked(&responses),
        };
        let mut conversation = Conversation {
            context,
            seal,
            subject,
            abilities: Abilities::of(context),
            kept,
        };
        let answers = conversation.answered(responses);
        Ok((conversation, answers))
    }

    /// True if anything could be asked.
    pub(super) fn is_possible(&self) -> bool {
        self.abilities.any()
    }

    /// Next step after an outcome.
    pub(super) async fn after(&mut self, outcome: &mut Outcome) -> Result<Step, ErrorData> {
        let Some(asked) = outcome.asked.take() else {
            return Ok(Step::Over);
        };
        let questions = self.take_up(asked);
        let (can, cannot): (Vec<Question>, Vec<Question>) = questions
            .into_iter()
            .partition(|question| self.abilities.has(Who::of(question)));
        let requests = elicitation_form::requests(&can);
        if requests.is_empty() {
            return self.without(&cannot, outcome).map(|()| Step::Over);
        }
        self.kept.rounds += 1;
        if self.kept.rounds > MAX_ROUNDS {
            tracing::warn!("a request asked {MAX_ROUNDS} times, so its refusal is final");
            return Ok(Step::Over);
        }
        let asked = can.iter().filter(|question| requests.contains_key(&question.key));
        self.kept.asked = asked
            .map(|question| (question.key.clone(), Who::of(question)))
            .collect();
        match self.abilities.when {
            When::Between => {
                let state = self.seal.close(&mut self.kept, &self.subject);
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

    /// The questions, with a note of who asked them.
    fn take_up(&mut self, asked: Asked) -> Vec<Question> {
        match asked {
            Asked::Policy(pending) => {
                let question = pending.question();
                self.kept.open = Some(pending.about);
                self.kept.agreed = None;
                vec![question]
            }
            Asked::Tool(asking) => {
                self.kept.open = None;
                self.kept.remembered = asking.state;
                asking.questions
            }
        }
    }

    /// Answers for the gate to the latest questions.
    fn answered(&mut self, mut responses: InputResponses) -> Answers {
        let asked = std::mem::take(&mut self.kept.asked);
        let answers = asked.into_iter().filter_map(|(key, who)| {
            let response = responses.remove(&key)?;
            elicitation_form::answer(who, &key, response)
        });
        let mut answers: Vec<Answer> = answers.collect();
        let consent = match self.kept.open.take() {
            Some(about) => {
                let consent = answers.pop().map(|said| Consent::to(about, &said));
                let agreed = consent.as_ref().filter(|consent| consent.agreed);
                self.kept.agreed = agreed.map(|consent| consent.about.clone());
                consent
            }
            // A yes holds for the rounds that follow it.
            None => self
                .kept
                .agreed
                .clone()
                .map(|about| Consent { about, agreed: true }),
        };
        Answers {
            consent,
            answers,
            remembered: self.kept.remembered.clone(),
        }
    }

    /// Result for a client that can answer nothing: the refusal, unless it is a tool's that knows nothing to do
    /// instead. Then it is MCP's own error, in the era that has one.
    fn without(&self, cannot: &[Question], outcome: &Outcome) -> Result<(), ErrorData> {
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

    /// A client's answer. `None` if it does not come.
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

/// Subject that a state is valid for: the sender, the connection if it lasts, the called thing, the arguments and the
/// envelope.
fn subject(context: &RequestContext<RoleServer>, connection: &str, errand: &ClientRequest<'_>) -> String {
    let identity = request::identity(context);
    let all = json!([
        identity.as_ref().map(Identity::as_str),
        (!request::is_stateless(context)).then_some(connection),
        errand.kind.as_str(),
        errand.name,
        tollgate_sdk::canonical_json(&Value::Object(errand.arguments.clone())),
        context.meta.get(ENVELOPE),
    ]);
    hash::sha256_hex(all.to_string().as_bytes())
}
