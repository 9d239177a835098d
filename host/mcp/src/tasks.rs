//! Calls that continue without their clients: MCP's extension for tasks (SEP-2663).

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, CreateTaskResult, DetailedTask, ErrorCode, ErrorData, GetTaskResult, InputRequests,
    InputResponses, JsonObject, Task, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tollgate_components::tools::TaskMode;
use tollgate_core::task::TaskState;
use tollgate_core::text;
use tollgate_gate::{Again, Asked, Attended, Began, CallOutcome, Caller, TASKS_REQUIRED, TaskReply};
use tollgate_sandbox::progress::{ClientMessage, Wanted};
use tollgate_sdk::{Answer, AnsweredBy, Question, Timestamp, ToolError};
use tollgate_store::storage::StoredTask;

use super::elicitation::{Conversation, Step};
use super::elicitation_form::{self, Abilities, Who};
use super::handler::{Handler, Structured};
use super::request::{self, ClientRequest, ENVELOPE, Round};
use super::{logs, replies};

/// Error code for answers to a task that are refused.
const ANSWER_INVALID: &str = "ANSWER_INVALID";

/// Outcome of a request whose client supports tasks.
#[allow(
    clippy::large_enum_variant,
    reason = "the large one is what nearly every request comes to"
)]
pub(super) enum Taken {
    /// The request is done, or the client must answer questions first.
    Round(Round),
    /// The call continues as a task.
    Task(StoredTask),
}

impl Handler {
    /// Returns whether a request's client supports tasks and its call may become one. An unknown tool may belong to a
    /// pack that is still being prepared.
    pub(super) fn may_take_on(
        &self,
        context: &RequestContext<RoleServer>,
        client_request: &ClientRequest<'_>,
    ) -> bool {
        let is_known = self.gate.catalog().find(client_request.name).is_some();
        let mode = self
            .gate
            .task_mode(client_request.name, &client_request.arguments);
        has_tasks(context) && request::malformed(context).is_empty() && (!is_known || mode != TaskMode::Never)
    }

    /// Runs a request for a client that supports tasks.
    pub(super) async fn do_or_take_on(
        &self,
        context: &RequestContext<RoleServer>,
        client_request: ClientRequest<'_>,
        answered: (Option<InputResponses>, Option<String>),
    ) -> Result<Taken, ErrorData> {
        let is_first = self.is_first(&context.id);
        let (mut conversation, answers) =
            Conversation::begin(context, self, &client_request, answered).await?;
        let again = Again {
            tool: client_request.name.to_owned(),
            arguments: client_request.arguments,
            envelope: context.meta.get(ENVELOPE).cloned(),
            caller: Caller {
                is_repeated: !is_first,
                ..self.caller(context)
            },
            can: Abilities::of(context).in_tasks(),
        };
        let attended = self.gate.attend(again.clone(), answers.clone(), wanted(context));
        let mut outcome = match began(context, attended).await? {
            Began::Task(task) => return Ok(Taken::Task(task)),
            Began::Replied(Err(unknown)) => return Err(ErrorData::invalid_params(unknown.to_string(), None)),
            Began::Replied(Ok(outcome)) => outcome,
        };
        for line in std::mem::take(&mut outcome.lines) {
            request::tell(context, None, ClientMessage::Line(line)).await;
        }
        if waits_for_a_person(&outcome)
            && let Some(task) = self.gate.wait_as_task(again, answers, &outcome).await
        {
            return Ok(Taken::Task(task));
        }
        Ok(Taken::Round(match conversation.after(&mut outcome).await? {
            Step::Required(required) => Round::Required(required.with_meta(replies::meta(&outcome))),
            Step::Over | Step::Again(_) => Round::Done(outcome),
        }))
    }

