//! The files for programs: the two logs with one JSON object per line, and the claims.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_kit::text::clip;
use tollgate_sdk::{Db, DbError, Timestamp, canonical_json};

use super::{AUDIT_FILE, EVENTS_FILE};
use crate::act::DEFAULT_ACTOR;
use crate::event_hash::event_hash;
use crate::model::{Actor, Severity, Unit};
use crate::store::claim::Claim;
use crate::store::log::{self, Entry, Event, Page};

/// Bytes of a log that are read in one piece.
const PIECE_BYTES: usize = 512 << 10;
/// Rows that are read in one piece.
const PIECE_ROWS: u32 = 1_000;

/// Either of the two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    Events,
    Audit,
}

impl Log {
    pub(super) const ALL: [Log; 2] = [Log::Events, Log::Audit];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Log::Events => EVENTS_FILE,
            Log::Audit => AUDIT_FILE,
        }
    }

    /// The file that damaged lines are moved to.
    pub(crate) const fn set_aside_path(self) -> &'static str {
        match self {
            Log::Events => ".gsd/event-log.damaged.jsonl",
            Log::Audit => ".gsd/audit-log.damaged.jsonl",
        }
    }

    /// Reads a line of the log's file, which this pack or an earlier version of it wrote.
    pub(crate) fn parse(self, line: &str) -> Result<Parsed, Damage> {
        match self {
            Log::Events => parse_event(line).map(Parsed::Event),
            Log::Audit => parse_entry(line).map(Parsed::Entry).ok_or(Damage::NoEntry),
        }
    }

    /// The key of an event whose line is not JSON any more, from what is left of the line. Quotes inside texts are
    /// escaped there.
    pub(super) fn key_in(self, line: &str) -> Option<String> {
        let text = |name: &str| {
            let (_, rest) = line.rsplit_once(&format!("\"{name}\":\""))?;
            rest.split_once('"').map(|(text, _)| text)
        };
        match self {
            Log::Events => Some(log::event_key(
                text("hash")?,
                Timestamp::parse(text("ts")?)?,
                text("session_id")?,
            )),
            Log::Audit => None,
        }
    }

    /// Keys of the stored lines after an id of the log, the last id, and whether there are more.
    pub(crate) fn keys(
        self,
        db: &Db<'_>,
        workspace: &str,
        after: i64,
    ) -> Result<(Vec<String>, i64, bool), DbError> {
        let keys = match self {
            Log::Events => log::event_keys(db, workspace, after, PIECE_ROWS)?,
            Log::Audit => log::entry_keys(db, workspace, after, PIECE_ROWS)?,
        };
        let more = u32::try_from(keys.len()).is_ok_and(|count| count == PIECE_ROWS);
        let last = keys.last().map_or(after, |(id, _)| *id);
        Ok((keys.into_iter().map(|(_, key)| key).collect(), last, more))
    }

    /// Lines after an id of the log: the text, its last id, and whether there are more.
    pub(crate) fn lines(
        self,
        db: &Db<'_>,
        workspace: &str,
        after: i64,
    ) -> Result<(String, i64, bool), DbError> {
        let page = Page {
            workspace: Some(workspace),
            unit: "",
            after,
            limit: PIECE_ROWS,
            bytes: PIECE_BYTES,
        };
        match self {
            Log::Events => {
                let (events, more) = log::events(db, &page)?;
                let last = events.last().map_or(after, |event| event.id);
                Ok((events.iter().map(event_line).collect(), last, more))
            }
            Log::Audit => {
                let (entries, more) = log::entries(db, &page)?;
                let last = entries.last().map_or(after, |entry| entry.id);
                Ok((entries.iter().map(entry_line).collect(), last, more))
            }
        }
    }
}

/// `{"cmd":…,"params":…,"ts":…,"hash":…,"actor":…,…}`
fn event_line(event: &Event) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        cmd: &'a str,
        params: Json,
        ts: String,
        hash: &'a str,
        actor: &'a str,
        actor_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_reason: Option<&'a str>,
        session_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        v: Option<i64>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        skipped: bool,
    }
    // Sorted like the text that was hashed, so that the hash can be checked with a line's own bytes.
    let params = serde_json::from_str(&canonical_json(&Json::Object(event.params.clone())));
    line(&Line {
        cmd: &event.cmd,
        params: params.unwrap_or_default(),
        ts: event.ts.to_string(),
        hash: &event.hash,
        actor: event.actor.as_str(),
        actor_name: &event.actor_name,
        trigger_reason: event.trigger_reason.as_deref(),
        session_id: &event.session_id,
        v: Some(event.version).filter(|version| *version > 1),
        skipped: event.skipped,
    })
}

/// A line of a log that this pack or an earlier version of it wrote.
#[derive(Debug)]
pub(crate) enum Parsed {
    Event(Event),
    Entry(Entry),
}

