//! Reading the two logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use crate::arguments::WORKSPACE;
use crate::store::log::{self, Entry, Event, Page};

/// Most rows of one reply, and how many without being asked.
const MOST: u32 = 200;
const USUAL: u32 = 50;
/// Bytes of rows that one reply carries, unless its first row alone is larger.
const BYTES: usize = 32_768;

/// List changes, oldest first, with who made them and why. Page with `after`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListEvents {
    /// Only this workspace.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: Option<String>,
    /// Only units whose key starts so, such as M01/S01.
    #[schemars(length(max = 20))]
    unit: Option<String>,
    /// Only changes after this place in the log.
    after: Option<i64>,
    /// At most this many, 50 unless given.
    #[schemars(range(min = 1, max = MOST))]
    limit: Option<u32>,
}

/// Changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Events {
    /// The changes, oldest first.
    events: Vec<Event>,
    /// Where to go on, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

impl Tool for ListEvents {
    const NAME: &'static str = "gsd_events";
    const TITLE: &'static str = "List changes";
    const EFFECT: Effect = Effect::Read;
    type Output = Events;

    fn run(self, cx: &Cx<'_>) -> Result<Events, ToolError> {
        let page = page(
            self.workspace.as_deref(),
            self.unit.as_deref(),
            self.after,
            self.limit,
        );
        let (events, more) = log::events(&cx.db, &page)?;
        let next_after = events.last().map(|event| event.id).filter(|_| more);
        Ok(Events {
            events: events.into_iter().map(without_bulk).collect(),
            next_after,
        })
    }
}

/// List what was done, refused and warned about, oldest first, with who called and why. Page with `after`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListAudit {
    /// Only this workspace.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: Option<String>,
    /// Only units whose key starts so, such as M01/S01.
    #[schemars(length(max = 20))]
    unit: Option<String>,
    /// Only entries after this place in the log.
    after: Option<i64>,
    /// At most this many, 50 unless given.
    #[schemars(range(min = 1, max = MOST))]
    limit: Option<u32>,
}

/// Entries of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Audit {
    /// The entries, oldest first.
    entries: Vec<Entry>,
    /// Where to go on, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

impl Tool for ListAudit {
    const NAME: &'static str = "gsd_audit_log";
    const TITLE: &'static str = "Read the audit log";
    const EFFECT: Effect = Effect::Read;
    type Output = Audit;

    fn run(self, cx: &Cx<'_>) -> Result<Audit, ToolError> {
        let page = page(
            self.workspace.as_deref(),
            self.unit.as_deref(),
            self.after,
            self.limit,
        );
        let (entries, more) = log::entries(&cx.db, &page)?;
        let next_after = entries.last().map(|entry| entry.id).filter(|_| more);
        Ok(Audit { entries, next_after })
    }
}

fn page<'a>(
    workspace: Option<&'a str>,
    unit: Option<&'a str>,
    after: Option<i64>,
    limit: Option<u32>,
) -> Page<'a> {
    Page {
        workspace,
        unit: unit.unwrap_or_default(),
        after: after.unwrap_or_default(),
        limit: limit.unwrap_or(USUAL).clamp(1, MOST),
        bytes: BYTES,
    }
}

/// A plan may be as large as a call's arguments; the file of the log has all of it.
fn without_bulk(event: Event) -> Event {
    let bytes = serde_json::to_string(&event.params).map_or(0, |text| text.len());
    if bytes <= BYTES {
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
