//! Readers: threads that have calls judged on a snapshot and run the `read` calls.

use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::sync::oneshot;
use tollgate_components::catalog::Body;
use tollgate_components::policies::Decision;
use tollgate_core::effect::Effect;
use tollgate_sandbox::facts::Transactions;
use tollgate_store::storage::{Database, Session, StoreResult};

use crate::backlog::Backlog;
use crate::ended::Begun;
use crate::envelope_refusal;
use crate::failure::{self, Failure};
use crate::guest_call::GuestCall;
use crate::job::Job;
use crate::pending_operation::PendingOperation;
use crate::queue::Queue;
use crate::reader_outcome::{ReaderOutcome, Waiting};
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::settled::Settled;

/// Fewest and most threads for `read` calls.
const READER_THREADS: (usize, usize) = (8, 16);

/// Number of `read` calls that run at once. One identity gets at most half of them. Half is at least the number of
/// cores, so stalled guests leave room for others.
pub(super) fn count() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_mul(2).clamp(READER_THREADS.0, READER_THREADS.1)
}

/// A call for a reader.
pub(super) struct ReadJob {
    pub(super) guest: Box<GuestCall>,
    pub(super) pending: Box<PendingOperation>,
    pub(super) reply: oneshot::Sender<ReaderOutcome>,
}

/// One reader.
pub(super) struct Reader {
    pub(super) database: Database,
    pub(super) runtime: Runtime,
    pub(super) jobs: Arc<Queue<ReadJob>>,
    pub(super) writes: Sender<Job>,
    pub(super) backlog: Backlog,
}

impl Reader {
    /// Serves calls until the queue is closed.
    pub(super) fn work(self) {
        let mut spare: Option<Box<Session>> = None;
        let mut done = None;
        while let Some((
            share,
            ReadJob {
                guest,
                pending,
                reply,
            },
        )) = self.jobs.pop(done.take())
        {
            let evaluation = guest
                .evaluation
                .as_ref()
                .map(|evaluation| Arc::clone(evaluation.catalog()));
            let pack = match &guest.body {
                Body::Guest(pack) if guest.effect == Effect::Read => Some(Arc::clone(pack)),
                _ => None,
            };
            let (session, judged) = self.serve(guest, pending, spare.take());
            spare = session;
            match judged {
                ReaderOutcome::Passed(guest, pending) if guest.effect == Effect::Write => {
                    let recording = pending.recording.clone();
                    let reply = Waiting::Reader(reply, Box::new(recording));
                    let _ = self.writes.send(Job::Call {
                        guest,
                        pending,
                        reply,
                    });
                }
                judged => drop(reply.send(judged)),
            }
            if let Some(catalog) = evaluation {
                self.runtime.prepare_policies(&catalog);
            }
            if let Some(pack) = pack {
                self.runtime.prepare_pack(&pack);
            }
            done = Some(share);
        }
    }

