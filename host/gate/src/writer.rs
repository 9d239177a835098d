//! The writer: one thread, one connection, one commit for all that waits.
//!
//! Each call runs under a savepoint of its own, so a call that fails takes back only its own rows.
//! No reply leaves before the commit that holds its row. Some failures make SQLite give up the
//! whole transaction; then the calls before the failing one run again, because nobody has been
//! told of them yet.
//!
//! While more than one identity has calls, a commit holds few of them: see `intake`. Beside other hosts of a server's
//! database each call has a transaction of its own: see `among`.

mod admit;
mod among;
mod answer;
mod outage;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use tollgate_components::catalog::Body;
use tollgate_components::packs::Pack;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::State;
use tollgate_sandbox::facts::Transactions;
use tollgate_sdk::ToolError;
use tollgate_store::storage::{
    Database, Ending, OpenError, Operation, PAGE, Session, StoreError, StoreFailure, StoreResult, Written,
};

use super::backlog::Backlog;
use super::ended::{Changed, Ended, cancelled};
use super::failure::{is_busy, lost_transaction, storage_failed, unreachable, unrecorded};
use super::guest_call::GuestCall;
use super::intake::{Intake, Pending, Progress};
use super::job::Job;
use super::permits;
use super::projector::{self, Work as Projection};
use super::runtime::Runtime;
use super::settled::Settled;
use super::tasks;

use among::Turn;
use answer::{answer, fail};
use outage::{Outage, PATIENCE};

/// Most commits of one batch that nobody answers.
const MAX_UNKNOWN: u32 = 3;
/// Most times that a transaction begins anew because it met another.
const MAX_CONFLICTS: u32 = 5;
/// Most runs of a call that end because the connection is lost. One that costs it each time is told of its own failure then.
const MAX_LOSSES: u32 = 2;
/// Time between two looks for it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Starts the writer.
pub(super) fn start(
    database: Database,
    runtime: Runtime,
    jobs: Receiver<Job>,
    backlog: Backlog,
    committed: Option<Sender<()>>,
    projector: Sender<Projection>,
) -> Result<JoinHandle<()>, OpenError> {
    let session = Box::new(database.write_session()?);
    let mut writer = Writer {
        database,
        runtime,
        session: Some(session),
        committed,
        projector,
        joined: HashSet::new(),
        ran: None,
        outage: Outage::default(),
    };
    Ok(std::thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || {
            let mut intake = Intake::new(jobs);
            while let Some(batch) = intake.next_batch() {
                let rows = writer.outage.with_late(backlog.take());
                writer.commit(batch, &rows, &mut intake);
                if let Some(pack) = writer.ran.take().filter(|_| intake.is_idle()) {
                    writer.runtime.prepare_pack(&pack);
                }
            }
        })
        .expect("a thread can be started"))
}

/// The transaction is gone, and with it what its members wrote.
struct Lost;

/// End of a call inside the writer.
enum Ran {
    /// The transaction goes on.
    Kept(Ended),
    /// The call cost the transaction, and ended in a failure.
    Lost(Ended),
}

struct Writer {
    database: Database,
    runtime: Runtime,
    session: Option<Box<Session>>,
    /// Told after each commit, if somebody wants to know.
    committed: Option<Sender<()>>,
    projector: Sender<Projection>,
    /// Envelopes with connections that are known to work in them. Forgotten with a transaction that is lost.
    joined: HashSet<(String, String)>,
    /// The pack whose tool ran last. Mostly the next call is for the same.
    ran: Option<Arc<Pack>>,
    outage: Outage,
}

