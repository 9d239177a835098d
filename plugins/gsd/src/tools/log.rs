//! Reading the two logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_sdk::{Cx, ToolError};

use super::read_tool;
use super::status::require_known;
use crate::arguments::MAX_WORKSPACE_CHARS;
use crate::refused::{self, RefusedCall};
use crate::store::log::{self, Entry, Event, Page};

/// Most rows of one reply, and the default.
const MAX_ROWS: u32 = 200;
const DEFAULT_ROWS: u32 = 50;
/// Size limit of the rows of one reply. A larger first row is still returned.
const MAX_REPLY_BYTES: usize = 32_768;

/// Arguments that select a page of a log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct LogQuery {
    /// Name of the workspace. Default: all.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    workspace: Option<String>,
    /// Unit key, including units inside it, or a key prefix. Default: all.
    #[schemars(length(max = 20))]
    unit: Option<String>,
    /// Cursor: `next_cursor` of the previous page.
    cursor: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(extend("deprecated" = true))]
    after: Option<i64>,
    /// Maximum number of rows, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = MAX_ROWS))]
    limit: Option<u32>,
}

impl LogQuery {
    fn page(&self) -> Page<'_> {
        Page {
            workspace: self.workspace.as_deref(),
            unit: self.unit.as_deref().unwrap_or_default(),
            after: self.cursor.or(self.after).unwrap_or_default(),
            limit: self.limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS),
            bytes: MAX_REPLY_BYTES,
        }
    }

    /// Refuses a workspace without rows whose name may be mistyped.
    fn refuse_mistyped(&self, cx: &Cx<'_>, is_empty: bool) -> Result<(), ToolError> {
        match self.workspace.as_deref().filter(|_| is_empty) {
            Some(workspace) => require_known(cx, workspace),
            None => Ok(()),
        }
    }
}

/// List changes with actor and reason, oldest first. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
// Pages follow numbers that changes in several workspaces take at the same time.
#[schemars(extend("x-feed" = true))]
pub(crate) struct ListEvents(LogQuery);

/// Page of changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Events {
    /// Changes, oldest first.
    events: Vec<Event>,
    /// Value of `cursor` for the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
    /// True if there are more.
    has_more: bool,
}

read_tool!(ListEvents => Events, "gsd_events", "List changes");

impl ListEvents {
    fn read(self, cx: &Cx<'_>) -> Result<Events, ToolError> {
        let (events, more) = log::events(&cx.db, &self.0.page())?;
        self.0.refuse_mistyped(cx, events.is_empty())?;
        let next_cursor = events.last().map(|event| event.id).filter(|_| more);
        Ok(Events {
            events: events.into_iter().map(without_bulk).collect(),
            next_cursor,
            has_more: more,
        })
    }
}

/// List the audit log, oldest first: changes, refusals and warnings with caller and reason. Includes the gsd calls
/// that the host refused in that time. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
// Pages follow numbers that changes in several workspaces take at the same time.
#[schemars(extend("x-feed" = true))]
pub(crate) struct ListAudit(LogQuery);

/// Page of audit entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Audit {
    /// Entries, oldest first.
    entries: Vec<Entry>,
    /// Calls that the host refused before they reached the pack, from its ledger, in any workspace, oldest first. Left
    /// out for a unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused_by_host: Vec<RefusedCall>,
    /// Value of `cursor` for the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
    /// True if there are more.
    has_more: bool,
}

read_tool!(ListAudit => Audit, "gsd_audit_log", "Read the audit log");

impl ListAudit {
    fn read(self, cx: &Cx<'_>) -> Result<Audit, ToolError> {
        let page = self.0.page();
        let (entries, more) = log::entries(&cx.db, &page)?;
        let next_cursor = entries.last().map(|entry| entry.id).filter(|_| more);
        self.0.refuse_mistyped(cx, entries.is_empty())?;
        let refused_by_host = match self.0.unit {
            Some(_) => Vec::new(),
            None => {
                let from = page.start(&cx.db)?;
                let until = entries.last().map(|entry| entry.ts).filter(|_| more);
                refused::between(cx, from, until)?
            }
        };
        Ok(Audit {
            entries,
            refused_by_host,
            next_cursor,
            has_more: more,
        })
    }
}

/// Removes large arguments from an event. The log's file has all of them.
fn without_bulk(event: Event) -> Event {
    let bytes = serde_json::to_string(&event.params).map_or(0, |text| text.len());
    if bytes <= MAX_REPLY_BYTES {
        return event;
    }
    let short = |value: &Value| value.is_number() || value.as_str().is_some_and(|text| text.len() <= 200);
    let mut params: Map<String, Value> = event
        .params
        .into_iter()
        .filter(|(_, value)| short(value))
        .collect();
    params.insert("omitted_bytes".to_owned(), json!(bytes));
    Event { params, ..event }
}