    /// State of a task, for its owner.
    pub(super) async fn look_at_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let (caller, can) = (self.caller(context), Abilities::of(context).in_tasks());
        let found = self.gate.task_for(id, &caller, can).await;
        found
            .map(|found| GetTaskResult::new(detailed(found)))
            .map_err(|err| failure(&err))
    }

    /// Accepts answers to a task's questions. Answers to other questions are ignored.
    pub(super) async fn answer_task(
        &self,
        request: UpdateTaskParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let owner = request::identity(context);
        let (id, owner) = (request.task_id.as_str(), owner.as_ref());
        let found = self.gate.task(id, owner).await.map_err(|err| failure(&err))?;
        let questions = questions(&found.task);
        let mut answers = Vec::new();
        for (key, said) in request.input_responses {
            let Some(question) = questions.iter().find(|question| question.key == key) else {
                continue;
            };
            let answer = elicitation_form::answer(Who::of(question), &key, said);
            let misfit = match &answer {
                Some(answer) => tollgate_gate::misfit(question, answer),
                None => Some("it is not a result of the request".to_owned()),
            };
            if let Some(why) = misfit {
                return Err(failure(&unfit(&key, &why)));
            }
            answers.extend(answer.map(|answer| (key, stored(&answer))));
        }
        let taken = self.gate.answer_task(id, owner, answers).await;
        taken.map_err(|err| failure(&err))
    }

    /// Requests cancellation of a task.
    pub(super) async fn end_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let owner = request::identity(context);
        let ended = self.gate.cancel_task(id, owner.as_ref()).await;
        ended.map_err(|err| failure(&err))
    }
}

/// Error for a client without tasks that calls a tool which requires them.
pub(super) fn required(outcome: &CallOutcome) -> Option<ErrorData> {
    let refusal = outcome.result.as_ref().err()?;
    let is_lacking = refusal.code == TASKS_REQUIRED;
    is_lacking.then(|| {
        ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
    })
}

/// Returns whether a request's client supports tasks. Sessions of older eras have a different kind of task.
fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities();
    request::is_stateless(context) && declared.is_some_and(|declared| declared.supports_tasks())
}

/// Notifications that a request's client wants while it waits.
fn wanted(context: &RequestContext<RoleServer>) -> Wanted {
    Wanted {
        notes: context.meta.get_progress_token().is_some(),
        lines: logs::wanted_by(context),
    }
}

/// Waits for the outcome of a call, and reports its progress to the client.
async fn began(context: &RequestContext<RoleServer>, mut attended: Attended) -> Result<Began, ErrorData> {
    let token = context.meta.get_progress_token();
    let given_up = request::given_up(context);
    tokio::pin!(given_up);
    let mut is_given_up = false;
    let began = loop {
        let (began, message) = {
            let (waiting, heard) = attended.parts();
            tokio::select! {
                began = waiting => (Some(began), None),
                Some(message) = heard.recv() => (None, Some(message)),
                () = &mut given_up, if !is_given_up => {
                    is_given_up = true;
                    (None, None)
                }
            }
        };
        if is_given_up {
            attended.give_up();
        }
        if let Some(message) = message {
            request::tell(context, token.as_ref(), message).await;
        }
        if let Some(began) = began {
            break attended.took(began);
        }
    };
    while let Ok(message) = attended.messages.try_recv() {
        request::tell(context, token.as_ref(), message).await;
    }
    began.ok_or_else(|| ErrorData::internal_error("the host failed during the call", None))
}

/// Returns whether a refused call would run once a person answers.
fn waits_for_a_person(outcome: &CallOutcome) -> bool {
    match &outcome.asked {
        Some(Asked::Policy(_)) => true,
        Some(Asked::Tool(_)) => false,
        None => outcome.result.is_err() && !outcome.approvals.is_empty(),
    }
}

/// Reply for a call that became a task.
pub(super) fn created(task: &StoredTask) -> CreateTaskResult {
    let outstanding = !questions(task).is_empty();
    CreateTaskResult::new(shown(task, status(task, outstanding)))
}

fn status(task: &StoredTask, is_asking: bool) -> TaskStatus {
    match task.state {
        TaskState::InputRequired if is_asking => TaskStatus::InputRequired,
        // Questions that other people answer are not requests to the client.
        TaskState::Working | TaskState::InputRequired => TaskStatus::Working,
        TaskState::Completed => TaskStatus::Completed,
        TaskState::Cancelled => TaskStatus::Cancelled,
        TaskState::Failed => TaskStatus::Failed,
    }
}

