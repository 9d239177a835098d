//! Limits over time windows, which span envelopes: a maximum of mutations, test runs, edits or new envelopes within,
//! for example, an hour, for each workspace, caller or client. Without them an agent whose envelope is exhausted
//! simply opens the next.
//!
//! A call takes a slot for each unit in its own commit, as calls do for policies (see `permits`), so that the counts
//! are exact across all hosts of the data directory.

use std::collections::BTreeMap;

use serde_json::json;
use tollgate_core::client_name;
use tollgate_core::envelope::Charge;
use tollgate_core::text;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{Session, Slots, StoreResult};

use super::pending_operation::PendingOperation;
use crate::envelope_settings::{By, Window};
use crate::window_use::UNNAMED;

/// Owner of the slots. Names of components have more characters, and those of policies have a prefix.
const OWNER: &str = "core";
/// Longest name that is counted separately, in bytes.
const MAX_SUBJECT: usize = 200;

/// A counted unit, and the number of it that a call uses.
struct Units {
    what: &'static str,
    count: i64,
}

const EDITS: &str = "edits";

impl Units {
    /// Units that a call uses: its cost, and an edit that its scan found.
    fn of(session: &Session, pending: &PendingOperation) -> StoreResult<Vec<Units>> {
        let cost = match pending.charge {
            Charge::Mutations(count) => Some(("mutations", count)),
            Charge::TestRun => Some(("test runs", 1)),
            Charge::Nothing if pending.window_use.opens_envelope => Some(("envelopes", 1)),
            Charge::Nothing => None,
        };
        let edits = match pending.sighting().filter(|_| !pending.closes_envelope()) {
            Some(seen) => session.work_trees().edits_over_envelopes(seen)?,
            None => 0,
        };
        let all = cost.into_iter().chain((edits > 0).then_some((EDITS, edits)));
        Ok(all.map(|(what, count)| Units { what, count }).collect())
    }

    fn limit(&self, window: &Window) -> Option<u32> {
        match self.what {
            "mutations" => window.max_mutations,
            "test runs" => window.max_test_runs,
            EDITS => window.max_edits,
            _ => window.max_envelopes,
        }
    }
}

/// Takes a call's units from the windows, or returns the window that has nothing left. Requires a write transaction.
/// Units taken before a refusal are undone with the operation's other permits.
pub(super) fn take(
    session: &Session,
    windows: &[Window],
    pending: &PendingOperation,
    now_ms: i64,
) -> StoreResult<Result<(), ToolError>> {
    if windows.is_empty() {
        return Ok(Ok(()));
    }
    let all = Units::of(session, pending)?;
    for (place, window) in windows.iter().enumerate() {
        for units in &all {
            if let Err(refusal) = take_units(session, (place, window), units, pending, now_ms)? {
                undo(session, windows, pending)?;
                return Ok(Err(refusal));
            }
        }
    }
    Ok(Ok(()))
}

fn take_units(
    session: &Session,
    (place, window): (usize, &Window),
    units: &Units,
    pending: &PendingOperation,
    now_ms: i64,
) -> StoreResult<Result<(), ToolError>> {
    let Some(limit) = units.limit(window) else {
        return Ok(Ok(()));
    };
    let holder = format!("{}:{place}", pending.operation.op_id);
    for (subject, count) in subjects(session, window.by, units, pending)? {
        let key = format!("{} {} {} {subject}", window.by.as_str(), window.per, units.what);
        let slots = Slots {
            policy: OWNER,
            key: &key,
            slots: limit,
            held_ms: window.per_ms,
        };
        for number in 0..count {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let taken = session
                .permits()
                .take_slot(slots, (&holder, number), true, now_ms)?;
            if let Err(wait_ms) = taken {
                let refusal = refused(window, units, &subject, limit, wait_ms);
                return Ok(Err(refusal.next_call(look_back(pending))));
            }
        }
    }
    Ok(Ok(()))
}

/// Gives back the units of a call that was not admitted.
pub(super) fn undo(session: &Session, windows: &[Window], pending: &PendingOperation) -> StoreResult<()> {
    for place in 0..windows.len() {
        session
            .permits()
            .undo(&format!("{}:{place}", pending.operation.op_id))?;
    }
    Ok(())
}

/// Subjects in whose windows a call counts, with the number of units for each.
fn subjects(
    session: &Session,
    by: By,
    units: &Units,
    pending: &PendingOperation,
) -> StoreResult<BTreeMap<String, i64>> {
    let operation = &pending.operation;
    let named = |name: &str| text::clean(text::cut(name, MAX_SUBJECT));
    let one = |name: &str| BTreeMap::from([(named(name), units.count)]);
    Ok(match by {
        // An edit counts for the work tree in which it was found.
        By::Workspace if units.what == EDITS => {
            let seen = pending.sighting().map(|seen| one(&seen.workspace));
            seen.unwrap_or_default()
        }
        By::Workspace => {
            let envelope = match &operation.envelope_id {
                Some(id) => session.envelopes().get(id)?,
                None => None,
            };
            let of_envelope = envelope.and_then(|envelope| envelope.workspace);
            pending.window_use.workspaces(session, of_envelope, units.count)
        }
        By::Actor => {
            let identity = operation.identity.as_ref().map(|identity| identity.as_str());
            one(identity.unwrap_or(UNNAMED))
        }
        By::Client => {
            let client = operation.client.as_deref().unwrap_or(UNNAMED);
            one(client_name::name_in(client))
        }
        By::Everyone => one(""),
    })
}

/// Suggested call that shows what exhausted a window.
fn look_back(pending: &PendingOperation) -> NextCall {
    match &pending.operation.envelope_id {
        Some(envelope) => NextCall::new("ledger_report", json!({ "envelope_id": envelope })),
        None => NextCall::new("ledger_query", json!({ "limit": 20 })),
    }
}

fn refused(window: &Window, units: &Units, subject: &str, limit: u32, wait_ms: i64) -> ToolError {
    let is_unnamed = window.by == By::Workspace && subject == UNNAMED;
    let whose = match window.by {
        By::Everyone => "all calls together have reached the".to_owned(),
        By::Workspace if is_unnamed => {
            "all calls that name no registered workspace have reached the".to_owned()
        }
        by => format!("{} {subject} has reached its", by.as_str()),
    };
    let wait_sec = wait_ms.max(1).saturating_add(999) / 1_000;
    let another = match is_unnamed {
        true => " If the call is about a registered workspace, pass its name from workspace_list.",
        false => "",
    };
    ToolError::new(
        "WINDOW_EXHAUSTED",
        format!(
            "{whose} limit of {} ({limit} within {}); nothing was run",
            units.what, window.per
        ),
    )
    .remediation(format!(
        "Stop, and report to your owner what was achieved. Calls are possible again in {wait_sec} s. A new envelope does \
         not change this limit.{another}"
    ))
    .context("by", window.by.as_str())
    .context("per", window.per.as_str())
    .context("what", units.what)
    .context("limit", limit)
    .context("retry_after_sec", wait_sec)
}
