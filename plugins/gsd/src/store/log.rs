//! The two append-only logs: events for changes, and audit entries for changes, refusals and warnings.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Row, Timestamp, ToValue, Value, params};

use super::Result;
use crate::model::{Actor, Severity, Unit};

/// Reading of arguments in new events: absent fields of a plan stay as they are. In events of version 1 they are
/// empty.
pub(crate) const VERSION: i64 = 2;

/// Event of a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// Id in the log, usable as `cursor`.
    pub id: i64,
    /// Name of the workspace.
    pub workspace: String,
    /// Command, for example `complete-task`.
    pub cmd: String,
    /// Key of the changed unit.
    pub unit: String,
    /// Arguments of the call.
    pub params: Map<String, Json>,
    /// Time of the call.
    pub ts: Timestamp,
    /// The first 16 hex digits of the SHA-256 of `cmd` and `params` as canonical JSON.
    pub hash: String,
    /// True if an agent or the system caused the change.
    pub actor: Actor,
    /// Name of the actor who called.
    pub actor_name: String,
    /// Reason that the caller gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_reason: Option<String>,
    /// Id of the host process that served the call.
    pub session_id: String,
    /// Reading of the arguments.
    #[serde(skip)]
    pub version: i64,
    /// True if the event was imported and not applied, because it contradicted what was stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

const EVENT_COLUMNS: &str = "id, workspace, cmd, unit, params_json, ts, hash, actor, actor_name, trigger_reason, session_id, version, skipped";

from_row! {
    Event {
        id, workspace, cmd, unit, params: json, ts, hash, actor, actor_name, trigger_reason, session_id,
        version, skipped
    }
}

/// Audit entry of a change, refusal or warning.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Id in the log, usable as `cursor`.
    pub id: i64,
    /// Name of the workspace.
    pub workspace: String,
    /// Time of the call.
    pub ts: Timestamp,
    /// `info`: done. `warn`: done with a warning. `error`: refused.
    pub severity: Severity,
    /// Name of the tool.
    pub tool: String,
    /// Key of the unit.
    pub unit: String,
    /// Code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Message in one sentence.
    pub message: String,
    /// Name of the caller.
    pub actor_name: String,
    /// Reason that the caller gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_reason: Option<String>,
    /// Id of the host process that served the call.
    pub session_id: String,
    /// Id of the operation in the ledger.
    pub op_id: String,
}

const ENTRY_COLUMNS: &str =
    "id, workspace, ts, severity, tool, unit, code, message, actor_name, trigger_reason, session_id, op_id";

from_row! {
    Entry {
        id, workspace, ts, severity, tool, unit, code, message, actor_name, trigger_reason, session_id,
        op_id
    }
}

impl Event {
    /// The text by which the event's line is recognised, so that an edit of another part does not make it another
    /// line: the call, its time, and its process.
    pub(crate) fn line_key(&self) -> String {
        event_key(&self.hash, self.ts, &self.session_id)
    }
}

pub(crate) fn event_key(hash: &str, ts: Timestamp, session: &str) -> String {
    format!("{hash} {ts} {session}")
}

impl Entry {
    /// The text by which the entry's line is recognised.
    pub(crate) fn line_key(&self) -> String {
        entry_key(self.ts, self.severity, &self.tool, &self.session_id, &self.op_id)
    }
}

fn entry_key(ts: Timestamp, severity: Severity, tool: &str, session: &str, op_id: &str) -> String {
    format!("{ts} {severity} {tool} {session} {op_id}")
}

/// Keys of lines with the ids of their rows.
type LineKeys = Vec<(i64, String)>;

/// Keys of the lines of events after an id.
pub(crate) fn event_keys(db: &Db<'_>, workspace: &str, after: i64, limit: u32) -> Result<LineKeys> {
    db.query(
        "SELECT id, hash, ts, session_id FROM gsd_events WHERE workspace = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        params![workspace, after, limit],
    )?
    .iter()
    .map(|row| {
        let (hash, session): (String, String) = (row.get(1)?, row.get(3)?);
        Ok((row.get(0)?, event_key(&hash, row.get(2)?, &session)))
    })
    .collect()
}

/// Keys of the lines of entries after an id.
pub(crate) fn entry_keys(db: &Db<'_>, workspace: &str, after: i64, limit: u32) -> Result<LineKeys> {
    db.query(
        "SELECT id, ts, severity, tool, session_id, op_id FROM gsd_audit WHERE workspace = ?1 AND id > ?2 \
         ORDER BY id LIMIT ?3",
        params![workspace, after, limit],
    )?
    .iter()
    .map(|row| {
        let (tool, session, op_id): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(5)?);
        Ok((
            row.get(0)?,
            entry_key(row.get(1)?, row.get(2)?, &tool, &session, &op_id),
        ))
    })
    .collect()
}

