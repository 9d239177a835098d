//! Processing of one job within the writer's transaction.

use std::sync::Arc;
use std::time::Instant;

use tollgate_components::catalog::Body;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::State;
use tollgate_sandbox::facts::Transactions;
use tollgate_sdk::ToolError;
use tollgate_store::storage::{Ending, Operation, PAGE_BYTES, Session, StoreError, StoreResult};

use super::{Lost, MAX_LOSSES, Ran, Writer};
use crate::ended::{Changed, cancelled};
use crate::failure::{Failure, lost_transaction};
use crate::guest_call::GuestCall;
use crate::intake::QueuedJob;
use crate::job::Job;
use crate::settled::Settled;
use crate::{projector, tasks};

impl Writer {
    pub(super) fn process(&mut self, queued: &mut QueuedJob) -> StoreResult<Result<(), Lost>> {
        let now = self.runtime.now();
        let boot_ms = self.runtime.services.clock.boot_ms();
        match &mut queued.job {
            Job::Flush(_) | Job::Pulse(_) | Job::Backlog => {}
            Job::Record { operation, task, .. } => {
                let now_ms = self.runtime.services.clock.now_ms();
                let session = self.session()?;
                let op_id = &operation.op_id;
                let may_be_there = match operation.effect {
                    Effect::Run => !session.intents().fulfil(op_id)?,
                    _ => task.is_some(),
                };
                if may_be_there && session.ledger().has(op_id)? {
                    // Other hosts declared this one dead and wrote the row, or it was committed without an
                    // acknowledgement.
                    queued.is_recorded_elsewhere = true;
                    return Ok(Ok(()));
                }
                record(session, operation, &now, boot_ms)?;
                if let Some((slot, end)) = task.as_deref() {
                    tasks::end_stored(session, slot, end, now_ms)?;
                }
                if operation.effect == Effect::Run {
                    if operation.gives_permits_back {
                        session.permits().give_back(&operation.op_id)?;
                    } else {
                        session.budgets().book_for_policies(&operation.op_id)?;
                    }
                    session.budgets().give_back_of_operation(&operation.op_id)?;
                }
            }
            Job::Maintain { work, .. } => {
                let since = Instant::now();
                let session = self.session()?;
                session.savepoint()?;
                let done = work(session).map_err(|err| session.maintenance().explain(err));
                if done.is_ok() {
                    session.release()?;
                } else {
                    session.undo()?;
                }
                queued.maintained = Some((since, done));
            }
            Job::Interrupt { connection, .. } => {
                let host = Arc::clone(&self.runtime.host);
                let clock = &self.runtime.services.clock;
                let (now_ms, boot_ms) = (clock.now_ms(), clock.boot_ms());
                let session = self.session()?;
                let why = connection.as_ref().map_or("HOST_STOPPED", |_| "DISCONNECTED");
                session
                    .envelopes()
                    .interrupt_all(host.id(), connection.as_deref(), (&now, boot_ms), why)?;
                session.connections().forget(host.id(), connection.as_deref())?;
                if connection.is_none() {
                    session.tasks().give_up_all(host.id(), why, now_ms)?;
                }
            }
            Job::Admit { pending, .. } => {
                self.name_workspace(pending)?;
                let settled = self.admit(pending, &now)?;
                let session = self.session()?;
                match &settled.result {
                    Err(_) => session.ledger().record(pending.finish(&settled))?,
                    Ok(_) => {
                        pending.operation.counters.clone_from(&settled.counters);
                        session.intents().insert(&pending.intent())?;
                        // Nobody can approve the request of a call that is already running.
                        session
                            .approvals()
                            .write_policy_rows(&pending.answered_requests())?;
                        tasks::begin_with_intent(session, pending)?;
                    }
                }
                queued.settled = Some(Box::new(settled));
            }
            Job::Call { guest, pending, .. } => {
                pending.run_again();
                self.name_workspace(pending)?;
                // No caller waits for it any more, so it leaves the queue at no cost to its envelope.
                let mut settled = if queued.failure.is_none() && guest.cancel.is_pointless() {
                    Settled::turned_away(cancelled(guest, Changed::Nothing))
                } else {
                    self.admit(pending, &now)?
                };
                if settled.result.is_ok() {
                    let ended = match queued.failure.take() {
                        Some(ended) => *ended,
                        None => match self.run(guest)? {
                            Ran::Kept(ended) => ended,
                            Ran::Lost(ended) => {
                                guest.artifacts.forget();
                                // The call saw its connection end, unless it caused that itself by being late.
                                let is_lost = self.session.as_ref().is_some_and(|session| session.is_lost());
                                if ended.is_given_up() {
                                    queued.failure = Some(Box::new(ended));
                                } else if self.must_begin_anew() {
                                    // The call saw a transaction that could not begin.
                                } else if is_lost && queued.losses < MAX_LOSSES {
                                    queued.losses += 1;
                                } else {
                                    queued.failure = Some(Box::new(ended));
                                }
                                return Ok(Err(Lost));
                            }
                        },
                    };
                    if ended.result.is_err() {
                        guest.artifacts.forget();
                        queued.failure = Some(Box::new(ended.clone()));
                    }
                    settled.end(ended);
                    if !pending.permits.is_empty() {
                        self.settle_permits(pending, &settled)?;
                    }
                    settled.mutation = self.mutation(pending, &settled)?;
                }
                let runtime = self.runtime.clone();
                let now_ms = runtime.services.clock.now_ms();
                let session = self.session()?;
                settled.budgets = runtime.budgets(session, &guest.generation, pending)?;
                record(session, pending.finish(&settled), &now, boot_ms)?;
                if settled.refusal().is_none() {
                    tasks::end_with_row(session, pending, &settled, now_ms)?;
                }
                queued.settled = Some(Box::new(settled));
            }
        }
        Ok(Ok(()))
    }

