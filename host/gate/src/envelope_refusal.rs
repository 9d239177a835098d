//! Refusals by an envelope that is closed or exhausted, and refusals for an unknown envelope.

use std::collections::BTreeMap;

use serde_json::json;
use tollgate_core::envelope::{Refusal, State};
use tollgate_core::text::counted;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::Envelope;

use crate::left::Left;

/// Refusal by an envelope: the limit that was reached, or how and by whom the envelope was closed.
pub(crate) fn refused(envelope: &Envelope, refusal: Refusal, boot_ms: i64) -> ToolError {
    let id = envelope.id.as_str();
    let standing = &envelope.standing;
    let message = match refusal {
        Refusal::Closed(state) => format!("envelope {id} {}", how_it_ended(envelope, state)),
        Refusal::Mutations { limit, left: 0 } => format!(
            "envelope {id} has used up its limit of {} and is now closed",
            counted(limit, "mutation")
        ),
        Refusal::Mutations { limit, left } => format!(
            "envelope {id} has {} left of {limit}, fewer than the call needs",
            counted(left, "mutation")
        ),
        Refusal::TestRuns { limit } => format!(
            "envelope {id} has used up its limit of {}; other calls are still admitted",
            counted(limit, "test run")
        ),
        Refusal::Edits { limit } => format!(
            "envelope {id} has exceeded its limit of {} of the work tree and is now closed",
            counted(limit, "edit")
        ),
        Refusal::Duration { limit, .. } => {
            format!("envelope {id} has used up its time limit of {limit} s and is now closed")
        }
    };
    let (limit, used) = match refusal {
        Refusal::Closed(_) => (None, None),
        Refusal::Mutations { limit, .. } => (Some(limit), Some(standing.mutations)),
        Refusal::TestRuns { limit } => (Some(limit), Some(standing.test_runs)),
        Refusal::Edits { limit } => (Some(limit), Some(standing.edits)),
        Refusal::Duration { limit, used } => (Some(limit), Some(used)),
    };
    let mut err = ToolError::new(refusal.code(), message)
        .remediation(remediation(envelope, refusal))
        .context("envelope_id", id)
        .next_call(NextCall::new("ledger_report", json!({ "envelope_id": id })));
    if let (Some(limit), Some(used)) = (limit, used) {
        err = err.context("limit", limit).context("used", used);
    }
    if let Refusal::Closed(state) = refusal {
        err = err.context("state", state.as_str());
        let known = [
            ("closed_by", &envelope.closed_by),
            ("closed_actor", &envelope.closed_actor),
            ("closed_at", &envelope.closed_at),
            ("note", &envelope.note),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                err = err.context(name, tollgate_core::text::clean(value));
            }
        }
    }
    let (left, _) = Left::of(standing, &BTreeMap::new(), boot_ms);
    if standing.state == State::Open && !left.is_empty() {
        err = err.context("left", json!(left));
    }
    err
}

fn remediation(envelope: &Envelope, refusal: Refusal) -> &'static str {
    match (refusal, envelope.closed_by.as_deref()) {
        (Refusal::Mutations { left: 1.., .. }, _) => {
            "Make the call smaller, or report to your owner that the limit is too low for it."
        }
        (Refusal::TestRuns { .. }, _) => {
            "Report to your owner what the tests showed. To run more tests, ask for a new envelope."
        }
        (
            Refusal::Closed(_),
            None | Some("DISCONNECTED" | "HOST_GONE" | "HOST_STOPPED" | "PARENT_CLOSED"),
        ) => "To continue the work, open a new envelope with envelope_open.",
        _ => {
            "Stop, and report to your owner what was achieved. To continue, ask for a new envelope and open it with envelope_open."
        }
    }
}

/// Ending of a closed envelope, as the end of a sentence about it.
fn how_it_ended(envelope: &Envelope, state: State) -> String {
    let limits = &envelope.standing.limits;
    let limit = |limit: Option<i64>| limit.unwrap_or_default();
    let why = match (envelope.closed_by.as_deref(), &envelope.closed_actor) {
        (None, Some(actor)) => format!("{} closed it", tollgate_core::client_name::caller(actor)),
        (None, None) => "a caller closed it".to_owned(),
        (Some("MUTATION_BUDGET_EXHAUSTED"), _) => {
            let most = counted(limit(limits.max_mutations), "mutation");
            format!("its limit of {most} was used up")
        }
        (Some("EDIT_BUDGET_EXHAUSTED"), _) => {
            let most = counted(limit(limits.max_edits), "edit");
            format!("its limit of {most} of the work tree was exceeded")
        }
        (Some("DURATION_EXCEEDED"), _) => {
            let most = limit(limits.max_duration_sec);
            format!("its time limit of {most} s was used up")
        }
        (Some("DISCONNECTED"), _) => "its client disconnected".to_owned(),
        (Some("HOST_GONE"), _) => "its host process ended".to_owned(),
        (Some("HOST_STOPPED"), _) => "its host was stopped".to_owned(),
        (Some("PARENT_CLOSED"), _) => "its parent envelope was closed".to_owned(),
        (Some(other), _) => other.to_owned(),
    };
    let since = match envelope.closed_at.as_deref() {
        Some(at) => format!("has been {} since {at}", state.as_str()),
        None => format!("is {}", state.as_str()),
    };
    let note = envelope.note.iter().map(|note| {
        let note = tollgate_core::text::clean(tollgate_core::text::cut(note, 200));
        format!("; note: {note}")
    });
    format!("{since}, because {why}{}", note.collect::<String>())
}

/// Refusal because there is no envelope with this id.
pub(crate) fn unknown(id: &str) -> ToolError {
    let id = tollgate_core::text::clean(tollgate_core::text::cut(id, 64));
    ToolError::new("UNKNOWN_ENVELOPE", format!("there is no envelope {id}"))
        .remediation("List envelopes, or open one.")
        .next_call(NextCall::new("envelope_open", json!({})))
}