impl Writer {
    /// Runs a batch, commits it, and answers. What does not fit into its first transaction is put back.
    fn commit(&mut self, mut batch: Vec<Pending>, rows: &[Operation], intake: &mut Intake) {
        if !self.runtime.host.is_among_others() {
            return self.commit_in(&Turn::Alone, batch, rows, intake);
        }
        if !rows.is_empty() {
            self.commit_in(&Turn::of_rows(rows), Vec::new(), rows, intake);
        }
        let (first, turn) = Turn::of_first(&batch);
        intake.put_back(batch.split_off(first));
        if !batch.is_empty() {
            self.commit_in(&turn, batch, &[], intake);
        }
    }

    fn commit_in(&mut self, turn: &Turn, mut batch: Vec<Pending>, rows: &[Operation], intake: &mut Intake) {
        let mut failed = None;
        let mut conflicts = 0;
        let mut unknown = 0;
        if self.outage.is_hopeless() {
            return self.refuse(batch, rows, intake);
        }
        loop {
            match self.attempt(turn, &mut batch, rows, intake) {
                Ok(Ok(())) => {
                    self.outage.is_over();
                    return self.answer(batch);
                }
                Err(err) if err.failure() == StoreFailure::Unknown && unknown < MAX_UNKNOWN => {
                    unknown += 1;
                    tracing::warn!(%err, "nobody answered a commit; looking for its rows");
                    match self.look_for_last() {
                        Some(true) => return self.answer(batch),
                        // It will not come later either, so its calls run again. Nobody was told of them yet.
                        Some(false) => {
                            self.joined.clear();
                            batch.iter_mut().for_each(|pending| pending.settled = None);
                        }
                        None => {
                            self.abandon();
                            return fail(batch, &unrecorded(&err));
                        }
                    }
                }
                // Nothing of the transaction was kept, so its calls run again when the server is back.
                Err(err) if err.failure() == StoreFailure::Lost => {
                    self.abandon();
                    batch.iter_mut().for_each(|pending| pending.settled = None);
                    if !self.outage.goes_on() {
                        tracing::error!(%err, "the database cannot be reached; calls are refused");
                        return self.refuse(batch, rows, intake);
                    }
                    tracing::debug!(%err, "the database cannot be reached; trying again");
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                // Another host had one of the same rows, and the server undid this transaction so that both can go on.
                Err(err) if err.failure() == StoreFailure::Conflict && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    tracing::debug!(%err, "a transaction met another host's; trying again");
                    self.abandon();
                    batch.iter_mut().for_each(|pending| pending.settled = None);
                }
                // The call that cost the transaction is settled or ran once more, so this ends.
                Ok(Err(Lost)) => {
                    self.joined.clear();
                    batch.iter_mut().for_each(|pending| pending.settled = None);
                }
                Err(err) if failed.is_none() && !is_busy(&err) => {
                    let err = self.explain(err);
                    tracing::error!(%err, "a commit failed; its calls are recorded as failed");
                    self.abandon();
                    batch
                        .iter_mut()
                        .for_each(|pending| pending.fail(&storage_failed(&err)));
                    failed = Some(err);
                }
                Err(err) => {
                    tracing::error!(%err, rows = rows.len(), "a commit failed, and rows of reads with it");
                    self.abandon();
                    let cause = failed.unwrap_or(err);
                    return fail(batch, &unrecorded(&cause));
                }
            }
        }
    }

    /// Refuses calls while the database cannot be reached. Their rows are written when it is back.
    fn refuse(&mut self, mut batch: Vec<Pending>, rows: &[Operation], intake: &mut Intake) {
        self.outage.keep(rows, &mut batch, intake);
        fail(batch, &unreachable());
    }

    fn answer(&self, batch: Vec<Pending>) {
        if let Some(committed) = &self.committed {
            // One that was not heard yet is enough.
            let _ = committed.try_send(());
        }
        answer(batch, &self.projector);
    }

