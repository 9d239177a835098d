//! Worker of a running attempt: at work or gone.
//!
//! The pack knows the envelope in which an attempt started, and when the attempt was last recorded about. A worker is
//! gone if that envelope has ended since, or if nothing was recorded for the configured time.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, DbError, NextCall, OperationFilter, Timestamp, text_enum};

use crate::caller::Caller;
use crate::model::AttemptOutcome;
use crate::store::attempt::Attempt;
use crate::store::event;

text_enum! {
    /// State of a worker.
    pub(crate) enum WorkerState {
        Active = "active",
        Gone = "gone",
    }
}

/// Worker of a running attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Worker {
    /// `gone` if nobody can be working on the attempt any more.
    pub state: WorkerState,
    /// Reason why the worker counts as gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Envelope in which the attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// Name of the MCP client that started the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Time of the latest record that the worker may have made.
    pub last_sign_at: Timestamp,
    /// The call that ends the attempt of a worker that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Json>")]
    pub next_call: Option<NextCall>,
}

impl Worker {
    pub(crate) fn is_gone(&self) -> bool {
        self.state == WorkerState::Gone
    }
}

/// Looks for the worker of a running attempt.
pub(crate) fn find(cx: &Cx<'_>, caller: &Caller, attempt: &Attempt) -> Result<Worker, DbError> {
    let last_sign_at = event::last_sign(&cx.db, &attempt.id)?.unwrap_or(attempt.started_at);
    let ended_at = attempt.envelope_id.as_deref().and_then(|id| end_of(cx, id));
    let reason = reason(&Signs {
        envelope_id: attempt.envelope_id.as_deref(),
        ended_at,
        last_sign_at,
        now: cx.now(),
        lost_after_ms: caller.config.retry.lost_after_ms,
    });
    Ok(Worker {
        state: match reason {
            Some(_) => WorkerState::Gone,
            None => WorkerState::Active,
        },
        next_call: reason
            .is_some()
            .then(|| caller.finish_attempt(&attempt.id, AttemptOutcome::Aborted)),
        reason,
        envelope_id: attempt.envelope_id.clone(),
        client: attempt.client.clone(),
        last_sign_at,
    })
}

/// Signs of a worker's life and end.
#[derive(Debug, Clone, Copy)]
struct Signs<'a> {
    envelope_id: Option<&'a str>,
    ended_at: Option<Timestamp>,
    last_sign_at: Timestamp,
    now: Timestamp,
    lost_after_ms: u32,
}

/// The reason why a worker counts as gone, if it does.
fn reason(signs: &Signs<'_>) -> Option<String> {
    // A worker that recorded something after the end goes on in another envelope.
    let ended_at = signs.ended_at.filter(|at| *at >= signs.last_sign_at);
    if let (Some(envelope), Some(at)) = (signs.envelope_id, ended_at) {
        return Some(format!("its envelope {envelope} ended at {at}"));
    }
    let silent_ms = signs.now.as_ms().saturating_sub(signs.last_sign_at.as_ms());
    let is_silent = signs.lost_after_ms > 0 && silent_ms >= i64::from(signs.lost_after_ms);
    is_silent.then(|| format!("nothing was recorded about it since {}", signs.last_sign_at))
}

/// Codes of refused calls that close their envelope, or find it closed.
const CLOSING_CODES: [&str; 3] = [
    "MUTATION_BUDGET_EXHAUSTED",
    "DURATION_EXCEEDED",
    "ENVELOPE_CLOSED",
];

/// The time when an envelope ended, as far as the ledger tells. A pack without the grant does not know.
fn end_of(cx: &Cx<'_>, envelope: &str) -> Option<Timestamp> {
    if cx.envelope_id() == Some(envelope) {
        return None;
    }
    let of_envelope = OperationFilter {
        envelope_id: Some(envelope.to_owned()),
        newest_first: true,
        ..OperationFilter::default()
    };
    let closed = OperationFilter {
        pack: Some("core".to_owned()),
        tool: Some("envelope_close".to_owned()),
        success: Some(true),
        limit: 1,
        ..of_envelope.clone()
    };
    let refused = OperationFilter {
        success: Some(false),
        limit: 20,
        ..of_envelope
    };
    let is_closing = |code: Option<&str>| code.is_some_and(|code| CLOSING_CODES.contains(&code));
    let ledger = cx.ledger();
    let closed = ledger.query_whole(&closed).ok()?.into_iter().next();
    let ended = match closed {
        Some(closed) => Some(closed),
        // The earliest of them closed the envelope; those after it found it closed.
        None => ledger
            .query_whole(&refused)
            .ok()?
            .into_iter()
            .rfind(|row| is_closing(row.error_code.as_deref())),
    };
    ended.map(|row| Timestamp::from_ms(row.at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_ms(1_767_225_600_000);

    fn told(ended_ms: Option<i64>, silent_ms: i64, lost_after_ms: u32) -> Option<String> {
        reason(&Signs {
            envelope_id: Some("env_1"),
            ended_at: ended_ms.map(|ms| AT.plus_ms(ms)),
            last_sign_at: AT,
            now: AT.plus_ms(silent_ms),
            lost_after_ms,
        })
    }

    #[test]
    fn a_worker_is_gone_with_its_envelope_or_after_a_long_silence() {
        assert_eq!(told(None, 999, 1_000), None);
        assert_eq!(
            told(None, 1_000, 1_000).as_deref(),
            Some("nothing was recorded about it since 2026-01-01T00:00:00.000Z")
        );
        assert_eq!(told(None, i64::MAX, 0), None, "silence does not count");
        assert_eq!(
            told(Some(5), 10, 0).as_deref(),
            Some("its envelope env_1 ended at 2026-01-01T00:00:00.005Z")
        );
        assert_eq!(told(Some(-1), 10, 0), None, "the worker went on after the end");
    }
}
