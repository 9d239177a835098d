//! Ends of envelopes. Each end is an event in a row of the ledger, so that states can be recomputed from the rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::State;
use tollgate_core::failure_class::FailureClass;
use tollgate_core::hash;

use super::engine::sql;
use super::envelopes::{Envelope, counters_of};
use super::error::StoreResult;
use super::handles::{Envelopes, WorkTrees};
use super::ledger::{OpType, Operation};
use super::over::Over;

/// Event type of an opening.
pub(super) const OPENED: &str = "envelope.opened";
/// Event type of an end.
pub(super) const CLOSED: &str = "envelope.closed";
/// Event type for a copy to another database, after which an open envelope's time is counted by another clock.
pub(super) const MOVED: &str = "envelope.moved";
/// Field in the event of an end with the work trees that were scanned before it.
pub const WORK_TREES: &str = "work_trees";
/// Reason for an end caused by the end of the enclosing envelope.
pub(super) const PARENT_CLOSED: &str = "PARENT_CLOSED";
/// Pack and tool of rows that the host writes for ends without a call.
pub(super) const HOST_PACK: &str = "core";
const CLOSE_TOOL: &str = "envelope_close";

/// End of an envelope.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// New state.
    pub state: State,
    /// Reason, unless the owner closed it.
    pub closed_by: Option<&'a str>,
    /// Note of the caller who closed it.
    pub note: Option<&'a str>,
    /// Caller who closed it, as operations name callers.
    pub actor: Option<&'a str>,
    /// Time, RFC 3339.
    pub now: &'a str,
    /// The same time in milliseconds since the machine's boot. An envelope whose time is up then ends by time.
    pub boot_ms: i64,
}

impl<'a> Ending<'a> {
    /// An end caused by the host.
    pub fn by_host(state: State, closed_by: &'a str, now: &'a str, boot_ms: i64) -> Ending<'a> {
        Ending {
            state,
            closed_by: Some(closed_by),
            note: None,
            actor: None,
            now,
            boot_ms,
        }
    }
}

/// Difference from which an envelope counts as opened before the machine's last boot.
const CLOCK_TOLERANCE_MS: i64 = 60_000;

/// Event with the settings of an opened envelope and the limits of its named budgets.
pub fn opened(envelope: &Envelope, budgets: &BTreeMap<String, i64>) -> Value {
    let mut event = json!({
        "type": OPENED,
        "envelope_id": envelope.id,
        "limits": envelope.standing.limits,
        "opened_boot_ms": envelope.standing.opened_boot_ms,
        "opened_at": envelope.opened_at,
    });
    if !budgets.is_empty() {
        event["budgets"] = json!(budgets);
    }
    let named = [
        ("workspace", &envelope.workspace),
        ("label", &envelope.label),
        ("parent", &envelope.parent),
        ("identity", &envelope.identity),
        ("git_head", &envelope.git_head),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            event[name] = json!(value);
        }
    }
    if let Some(until_ms) = envelope.detached_until_ms {
        event["detached_until_ms"] = json!(until_ms);
    }
    event
}

