//! Answers of people at the console, as calls of `approval_resolve` through the gate.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tollgate_console::{Answering, PersonAnswer, Refusal};
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;
use tollgate_gate::core_tools::RESOLVE;
use tollgate_gate::{Answers, Asked, Call, Caller, Gate, yes_field};
use tollgate_sdk::{Action, Answer, Asking, ToolError};
use tollgate_store::storage::{OperationFilter, StoreResult};

use super::CLIENT_NAME;
use crate::host::HostContext;

/// Number of newest ledger rows in which an approver's work is searched.
const MAX_SEARCHED_ROWS: u32 = 20_000;

/// Passes answers through a gate.
pub(super) struct Through {
    gate: Arc<Gate>,
    context: Arc<HostContext>,
}

impl Through {
    pub(super) fn new(gate: &Arc<Gate>, context: &Arc<HostContext>) -> Through {
        Through {
            gate: Arc::clone(gate),
            context: Arc::clone(context),
        }
    }

    async fn take(&self, given: PersonAnswer) -> Result<(), Refusal> {
        let caller = Caller {
            share: Share::of(given.identity.as_ref(), None),
            identity: given.identity.clone(),
            client: Some(CLIENT_NAME.to_owned()),
            connection: self.gate.new_connection(),
            ..Caller::default()
        };
        let Some(asking) = self.call(&caller, &given, Answers::default()).await? else {
            return Ok(());
        };
        let answers = self.agree(&given, asking).await?;
        match self.call(&caller, &given, answers).await? {
            None => Ok(()),
            Some(_) => Err(terminal(
                "this approval asks a second question, which the console cannot show",
            )),
        }
    }

    /// Makes one call. Returns the questions of the component's own tool, if it asks for a person.
    async fn call(
        &self,
        caller: &Caller,
        given: &PersonAnswer,
        answers: Answers,
    ) -> Result<Option<Asking>, Refusal> {
        let call = Call {
            answers,
            ..Call::new(RESOLVE, arguments(given), caller.clone())
        };
        let outcome = self.gate.call(call).await.map_err(|unknown| Refusal {
            code: "ANSWER_UNAVAILABLE".to_owned(),
            message: unknown.to_string(),
            remediation: "Answer on a server that has this tool.".to_owned(),
        })?;
        match (outcome.result, outcome.asked) {
            (Ok(_), _) => Ok(None),
            (Err(_), Some(Asked::Tool(asking))) => Ok(Some(asking)),
            (Err(err), _) => Err(refusal(err)),
        }
    }

    /// Answers a component that asks for a person. A proven approver must not have done the component's work.
    async fn agree(&self, given: &PersonAnswer, asking: Asking) -> Result<Answers, Refusal> {
        let Some(identity) = given.identity.clone().filter(|_| given.approves) else {
            return Err(terminal(
                "only an approver with a proven identity counts as a person",
            ));
        };
        let (database, id) = (self.context.database().clone(), given.approval_id.clone());
        let worked = tokio::task::spawn_blocking(move || {
            let session = database.read_session().ok()?;
            has_worked(&session, &id, &identity).ok()
        });
        match worked.await.ok().flatten() {
            Some(false) => {}
            Some(true) => {
                return Err(Refusal {
                    code: "APPROVER_EXECUTES".to_owned(),
                    message:
                        "this identity recently called tools of the same pack that make changes, so it does not count \
                         as a person"
                            .to_owned(),
                    remediation: "Let an approver answer whose identity no agent uses.".to_owned(),
                });
            }
            None => {
                return Err(terminal(
                    "cannot read the ledger to check that this identity is not an agent's",
                ));
            }
        }
        let answers: Option<Vec<Answer>> = asking.questions.into_iter().map(yes).collect();
        let answers = answers.ok_or_else(|| {
            terminal("the question needs more than a yes or no, which the console cannot show")
        })?;
        Ok(Answers {
            consent: None,
            answers,
            remembered: asking.state,
        })
    }
}

impl Answering for Through {
    fn answer(&self, answer: PersonAnswer) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(self.take(answer))
    }
}

fn arguments(given: &PersonAnswer) -> Map<String, Value> {
    let decision = if given.approves { "approve" } else { "reject" };
    let mut arguments = Map::new();
    if given.identity.is_none() {
        // The owner of the data directory, who logged in with a token that only this user can create.
        let owner = crate::user::name().unwrap_or_else(|| "owner".to_owned());
        arguments.insert("actor".to_owned(), json!(owner));
    }
    arguments.insert("approval_id".to_owned(), json!(given.approval_id));
    arguments.insert("decision".to_owned(), json!(decision));
    if let Some(note) = &given.note {
        arguments.insert("note".to_owned(), json!(note));
    }
    arguments
}

/// Affirmative answer to a question whose form has a single yes or no field.
fn yes(question: tollgate_sdk::Question) -> Option<Answer> {
    let field = yes_field(&question)?;
    Some(Answer {
        action: Action::Accept,
        content: json!({ field: true }),
        key: question.key,
    })
}

/// Returns whether an identity called other tools of the asking component that change something.
fn has_worked(
    session: &tollgate_store::storage::Session,
    id: &str,
    identity: &Identity,
) -> StoreResult<bool> {
    let Some(asked) = session.approvals().get(id)? else {
        return Ok(false);
    };
    let answers = asked.answering.map(|answering| answering.approve.tool);
    let after = session
        .ledger()
        .head()?
        .seq
        .saturating_sub(MAX_SEARCHED_ROWS.into());
    for effect in [Effect::Write, Effect::Run] {
        let own = OperationFilter {
            actor: Some(identity.as_str().to_owned()),
            pack: Some(asked.component.clone()),
            effect: Some(effect.as_str().to_owned()),
            after: Some(after),
            ..OperationFilter::default()
        };
        // At the maximum, so that a number of answers cannot hide other work.
        let found = session.operations().list(&own, MAX_SEARCHED_ROWS)?;
        if found
            .iter()
            .any(|operation| Some(&operation.tool) != answers.as_ref())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn refusal(err: ToolError) -> Refusal {
    Refusal {
        code: err.code,
        message: err.message,
        remediation: err.remediation,
    }
}

/// Refusal of an answer that the console cannot give.
fn terminal(reason: &str) -> Refusal {
    Refusal {
        code: "PERSON_REQUIRED".to_owned(),
        message: reason.to_owned(),
        remediation: "Run tollgate approvals allow in a terminal, and type the code that it shows."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::scopes::Rights;

    use super::*;

    #[test]
    fn the_owner_answers_in_the_name_of_the_systems_user() {
        let given = |identity| PersonAnswer {
            approval_id: "apv_1".to_owned(),
            approves: true,
            note: None,
            identity,
        };
        let owner = arguments(&given(None));
        assert!(!owner["actor"].as_str().unwrap().is_empty());
        let proven = arguments(&given(Some(Identity::of_token("grace", Rights::default()))));
        assert_eq!(proven.get("actor"), None, "a proven name is not claimed as well");
    }
}
