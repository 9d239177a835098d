//! The writer: one thread, one connection, one commit for all waiting jobs.
//!
//! Each call runs under its own savepoint, so a failed call undoes only its own rows. No reply is sent before the
//! commit that holds its row. Some failures make SQLite roll back the whole transaction. In that case the calls
//! before the failing one run again, because none of their callers has been answered.
//!
//! While several identities have calls, a commit holds few of them: see `intake`. On a database server, calls about
//! different things have transactions of their own, parallel to those of other hosts: see `lanes` and `among`.

mod admit;
mod among;
mod answer;
mod lanes;
mod outage;
mod process;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use tollgate_components::packs::Pack;
use tollgate_core::share::Share;
use tollgate_store::storage::{
    Database, OpenError, Operation, Session, StoreError, StoreFailure, StoreResult, Written,
};

use super::backlog::Backlog;
use super::ended::Ended;
use super::failure::{in_the_way, is_busy, storage_failed, unreachable, unrecorded};
use super::intake::{Intake, Progress, QueuedJob};
use super::job::Job;
use super::projector::Work as Projection;
use super::runtime::Runtime;

use among::Turn;
use answer::{answer, fail};
use lanes::Lanes;
use outage::{OUTAGE_TIMEOUT, Outage};
use process::record;

/// Most commits of one batch without an answer from the server.
const MAX_UNKNOWN: u32 = 3;
/// Most restarts of a transaction because of conflicts.
const MAX_CONFLICTS: u32 = 5;
/// Most runs of a call that end with a lost connection. After that, the call gets the error itself.
const MAX_LOSSES: u32 = 2;
/// Time for which BEGIN is sent separately, after a BEGIN that was sent together with a statement had to wait: others
/// compete for the same lock.
const SEPARATE_BEGIN_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of checking for the commit.
const COMMIT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

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
    let number = database.lanes();
    let mut writer = Writer {
        database,
        runtime,
        session: Some(session),
        committed,
        projector,
        joined: HashSet::new(),
        ran: None,
        outage: Outage::default(),
        busy_until: None,
        took: Vec::new(),
    };
    Ok(std::thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || match number {
            Some(number) => Lanes::open(writer, backlog, number.get()).work(jobs),
            None => {
                let mut intake = Intake::new(jobs);
                while let Some(batch) = intake.next_batch() {
                    let rows = backlog.take();
                    writer.commit(&Turn::Alone, batch, &rows, Some(&mut intake));
                    if let Some(pack) = writer.ran.take().filter(|_| intake.is_idle()) {
                        writer.runtime.prepare_pack(&pack);
                    }
                }
            }
        })
        .expect("a thread can be started"))
}

/// The transaction is gone, and with it all writes of its members.
struct Lost;

/// Outcome of a call inside the writer.
enum Ran {
    /// The transaction continues.
    Kept(Ended),
    /// The call aborted the transaction and failed.
    Lost(Ended),
}

struct Writer {
    database: Database,
    runtime: Runtime,
    session: Option<Box<Session>>,
    /// Notified after each commit, if there is a listener.
    committed: Option<Sender<()>>,
    projector: Sender<Projection>,
    /// Envelopes with connections that are known to work in them. Cleared if a transaction is lost.
    joined: HashSet<(String, String)>,
    /// Pack whose tool ran last. The next call is usually for the same pack.
    ran: Option<Arc<Pack>>,
    outage: Outage,
    /// Time until which BEGIN is sent separately.
    busy_until: Option<Instant>,
    /// Time that calls of the last commit took, and their shares.
    took: Vec<(Share, Duration)>,
}