    /// Runs one call under its savepoint.
    fn run(&mut self, guest: &GuestCall) -> StoreResult<Ran> {
        // Borrowed only after all of the host's own statements, because failures are looked up in the session.
        let session = self.session()?;
        session.savepoint()?;
        let before = match &guest.body {
            Body::Guest(pack) => {
                let quota = i64::try_from(pack.limits.storage / PAGE_BYTES).unwrap_or(i64::MAX);
                session.limit_growth(quota - session.components().used_pages(&pack.namespace)?)?
            }
            // The host's own rows count for nobody.
            Body::Core(_) => 0,
        };
        drop(session.take_changes());
        guest.artifacts.forget();
        if let Body::Guest(pack) = &guest.body {
            self.ran = Some(Arc::clone(pack));
        }
        let session = self.session.take().ok_or(StoreError::no_session())?;
        let (session, mut ended) = self.runtime.run(guest, session, Transactions::WholeCall);
        let Some(session) = session else {
            // The panic closed the connection, and with it the transaction.
            if ended.result.is_ok() {
                let error = ToolError::new("HOST_FAILED", "the host failed");
                ended.result = Err(Failure::host(error));
            }
            return Ok(Ran::Lost(ended));
        };
        let session = self.session.insert(session);
        if !session.in_transaction() {
            if ended.result.is_ok() {
                ended.result = Err(lost_transaction());
            }
            return Ok(Ran::Lost(ended));
        }
        if session.is_failed() && ended.result.is_ok() {
            // A statement of the host failed within the call, and the call continued regardless. The call's own part
            // is undone.
            ended.result = Err(lost_transaction());
        }
        let after = session.lift_limit()?;
        if ended.result.is_ok() {
            let grown = after - before - ended.pages;
            if grown != 0
                && let Body::Guest(pack) = &guest.body
            {
                session.components().book_pages(&pack.namespace, grown)?;
            }
            session.release()?;
            projector::announce(&self.runtime.host, guest, &ended);
        } else {
            session.undo()?;
        }
        Ok(Ran::Kept(ended))
    }
}

/// Writes a row, stores its fingerprints in its envelope, and closes the envelope if a read found its time to be up.
pub(super) fn record(session: &Session, operation: &Operation, now: &str, boot_ms: i64) -> StoreResult<()> {
    session.envelopes().note_fingerprints(operation)?;
    if let (Some(envelope), Some(limit)) = (&operation.envelope_id, &operation.limit_triggered)
        && operation.effect == Effect::Read
        && limit == "DURATION_EXCEEDED"
    {
        let over = session.envelopes().refusal_to_read(envelope, boot_ms)?;
        let over = over.map_or_else(|| envelope.clone(), |(envelope, _)| envelope.id);
        let ending = Ending::by_host(State::ClosedFailed, limit, now, boot_ms);
        if let Some(event) = session.envelopes().close(&over, ending)? {
            let mut operation = operation.clone();
            operation.add_events(&[event]);
            return session.ledger().record(&operation);
        }
    }
    match (&operation.envelope_id, &operation.left_behind) {
        (Some(envelope), Some((seen, cause))) => {
            session
                .work_trees()
                .note_sighting_around(envelope, seen, *cause, &operation.op_id, now)?;
        }
        (None, Some((seen, cause))) => session.work_trees().note_newest(seen, *cause)?,
        (_, None) => {}
    }
    session.ledger().record(operation)
}
