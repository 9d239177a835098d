//! Executors of calls: `read` calls in parallel, `write` calls one after another, `run` calls on threads of their
//! own.

mod reader;
mod runner;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use tokio::sync::oneshot;
use tollgate_core::effect::Effect;
use tollgate_core::meter::Totals;
use tollgate_sdk::{Timestamp, ToolError};
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::ledger::heads;
use tollgate_store::storage::{Database, HeadOf, Session, StoredApproval, TaskEnd};

use super::backlog::Backlog;
use super::failure::Failure;
use super::guest_call::GuestCall;
use super::job::{Job, Work};
use super::maintenance::{Maintenance, MaintenanceThread, Mirrorer};
use super::pending_operation::{PendingOperation, Recording};
use super::projector;
use super::queue::Queue;
use super::reader_outcome::{ReaderOutcome, Waiting};
use super::runners::Runners;
use super::runtime::Runtime;
use super::settled::Settled;
use super::task_slot::TaskSlot;
use super::writer;

use reader::{ReadJob, Reader};
use runner::Runner;

/// Time that a `read` call waits before another reader is woken for it.
const WAKE_TIMEOUT: Duration = Duration::from_millis(5);
/// Most concurrent `run` calls. Identities share them, so that one identity has at most half.
const MAX_RUNNERS: u64 = 16;
/// Most concurrent `run` calls of a caller that has the process to itself.
const RUNNERS_ALONE: u64 = 8;

/// Time for which database metrics are cached, because counting rows takes longer the more there are.
const TOTALS_INTERVAL: Duration = Duration::from_secs(5);

/// Threads that run calls. They end after the queued work when this is dropped.
pub(super) struct Executors {
    database: Database,
    data: Arc<DataDir>,
    /// Database metrics, and when they were read.
    totals: tokio::sync::Mutex<Option<(Instant, Totals)>>,
    runtime: Runtime,
    runners: Runners,
    reads: Arc<Queue<ReadJob>>,
    writes: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    /// Closed when the maintenance thread must end.
    running: Option<Sender<()>>,
}

impl Executors {
    pub(super) fn open(
        database: &Database,
        runtime: Runtime,
        maintenance: Arc<Maintenance>,
    ) -> anyhow::Result<Executors> {
        let mirrorer = maintenance
            .settings
            .mirror
            .then(|| Mirrorer::open(database, &maintenance));
        let (committed, mirrorer) = mirrorer.transpose()?.unzip();
        let data = Arc::clone(&maintenance.data);
        let backlog = Backlog::default();
        let (writes, write_jobs) = crossbeam_channel::unbounded();
        let readers = reader::count();
        let reads = Arc::new(Queue::new(readers));
        let (projections, projector) = projector::start();
        let writer = writer::start(
            database.clone(),
            runtime.clone(),
            write_jobs,
            backlog.clone(),
            committed,
            projections,
        )?;
        let mut threads = vec![writer, projector];
        for number in 0..readers {
            let reader = Reader {
                database: database.clone(),
                runtime: runtime.clone(),
                jobs: Arc::clone(&reads),
                writes: Sender::clone(&writes),
                backlog: backlog.clone(),
            };
            threads.push(thread(&format!("reader-{number}"), move || reader.work()));
        }
        let clock = Arc::clone(&runtime.services.clock);
        let (running, maintenance_thread) =
            MaintenanceThread::new(maintenance, database.clone(), clock, Sender::clone(&writes));
        threads.push(thread("maintenance", move || maintenance_thread.work()));
        threads.extend(mirrorer.map(|mirrorer| thread("mirrorer", move || mirrorer.work())));
        Ok(Executors {
            database: database.clone(),
            data,
            totals: tokio::sync::Mutex::default(),
            runtime,
            runners: Runners::new(MAX_RUNNERS, RUNNERS_ALONE),
            reads,
            writes: Some(writes),
            threads,
            running: Some(running),
        })
    }

