//! Refusal of calls while limited edits cannot be observed. Otherwise breaking Git would bypass the limit.

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{Session, StoreResult};

use super::pending_operation::PendingOperation;

/// Refuses a call whose edits are limited if the scan of the work tree before it failed.
pub(super) fn unseen(session: &Session, pending: &PendingOperation) -> StoreResult<Option<ToolError>> {
    let Some(Err(unseen)) = &pending.seen else {
        return Ok(None);
    };
    if !unseen.has_git || pending.closes_envelope() {
        return Ok(None);
    }
    let in_windows = pending.windows.iter().filter_map(|window| window.max_edits).min();
    let in_envelopes = match &pending.operation.envelope_id {
        Some(envelope) => session.envelopes().limit_of_edits(envelope)?,
        None => None,
    };
    let Some(limit) = in_envelopes.or(in_windows.map(i64::from)) else {
        return Ok(None);
    };
    let mut refusal = ToolError::new(
        "WORK_TREE_UNSEEN",
        format!(
            "edits of the work tree are limited to {limit}, but the work tree cannot be inspected: {}; nothing was run",
            unseen.why
        ),
    )
    .remediation(
        "Remove the cause named in the message, so that Git can read the work tree. Otherwise report to your owner \
         that the work tree cannot be inspected.",
    )
    .context("limit", limit);
    if let Some(envelope) = &pending.operation.envelope_id {
        refusal = refusal.next_call(NextCall::new("ledger_report", json!({ "envelope_id": envelope })));
    }
    Ok(Some(refusal))
}
