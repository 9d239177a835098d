//! Reasons for which tasks end before their calls do.

use tollgate_core::deadline::Reason;
use tollgate_core::envelope::{Refusal, State};
use tollgate_sdk::ToolError;
use tollgate_store::storage::{Session, StoreResult};

/// Reason for a task that its client or the operator cancelled.
pub(super) fn cancelled() -> Reason {
    Reason {
        code: "TASK_CANCELLED",
        message: "the task was cancelled".to_owned(),
    }
}

/// Reason for a task whose owner's token is no longer valid.
pub(super) fn revoked() -> Reason {
    Reason {
        code: "TOKEN_REVOKED",
        message: "the token that made the call was removed or has expired".to_owned(),
    }
}

/// Reason for a task whose envelope has ended or whose time is up. `None` while the envelope admits calls.
pub(super) fn by_envelope(
    session: &Session,
    envelope_id: Option<&str>,
    boot_ms: i64,
) -> StoreResult<Option<Reason>> {
    let Some(id) = envelope_id else { return Ok(None) };
    let Some((envelope, refusal)) = session.envelopes().refusal_to_read(id, boot_ms)? else {
        return Ok(None);
    };
    let closed_by = match refusal {
        Refusal::Closed(State::ClosedInterrupted) => envelope.closed_by.as_deref().or(Some("interrupted")),
        Refusal::Closed(_) => envelope.closed_by.as_deref(),
        over => Some(over.code()),
    };
    let id = envelope.id;
    let message = match closed_by {
        Some("DURATION_EXCEEDED") => {
            format!("the time limit of envelope `{id}` was reached (DURATION_EXCEEDED)")
        }
        Some(closed_by) => format!("envelope `{id}` was closed ({closed_by})"),
        None => format!("envelope `{id}` was closed by its owner"),
    };
    Ok(Some(Reason {
        code: "ENVELOPE_CLOSED",
        message,
    }))
}

/// Error of a task that ended while it waited for an answer.
pub(super) fn while_it_waited(reason: &Reason) -> ToolError {
    let why = format!(
        "{} while the task waited for an answer; nothing was changed",
        reason.message
    );
    ToolError::new("CANCELLED", why).context("cause", reason.code)
}