fn shown(task: &StoredTask, status: TaskStatus) -> Task {
    let time = |ms: i64| Timestamp::from_ms(ms).to_string();
    let milliseconds = |ms: i64| u64::try_from(ms).unwrap_or_default();
    let mut shown = Task::new(&task.id, status, time(task.created_ms), time(task.updated_ms))
        .with_ttl_ms(milliseconds(task.until_ms.saturating_sub(task.created_ms)))
        .with_poll_interval_ms(milliseconds(task.poll_ms));
    shown.status_message = task.status_line();
    shown
}

/// A task with its open questions or its outcome.
fn detailed(found: TaskReply) -> DetailedTask {
    let TaskReply { task, outcome } = found;
    let questions = questions(&task);
    let status = status(&task, !questions.is_empty());
    let payload = match status {
        TaskStatus::InputRequired => TaskPayload::InputRequired {
            input_requests: asked(&questions),
        },
        TaskStatus::Completed => match outcome {
            Some(outcome) => TaskPayload::Completed {
                result: result(outcome),
            },
            None => TaskPayload::Failed { error: unreadable() },
        },
        TaskStatus::Failed => TaskPayload::Failed {
            error: outcome.map_or_else(unreadable, broken),
        },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    };
    DetailedTask::new(shown(&task, status), payload)
}

fn asked(questions: &[Question]) -> InputRequests {
    elicitation_form::requests(questions)
}

/// Unanswered questions of a task, under the keys of their answers.
fn questions(task: &StoredTask) -> Vec<Question> {
    let outstanding = task.questions().filter(|(key, _)| task.is_outstanding(key));
    let questions = outstanding.filter_map(|(key, said)| {
        let message = said.get("message")?.as_str()?.to_owned();
        let by = match (said.get("form"), said.get("model").and_then(Value::as_u64)) {
            (Some(form), _) => AnsweredBy::Form(form.clone()),
            (None, Some(tokens)) => AnsweredBy::Model(u32::try_from(tokens).unwrap_or(u32::MAX)),
            (None, None) => AnsweredBy::Roots,
        };
        Some(Question {
            key: key.clone(),
            message,
            by,
        })
    });
    questions.collect()
}

/// Answer in the form in which it is stored with its task.
fn stored(answer: &Answer) -> Value {
    json!({"action": answer.action.as_str(), "content": answer.content})
}

fn result(outcome: CallOutcome) -> JsonObject {
    let result = replies::result(outcome, Structured::Json);
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    }
}

/// Error of a call that was interrupted.
fn broken(outcome: CallOutcome) -> JsonObject {
    let Err(error) = outcome.result else {
        return unreadable();
    };
    as_object(&json!({
        "code": ErrorCode::INTERNAL_ERROR.0,
        "message": error.message,
        "data": {"error": error, "op_id": outcome.op_id},
    }))
}

fn unreadable() -> JsonObject {
    as_object(&json!({
        "code": ErrorCode::INTERNAL_ERROR.0,
        "message": "the reply of this task cannot be read",
    }))
}

fn as_object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// Refusal of answers if one of them does not fit its question.
fn unfit(key: &str, why: &str) -> ToolError {
    let key = text::clean(text::cut(key, 100));
    ToolError::new(
        ANSWER_INVALID,
        format!("the answer to `{key}` does not match its question: {why}; the question is still open"),
    )
    .remediation("Send all answers again; each must match the requestedSchema of its question.")
    .context("key", key)
}

/// Protocol error for a refused request about a task.
fn failure(err: &ToolError) -> ErrorData {
    let code = match err.code.as_str() {
        "UNKNOWN_TASK" | ANSWER_INVALID => ErrorCode::INVALID_PARAMS,
        "POLLING_TOO_FAST" => ErrorCode::INVALID_REQUEST,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, err.message.clone(), Some(json!({ "error": err })))
}
