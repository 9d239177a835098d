//! The append-only log of every change.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::Where;
use crate::model::{AttemptId, EventType, TaskId};
use crate::role::Role;

/// Payload limit of a page of events. A larger first event is still returned.
const PAGE_BYTES: usize = 32_768;

/// Event of a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// Id in the log, usable as `cursor`.
    pub id: i64,
    /// The same id, under a name that shows its kind.
    pub event_id: i64,
    /// Id of the task that changed.
    pub task_id: TaskId,
    /// Id of the attempt that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// Kind of the event.
    pub event_type: EventType,
    /// Name of the actor.
    pub actor: String,
    /// Role in which the actor called.
    pub actor_role: Role,
    /// State `before` and `after` the change, with details.
    pub payload: Map<String, Json>,
    /// Time of the event.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "id, task_id, attempt_id, event_type, actor, actor_role, payload_json, created_at";

from_row! {
    Event { id, event_id: copy id, task_id, attempt_id, event_type, actor, actor_role, payload: json, created_at }
}

/// A change to log.
#[derive(Debug)]
pub(crate) struct NewEvent<'a> {
    pub task_id: &'a TaskId,
    pub attempt_id: Option<&'a AttemptId>,
    pub event_type: EventType,
    pub actor: &'a str,
    pub actor_role: Role,
    /// Details as a JSON object.
    pub payload: Json,
    pub created_at: Timestamp,
}

/// Appends to the log and returns the event's id.
pub(crate) fn append(db: &Db<'_>, event: &NewEvent<'_>) -> Result<i64, DbError> {
    db.query_row(
        "INSERT INTO task_store_events (task_id, attempt_id, event_type, actor, actor_role, payload_json, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
        params![
            event.task_id,
            event.attempt_id,
            event.event_type,
            event.actor,
            event.actor_role,
            event.payload,
            event.created_at,
        ],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}

/// Part of the log to read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Page {
    /// The events after an id.
    After(i64),
    /// The latest events.
    Latest,
}

/// At most `limit` events in log order, fewer if payloads are large. The flag tells whether there may be
/// more.
pub(crate) fn page(
    db: &Db<'_>,
    task_id: Option<&TaskId>,
    page: Page,
    limit: u32,
) -> Result<(Vec<Event>, bool), DbError> {
    let mut wanted = Where::new("1 = 1");
    wanted.and_if("task_id =", task_id);
    let order = match page {
        Page::After(id) => {
            wanted.and("id >", &id);
            "id"
        }
        Page::Latest => "id DESC",
    };
    let most = wanted.param(&limit.saturating_add(1));
    let sizes = db.query(
        &format!(
            "SELECT id, length(payload_json) FROM task_store_events WHERE {} ORDER BY {order} LIMIT {most}",
            wanted.sql
        ),
        &wanted.params,
    )?;
    let mut ids: Vec<i64> = Vec::new();
    let mut bytes = 0_usize;
    for row in &sizes {
        bytes = bytes.saturating_add(row.get(1)?);
        let full = ids.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        if full || (bytes > PAGE_BYTES && !ids.is_empty()) {
            break;
        }
        ids.push(row.get(0)?);
    }
    let more = ids.len() < sizes.len();
    let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok((Vec::new(), more));
    };
    let events = between(db, task_id, *first, *last)?;
    Ok((events, more))
}

fn between(db: &Db<'_>, task_id: Option<&TaskId>, first: i64, last: i64) -> Result<Vec<Event>, DbError> {
    let mut wanted = Where::new("1 = 1");
    wanted.and_if("task_id =", task_id);
    wanted.and("id >=", &first);
    wanted.and("id <=", &last);
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM task_store_events WHERE {} ORDER BY id",
            wanted.sql
        ),
        &wanted.params,
    )
}

/// The latest checkpoint of a task.
pub(crate) fn latest_checkpoint(db: &Db<'_>, task_id: &TaskId) -> Result<Option<Event>, DbError> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM task_store_events WHERE task_id = ?1 AND event_type = 'attempt.checkpoint' \
             ORDER BY id DESC LIMIT 1"
        ),
        params![task_id],
    )
}

/// Time of the latest event of an attempt that its worker may have caused.
pub(crate) fn last_sign(db: &Db<'_>, attempt_id: &AttemptId) -> Result<Option<Timestamp>, DbError> {
    db.query_row(
        "SELECT created_at FROM task_store_events WHERE attempt_id = ?1 \
         AND event_type IN ('attempt.started', 'attempt.checkpoint', 'artifact.recorded', 'approval.requested') \
         ORDER BY id DESC LIMIT 1",
        params![attempt_id],
    )?
    .map(|row| row.get(0))
    .transpose()
}
