//! Answers of a client's user to a policy's question.
//!
//! The gate does not block on a user. A call that needs an answer is refused with the question, and the client
//! repeats the call with the answer. An answer is bound to one question of these policies about one call with these
//! arguments, in this envelope and by this caller. It counts once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tollgate_components::policies::{Question, Verdict};
use tollgate_core::hash;
use tollgate_core::identity::Identity;
use tollgate_sdk::{ApprovalStatus, Timestamp};
use tollgate_store::storage::{Answered, PolicyRow, StoredApproval};

use super::Gate;
use super::consent::{Consent, Pending};
use super::pending_operation::PendingOperation;

impl Gate {
    /// Uses up the answer to the question with this sealed id. Returns whether it was unused, across all hosts of the
    /// data directory. If this cannot be committed, the answer counts as used.
    pub async fn use_answer(&self, id: &str) -> bool {
        let is_first = Arc::new(AtomicBool::new(false));
        let (seen, id, now_ms) = (Arc::clone(&is_first), id.to_owned(), self.clock.now_ms());
        let is_on_disk = self.executors.change(Box::new(move |session| {
            // The transaction may run again; only the last run counts.
            seen.store(session.approvals().use_consent(&id, now_ms)?, Ordering::Release);
            Ok(())
        }));
        is_on_disk.await && is_first.load(Ordering::Acquire)
    }
}

impl Gate {
    /// Takes the requests for approval that the operator's program has not been notified of. No other host gets them.
    pub async fn unheard_approvals(&self, limit: u32) -> Vec<StoredApproval> {
        if !self.executors.has_unheard_approvals().await {
            return Vec::new();
        }
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (seen, now_ms) = (Arc::clone(&taken), self.clock.now_ms());
        let is_on_disk = self.executors.change(Box::new(move |session| {
            // The transaction may run again; only the last run counts.
            *seen.lock().unwrap_or_else(PoisonError::into_inner) =
                session.approvals().take_unheard(now_ms, limit)?;
            Ok(())
        }));
        if !is_on_disk.await {
            return Vec::new();
        }
        std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Checks that the user agreed to the call. Otherwise returns the question, unless it was asked already.
pub(super) fn check(
    consent: Option<&Consent>,
    question: &Question,
    pending: &mut PendingOperation,
) -> Result<(), Option<Pending>> {
    let operation = &pending.operation;
    let about = json!([
        operation.tool,
        operation.args_hash,
        operation.envelope_id,
        operation.identity.as_ref().map(Identity::as_str),
        question.policies,
        question.bound,
    ]);
    let about = hash::sha256_hex(about.to_string().as_bytes());
    // A no ends the request, even if the question has changed.
    let said = consent.filter(|consent| !consent.agreed || consent.about == about);
    let (answer, outcome) = match said {
        Some(consent) if consent.agreed => ("yes", Ok(())),
        Some(_) => ("no", Err(None)),
        None => {
            let message = question.message.clone();
            ("none", Err(Some(Pending { message, about })))
        }
    };
    if answer != "none" {
        withdraw_requests(pending, answer);
    }
    Verdict::answered(&mut pending.verdicts, answer);
    outcome
}

/// Withdraws the same question from the list of approvals, because the client's user answered it for this call.
fn withdraw_requests(pending: &mut PendingOperation, answer: &str) {
    let operation = &pending.operation;
    let at_ms = Timestamp::parse(&operation.timestamp).map_or(0, Timestamp::as_ms);
    let answered = |component: String, key: String| PolicyRow::Settle {
        component,
        key,
        answer: Answered {
            status: ApprovalStatus::Withdrawn,
            by: None,
            identity: operation
                .identity
                .as_ref()
                .map(|identity| identity.as_str().to_owned()),
            op_id: operation.op_id.clone(),
            note: Some(format!("the client's user said {answer}")),
            at_ms,
        },
    };
    let rows = operation.policy_rows.iter().cloned().map(|row| match row {
        PolicyRow::Ask(new) => answered(new.component, new.request.key),
        other @ (PolicyRow::Settle { .. } | PolicyRow::Remember(_)) => other,
    });
    pending.operation.policy_rows = rows.collect();
}