    /// Has a call judged, and runs it if it reads.
    fn serve(
        &self,
        mut guest: Box<GuestCall>,
        mut pending: Box<PendingOperation>,
        spare: Option<Box<Session>>,
    ) -> (Option<Box<Session>>, ReaderOutcome) {
        let begun = spare
            .map_or_else(|| self.database.read_session().map(Box::new), Ok)
            .map_err(|err| err.into_cause())
            .and_then(|session| {
                // Policies' effects on a snapshot are not repeated.
                session.begin_late(guest.evaluation.is_none());
                match &guest.body {
                    Body::Guest(pack) if guest.is_feed => {
                        session.begin_read_of_feed(pack.namespace.pack())?
                    }
                    _ => session.begin_read()?,
                }
                Ok(session)
            });
        let mut session = match begun {
            Ok(session) => session,
            Err(err) => {
                return (
                    None,
                    ReaderOutcome::Denied(pending, failure::storage_failed(&err)),
                );
            }
        };
        if let Some(evaluation) = guest.evaluation.take() {
            let (returned, decision) = self.runtime.judge(*evaluation, &mut guest, &mut pending, session);
            session = match (returned, decision) {
                (Some(session), Ok(Decision::Pass))
                    if guest.effect == Effect::Read && pending.permits.is_empty() =>
                {
                    session
                }
                (session, decision) => {
                    let judged = match decision {
                        Ok(Decision::Pass) => ReaderOutcome::Passed(guest, pending),
                        Ok(Decision::Deny(refusal)) => {
                            ReaderOutcome::Denied(pending, Failure::refused(refusal))
                        }
                        Ok(Decision::Ask(question)) => ReaderOutcome::Asked(guest, pending, question),
                        Err(failure) => ReaderOutcome::Denied(pending, failure),
                    };
                    return (session.filter(|session| session.commit().is_ok()), judged);
                }
            };
        }
        let (mut session, mut settled) = self.read(&guest, &pending, session);
        if let Some(lent) = session.take_if(|session| session.must_begin_anew()) {
            // The connection was lost since its last use, and nothing was read.
            lent.begin_late(false);
            (session, settled) = match lent.begin_read() {
                Ok(()) => self.read(&guest, &pending, lent),
                Err(err) => (None, Settled::failed(failure::storage_failed(&err))),
            };
        }
        let settled = Box::new(settled);
        // A session whose snapshot does not end cleanly is not reused.
        let session = session.filter(|session| session.commit().is_ok());
        let recording = pending.recording.clone();
        // The row is queued before the reply is sent, so a later call of the same client sees the effects on its
        // envelope.
        let remembers = settled.remembered.as_ref().unwrap_or(&pending.remembered);
        if !remembers.is_empty() {
            // The memory of policies is stored before the next call is judged.
            return (session, ReaderOutcome::Unrecorded(pending, settled, recording));
        }
        let is_recorded = self.runtime.records_reads || !pending.operation.policy_rows.is_empty();
        if is_recorded || settled.result.is_err() {
            let share = pending.share.clone();
            self.backlog.add(pending.settle(&settled), &share, &self.writes);
        }
        (session, ReaderOutcome::Settled(settled, recording))
    }

    fn read(
        &self,
        guest: &GuestCall,
        pending: &PendingOperation,
        session: Box<Session>,
    ) -> (Option<Box<Session>>, Settled) {
        let mut settled = match self.admit(pending, &session) {
            Ok(settled) => settled,
            Err(err) => return (Some(session), Settled::failed(failure::storage_failed(&err))),
        };
        let mut session = Some(session);
        if settled.result.is_ok()
            && let Some(lent) = session.take()
        {
            let (returned, mut ended) = self.runtime.run(guest, lent, Transactions::WholeCall);
            // The call only saw a failed statement and cannot tell the cause.
            let is_lost = returned.as_ref().is_some_and(|session| session.is_lost());
            if is_lost && ended.result.is_err() && !ended.is_given_up() {
                ended.result = Err(failure::unreachable());
            }
            settled.end(ended);
            session = returned;
        }
        if let Some(session) = session.as_ref().filter(|session| session.in_transaction()) {
            settled.budgets = self
                .runtime
                .budgets(session, &guest.generation, pending)
                .unwrap_or_default();
        }
        (session, settled)
    }

    /// Checks that the call's envelope allows it to read. Reading costs nothing.
    fn admit(&self, pending: &PendingOperation, session: &Session) -> StoreResult<Settled> {
        let mut settled = Settled {
            begun: Begun::Nothing,
            ..Settled::of(Ok(Reply::default()))
        };
        let Some(envelope) = &pending.operation.envelope_id else {
            return Ok(settled);
        };
        let is_visible = session
            .envelopes()
            .is_visible(envelope, pending.operation.identity.as_ref())?;
        let Some(standing) = session.envelopes().standing(envelope)?.filter(|_| is_visible) else {
            let refusal = envelope_refusal::unknown(envelope);
            return Ok(Settled::not_begun(Failure::refused(refusal)));
        };
        settled.standing = Some(standing);
        let boot_ms = self.runtime.services.clock.boot_ms();
        if let Some((envelope, refusal)) = session.envelopes().refusal_to_read(envelope, boot_ms)? {
            settled.limit = Some(refusal);
            let refusal = envelope_refusal::refused(&envelope, refusal, boot_ms);
            settled.result = Err(Failure::refused(refusal));
        }
        Ok(settled)
    }
}