/// Appends an event and assigns its `id`.
pub(crate) fn append_event(db: &Db<'_>, event: Event) -> Result<Event> {
    let id = append(
        db,
        "INSERT INTO gsd_events (workspace, cmd, unit, params_json, ts, hash, actor, actor_name, trigger_reason, \
         session_id, version, skipped) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING id",
        params![
            event.workspace,
            event.cmd,
            event.unit,
            Json::Object(event.params.clone()),
            event.ts,
            event.hash,
            event.actor,
            event.actor_name,
            event.trigger_reason,
            event.session_id,
            event.version,
            event.skipped,
        ],
    )?;
    Ok(Event { id, ..event })
}

/// Appends an entry and assigns its `id`.
pub(crate) fn append_entry(db: &Db<'_>, entry: Entry) -> Result<Entry> {
    let id = append(
        db,
        "INSERT INTO gsd_audit (workspace, ts, severity, tool, unit, code, message, actor_name, trigger_reason, \
         session_id, op_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING id",
        params![
            entry.workspace,
            entry.ts,
            entry.severity,
            entry.tool,
            entry.unit,
            entry.code,
            entry.message,
            entry.actor_name,
            entry.trigger_reason,
            entry.session_id,
            entry.op_id,
        ],
    )?;
    Ok(Entry { id, ..entry })
}

/// Runs an INSERT that returns the id of its row.
fn append(db: &Db<'_>, sql: &str, params: &[Value]) -> Result<i64> {
    db.query_row(sql, params)?.ok_or(DbError::Internal)?.get(0)
}

/// Characters of arguments above which an event is not part of a unit's history.
const LARGE_EVENT: i64 = 60_000;

/// Page of a log, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    /// Workspace, or `None` for all.
    pub workspace: Option<&'a str>,
    /// Prefix of the unit's key.
    pub unit: &'a str,
    pub after: i64,
    pub limit: u32,
    /// Approximate size limit. A larger first row is still returned.
    pub bytes: usize,
}

/// A whole key matches its unit and what is inside it: M01 does not match M010.
const IS_ON_PAGE: &str =
    "(?1 IS NULL OR workspace = ?1) AND id > ?2 AND (substr(unit, 1, ?3) = ?4 OR unit = ?6)";

impl Page<'_> {
    /// Time of the entry before the page, `None` for the first page.
    pub(crate) fn start(&self, db: &Db<'_>) -> Result<Option<Timestamp>> {
        let row = db.query_row("SELECT ts FROM gsd_audit WHERE id = ?1", params![self.after])?;
        row.map(|row| row.get(0)).transpose()
    }

    fn params(&self, last: impl ToValue) -> [Value; 6] {
        let prefix = match Unit::parse(self.unit) {
            Some(unit) => format!("{unit}/"),
            None => self.unit.to_owned(),
        };
        [
            self.workspace.to_value(),
            self.after.to_value(),
            i64::try_from(prefix.chars().count())
                .unwrap_or(i64::MAX)
                .to_value(),
            prefix.to_value(),
            last.to_value(),
            self.unit.to_value(),
        ]
    }

    /// The last row of the page, and whether there are more. Sizes are read first, because a row may be as
    /// large as a call's arguments.
    fn end(&self, db: &Db<'_>, table: &str, large: &str) -> Result<(i64, bool)> {
        let sizes = db.query(
            &format!("SELECT id, length({large}) FROM {table} WHERE {IS_ON_PAGE} ORDER BY id LIMIT ?5"),
            &self.params(self.limit.saturating_add(1)),
        )?;
        let (mut last, mut bytes, mut count) = (self.after, 0_usize, 0);
        for row in &sizes {
            bytes = bytes.saturating_add(row.get::<usize>(1)?).saturating_add(400);
            if count == self.limit || (count > 0 && bytes > self.bytes) {
                return Ok((last, true));
            }
            last = row.get(0)?;
            count += 1;
        }
        Ok((last, false))
    }

    /// Rows of the page, and whether there are more.
    fn rows<T>(&self, db: &Db<'_>, table: &str, columns: &str, large: &str) -> Result<(Vec<T>, bool)>
    where
        T: TryFrom<Row, Error = DbError>,
    {
        let (last, more) = self.end(db, table, large)?;
        let rows = db.query_as(
            &format!("SELECT {columns} FROM {table} WHERE {IS_ON_PAGE} AND id <= ?5 ORDER BY id"),
            &self.params(last),
        )?;
        Ok((rows, more))
    }
}

