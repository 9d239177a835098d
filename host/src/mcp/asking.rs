//! Asking a client's user whether a call may run, in both eras of the protocol.
//!
//! Before 2026-07-28 the server asks while the request is open. Since then the request ends with the question and
//! a sealed state, and the client sends it again with the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, MetaObject, ProtocolVersion, RequestStateCodec,
    SealOptions,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::gate::{Consent, Pending};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
/// What the question is called among those of a request, and the answer in its form.
const QUESTION: &str = "allow";

/// How a client's user can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all.
    None,
    /// While the request is open.
    Meanwhile,
    /// By the client, which then sends the request again.
    Again,
}

impl Way {
    /// How this client's user can be asked.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Way {
        let capability = context.client_capabilities().and_then(|can| can.elicitation);
        // One that names no mode knows forms.
        if !capability.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none()) {
            return Way::None;
        }
        let is_new = |version: ProtocolVersion| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
        if context.protocol_version().is_some_and(is_new) {
            Way::Again
        } else {
            Way::Meanwhile
        }
    }
}

/// Seals which question was asked, so that nobody answers one that was not.
#[derive(Clone)]
pub(super) struct Asking(Option<RequestStateCodec>);

impl Asking {
    pub(super) fn new(key: &[u8; 32]) -> Asking {
        Asking(RequestStateCodec::try_new(key.as_slice()).ok())
    }

    /// The result that makes the client ask and send its request again.
    pub(super) fn again(&self, pending: &Pending, meta: MetaObject) -> Option<InputRequiredResult> {
        let options = SealOptions::new().ttl(PATIENCE);
        let state = self.0.as_ref()?.seal_json_with(&pending.about, &options).ok()?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form(pending)?));
        let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(state)).with_meta(meta))
    }

    /// The answer that a request brings, if its state is one that was sealed here and is not too old.
    pub(super) fn answer(&self, request: &CallToolRequestParams) -> Option<Consent> {
        let state = request.request_state.as_deref()?;
        let about = match self.0.as_ref()?.open_json(state) {
            Ok(about) => about,
            Err(err) => {
                tracing::debug!(%err, "a request came with a state that is not to be trusted");
                return None;
            }
        };
        let answer = request.input_responses.as_ref()?.get(QUESTION)?;
        let answer: ElicitResult = serde_json::from_value(answer.clone()).ok()?;
        let agreed = agreed(&answer);
        Some(Consent { about, agreed })
    }
}

/// Asks the user while the request is open. Nothing if there is no answer.
pub(super) async fn meanwhile(context: &RequestContext<RoleServer>, pending: &Pending) -> Option<Consent> {
    let asked = context
        .peer
        .create_elicitation_with_timeout(form(pending)?, Some(PATIENCE));
    let answer = tokio::select! {
        answer = asked => answer,
        () = context.ct.cancelled() => return None,
    };
    match answer {
        Ok(answer) => Some(Consent {
            about: pending.about.clone(),
            agreed: agreed(&answer),
        }),
        Err(err) => {
            tracing::debug!(%err, "a client's user could not be asked");
            None
        }
    }
}

fn form(pending: &Pending) -> Option<ElicitRequestParams> {
    let schema = ElicitationSchema::builder()
        .required_bool_property(QUESTION, |property| property.title("Allow this call"))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: pending.message.clone(),
        requested_schema: schema,
    })
}

fn agreed(answer: &ElicitResult) -> bool {
    let said = answer
        .content
        .as_ref()
        .and_then(|content| content.get(QUESTION))
        .and_then(Value::as_bool);
    answer.action == ElicitationAction::Accept && said == Some(true)
}