impl Envelopes<'_> {
    /// Closes an envelope, and its parts with rows of the host. Returns the event for the row of the call that caused
    /// the end. `None` if the envelope was not open. An envelope whose time is up ends by time, whoever closes it.
    pub fn close(self, id: &str, mut ending: Ending<'_>) -> StoreResult<Option<Value>> {
        if let Some(over) = Over::of(&self.chain(id)?, ending.boot_ms) {
            ending.state = over.state();
            ending.closed_by = Some(over.closed_by());
        }
        let sql = "UPDATE core_envelopes SET state = ?2, closed_at = ?3, closed_by = ?4, note = ?5, closed_actor = ?6
            WHERE id = ?1 AND state = 'OPEN'";
        let closed = self.0.engine.run(
            sql,
            sql![
                id,
                ending.state.as_str(),
                ending.now,
                ending.closed_by,
                ending.note,
                ending.actor
            ],
        )?;
        if closed == 0 {
            return Ok(None);
        }
        self.forget_users(id)?;
        self.0.tasks().want_all_cancelled(id)?;
        let git_head = self.note_closing_head(id)?;
        let within = Ending::by_host(
            State::ClosedInterrupted,
            PARENT_CLOSED,
            ending.now,
            ending.boot_ms,
        );
        for child in self.open_children(id)? {
            self.interrupt(&child, within)?;
        }
        let mut event = self.closed_event(id, ending)?;
        if let Some(git_head) = git_head {
            event["git_head"] = json!(git_head);
        }
        Ok(Some(event))
    }

    fn closed_event(self, id: &str, ending: Ending<'_>) -> StoreResult<Value> {
        let counters = self.standing(id)?.map(|standing| counters_of(&standing));
        let used = self.0.budgets().list(id, None)?.into_iter();
        let used: BTreeMap<String, i64> = used.map(|(name, budget)| (name, budget.used)).collect();
        let mut event = json!({
            "type": CLOSED,
            "envelope_id": id,
            "state": ending.state,
            "closed_at": ending.now,
            "counters": counters,
        });
        if !used.is_empty() {
            event["budgets_used"] = json!(used);
        }
        let named = [
            ("closed_by", ending.closed_by),
            ("actor", ending.actor),
            ("note", ending.note),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                event[name] = json!(value);
            }
        }
        Ok(event)
    }

    fn open_children(self, id: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT id FROM core_envelopes WHERE parent = ?1 AND state = 'OPEN' ORDER BY id";
        self.0.engine.all(sql, sql![id], |row| row.get(0))
    }

    /// Records that a connection works in an envelope which another one opened.
    pub fn join(self, id: &str, (host_id, connection): (&str, &str), now: &str) -> StoreResult<()> {
        let sql = "INSERT INTO core_envelope_users (envelope_id, host_id, connection, joined_at)
            SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM core_envelopes
                WHERE id = ?1 AND state = 'OPEN' AND (host_id <> ?2 OR connection <> ?3))
            ON CONFLICT (envelope_id, host_id, connection) DO NOTHING";
        self.0
            .engine
            .run(sql, sql![id, host_id, connection, now])
            .map(drop)
    }

    fn forget_users(self, id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_envelope_users WHERE envelope_id = ?1", sql![id])
            .map(drop)
    }

    /// Ends the envelopes that a host, or one of its connections, left open. An envelope in which another connection
    /// works is handed to that connection. A detached envelope stays open. Every other one is interrupted, with a row
    /// about it. Returns the number of ended envelopes. The time is given in RFC 3339 and in milliseconds since the
    /// machine's boot.
    pub fn interrupt_all(
        self,
        host_id: &str,
        connection: Option<&str>,
        (now, boot_ms): (&str, i64),
        why: &str,
    ) -> StoreResult<usize> {
        let sql = "DELETE FROM core_envelope_users WHERE host_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR connection = ?2)";
        self.0.engine.run(sql, sql![host_id, connection])?;
        let sql = "SELECT id FROM core_envelopes WHERE state = 'OPEN' AND host_id = ?1 AND detached_until_ms IS NULL
            AND (CAST(?2 AS TEXT) IS NULL OR connection = ?2) ORDER BY opened_at, id";
        let left: Vec<String> = self
            .0
            .engine
            .all(sql, sql![host_id, connection], |row| row.get(0))?;
        let mut interrupted = 0;
        for id in left {
            if !self.hand_over(&id)? {
                let ending = Ending::by_host(State::ClosedInterrupted, why, now, boot_ms);
                interrupted += usize::from(self.interrupt(&id, ending)?);
            }
        }
        Ok(interrupted)
    }

    /// Closes an envelope with a row of the host. Returns whether it was open.
    pub fn interrupt(self, id: &str, ending: Ending<'_>) -> StoreResult<bool> {
        let Some(envelope) = self.get(id)? else {
            return Ok(false);
        };
        let Some(event) = self.close(id, ending)? else {
            return Ok(false);
        };
        self.0.ledger().record(&row_of_host(&envelope, ending, event))?;
        Ok(true)
    }

    /// Ends detached envelopes whose time is up by the boot clock, and those from before the machine's last boot,
    /// whose time is unknown. An envelope may have been opened just after the caller read the clock.
    pub fn end_detached(self, boot_ms: i64, now: &str) -> StoreResult<usize> {
        let sql = "SELECT id FROM core_envelopes WHERE state = 'OPEN' AND detached_until_ms IS NOT NULL
                AND (opened_boot_ms + coalesce(max_duration_sec, 0) * 1000 <= ?1 OR opened_boot_ms > ?2)
            ORDER BY opened_at, id";
        let over: Vec<String> = self.0.engine.all(
            sql,
            sql![boot_ms, boot_ms.saturating_add(CLOCK_TOLERANCE_MS)],
            |row| row.get(0),
        )?;
        let ending = Ending::by_host(State::ClosedFailed, "DURATION_EXCEEDED", now, boot_ms);
        let mut ended = 0;
        for id in over {
            ended += usize::from(self.interrupt(&id, ending)?);
        }
        Ok(ended)
    }

    /// Hands an envelope to the connection that has worked in it the longest. Returns whether there is one.
    fn hand_over(self, id: &str) -> StoreResult<bool> {
        let sql = "SELECT host_id, connection FROM core_envelope_users WHERE envelope_id = ?1
            ORDER BY joined_at, host_id, connection LIMIT 1";
        let heir: Option<(String, String)> = self
            .0
            .engine
            .maybe(sql, sql![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((host_id, connection)) = heir else {
            return Ok(false);
        };
        self.0.engine.run(
            "UPDATE core_envelopes SET host_id = ?2, connection = ?3 WHERE id = ?1",
            sql![id, host_id, connection],
        )?;
        let sql =
            "DELETE FROM core_envelope_users WHERE envelope_id = ?1 AND host_id = ?2 AND connection = ?3";
        self.0.engine.run(sql, sql![id, host_id, connection])?;
        Ok(true)
    }
}

impl WorkTrees<'_> {
    /// Work trees whose scan failed when an envelope was closed: the workspace, and the reason.
    pub fn unseen_at_closing(self, id: &str) -> StoreResult<Vec<(String, String)>> {
        let sql = "SELECT events FROM core_operations
            WHERE envelope_id = ?1 AND tool = ?2 AND pack = ?3 AND events IS NOT NULL ORDER BY seq";
        let rows: Vec<String> = self
            .0
            .engine
            .all(sql, sql![id, CLOSE_TOOL, HOST_PACK], |row| row.get(0))?;
        let events = rows
            .iter()
            .filter_map(|events| serde_json::from_str::<Vec<Value>>(events).ok())
            .flatten()
            .filter(|event| event["type"] == CLOSED && event["envelope_id"] == id);
        Ok(events.flat_map(|event| unseen_in(&event)).collect())
    }
}

