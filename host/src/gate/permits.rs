//! What counts once, such as an approval. A call takes it in its own commit, so that of several that policies let through
//! on the same snapshot, on any host of the data directory, one runs.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_sdk::ToolError;

use super::Gate;
use crate::packs::Effect;
use crate::policies::Permit;
use crate::storage::{Namespace, Operation, Session};

/// The refusal of a call that came second.
pub(super) fn used(policy: &str) -> ToolError {
    let policy = policy.strip_prefix(Namespace::POLICIES).unwrap_or(policy);
    ToolError::new(
        "PERMIT_USED",
        format!("what let this call pass policy `{policy}` counts once, and another call used it just now; nothing was run"),
    )
    .remediation("Call again: the policy then says what it wants before this runs once more.")
    .context("policy", policy)
}

/// Takes all that a call needs, or says why it gets none of it. Wants a write transaction.
pub(super) fn take(
    session: &Session,
    permits: &[Permit],
    op_id: &str,
    now_ms: i64,
) -> rusqlite::Result<Result<(), ToolError>> {
    for permit in permits {
        let key = (permit.policy.as_str(), permit.key.as_str());
        let is_taken = session.take_permit(key, op_id, (now_ms, permit.until_ms))?;
        if !is_taken && permit.is_needed {
            session.give_permits_back(op_id)?;
            return Ok(Err(used(&permit.policy)));
        }
    }
    Ok(Ok(()))
}

/// Whether a call of a `run` tool that ended so surely did not do its work: its tool says so itself. One that was cut
/// short, or whose result nobody may see, may have done it.
pub(super) fn gives_back(operation: &Operation) -> bool {
    operation.effect == Effect::Run
        && operation.success == Some(false)
        && operation.failure_class.as_deref() == Some("tool_error")
}

impl Gate {
    /// Takes what a call needs in a commit of its own.
    pub(super) async fn take_permits(&self, permits: Vec<Permit>, op_id: String) -> Result<(), ToolError> {
        let outcome = Arc::new(Mutex::new(Err(unknown())));
        let (seen, clock) = (Arc::clone(&outcome), Arc::clone(&self.clock));
        let is_on_disk = self.lanes.change(Box::new(move |session| {
            // The transaction may run again, and only the last time counts.
            let taken = take(session, &permits, &op_id, clock.now_ms())?;
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            Ok(())
        }));
        if !is_on_disk.await {
            return Err(unknown());
        }
        let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.clone()
    }

    /// Gives back what a call took that then failed.
    pub(super) async fn give_permits_back(&self, op_id: String) {
        let work = Box::new(move |session: &Session| session.give_permits_back(&op_id));
        // Without a commit it counts as used.
        let _ = self.lanes.change(work).await;
    }
}

fn unknown() -> ToolError {
    ToolError::new(
        "STORAGE_FAILED",
        "it could not be written down that the call uses up what counts once; nothing was run",
    )
    .remediation("Call again; the host's log has the reason.")
}
