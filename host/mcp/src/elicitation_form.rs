//! Conversion of questions to MCP requests, and of MCP results to answers.

use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ElicitResult, ElicitationAction, InputRequest, InputRequests, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use rmcp::{RoleServer, ServiceError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_gate::CanAnswer;
use tollgate_sdk::{Action, Answer, AnsweredBy, Question};

/// Time limit of an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest answer, in bytes of JSON.
const MAX_ANSWER: usize = 64 << 10;

/// Party that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Who {
    User,
    Model,
    Roots,
}

impl Who {
    pub(super) fn of(question: &Question) -> Who {
        match question.by {
            AnsweredBy::Form(_) => Who::User,
            AnsweredBy::Model(_) => Who::Model,
            AnsweredBy::Roots => Who::Roots,
        }
    }

    /// Party that gave an answer, derived from the answer's form.
    pub(super) fn from_answer(result: &Value) -> Option<Who> {
        let looks = [("action", Who::User), ("role", Who::Model), ("roots", Who::Roots)];
        let who = looks.into_iter().find(|(member, _)| result.get(member).is_some());
        who.map(|(_, who)| who)
    }

    /// Capability that the client needs in order to answer, as MCP writes it.
    pub(super) fn capability(self) -> (&'static str, Value) {
        match self {
            Who::User => ("elicitation", json!({"form": {}})),
            Who::Model => ("sampling", json!({})),
            Who::Roots => ("roots", json!({})),
        }
    }
}

/// Time at which a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// While the client's request is open.
    Meanwhile,
    /// After the request: the client gets the questions, and sends its request again with the answers.
    Between,
}

/// Questions that a client can answer, and when it can be asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abilities {
    pub(super) when: When,
    user: bool,
    model: bool,
    roots: bool,
}

impl Abilities {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Abilities {
        let is_new = |version: ProtocolVersion| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
        let when = if context.protocol_version().is_some_and(is_new) {
            When::Between
        } else {
            When::Meanwhile
        };
        Abilities::declared(when, context.client_capabilities().as_ref())
    }

    fn declared(when: When, declared: Option<&ClientCapabilities>) -> Abilities {
        // A client that supports elicitation and names no mode supports forms.
        let elicitation = declared.and_then(|declared| declared.elicitation.as_ref());
        let user = elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        Abilities {
            when,
            user,
            model: declared.is_some_and(|declared| declared.sampling.is_some()),
            roots: declared.is_some_and(|declared| declared.roots.is_some()),
        }
    }

    /// Abilities for calls that become tasks.
    pub(super) fn in_tasks(self) -> CanAnswer {
        CanAnswer {
            user: self.user,
            model: self.model,
            roots: self.roots,
        }
    }

    pub(super) fn any(self) -> bool {
        self.user || self.model || self.roots
    }

    pub(super) fn has(self, who: Who) -> bool {
        match who {
            Who::User => self.user,
            Who::Model => self.model,
            Who::Roots => self.roots,
        }
    }
}

/// Questions as MCP requests. Forms that MCP does not support are left out.
pub(super) fn requests(questions: &[Question]) -> InputRequests {
    let requests = questions.iter().filter_map(|question| {
        let request = match &question.by {
            AnsweredBy::Form(form) => json!({"method": "elicitation/create",
                "params": {"mode": "form", "message": question.message, "requestedSchema": form}}),
            AnsweredBy::Model(max_tokens) => json!({"method": "sampling/createMessage", "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": question.message}}],
                "maxTokens": max_tokens}}),
            AnsweredBy::Roots => json!({"method": "roots/list"}),
        };
        match serde_json::from_value(request) {
            Ok(request) => Some((question.key.clone(), request)),
            Err(err) => {
                tracing::warn!(%err, question = question.key, "the question does not fit into an MCP request");
                None
            }
        }
    });
    requests.collect()
}

