//! Tasks as stored, and their conversion to and from rows.

use serde_json::{Map, Value};
use tollgate_core::task::{TaskEvent, TaskState};

use super::super::engine::Row;
use super::super::error::StoreResult;

/// Columns of a task, for [`stored`].
pub(super) const COLUMNS: &str =
    "id, owner, tool, args_hash, envelope_id, op_id, state, note, created_at, updated_at,
    until_ms, poll_ms, host_id, cancel, asked, answers, arguments, error_code, reply_hash, reply_bytes,
    resumed";

/// A new task.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// Unguessable id.
    pub id: String,
    /// Identity of the caller, if the transport authenticated one.
    pub owner: Option<String>,
    /// Tool of the call.
    pub tool: String,
    /// Hash of its arguments.
    pub args_hash: String,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Operation of the call.
    pub op_id: String,
    /// Host that works on it.
    pub host_id: String,
    /// Questions that it waits for, if the call has asked already.
    pub asked: Option<Value>,
    /// Arguments, if another host may take it over.
    pub arguments: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// Time for which it is stored, in milliseconds.
    pub ttl_ms: i64,
    /// Poll interval of its client, in milliseconds.
    pub poll_ms: i64,
}

/// End of a task.
#[derive(Debug, Clone)]
pub struct TaskEnd {
    /// Event that ends the task.
    pub event: TaskEvent,
    /// Operation of the call whose end is the task's. `None` keeps the stored one.
    pub op_id: Option<String>,
    /// Code of the refusal or the failure.
    pub error_code: Option<String>,
    /// Description of the end for people.
    pub note: Option<String>,
    /// The reply as JSON.
    pub reply: String,
}

/// A stored task.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTask {
    /// Unguessable id.
    pub id: String,
    /// Identity of its caller, if the transport authenticated one.
    pub owner: Option<String>,
    /// Tool of the call.
    pub tool: String,
    /// Hash of its arguments.
    pub args_hash: String,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Operation of its latest call.
    pub op_id: String,
    /// State.
    pub state: TaskState,
    /// Latest progress note, or a description of the end.
    pub note: Option<String>,
    /// Time of creation, in milliseconds since 1970 UTC.
    pub created_ms: i64,
    /// Time of its latest change, in milliseconds since 1970 UTC.
    pub updated_ms: i64,
    /// Time until which it is stored, in milliseconds since 1970 UTC.
    pub until_ms: i64,
    /// Poll interval of its client, in milliseconds.
    pub poll_ms: i64,
    /// Host that works on it.
    pub host_id: String,
    /// True if cancellation was requested.
    pub is_cancelled: bool,
    /// Questions and requests for approval that the task waits for.
    pub asked: Option<Value>,
    /// Answers so far, by key.
    pub answers: Map<String, Value>,
    /// Arguments, if another host may take it over.
    pub arguments: Option<String>,
    /// Code of the refusal or the failure.
    pub error_code: Option<String>,
    /// SHA-256 of the reply.
    pub reply_hash: Option<String>,
    /// Bytes of the reply.
    pub reply_bytes: i64,
    /// Number of times that another host took it over.
    pub resumed: u32,
}

/// Filter for tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// State.
    pub state: Option<TaskState>,
    /// Identity of the caller.
    pub owner: Option<String>,
    /// Envelope of the call.
    pub envelope: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub now_ms: i64,
}

/// Numbers of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Tasks that are not over.
    pub open: i64,
    /// All tasks.
    pub all: i64,
    /// Bytes of their replies.
    pub bytes: i64,
}

impl StoredTask {
    /// True if the task is over and has expired.
    pub(super) fn is_forgotten(&self, now_ms: i64) -> bool {
        self.state.is_over() && now_ms >= self.until_ms
    }

    /// Questions that it asks, by key.
    pub fn questions(&self) -> impl Iterator<Item = (&String, &Value)> {
        let asked = self.asked.as_ref().and_then(|asked| asked.get("questions"));
        asked.and_then(Value::as_object).into_iter().flatten()
    }

    /// True if a question is not answered yet.
    pub fn is_outstanding(&self, key: &str) -> bool {
        self.questions().any(|(asked, _)| asked == key) && !self.answers.contains_key(key)
    }

    /// True if it asked something and all answers exist.
    pub fn has_all_answers(&self) -> bool {
        let mut questions = self.questions().peekable();
        questions.peek().is_some() && questions.all(|(key, _)| self.answers.contains_key(key))
    }

    /// Requests for approval whose answers it waits for.
    pub fn approvals(&self) -> impl Iterator<Item = &str> {
        let asked = self.asked.as_ref().and_then(|asked| asked.get("approvals"));
        let ids = asked.and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(Value::as_str)
    }

    /// Status line for people: its note, or the requests for approval that it waits for.
    pub fn status_line(&self) -> Option<String> {
        if self.note.is_some() {
            return self.note.clone();
        }
        let approvals: Vec<&str> = self.approvals().collect();
        match (approvals.as_slice(), self.questions().next()) {
            ([], None) => None,
            ([], Some(_)) => Some("waits for its client to answer".to_owned()),
            (ids, _) => Some(format!("waits for a person to answer {}", ids.join(", "))),
        }
    }
}

/// Parses a state. An unreadable state counts as an end, because no host works on such a task.
fn read_state(name: &str) -> TaskState {
    TaskState::parse(name).unwrap_or(TaskState::Failed)
}

pub(super) fn stored(row: &Row<'_>) -> StoreResult<StoredTask> {
    let state: String = row.get(6)?;
    let asked: Option<String> = row.get(14)?;
    let answers: Option<String> = row.get(15)?;
    Ok(StoredTask {
        id: row.get(0)?,
        owner: row.get(1)?,
        tool: row.get(2)?,
        args_hash: row.get(3)?,
        envelope_id: row.get(4)?,
        op_id: row.get(5)?,
        state: read_state(&state),
        note: row.get(7)?,
        created_ms: row.get(8)?,
        updated_ms: row.get(9)?,
        until_ms: row.get(10)?,
        poll_ms: row.get(11)?,
        host_id: row.get(12)?,
        is_cancelled: row.get(13)?,
        asked: asked.and_then(|asked| serde_json::from_str(&asked).ok()),
        answers: answers
            .and_then(|answers| serde_json::from_str(&answers).ok())
            .unwrap_or_default(),
        arguments: row.get(16)?,
        error_code: row.get(17)?,
        reply_hash: row.get(18)?,
        reply_bytes: row.get(19)?,
        resumed: row.get(20)?,
    })
}