/// Work trees with failed scans in the event of an end.
fn unseen_in(event: &Value) -> Vec<(String, String)> {
    let trees = event[WORK_TREES].as_array().into_iter().flatten();
    let unseen = trees.filter_map(|tree| {
        let text = |field: &str| tree[field].as_str().map(str::to_owned);
        Some((text("workspace")?, text("unseen")?))
    });
    unseen.collect()
}

/// Row of an end without a call. An envelope ends once, so the row's id is derived from the envelope's.
fn row_of_host(envelope: &Envelope, ending: Ending<'_>, event: Value) -> Operation {
    let id = envelope.id.strip_prefix("env_").unwrap_or(&envelope.id);
    Operation {
        op_id: format!("op_{id}"),
        envelope_id: Some(envelope.id.clone()),
        timestamp: ending.now.to_owned(),
        duration_ms: 0.0,
        op_type: OpType::Control,
        success: Some(true),
        pack: HOST_PACK.to_owned(),
        tool: CLOSE_TOOL.to_owned(),
        effect: Effect::Write,
        failure_class: Some(FailureClass::Interrupted.as_str().to_owned()),
        connection: envelope.connection.clone(),
        host_id: envelope.host_id.clone(),
        args_hash: hash::sha256_hex(b"{}"),
        events: Some(Value::from(vec![event]).to_string()),
        ..Operation::default()
    }
}
