//! The files for programs: the two logs with one JSON object per line, and the claims.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Db, DbError, canonical_json};

use super::{AUDIT, EVENTS};
use crate::store::claim::Claim;
use crate::store::log::{self, Entry, Event, Page};

/// Bytes of a log that are read in one piece.
const PIECE: usize = 512 << 10;
/// Rows that are read in one piece.
const ROWS: u32 = 1_000;

/// Either of the two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    Events,
    Audit,
}

impl Log {
    pub(super) const ALL: [Log; 2] = [Log::Events, Log::Audit];

    pub(super) const fn path(self) -> &'static str {
        match self {
            Log::Events => EVENTS,
            Log::Audit => AUDIT,
        }
    }

    /// Lines after an id of the log: the text, its last id, and whether there are more.
    pub(super) fn lines(
        self,
        db: &Db<'_>,
        workspace: &str,
        after: i64,
    ) -> Result<(String, i64, bool), DbError> {
        let page = Page {
            workspace: Some(workspace),
            unit: "",
            after,
            limit: ROWS,
            bytes: PIECE,
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