    /// Looks if the last transaction was committed. None if the database cannot be asked, or there is no row to look for.
    fn look_for_last(&mut self) -> Option<bool> {
        let written = self.session.as_ref()?.written()?;
        let until = Instant::now() + PATIENCE;
        loop {
            match self.look_for(&written) {
                Ok(is_there) => return Some(is_there),
                Err(err) if Instant::now() < until => {
                    tracing::debug!(%err, "the database cannot be asked yet");
                    self.abandon();
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                Err(_) => return None,
            }
        }
    }

    /// Looks for what a transaction wrote. Whoever has the turn to write sees how every transaction before ended.
    fn look_for(&mut self, written: &Written) -> StoreResult<bool> {
        let session = self.session()?;
        session.begin_write()?;
        let is_there = session.ledger().holds(written)?;
        session.rollback()?;
        Ok(is_there)
    }

    /// Runs the calls of a batch, as far as their turn goes, and commits them. The others are put back.
    fn attempt(
        &mut self,
        turn: &Turn,
        batch: &mut Vec<Pending>,
        rows: &[Operation],
        intake: &mut Intake,
    ) -> StoreResult<Result<(), Lost>> {
        let now = self.runtime.now();
        let boot_ms = self.runtime.equipment.clock.boot_ms();
        let session = self.session()?;
        match turn {
            Turn::Alone => session.begin_write()?,
            Turn::Among(among) => session.begin_write_among(among)?,
        }
        for row in rows {
            record(session, row, &now, boot_ms)?;
        }
        let mut progress = Progress::begin();
        let mut done = 0;
        while let Some(pending) = batch.get_mut(done) {
            if progress.is_over(pending, intake) {
                intake.put_back(batch.split_off(done));
                break;
            }
            let began = Instant::now();
            if self.process(pending)?.is_err() {
                return Ok(Err(Lost));
            }
            progress.took(pending, began, intake);
            done += 1;
        }
        self.session()?.commit()?;
        Ok(Ok(()))
    }

    fn process(&mut self, pending: &mut Pending) -> StoreResult<Result<(), Lost>> {
        let now = self.runtime.now();
        let boot_ms = self.runtime.equipment.clock.boot_ms();
        match &mut pending.job {
            Job::Flush(_) | Job::Pulse(_) | Job::Backlog => {}
            Job::Record { operation, task, .. } => {
                let now_ms = self.runtime.equipment.clock.now_ms();
                let session = self.session()?;
                let op_id = &operation.op_id;
                if operation.effect == Effect::Run
                    && !session.intents().fulfil(op_id)?
                    && session.ledger().has(op_id)?
                {
                    // Other hosts took this one for gone, and wrote the row.
                    pending.is_buried = true;
                    return Ok(Ok(()));
                }
                record(session, operation, &now, boot_ms)?;
                if let Some((slot, end)) = task.as_deref() {
                    tasks::end_stored(session, slot, end, now_ms)?;
                }
                if operation.effect == Effect::Run {
                    if permits::gives_back(operation) {
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
                pending.maintained = Some((since, done));
            }
            Job::Interrupt { connection, .. } => {
                let host = Arc::clone(&self.runtime.host);
                let clock = &self.runtime.equipment.clock;
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
            Job::Admit { draft, .. } => {
                self.name_workspace(draft)?;
                let settled = self.admit(draft, &now)?;
                let session = self.session()?;
                match &settled.result {
                    Err(_) => session.ledger().record(draft.finish(&settled))?,
                    Ok(_) => {
                        draft.operation.counters.clone_from(&settled.counters);
                        session.intents().insert(&draft.intent())?;
                        tasks::begin_with_intent(session, draft)?;
                    }
                }
                pending.settled = Some(settled);
            }
            Job::Call { guest, draft, .. } => {
                draft.run_again();
                self.name_workspace(draft)?;
                // Nobody waits for it any more, so it leaves the line without a charge to its envelope.
                let mut settled = if pending.failure.is_none() && guest.cancel.is_pointless() {
                    Settled::refused(cancelled(guest, Changed::Nothing))
                } else {
                    self.admit(draft, &now)?
                };
                if settled.result.is_ok() {
                    let ended = match pending.failure.take() {
                        Some(ended) => ended,
                        None => match self.run(guest)? {
                            Ran::Kept(ended) => ended,
                            Ran::Lost(ended) => {
                                guest.artifacts.forget();
                                // What it saw was the end of its connection, unless it ended that by being late.
                                let runs_again = pending.losses < MAX_LOSSES
                                    && self.session.as_ref().is_some_and(|session| session.is_lost())
                                    && !ended.is_given_up();
                                if runs_again {
                                    pending.losses += 1;
                                } else {
                                    pending.failure = Some(ended);
                                }
                                return Ok(Err(Lost));
                            }
                        },
                    };
                    if ended.result.is_err() {
                        guest.artifacts.forget();
                        pending.failure = Some(ended.clone());
                    }
                    settled.end(ended);
                    if !draft.permits.is_empty() {
                        self.settle_permits(draft, settled.refusal().is_some())?;
                    }
                    settled.mutation = self.mutation(draft, &settled)?;
                }
                let runtime = self.runtime.clone();
                let now_ms = runtime.equipment.clock.now_ms();
                let session = self.session()?;
                settled.budgets = runtime.budgets(session, &guest.generation, draft)?;
                record(session, draft.finish(&settled), &now, boot_ms)?;
                if settled.refusal().is_none() {
                    tasks::end_with_row(session, draft, &settled.result, now_ms)?;
                }
                pending.settled = Some(settled);
            }
        }
        Ok(Ok(()))
    }

    /// Runs one call under its savepoint.
    fn run(&mut self, guest: &GuestCall) -> StoreResult<Ran> {
        let session = self.session.take().map_or_else(|| self.reopen(), Ok)?;
        session.savepoint()?;
        let before = session.pages()?;
        if let Body::Guest(pack) = &guest.body {
            let quota = i64::try_from(pack.limits.storage / PAGE).unwrap_or(i64::MAX);
            session.limit_growth(quota - session.components().used_pages(&pack.namespace)?)?;
            self.ran = Some(Arc::clone(pack));
        }
        drop(session.take_changes());
        guest.artifacts.forget();
        let (session, mut ended) = self.runtime.run(guest, session, Transactions::WholeCall);
        let Some(session) = session else {
            // The connection went down with the panic, and the transaction with it.
            if ended.result.is_ok() {
                ended.result = Err(ToolError::new("HOST_FAILED", "the host failed"));
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
            // A statement of the host's failed within the call, and the call went on as if it had not. Its own part is undone.
            ended.result = Err(lost_transaction());
        }
        session.lift_limit()?;
        if ended.result.is_ok() {
            let grown = session.pages()? - before - ended.pages;
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

    /// The failure, with what in the database is in the way of the host's own statements, if something is.
    fn explain(&self, err: StoreError) -> StoreError {
        match &self.session {
            Some(session) => session.maintenance().explain(err),
            None => err,
        }
    }

    fn session(&mut self) -> StoreResult<&Session> {
        if self.session.is_none() {
            self.session = Some(self.reopen()?);
        }
        self.session.as_deref().ok_or(StoreError::no_session())
    }

    fn reopen(&self) -> StoreResult<Box<Session>> {
        self.database
            .write_session()
            .map(Box::new)
            .map_err(OpenError::into_cause)
    }

    /// Leaves no transaction behind.
    fn abandon(&mut self) {
        self.joined.clear();
        let rolled_back = self
            .session
            .as_ref()
            .is_some_and(|session| !session.in_transaction() || session.rollback().is_ok());
        if !rolled_back {
            self.session = None;
        } else if let Some(session) = &self.session {
            session.end_turn();
        }
    }
}

/// Writes a row, tells its envelope the fingerprints, and closes the one whose time a read found to be
/// over.
fn record(session: &Session, operation: &Operation, now: &str, boot_ms: i64) -> StoreResult<()> {
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