impl Writer {
    /// Runs a batch, commits it, and answers. Jobs that do not fit into the transaction are put back, if they came
    /// from the intake.
    fn commit(
        &mut self,
        turn: &Turn,
        mut batch: Vec<QueuedJob>,
        rows: &[Operation],
        mut intake: Option<&mut Intake>,
    ) {
        let mut failed = None;
        let mut conflicts = 0;
        let mut unknown = 0;
        if self.outage.is_hopeless() {
            return self.refuse(batch, rows);
        }
        loop {
            let attempted = self.attempt(turn, &mut batch, rows, intake.as_deref_mut());
            if !matches!(attempted, Ok(Ok(()))) && self.must_begin_anew() {
                conflicts += 1;
                tracing::debug!("a transaction has to start again");
                self.busy_until = Some(Instant::now() + SEPARATE_BEGIN_INTERVAL);
                self.abandon();
                batch.iter_mut().for_each(|queued| queued.settled = None);
                if conflicts > MAX_CONFLICTS {
                    batch.iter_mut().for_each(|queued| queued.fail(&in_the_way()));
                }
                continue;
            }
            match attempted {
                Ok(Ok(())) => {
                    self.outage.is_over();
                    return self.answer(batch);
                }
                Err(err) if err.failure() == StoreFailure::Unknown && unknown < MAX_UNKNOWN => {
                    unknown += 1;
                    tracing::warn!(%err, "the server did not confirm a commit; checking whether its rows exist");
                    match self.look_for_last() {
                        Some(true) => return self.answer(batch),
                        // The commit will not arrive later either, so its calls run again. None of their callers was
                        // answered yet.
                        Some(false) => {
                            self.joined.clear();
                            batch.iter_mut().for_each(|queued| queued.settled = None);
                        }
                        None => {
                            self.abandon();
                            self.outage.keep_what_happened(&mut batch);
                            return fail(batch, &unrecorded(&err));
                        }
                    }
                }
                // Nothing of the transaction was stored, so its calls run again when the server is back.
                Err(err) if err.failure() == StoreFailure::Lost => {
                    self.abandon();
                    batch.iter_mut().for_each(|queued| queued.settled = None);
                    if !self.outage.goes_on() {
                        if self.outage.is_news() {
                            tracing::error!(%err, "the database cannot be reached; calls are refused");
                        }
                        return self.refuse(batch, rows);
                    }
                    tracing::debug!(%err, "the database cannot be reached; trying again");
                    std::thread::sleep(COMMIT_CHECK_INTERVAL);
                }
                // Another host held some of the same rows, and the server rolled back this transaction so that both
                // can proceed.
                Err(err) if err.failure() == StoreFailure::Conflict && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    tracing::debug!(%err, "a transaction conflicted with another host's; trying again");
                    self.abandon();
                    batch.iter_mut().for_each(|queued| queued.settled = None);
                }
                // The call that aborted the transaction is settled or ran once more, so the loop ends.
                Ok(Err(Lost)) => {
                    self.joined.clear();
                    batch.iter_mut().for_each(|queued| queued.settled = None);
                }
                Err(err) if failed.is_none() && !is_busy(&err) => {
                    let err = self.explain(err);
                    tracing::error!(%err, "a commit failed; its calls are recorded as failed");
                    self.abandon();
                    batch
                        .iter_mut()
                        .for_each(|queued| queued.fail(&storage_failed(&err)));
                    failed = Some(err);
                }
                Err(err) => {
                    if is_busy(&err) && self.database.lanes().is_some() {
                        // A server that is busy with others is tried again.
                        tracing::error!(%err, "a commit failed; ledger rows of reads are kept for the next commit");
                        self.outage.keep(rows, &mut []);
                        self.outage.keep_what_happened(&mut batch);
                    } else {
                        let (calls, reads) = (batch.len(), rows.len());
                        tracing::error!(%err, calls, reads, "the ledger rows of these calls could not be written");
                    }
                    self.abandon();
                    let cause = failed.unwrap_or(err);
                    return fail(batch, &unrecorded(&cause));
                }
            }
        }
    }

    /// Refuses calls while the database is unreachable. Their rows are written when it is back.
    fn refuse(&mut self, mut batch: Vec<QueuedJob>, rows: &[Operation]) {
        self.outage.keep(rows, &mut batch);
        self.outage.keep_what_happened(&mut batch);
        fail(batch, &unreachable());
    }

    fn answer(&self, batch: Vec<QueuedJob>) {
        if let Some(committed) = &self.committed {
            // One pending notification is enough.
            let _ = committed.try_send(());
        }
        answer(batch, &self.projector);
    }

    /// Checks whether the last transaction was committed. `None` if the database is unreachable, or if there is no
    /// row to look for.
    fn look_for_last(&mut self) -> Option<bool> {
        let written = self.session.as_ref()?.written()?;
        let until = Instant::now() + OUTAGE_TIMEOUT;
        loop {
            match self.look_for(&written) {
                Ok(is_there) => return Some(is_there),
                Err(err) if Instant::now() < until => {
                    tracing::debug!(%err, "the database cannot be queried yet");
                    self.abandon();
                    std::thread::sleep(COMMIT_CHECK_INTERVAL);
                }
                Err(_) => return None,
            }
        }
    }

    /// Checks for the rows of a transaction. Under the write lock, the outcome of every earlier transaction is
    /// visible.
    fn look_for(&mut self, written: &Written) -> StoreResult<bool> {
        let session = self.session()?;
        session.begin_late(false);
        session.begin_write()?;
        let is_there = session.ledger().holds(written)?;
        session.rollback()?;
        Ok(is_there)
    }

    /// Runs the calls of a batch, as far as their turn allows, and commits them. The others are put back.
    fn attempt(
        &mut self,
        turn: &Turn,
        batch: &mut Vec<QueuedJob>,
        rows: &[Operation],
        mut intake: Option<&mut Intake>,
    ) -> StoreResult<Result<(), Lost>> {
        self.took.clear();
        let now = self.runtime.now();
        let boot_ms = self.runtime.services.clock.boot_ms();
        let is_late = self.busy_until.is_none_or(|until| until <= Instant::now());
        let session = self.session()?;
        session.begin_late(is_late);
        match turn {
            Turn::Alone => session.begin_write()?,
            Turn::Among(among) => session.begin_write_among(among)?,
        }
        for row in rows {
            record(session, row, &now, boot_ms)?;
        }
        let mut progress = Progress::begin();
        let mut done = 0;
        while let Some(queued) = batch.get_mut(done) {
            if let Some(intake) = &mut intake
                && progress.is_over(queued, intake)
            {
                intake.put_back(batch.split_off(done));
                break;
            }
            let began = Instant::now();
            if self.process(queued)?.is_err() {
                return Ok(Err(Lost));
            }
            match &mut intake {
                Some(intake) => progress.took(queued, began, intake),
                None => self.took.push((queued.share().clone(), began.elapsed())),
            }
            done += 1;
        }
        self.session()?.commit()?;
        Ok(Ok(()))
    }

    /// Adds to an error the database object that blocks the host's own statements, if there is one.
    fn explain(&self, err: StoreError) -> StoreError {
        match &self.session {
            Some(session) => session.maintenance().explain(err),
            None => err,
        }
    }

    fn must_begin_anew(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.must_begin_anew())
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

    /// Rolls back any open transaction.
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
