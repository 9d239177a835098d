//! Questions that a task waits for, and their answers.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate_sdk::{Action, Answer, AnsweredBy, Question};
use tollgate_store::storage::{NewApproval, StoredTask};

use super::attend::Again;
use super::listed;
use crate::call::{Answers, Asked, CallOutcome};
use crate::consent::{Consent, Pending};
use crate::task_slot::Latest;

/// Questions that a client can answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct CanAnswer {
    /// True if the client's user fills in forms.
    pub user: bool,
    /// True if the client's model continues texts.
    pub model: bool,
    /// True if the client lists its folders.
    pub roots: bool,
}

impl CanAnswer {
    fn can(self, question: &Question) -> bool {
        match question.by {
            AnsweredBy::Form(_) => self.user,
            AnsweredBy::Model(_) => self.model,
            AnsweredBy::Roots => self.roots,
        }
    }
}

/// Questions that a task waits for.
pub(super) struct Waiting {
    pub(super) asked: Value,
    pub(super) approvals: Vec<String>,
    questions: Vec<(String, Question)>,
    /// Question of a policy, if one asks.
    pending: Option<Pending>,
    /// State that the tool gets back.
    state: Option<String>,
    /// Answers of earlier rounds that hold for the next one. A policy that asks comes before the tool, so the answers
    /// to the tool's questions are kept for the call that the policy lets through.
    given: Answers,
    /// Question in the list of approvals.
    pub(super) listed: Option<Arc<NewApproval>>,
}

impl Waiting {
    /// Questions that a refused call waits for, if the client or an approver can answer them.
    pub(super) fn of(outcome: &CallOutcome, can: CanAnswer, round: u32) -> Option<Waiting> {
        let (questions, pending, state) = match outcome.asked.clone() {
            None => (Vec::new(), None, None),
            Some(Asked::Policy(pending)) => (vec![pending.question()], Some(pending), None),
            Some(Asked::Tool(asking)) => (asking.questions, None, asking.state),
        };
        let (questions, rest): (Vec<Question>, Vec<Question>) =
            questions.into_iter().partition(|question| can.can(question));
        let approvals = outcome.approvals.clone();
        let nobody_answers = questions.is_empty() && approvals.is_empty();
        if nobody_answers || (pending.is_none() && !rest.is_empty()) {
            return None;
        }
        // A key is never reused for another question.
        let questions: Vec<(String, Question)> = questions
            .into_iter()
            .map(|question| (format!("{round}_{}", question.key), question))
            .collect();
        let shown: Map<String, Value> = questions
            .iter()
            .map(|(key, question)| (key.clone(), described(question)))
            .collect();
        Some(Waiting {
            asked: json!({"questions": shown, "approvals": approvals}),
            approvals,
            questions,
            pending,
            state,
            given: Answers::default(),
            listed: None,
        })
    }

    /// The same questions with an entry in the list of approvals, if others can answer there and no policy asks
    /// there.
    pub(super) fn listed(self, task_id: &str, again: &Again, latest: &Latest, at: (u32, i64)) -> Waiting {
        let listed = match self.questions.as_slice() {
            [(_, question)] if self.approvals.is_empty() => {
                listed::request(task_id, question, again, latest, at)
            }
            _ => None,
        };
        Waiting {
            listed: listed.map(Arc::new),
            ..self
        }
    }

    /// Requests for approval whose end wakes the task, and its question that waits for room in the list.
    pub(super) fn watched(&self, is_listed: bool) -> (Vec<String>, Option<Arc<NewApproval>>) {
        let listed = self.listed.iter().filter(|_| is_listed).map(|new| new.id.clone());
        let queued = self.listed.clone().filter(|_| !is_listed);
        (self.approvals.iter().cloned().chain(listed).collect(), queued)
    }

    /// Answers for the call after a decision on the question in the list.
    pub(super) fn decided(&self, is_yes: bool) -> Answers {
        let answer = self.questions.first().and_then(|(_, question)| {
            let field = listed::yes_field(question)?;
            Some(Answer {
                key: question.key.clone(),
                action: Action::Accept,
                content: json!({ field: is_yes }),
            })
        });
        self.answers(answer.into_iter().collect())
    }

    /// The same questions after earlier answers.
    pub(super) fn after(self, given: Answers) -> Waiting {
        Waiting { given, ..self }
    }

    /// Answers for the call after somebody else settled what a policy asked.
    pub(super) fn settled_elsewhere(&self) -> Answers {
        Answers {
            consent: None,
            ..self.given.clone()
        }
    }

    /// Answers for the call.
    pub(super) fn answered(&self, task: &StoredTask) -> Answers {
        let answers = self.questions.iter().filter_map(|(key, question)| {
            let said = task.answers.get(key)?;
            let action = match said.get("action").and_then(Value::as_str) {
                Some("accept") => Action::Accept,
                Some("decline") => Action::Decline,
                _ => Action::Cancel,
            };
            Some(Answer {
                key: question.key.clone(),
                action,
                content: said.get("content").cloned().unwrap_or_default(),
            })
        });
        self.answers(answers.collect())
    }

    fn answers(&self, answers: Vec<Answer>) -> Answers {
        let Some(pending) = &self.pending else {
            return Answers {
                consent: self.given.consent.clone(),
                answers,
                remembered: self.state.clone(),
            };
        };
        let said = answers.first();
        Answers {
            consent: said.map(|said| Consent::to(pending.about.clone(), said)),
            ..self.given.clone()
        }
    }
}

/// Stored form of a question.
fn described(question: &Question) -> Value {
    let mut said = json!({"message": question.message});
    match &question.by {
        AnsweredBy::Form(form) => said["form"] = form.clone(),
        AnsweredBy::Model(tokens) => said["model"] = json!(tokens),
        AnsweredBy::Roots => said["roots"] = json!(true),
    }
    said
}
