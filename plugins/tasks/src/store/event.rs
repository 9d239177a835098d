//! The append-only stream of events of a workspace.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, ToValue, Value, params};

use super::rows;
use crate::model::{EventType, Workspace};

/// Event of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// Sequence number in the workspace's stream, usable as `cursor` of tasks_delta.
    pub seq: i64,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The plan or task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Revision of the plan or task after the event.
    pub revision: i64,
    /// The step, node or other part that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Name of the caller, as given in `actor` or proven by the transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Details of the event by name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Json>,
    /// Time of creation.
    pub at: Timestamp,
}

const COLUMNS: &str = "seq, event_type, root, revision, target, data, at, actor";

from_row! {
    Event { seq, event_type, task, revision, target, data = members, at, actor }
}

/// Members of a JSON object.
fn members(data: Json) -> Map<String, Json> {
    match data {
        Json::Object(members) => members,
        _ => Map::new(),
    }
}

/// Appends to the stream.
pub(crate) fn append(db: &Db<'_>, workspace: &Workspace, event: &Event) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_events (workspace, seq, root, revision, event_type, target, data, at, actor) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            workspace,
            event.seq,
            event.task,
            event.revision,
            event.event_type,
            event.target,
            Json::Object(event.data.clone()),
            event.at,
            event.actor
        ],
    )
    .map(drop)
}

/// Events after a place in the stream, oldest first.
pub(crate) fn after(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
    since: i64,
    limit: usize,
) -> Result<Vec<Event>, DbError> {
    read(db, workspace, root, ("seq >", since), "seq", limit)
}

/// The latest events, oldest first.
pub(crate) fn latest(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
    limit: usize,
) -> Result<Vec<Event>, DbError> {
    let mut events = read(db, workspace, root, ("seq >", 0), "seq DESC", limit)?;
    events.reverse();
    Ok(events)
}

/// Events of a root after a revision, oldest first.
pub(crate) fn since_revision(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    revision: i64,
    limit: usize,
) -> Result<Vec<Event>, DbError> {
    read(db, workspace, Some(root), ("revision >", revision), "seq", limit)
}

/// The events of one kind about a part of a root, oldest first.
pub(crate) fn about(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    target: &str,
    event_type: EventType,
) -> Result<Vec<Event>, DbError> {
    const MAX_EVENTS: i64 = 1_000;
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM tasks_events \
             WHERE workspace = ?1 AND root = ?2 AND target = ?3 AND event_type = ?4 ORDER BY seq LIMIT ?5"
        ),
        params![workspace, root, target, event_type, MAX_EVENTS],
    )
}

fn read(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
    (condition, bound): (&str, i64),
    order: &str,
    limit: usize,
) -> Result<Vec<Event>, DbError> {
    let limit = rows(limit);
    let mut params: Vec<Value> = vec![workspace.to_value(), bound.to_value(), limit.to_value()];
    let mut sql = format!("SELECT {COLUMNS} FROM tasks_events WHERE workspace = ?1 AND {condition} ?2");
    if let Some(root) = root {
        params.push(root.to_value());
        sql.push_str(" AND root = ?4");
    }
    sql.push_str(&format!(" ORDER BY {order} LIMIT ?3"));
    db.query_as(&sql, &params)
}

/// Number of events after a place and a time, without those of some types.
pub(crate) fn count_since(
    db: &Db<'_>,
    workspace: &Workspace,
    after: i64,
    at: Timestamp,
    without: &[EventType],
) -> Result<i64, DbError> {
    let rows = db.query(
        "SELECT event_type FROM tasks_events WHERE workspace = ?1 AND seq > ?2 AND at > ?3",
        params![workspace, after, at],
    )?;
    let mut count = 0;
    for row in rows {
        count += i64::from(!without.contains(&row.get::<EventType>(0)?));
    }
    Ok(count)
}