/// Sends one question and waits for the client's result.
pub(super) async fn send(peer: &Peer<RoleServer>, request: InputRequest) -> Result<Value, ServiceError> {
    let request = match request {
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ServiceError::UnexpectedResponse),
    };
    let options = PeerRequestOptions::with_timeout(ANSWER_TIMEOUT);
    let sent = peer.send_request_with_option(request, options).await?;
    let result = sent.await_response().await?;
    serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse)
}

/// Converts a client's result to an answer. An invalid result is ignored, as if none had arrived.
pub(super) fn answer(who: Who, key: &str, result: Value) -> Option<Answer> {
    if result.to_string().len() > MAX_ANSWER {
        return None;
    }
    let (action, content) = match who {
        Who::User => {
            let result: ElicitResult = serde_json::from_value(result).ok()?;
            let action = match result.action {
                ElicitationAction::Accept => Action::Accept,
                ElicitationAction::Decline => Action::Decline,
                // An unknown action does not count as consent.
                _ => Action::Cancel,
            };
            (action, result.content.unwrap_or_default())
        }
        Who::Model => {
            let is_message = result.get("role").is_some_and(Value::is_string)
                && result
                    .get("content")
                    .is_some_and(|content| content.is_object() || content.is_array());
            is_message.then_some((Action::Accept, result))?
        }
        Who::Roots => {
            let is_list = result.get("roots").is_some_and(Value::is_array);
            is_list.then_some((Action::Accept, result))?
        }
    };
    Some(Answer {
        key: key.to_owned(),
        action,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_what_mcp_has() {
        let form = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let asked = requests(&[
            Question::with_form("ok", "Go on?", form),
            Question::with_form("odd", "Well?", json!({"type": "array"})),
            Question::to_model("more", "Go on.", 50),
            Question::for_roots("roots"),
        ]);
        let asked: Vec<Value> = asked
            .iter()
            .map(|(key, request)| json!([key, serde_json::to_value(request).unwrap()["method"]]))
            .collect();
        assert_eq!(
            Value::from(asked),
            json!([
                ["more", "sampling/createMessage"],
                ["ok", "elicitation/create"],
                ["roots", "roots/list"]
            ])
        );
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for (who, result) in [
            (Who::User, json!(12345)),
            (Who::User, json!({"content": {"ok": true}})),
            (
                Who::User,
                json!({"action": "accept", "content": {"long": "x".repeat(MAX_ANSWER)}}),
            ),
            (Who::Model, json!({"action": "accept"})),
            (Who::Model, json!({"role": "assistant", "content": "text"})),
            (Who::Roots, json!({"roots": {}})),
            (Who::Roots, Value::Null),
        ] {
            assert_eq!(answer(who, "key", result.clone()), None, "{who:?} {result}");
        }
        assert_eq!(Who::from_answer(&json!(12345)), None);
        assert_eq!(Who::from_answer(&json!({"roots": []})), Some(Who::Roots));
        let said = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
        assert_eq!(answer(Who::Model, "key", said).unwrap().text(), Some("Paris"));
        let roots = answer(Who::Roots, "key", json!({"roots": [{"uri": "file:///a"}]})).unwrap();
        assert_eq!(roots.roots().collect::<Vec<_>>(), ["file:///a"]);
        let declined = answer(Who::User, "key", json!({"action": "decline"})).unwrap();
        assert_eq!(declined.action, Action::Decline);
    }

    #[test]
    fn a_client_is_asked_what_it_can_answer() {
        let able = |declared: Value| {
            let declared: ClientCapabilities = serde_json::from_value(declared).unwrap();
            let able = Abilities::declared(When::Between, Some(&declared));
            [Who::User, Who::Model, Who::Roots].map(|who| able.has(who))
        };
        assert_eq!(able(json!({})), [false, false, false]);
        assert_eq!(able(json!({"elicitation": {}, "roots": {}})), [true, false, true]);
        assert_eq!(
            able(json!({"elicitation": {"url": {}}, "sampling": {}})),
            [false, true, false]
        );
        assert!(!Abilities::declared(When::Between, None).any());
    }
}