/// Events, oldest first, and whether there are more.
pub(crate) fn events(db: &Db<'_>, page: &Page<'_>) -> Result<(Vec<Event>, bool)> {
    page.rows(db, "gsd_events", EVENT_COLUMNS, "params_json")
}

/// Entries, oldest first, and whether there are more.
pub(crate) fn entries(db: &Db<'_>, page: &Page<'_>) -> Result<(Vec<Entry>, bool)> {
    page.rows(db, "gsd_audit", ENTRY_COLUMNS, "message")
}

/// Ids of the operations that the log has as refused, from a time on.
pub(crate) fn refusals_since(db: &Db<'_>, from: Option<Timestamp>) -> Result<Vec<String>> {
    let rows = db.query(
        "SELECT op_id FROM gsd_audit WHERE severity = 'error' AND (?1 IS NULL OR ts >= ?1)",
        params![from],
    )?;
    rows.iter().map(|row| row.get(0)).collect()
}

/// The last change in a workspace, 0 before the first.
pub(crate) fn last_event(db: &Db<'_>, workspace: &str) -> Result<i64> {
    extreme(db, "max", workspace)
}

/// The first change in a workspace, 0 if there is none.
pub(crate) fn first_event(db: &Db<'_>, workspace: &str) -> Result<i64> {
    extreme(db, "min", workspace)
}

fn extreme(db: &Db<'_>, which: &str, workspace: &str) -> Result<i64> {
    let found = db.query_row(
        &format!("SELECT {which}(id) FROM gsd_events WHERE workspace = ?1"),
        params![workspace],
    )?;
    Ok(found
        .map(|row| row.get::<Option<i64>>(0))
        .transpose()?
        .flatten()
        .unwrap_or_default())
}

/// An event by its id.
pub(crate) fn event(db: &Db<'_>, id: i64) -> Result<Option<Event>> {
    db.query_one(
        &format!("SELECT {EVENT_COLUMNS} FROM gsd_events WHERE id = ?1"),
        params![id],
    )
}

/// Time of the last start of a task.
pub(crate) fn started_at(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<Option<Timestamp>> {
    let row = db.query_row(
        "SELECT ts FROM gsd_events WHERE workspace = ?1 AND unit = ?2 AND cmd = 'start-task' AND skipped = 0 \
         ORDER BY id DESC LIMIT 1",
        params![workspace, unit.to_string()],
    )?;
    row.map(|row| row.get(0)).transpose()
}

/// The event that removed a task or slice: a replan of its slice, or an assessment of its roadmap.
pub(crate) fn removal(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<Option<Event>> {
    let find = |cmd: &str, around: &str, id: &str, path: &str| -> Result<Option<Event>> {
        let events: Vec<Event> = db.query_as(
            &format!(
                "SELECT {EVENT_COLUMNS} FROM gsd_events WHERE workspace = ?1 AND cmd = ?2 AND substr(unit, 1, ?3) = ?4 \
                 AND skipped = 0 AND instr(params_json, ?5) > 0 AND length(params_json) < ?6 ORDER BY id DESC LIMIT 10"
            ),
            params![
                workspace,
                cmd,
                i64::try_from(around.len()).unwrap_or(i64::MAX),
                around,
                format!("\"{id}\""),
                LARGE_EVENT
            ],
        )?;
        Ok(events.into_iter().find(|event| {
            let params = Json::Object(event.params.clone());
            let removed = params.pointer(path).and_then(Json::as_array);
            removed.is_some_and(|ids| ids.iter().any(|removed| removed == id))
        }))
    };
    let Some(slice) = &unit.slice else {
        return Ok(None);
    };
    if let Some(task) = &unit.task {
        let around = Unit::slice(&unit.milestone, slice).to_string();
        let found = find("replan-slice", &around, task.as_str(), "/removed_task_ids")?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let around = format!("{}/", unit.milestone);
    find(
        "reassess-roadmap",
        &around,
        slice.as_str(),
        "/slice_changes/removed",
    )
}

/// The latest events of exactly one unit, oldest first.
pub(crate) fn of_unit(db: &Db<'_>, workspace: &str, unit: &Unit, limit: u32) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = db.query_as(
        &format!(
            "SELECT {EVENT_COLUMNS} FROM gsd_events WHERE workspace = ?1 AND unit = ?2 AND length(params_json) < ?3 \
             ORDER BY id DESC LIMIT ?4"
        ),
        params![workspace, unit.to_string(), LARGE_EVENT, limit],
    )?;
    events.reverse();
    Ok(events)
}
