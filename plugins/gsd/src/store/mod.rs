//! All SQL of the pack: one file per table, each with the record that its rows are read as.

pub(crate) mod claim;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod log;
pub(crate) mod milestone;
pub(crate) mod removed;
pub(crate) mod slice;
pub(crate) mod task;

use crate::model::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tollgate_sdk::{Db, DbError, Timestamp, ToValue, Value, params};

/// Outcome of a statement or query.
pub(crate) type Result<T, E = DbError> = std::result::Result<T, E>;

/// Reopening of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reopen {
    /// Reason that the caller gave.
    pub reason: String,
    /// Name of the actor who reopened the unit.
    pub by: String,
    /// Time of the reopening.
    pub at: Timestamp,
}

impl Reopen {
    /// Copy with the reason shortened for lists.
    pub(crate) fn in_short(&self) -> Reopen {
        const MAX_REASON_CHARS: usize = 300;
        let mut reason: String = self.reason.chars().take(MAX_REASON_CHARS).collect();
        if reason.len() < self.reason.len() {
            reason.push('…');
        }
        Reopen {
            reason,
            ..self.clone()
        }
    }
}

impl ToValue for Reopen {
    fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default().to_value()
    }
}

/// Record of closing a unit.
#[derive(Debug)]
pub(crate) struct Closing<'a> {
    /// Summary of the call that closes the unit.
    pub summary: Json,
    pub by: &'a str,
    /// Hash of the event.
    pub hash: &'a str,
}

/// Actor and content hash of a closing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub by: String,
    pub hash: String,
}

/// A list of text as a column.
fn list(entries: &[impl Serialize]) -> Value {
    serde_json::to_value(entries).unwrap_or_default().to_value()
}

/// Runs a statement that has to change one row, which was checked before.
fn change_one(db: &Db<'_>, sql: &str, params: &[Value]) -> Result<()> {
    match db.execute(sql, params)? {
        1 => Ok(()),
        _ => Err(DbError::Internal),
    }
}

/// Reads a list in pages, because one database reply has a size limit and each row may be large. `page` gets
/// the number of the last row read (-1 at first) and the page size.
fn in_pages<T>(
    at_once: u32,
    ordinal: impl Fn(&T) -> u32,
    page: impl Fn(i64, u32) -> Result<Vec<T>, DbError>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    loop {
        let after = rows.last().map_or(-1, |row| i64::from(ordinal(row)));
        let next = page(after, at_once)?;
        let is_last = u32::try_from(next.len()).is_ok_and(|count| count < at_once);
        rows.extend(next);
        if is_last {
            return Ok(rows);
        }
    }
}

/// The workspaces with milestones, by name.
pub(crate) fn workspaces(db: &Db<'_>) -> Result<Vec<String>> {
    db.query(
        "SELECT workspace FROM gsd_milestones GROUP BY workspace ORDER BY workspace LIMIT 200",
        params![],
    )?
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Returns whether anything was ever stored about a workspace.
pub(crate) fn is_known(db: &Db<'_>, workspace: &str) -> Result<bool> {
    let found = db.query_row(
        "SELECT EXISTS (SELECT 1 FROM gsd_events WHERE workspace = ?1) \
         OR EXISTS (SELECT 1 FROM gsd_milestones WHERE workspace = ?1)",
        params![workspace],
    )?;
    found.ok_or(DbError::Internal)?.get(0)
}

/// Returns whether a unit is planned.
pub(crate) fn exists(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<bool> {
    Ok(match (&unit.slice, &unit.task) {
        (Some(slice), Some(task)) => {
            task::get(db, workspace, unit.milestone.slice(slice).task(task))?.is_some()
        }
        (Some(slice), None) => slice::get(db, workspace, unit.milestone.slice(slice))?.is_some(),
        (None, _) => milestone::get(db, workspace, &unit.milestone)?.is_some(),
    })
}