    /// Has a call judged on a snapshot. A call that reads runs there, and its row follows later. A call that writes
    /// and passes continues at the writer.
    pub(super) async fn read(&self, guest: Box<GuestCall>, pending: Box<PendingOperation>) -> ReaderOutcome {
        let (reply, mut answer) = oneshot::channel();
        let share = pending.share.clone();
        self.reads.push(
            share,
            ReadJob {
                guest,
                pending,
                reply,
            },
        );
        let answered = match tokio::time::timeout(WAKE_TIMEOUT, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                self.reads.hurry();
                answer.await
            }
        };
        answered.unwrap_or_else(|_| ReaderOutcome::Settled(stopped(), Recording::default()))
    }

    /// Runs a call in a transaction that is committed with its row.
    pub(super) async fn write(&self, guest: Box<GuestCall>, pending: Box<PendingOperation>) -> Box<Settled> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Call {
            guest,
            pending,
            reply: Waiting::Caller(reply),
        });
        answer.await.unwrap_or_else(|_| stopped())
    }

    /// Runs a call outside any transaction. The call is admitted before, and its row is on disk before the reply. The
    /// row is written even if the caller leaves.
    pub(super) async fn run(&self, guest: Box<GuestCall>, pending: Box<PendingOperation>) -> Box<Settled> {
        let Some(writes) = self.writes.clone() else {
            return stopped();
        };
        let runner = Runner {
            database: self.database.clone(),
            runtime: self.runtime.clone(),
            running: self.runners.clone(),
            writes,
        };
        let token = self.runners.announce();
        let run = async move {
            let settled = Box::new(runner.run(guest, pending).await);
            drop(token);
            settled
        };
        tokio::spawn(run).await.unwrap_or_else(|_| stopped())
    }

    /// Scans the work tree after a call's files were written, and stores its state as the result of the call.
    pub(super) async fn look_after_files(&self, mut pending: Box<PendingOperation>) {
        let (runtime, database) = (self.runtime.clone(), self.database.clone());
        let now = Timestamp::from_ms(runtime.services.clock.now_ms()).to_string();
        let looked = tokio::task::spawn_blocking(move || {
            let after = pending.look_after_row(&runtime, &database);
            pending.leave_behind(after);
            pending.operation
        });
        let Ok(operation) = looked.await else { return };
        if operation.left_behind.is_none() {
            return;
        }
        let note = move |session: &Session| match (&operation.envelope_id, &operation.left_behind) {
            (Some(envelope), Some((seen, cause))) => {
                session
                    .work_trees()
                    .note_state_after(envelope, &operation.op_id, seen)?;
                session
                    .work_trees()
                    .note_sighting_around(envelope, seen, *cause, &operation.op_id, &now)
            }
            (None, Some((seen, cause))) => session.work_trees().note_newest(seen, *cause),
            _ => Ok(()),
        };
        if !self.change(Box::new(note)).await {
            tracing::warn!("storing the state of a work tree after a call failed");
        }
    }

    /// Runs work that waits for programs, off the threads of calls. `None` if it failed.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Runtime, &Database) -> T + Send + 'static,
    ) -> Option<T> {
        let (runtime, database) = (self.runtime.clone(), self.database.clone());
        tokio::task::spawn_blocking(move || work(&runtime, &database))
            .await
            .ok()
    }

    /// Request for approval with an id. If it cannot be read, the caller gets the reason when the call runs.
    pub(super) async fn approval(&self, id: String) -> Option<StoredApproval> {
        let database = self.database.clone();
        let found = tokio::task::spawn_blocking(move || {
            let session = database.read_session().map_err(|err| err.into_cause())?;
            session.approvals().get(&id)
        });
        match found.await {
            Ok(Ok(found)) => found,
            Ok(Err(err)) => {
                tracing::warn!(%err, "reading a request for approval failed");
                None
            }
            Err(_) => None,
        }
    }

    /// True if there are requests for approval that the operator's program has not been notified of.
    pub(super) async fn has_unheard_approvals(&self) -> bool {
        let database = self.database.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let session = database.read_session().map_err(|err| err.into_cause())?;
            session.approvals().has_unheard()
        });
        match looking.await {
            Ok(Ok(found)) => found,
            Ok(Err(err)) => {
                tracing::warn!(%err, "reading requests for approval failed");
                false
            }
            Err(_) => false,
        }
    }

    /// Sets the lookup of workspaces' commits.
    pub(super) fn know_heads(&self, head_of: HeadOf) {
        self.database.know_heads(head_of);
    }

    /// Scans the work tree that a call is about.
    pub(super) async fn look_before(&self, pending: Box<PendingOperation>) -> Box<PendingOperation> {
        looked(&self.runtime, &self.database, pending).await
    }

    /// Records a call that read, before its reply leaves.
    pub(super) async fn settle(&self, pending: Box<PendingOperation>, settled: Box<Settled>) -> Box<Settled> {
        let Some(writes) = &self.writes else {
            return stopped();
        };
        match record(writes, pending, &settled).await {
            Err(failure) if settled.result.is_ok() => Box::new(Settled::failed(failure)),
            _ => settled,
        }
    }

    /// Records a call that ended before any guest ran. Calls that read cost nothing and need no admission, so their
    /// rows keep the class of the failure.
    pub(super) async fn refuse(&self, pending: Box<PendingOperation>, failure: Failure) -> Box<Settled> {
        let settled = Box::new(match pending.operation.effect {
            Effect::Read => Settled::not_begun(failure),
            Effect::Write | Effect::Run => Settled::turned_away(failure),
        });
        if let Some(writes) = &self.writes {
            // The refusal holds anyway; the host's log shows that the ledger lacks the row.
            let _ = record(writes, pending, &settled).await;
        }
        settled
    }

    /// Forgets a connection. Returns whether a component asked about it.
    pub(super) fn unwatch(&self, connection: &str) -> bool {
        self.runtime.host.unwatch(connection)
    }

    /// Marks open work of a connection, or of all connections, as interrupted.
    pub(super) async fn interrupt(&self, connection: Option<&str>) {
        let (done, interrupted) = oneshot::channel();
        self.send(Job::Interrupt {
            connection: connection.map(str::to_owned),
            done,
        });
        let _ = interrupted.await;
    }

    /// Marks open work of one connection as interrupted, soon.
    pub(super) fn interrupt_soon(&self, connection: &str) {
        let (done, _) = oneshot::channel();
        self.send(Job::Interrupt {
            connection: Some(connection.to_owned()),
            done,
        });
    }

    /// Has the writer make a change for the host. Returns whether it is on disk.
    pub(super) async fn change(&self, work: Work) -> bool {
        let (done, committed) = oneshot::channel();
        self.send(Job::Maintain { work, done });
        matches!(committed.await, Ok(Ok(_)))
    }

    /// Records that a connection works in an envelope, unless it opened that envelope.
    pub(super) async fn join_envelope(
        &self,
        envelope: &str,
        (host_id, connection): (&str, &str),
        now_ms: i64,
    ) {
        let now = Timestamp::from_ms(now_ms).to_string();
        let [envelope, host_id, connection] = [envelope, host_id, connection].map(str::to_owned);
        let join =
            move |session: &Session| session.envelopes().join(&envelope, (&host_id, &connection), &now);
        if !self.change(Box::new(join)).await {
            tracing::warn!("recording that a connection reads in an envelope failed");
        }
    }

    /// Waits until runs are over and queued work is on disk.
    pub(super) async fn flush(&self) {
        self.runners.idle().await;
        let (done, flushed) = oneshot::channel();
        self.send(Job::Flush(done));
        let _ = flushed.await;
    }

    /// Signs the current head of the ledger. Failures go to the log.
    pub(super) fn sign_head(&self) {
        let now = Timestamp::from_ms(self.runtime.services.clock.now_ms());
        let signed = self
            .database
            .read_session()
            .map_err(anyhow::Error::from)
            .and_then(|session| heads::note(&self.data, &session, now));
        if let Err(err) = signed {
            tracing::error!("signing the ledger's head failed: {err:#}");
        }
    }

    /// True if the writer still accepts and finishes jobs.
    pub(super) async fn is_writing(&self) -> bool {
        let (done, works) = oneshot::channel();
        self.send(Job::Pulse(done));
        works.await.is_ok()
    }

    /// Number of jobs that wait for the writer.
    pub(super) fn queued(&self) -> usize {
        self.writes.as_ref().map_or(0, Sender::len)
    }

    /// Metrics of the database, counted at most every few seconds.
    pub(super) async fn totals(&self) -> Option<Totals> {
        let mut known = self.totals.lock().await;
        if let Some((_, totals)) = known.filter(|(at, _)| at.elapsed() < TOTALS_INTERVAL) {
            return Some(totals);
        }
        let (database, data) = (self.database.clone(), Arc::clone(&self.data));
        let boot_ms = self.runtime.services.clock.boot_ms();
        let counting = tokio::task::spawn_blocking(move || count(&database, &data, boot_ms));
        match counting.await {
            Ok(Ok(totals)) => {
                *known = Some((Instant::now(), totals));
                Some(totals)
            }
            Ok(Err(err)) => {
                tracing::warn!("reading the totals of the database failed: {err:#}");
                None
            }
            Err(_) => None,
        }
    }

    fn send(&self, job: Job) {
        if let Some(writes) = &self.writes {
            // If the writer is gone, the job is dropped, and its receiver notices.
            let _ = writes.send(job);
        }
    }
}

