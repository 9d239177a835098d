//! Questions of tasks in the list of approvals, where people other than the client's user answer them with yes or no.
//!
//! A policy that asks for an approval has its own request in the list. Every other question of a task that yes or no
//! answers is entered here, and leaves the list with the first answer.

use serde_json::{Map, Value, json};
use tollgate_core::text;
use tollgate_sdk::approvals::MAX_TITLE;
use tollgate_sdk::{AnsweredBy, ApprovalRequest, Question};
use tollgate_store::storage::{AskedBy, NewApproval, QUESTIONS_OF_TASKS, Session, StoreResult};

use super::attend::Again;
use crate::task_slot::Latest;

/// Size limit of the arguments that a request shows, in bytes of JSON.
const MAX_ARGUMENTS: usize = 16 << 10;

/// Field of a question's form that is its only field and takes yes or no.
pub fn yes_field(question: &Question) -> Option<&str> {
    let AnsweredBy::Form(form) = &question.by else {
        return None;
    };
    let mut fields = form.get("properties").and_then(Value::as_object)?.iter();
    let (Some((name, field)), None) = (fields.next(), fields.next()) else {
        return None;
    };
    (field.get("type").and_then(Value::as_str) == Some("boolean")).then_some(name)
}

/// Request for approval from a question, if yes or no answers it.
pub(super) fn request(
    task_id: &str,
    question: &Question,
    again: &Again,
    latest: &Latest,
    (round, now_ms): (u32, i64),
) -> Option<NewApproval> {
    yes_field(question)?;
    let message = text::clean_prose(&question.message);
    let mut detail = Map::from_iter([
        ("task_id".to_owned(), json!(task_id)),
        ("question".to_owned(), json!(message)),
        ("tool".to_owned(), json!(again.tool)),
        ("args_hash".to_owned(), json!(latest.args_hash)),
    ]);
    let arguments = Value::Object(again.arguments.clone());
    if arguments.to_string().len() <= MAX_ARGUMENTS {
        detail.insert("arguments".to_owned(), arguments);
    }
    let identity = again.caller.identity.as_ref();
    let identity = identity.map(|identity| identity.as_str().to_owned());
    let title = match text::cut(&message, MAX_TITLE).trim() {
        "" => format!("Question of {}", latest.tool),
        title => title.to_owned(),
    };
    let request = ApprovalRequest::new(task_id, title, Value::Object(detail));
    let by = AskedBy {
        op_id: latest.op_id.clone(),
        envelope_id: latest.envelope_id.clone(),
        tool: latest.tool.clone(),
        actor: identity.clone(),
        identity,
        connection: again.caller.connection.clone(),
    };
    Some(NewApproval::new(
        QUESTIONS_OF_TASKS,
        request,
        by,
        (i64::from(round), now_ms),
    ))
}

/// Enters a question into the list, unless the list is full. Returns what the task then asks, and whether the
/// question is in the list. Requires a write transaction.
pub(super) fn enter(
    session: &Session,
    listed: Option<&NewApproval>,
    asked: &Value,
) -> StoreResult<(Value, bool)> {
    let mut asked = asked.clone();
    let Some(new) = listed else {
        return Ok((asked, false));
    };
    let is_listed = fits(session, new, new.at_ms)?;
    if is_listed {
        session.approvals().insert(new)?;
        asked["approvals"] = json!([new.id]);
    }
    Ok((asked, is_listed))
}

/// Enters a question for which there was no room before. Returns whether it is in the list now: the list may be full
/// again, or the task may be past the question. Requires a write transaction.
pub(super) fn enter_later(
    session: &Session,
    task_id: &str,
    new: &NewApproval,
    now_ms: i64,
) -> StoreResult<bool> {
    if !fits(session, new, now_ms)? || !session.tasks().note_listed(task_id, new, now_ms)? {
        return Ok(false);
    }
    session.approvals().insert(new)?;
    Ok(true)
}

fn fits(session: &Session, new: &NewApproval, now_ms: i64) -> StoreResult<bool> {
    let identity = new.by.identity.as_deref();
    Ok(session
        .approvals()
        .full(&new.component, identity, now_ms)?
        .is_none())
}