impl Parsed {
    /// The text by which the line is recognised.
    pub(crate) fn line_key(&self) -> String {
        match self {
            Parsed::Event(event) => event.line_key(),
            Parsed::Entry(entry) => entry.line_key(),
        }
    }
}

/// Reason why a line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damage {
    NoEvent,
    NoEntry,
    /// Command or arguments were edited, so that the hash does not fit. The key is that of the line before.
    Edited {
        key: String,
        event: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NoEvent => write!(f, "is not an event of gsd"),
            Damage::NoEntry => write!(f, "is not an audit entry of gsd"),
            Damage::Edited { event, .. } => {
                write!(
                    f,
                    "was edited: its hash does not match its command and arguments ({event})"
                )
            }
        }
    }
}

/// Reads an event whose hash is that of its command and arguments.
fn parse_event(line: &str) -> Result<Event, Damage> {
    #[derive(Deserialize)]
    struct Line {
        cmd: String,
        params: Map<String, Json>,
        ts: Timestamp,
        hash: String,
        actor: Option<Actor>,
        actor_name: Option<String>,
        trigger_reason: Option<String>,
        session_id: Option<String>,
        v: Option<i64>,
        skipped: Option<bool>,
    }
    let line: Line = serde_json::from_str(line).map_err(|_| Damage::NoEvent)?;
    let unit = unit_of(&line.params).ok_or(Damage::NoEvent)?;
    let is_edited = event_hash(&line.cmd, &line.params) != line.hash;
    let event = Event {
        id: 0,
        workspace: String::new(),
        cmd: line.cmd,
        unit: unit.to_string(),
        params: line.params,
        ts: line.ts,
        hash: line.hash,
        actor: line.actor.unwrap_or(Actor::Agent),
        actor_name: line.actor_name.unwrap_or_else(|| DEFAULT_ACTOR.to_owned()),
        trigger_reason: line.trigger_reason,
        session_id: line.session_id.unwrap_or_default(),
        version: line.v.unwrap_or(1),
        skipped: line.skipped.unwrap_or_default(),
    };
    match is_edited {
        true => Err(Damage::Edited {
            key: event.line_key(),
            event: format!("{} of {} at {}", clip(&event.cmd), event.unit, event.ts),
        }),
        false => Ok(event),
    }
}

/// The unit that an event's arguments name.
fn unit_of(params: &Map<String, Json>) -> Option<Unit> {
    let id = |name: &str| params.get(name).and_then(Json::as_str);
    let slice = id("slice_id").or_else(|| id("completed_slice_id"));
    let key = [id("milestone_id"), slice, id("task_id")];
    Unit::parse(&key.into_iter().flatten().collect::<Vec<_>>().join("/"))
}

fn parse_entry(line: &str) -> Option<Entry> {
    #[derive(Deserialize)]
    struct Line {
        ts: Timestamp,
        severity: Severity,
        component: String,
        message: String,
        unit: String,
        code: Option<String>,
        actor_name: String,
        trigger_reason: Option<String>,
        session_id: String,
        op_id: String,
    }
    let line: Line = serde_json::from_str(line).ok()?;
    Some(Entry {
        id: 0,
        workspace: String::new(),
        ts: line.ts,
        severity: line.severity,
        tool: line.component,
        unit: line.unit,
        code: line.code,
        message: line.message,
        actor_name: line.actor_name,
        trigger_reason: line.trigger_reason,
        session_id: line.session_id,
        op_id: line.op_id,
    })
}

fn entry_line(entry: &Entry) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        ts: String,
        severity: &'a str,
        component: &'a str,
        message: &'a str,
        unit: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'a str>,
        actor_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_reason: Option<&'a str>,
        session_id: &'a str,
        op_id: &'a str,
    }
    line(&Line {
        ts: entry.ts.to_string(),
        severity: entry.severity.as_str(),
        component: &entry.tool,
        message: &entry.message,
        unit: &entry.unit,
        code: entry.code.as_deref(),
        actor_name: &entry.actor_name,
        trigger_reason: entry.trigger_reason.as_deref(),
        session_id: &entry.session_id,
        op_id: &entry.op_id,
    })
}

fn line(row: &impl Serialize) -> String {
    // Rows of text and numbers can always be written.
    let mut text = serde_json::to_string(row).unwrap_or_default();
    text.push('\n');
    text
}

/// unit-claims.json: `{"M01/S01": {"agent": …, "claimed_at": …}}`.
pub(super) fn claims(claims: &BTreeMap<String, Claim>) -> String {
    let units: Map<String, Json> = claims
        .values()
        .map(|claim| {
            let mut held = json!({"agent": claim.owner, "claimed_at": claim.claimed_at});
            if let (Some(held), Some(until)) = (held.as_object_mut(), claim.expires_at) {
                held.insert("expires_at".to_owned(), json!(until));
            }
            (claim.unit.clone(), held)
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&Json::Object(units)).unwrap_or_default();
    text.push('\n');
    text
}
