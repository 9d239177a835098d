//! Runs of calls outside any transaction: admitted before they start, recorded before the reply is sent.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use tokio::sync::oneshot;
use tollgate_core::deadline::Cancel;
use tollgate_sandbox::facts::Transactions;
use tollgate_store::storage::Database;

use super::{looked, record, record_with, stopping};
use crate::ended::{Changed, Ended, cancelled};
use crate::evaluation::Review;
use crate::guest_call::GuestCall;
use crate::job::Job;
use crate::mutation::Mutation;
use crate::pending_operation::PendingOperation;
use crate::programs::Programs;
use crate::reply::Reply;
use crate::runners::Runners;
use crate::runtime::Runtime;
use crate::settled::Settled;
use crate::{failure, tasks};

/// Time after its envelope's end in which a `run` call can report its result.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which a waiting `run` call checks for cancellation.
const GIVEN_UP_INTERVAL: Duration = Duration::from_millis(50);

/// Everything that one `run` call needs, even after its caller has left.
pub(super) struct Runner {
    pub(super) database: Database,
    pub(super) runtime: Runtime,
    pub(super) running: Runners,
    pub(super) writes: Sender<Job>,
}

impl Runner {
    /// Runs the call once it has a slot.
    pub(super) async fn run(self, mut guest: Box<GuestCall>, mut pending: Box<PendingOperation>) -> Settled {
        let slot = tokio::select! {
            slot = self.running.enter(&pending.share) => slot,
            () = given_up(&guest.cancel) => None,
        };
        // No caller waits for it, so it takes neither a slot nor units of its envelope.
        if guest.cancel.is_pointless() {
            let settled = Settled::turned_away(cancelled(&guest, Changed::Nothing));
            let _ = record(&self.writes, pending, &settled).await;
            return settled;
        }
        let Some(_slot) = slot else {
            return Settled::failed(stopping());
        };
        pending = looked(&self.runtime, &self.database, pending).await;
        guest.seen = pending.seen.clone();
        let (reply, admitted) = oneshot::channel();
        let _ = self.writes.send(Job::Admit {
            pending: pending.clone(),
            reply,
        });
        let admitted = match admitted.await {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(refused)) => return refused,
            Err(_) => return Settled::failed(stopping()),
        };
        pending.forget_answered_requests();
        // The run ends with its envelope.
        let remaining_ms = admitted.as_ref().and_then(|admitted| admitted.remaining_ms);
        if let Some(remaining_ms) = remaining_ms {
            let remaining_ms = u64::try_from(remaining_ms).unwrap_or_default();
            let rest = Duration::from_millis(remaining_ms) + REPORT_TIMEOUT;
            guest.ends_with_envelope = rest < guest.time;
            guest.time = guest.time.min(rest);
        }
        let (runtime, database) = (self.runtime.clone(), self.database.clone());
        let mut started = pending.clone();
        let programs = Arc::new(Programs::of(&pending, Arc::clone(&runtime.services.clock)));
        let counted = Arc::clone(&programs);
        guest.programs = Some(counted);
        let ran = tokio::task::spawn_blocking(move || {
            let settled = outside(&runtime, &database, &guest, &started);
            let after = started.look_after(&runtime, &database);
            (settled, after, started.changes)
        });
        let (mut settled, after, changes) = ran
            .await
            .unwrap_or_else(|_| (Settled::failed(stopping()), None, Vec::new()));
        pending.leave_behind(after);
        pending.changes = changes;
        if let Some(admitted) = admitted {
            settled.standing = Some(admitted.standing);
            settled.counters = admitted.counters;
        }
        programs.noted().tell(&mut settled);
        let ending = tasks::ending_of(&pending, &settled);
        match record_with(&self.writes, pending, &settled, ending).await {
            Ok(()) => settled,
            // A refusal too: the row of the call says that its outcome is unknown.
            Err(failure) => {
                let unrecorded = failure::ran_unrecorded(&failure);
                Settled::failed(match settled.refusal() {
                    Some(refusal) => {
                        unrecorded.map(|error| error.context("ended_with", refusal.code.as_str()))
                    }
                    None => unrecorded,
                })
            }
        }
    }
}

/// Waits until a call that has not begun is cancelled.
async fn given_up(cancel: &Cancel) {
    while !cancel.is_pointless() {
        tokio::time::sleep(GIVEN_UP_INTERVAL).await;
    }
}

/// Runs a call on this thread with a session of its own.
fn outside(runtime: &Runtime, database: &Database, guest: &GuestCall, pending: &PendingOperation) -> Settled {
    let session = match database.write_session() {
        Ok(session) => Box::new(session),
        Err(err) => return Settled::not_begun(failure::storage_failed(&err.into_cause())),
    };
    let (session, mut ended) = runtime.run(guest, session, Transactions::None);
    if let Some(review) = guest.review.as_deref().filter(|_| !ended.cut_short) {
        review_outside(runtime, database, guest, review, &mut ended);
    }
    let is_lost = session.as_ref().is_some_and(|session| session.is_lost());
    if is_lost && ended.result.is_err() && !ended.is_given_up() {
        ended.result = Err(failure::ran_unreachable());
    }
    let mut settled = Settled::of(Ok(Reply::default()));
    settled.end(ended);
    if let Some(session) = session {
        // Closing the connection would roll back an open transaction as well; this does it explicitly.
        if session.in_transaction() {
            let _ = session.rollback();
        }
        // Budgets for the reply; without them the result is unchanged.
        settled.budgets = runtime
            .budgets(&session, &guest.generation, pending)
            .unwrap_or_default();
        settled.mutation = Mutation::of(
            &session,
            &pending.operation,
            pending.edited_sighting(),
            &settled.annotations,
            None,
        )
        .unwrap_or_default();
    }
    settled
}

/// Has the result judged of a call that ran outside any transaction.
fn review_outside(
    runtime: &Runtime,
    database: &Database,
    guest: &GuestCall,
    review: &Review,
    ended: &mut Ended,
) {
    let begun = database
        .read_session()
        .map_err(|err| err.into_cause())
        .and_then(|session| {
            session.begin_read()?;
            Ok(Box::new(session))
        });
    match begun {
        // Ends the snapshot together with its session.
        Ok(session) => drop(runtime.review(guest, review, session, ended)),
        Err(err) => {
            ended.result = Err(failure::storage_failed(&err));
            ended.withhold();
            guest.artifacts.forget();
        }
    }
}
