//! The two append-only logs: events for changes, and audit entries for changes, refusals and warnings.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Db, DbError, Row, Timestamp, ToValue, Value, params};

use crate::model::{Actor, Severity};

/// Event of a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// Id in the log, usable as `after`.
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
    /// Name of the actor.
    pub actor_name: String,
    /// Reason that the caller gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_reason: Option<String>,
    /// Id of the host process that served the call.
    pub session_id: String,
}

const EVENT: &str =
    "id, workspace, cmd, unit, params_json, ts, hash, actor, actor_name, trigger_reason, session_id";

impl TryFrom<Row> for Event {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Event, DbError> {
        Ok(Event {
            id: row.get(0)?,
            workspace: row.get(1)?,
            cmd: row.get(2)?,
            unit: row.get(3)?,
            params: row.json(4)?,
            ts: row.get(5)?,
            hash: row.get(6)?,
            actor: row.get(7)?,
            actor_name: row.get(8)?,
            trigger_reason: row.get(9)?,
            session_id: row.get(10)?,
        })
    }
}

/// Audit entry of a change, refusal or warning.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Id in the log, usable as `after`.
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

const ENTRY: &str =
    "id, workspace, ts, severity, tool, unit, code, message, actor_name, trigger_reason, session_id, op_id";

impl TryFrom<Row> for Entry {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Entry, DbError> {
        Ok(Entry {
            id: row.get(0)?,
            workspace: row.get(1)?,
            ts: row.get(2)?,
            severity: row.get(3)?,
            tool: row.get(4)?,
            unit: row.get(5)?,
            code: row.get(6)?,
            message: row.get(7)?,
            actor_name: row.get(8)?,
            trigger_reason: row.get(9)?,
            session_id: row.get(10)?,
            op_id: row.get(11)?,
        })
    }
}

/// Appends an event and assigns its `id`.
pub(crate) fn append_event(db: &Db<'_>, event: Event) -> Result<Event, DbError> {
    let id = db
        .query_row(
            "INSERT INTO gsd_events (workspace, cmd, unit, params_json, ts, hash, actor, actor_name, trigger_reason, \
             session_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id",
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
            ],
        )?
        .ok_or(DbError::Internal)?
        .get(0)?;
    Ok(Event { id, ..event })
}

/// Appends an entry and assigns its `id`.
pub(crate) fn append_entry(db: &Db<'_>, entry: Entry) -> Result<Entry, DbError> {
    let id = db
        .query_row(
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
        )?
        .ok_or(DbError::Internal)?
        .get(0)?;
    Ok(Entry { id, ..entry })
}

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

const PAGE: &str = "(?1 IS NULL OR workspace = ?1) AND id > ?2 AND substr(unit, 1, ?3) = ?4";

impl Page<'_> {
    fn params(&self, last: impl ToValue) -> [Value; 5] {
        [
            self.workspace.to_value(),
            self.after.to_value(),
            i64::try_from(self.unit.chars().count())
                .unwrap_or(i64::MAX)
                .to_value(),
            self.unit.to_value(),
            last.to_value(),
        ]
    }

    /// The last row of the page, and whether there are more. Sizes are read first, because a row may be as
    /// large as a call's arguments.
    fn end(&self, db: &Db<'_>, table: &str, large: &str) -> Result<(i64, bool), DbError> {
        let sizes = db.query(
            &format!("SELECT id, length({large}) FROM {table} WHERE {PAGE} ORDER BY id LIMIT ?5"),
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
}

/// Events, oldest first, and whether there are more.
pub(crate) fn events(db: &Db<'_>, page: &Page<'_>) -> Result<(Vec<Event>, bool), DbError> {
    let (last, more) = page.end(db, "gsd_events", "params_json")?;
    let events = db.query_as(
        &format!("SELECT {EVENT} FROM gsd_events WHERE {PAGE} AND id <= ?5 ORDER BY id"),
        &page.params(last),
    )?;
    Ok((events, more))
}

/// Entries, oldest first, and whether there are more.
pub(crate) fn entries(db: &Db<'_>, page: &Page<'_>) -> Result<(Vec<Entry>, bool), DbError> {
    let (last, more) = page.end(db, "gsd_audit", "message")?;
    let entries = db.query_as(
        &format!("SELECT {ENTRY} FROM gsd_audit WHERE {PAGE} AND id <= ?5 ORDER BY id"),
        &page.params(last),
    )?;
    Ok((entries, more))
}

/// The last change in a workspace, 0 before the first.
pub(crate) fn last_event(db: &Db<'_>, workspace: &str) -> Result<i64, DbError> {
    let last = db.query_row(
        "SELECT max(id) FROM gsd_events WHERE workspace = ?1",
        params![workspace],
    )?;
    Ok(last
        .map(|row| row.get::<Option<i64>>(0))
        .transpose()?
        .flatten()
        .unwrap_or_default())
}