fn count(database: &Database, data: &DataDir, boot_ms: i64) -> anyhow::Result<Totals> {
    let session = database.read_session()?;
    let (ledger_rows, open_envelopes) = session.maintenance().totals(boot_ms)?;
    Ok(Totals {
        ledger_rows,
        open_envelopes,
        database_bytes: match session.maintenance().bytes_on_server()? {
            Some(bytes) => bytes,
            None => data.bytes(DATABASE),
        },
        wal_bytes: data.bytes(&format!("{DATABASE}-wal")),
        free_bytes: session.maintenance().free_bytes()?,
    })
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.running = None;
        self.reads.close();
        self.writes = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Scans the work tree that a call is about, if it is about one.
async fn looked(
    runtime: &Runtime,
    database: &Database,
    pending: Box<PendingOperation>,
) -> Box<PendingOperation> {
    if pending.watch.is_none() {
        return pending;
    }
    let (runtime, database, mut looking) = (runtime.clone(), database.clone(), pending.clone());
    let looked = tokio::task::spawn_blocking(move || {
        looking.look_before(&runtime, &database);
        looking
    });
    looked.await.unwrap_or(pending)
}

/// Records a call, and waits until its row is on disk. Fails if that is impossible.
async fn record(
    writes: &Sender<Job>,
    pending: Box<PendingOperation>,
    settled: &Settled,
) -> Result<(), Failure> {
    record_with(writes, pending, settled, None).await
}

/// Records a call that ran, and ends its task with the row.
async fn record_with(
    writes: &Sender<Job>,
    pending: Box<PendingOperation>,
    settled: &Settled,
    task: Option<(TaskSlot, TaskEnd)>,
) -> Result<(), Failure> {
    let (done, recorded) = oneshot::channel();
    let _ = writes.send(Job::Record {
        share: pending.share.clone(),
        operation: Box::new(pending.settle(settled)),
        task: task.map(Box::new),
        done,
    });
    recorded.await.unwrap_or_else(|_| Err(stopping()))
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("a thread can be started")
}

fn stopped() -> Box<Settled> {
    Box::new(Settled::failed(stopping()))
}

fn stopping() -> Failure {
    let error = ToolError::new("HOST_STOPPING", "the host is stopping; nothing was changed");
    Failure::host(error.remediation("Call again after the host has restarted."))
}
