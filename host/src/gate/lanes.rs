//! Where calls run: readers side by side, writes one after another, runs on their own.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::{Semaphore, oneshot};
use tollgate_sdk::ToolError;

use super::guest::{GuestCall, Runtime};
use super::writer::{self, Backlog, Job};
use super::{Draft, Reply, Settled, admission, projector};
use crate::core_tools;
use crate::envelope::Charge;
use crate::sandbox::state::Transactions;
use crate::storage::{Database, OpenError, Session};

/// Threads for `read` calls. More than the cores, so that stalled guests leave room for others.
const READERS: usize = 8;
/// `run` calls at once.
const RUNNERS: u32 = 8;

type Answer = oneshot::Sender<Settled>;

struct ReadJob {
    guest: GuestCall,
    draft: Draft,
    reply: Answer,
}

/// The threads that run calls. They end when this is dropped, after what was queued.
pub(super) struct Lanes {
    database: Database,
    runtime: Runtime,
    runners: Arc<Semaphore>,
    reads: Option<Sender<ReadJob>>,
    writes: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    pub(super) fn open(database: &Database, runtime: Runtime) -> Result<Lanes, OpenError> {
        let backlog = Backlog::default();
        let (writes, write_jobs) = crossbeam_channel::unbounded();
        let (reads, read_jobs) = crossbeam_channel::unbounded();
        let (projections, projector) = projector::start();
        let writer = writer::start(
            database.clone(),
            runtime.clone(),
            write_jobs,
            backlog.clone(),
            projections,
        )?;
        let mut threads = vec![writer, projector];
        for number in 0..READERS {
            let reader = Reader {
                database: database.clone(),
                runtime: runtime.clone(),
                jobs: Receiver::clone(&read_jobs),
                writes: Sender::clone(&writes),
                backlog: backlog.clone(),
            };
            let thread = std::thread::Builder::new()
                .name(format!("reader-{number}"))
                .spawn(move || reader.work())
                .expect("a thread can be started");
            threads.push(thread);
        }
        Ok(Lanes {
            database: database.clone(),
            runtime,
            runners: Arc::new(Semaphore::new(RUNNERS as usize)),
            reads: Some(reads),
            writes: Some(writes),
            threads,
        })
    }

    /// Runs a call on a snapshot. Its row follows later.
    pub(super) async fn read(&self, guest: GuestCall, draft: Draft) -> Settled {
        let (reply, answer) = oneshot::channel();
        if let Some(reads) = &self.reads {
            let _ = reads.send(ReadJob { guest, draft, reply });
        }
        answer.await.unwrap_or_else(|_| Settled::refused(stopping()))
    }

    /// Runs a call as a transaction that commits with its row.
    pub(super) async fn write(&self, guest: GuestCall, draft: Draft) -> Settled {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Call {
            guest: Box::new(guest),
            draft: Box::new(draft),
            reply,
        });
        answer.await.unwrap_or_else(|_| Settled::refused(stopping()))
    }

    /// Runs a call outside any transaction. It is admitted before, and its row is on disk before the
    /// reply. A caller that goes away does not take the record with it.
    pub(super) async fn run(&self, guest: GuestCall, draft: Draft) -> Settled {
        let Some(writes) = self.writes.clone() else {
            return Settled::refused(stopping());
        };
        let runner = Runner {
            database: self.database.clone(),
            runtime: self.runtime.clone(),
            running: Arc::clone(&self.runners),
            writes,
        };
        tokio::spawn(runner.run(guest, draft))
            .await
            .unwrap_or_else(|_| Settled::refused(stopping()))
    }

    /// Records a call that was refused before any guest ran.
    pub(super) async fn refuse(&self, draft: Draft, refusal: ToolError) -> Settled {
        let settled = Settled::refused(refusal);
        if let Some(writes) = &self.writes {
            record(writes, &draft, &settled).await;
        }
        settled
    }

    /// Marks what a connection left open as interrupted.
    pub(super) async fn interrupt(&self, connection: &str) {
        let (done, interrupted) = oneshot::channel();
        self.send(Job::Interrupt {
            connection: connection.to_owned(),
            done,
        });
        let _ = interrupted.await;
    }

    /// Waits until runs are over and what was queued is on disk.
    pub(super) async fn flush(&self) {
        let _all = self.runners.acquire_many(RUNNERS).await;
        let (done, flushed) = oneshot::channel();
        self.send(Job::Flush(done));
        let _ = flushed.await;
    }

    fn send(&self, job: Job) {
        if let Some(writes) = &self.writes {
            // A writer that is gone drops the job, and whoever waits for it hears that.
            let _ = writes.send(job);
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.reads = None;
        self.writes = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Records a call, and waits until its row is on disk or cannot be put there.
async fn record(writes: &Sender<Job>, draft: &Draft, settled: &Settled) {
    let (done, recorded) = oneshot::channel();
    let _ = writes.send(Job::Record {
        operation: Box::new(draft.settle(settled)),
        done,
    });
    let _ = recorded.await;
}

fn stopping() -> ToolError {
    ToolError::new("HOST_STOPPING", "the host is stopping; nothing was changed")
        .remediation("Call again once it is back.")
}

/// What one `run` call needs, wherever its caller is by now.
struct Runner {
    database: Database,
    runtime: Runtime,
    running: Arc<Semaphore>,
    writes: Sender<Job>,
}

impl Runner {
    async fn run(self, guest: GuestCall, draft: Draft) -> Settled {
        let Ok(_permit) = self.running.acquire().await else {
            return Settled::refused(stopping());
        };
        let (reply, admitted) = oneshot::channel();
        let _ = self.writes.send(Job::Admit {
            draft: Box::new(draft.clone()),
            reply,
        });
        let standing = match admitted.await {
            Ok(Ok(standing)) => standing,
            Ok(Err(refused)) => return refused,
            Err(_) => return Settled::refused(stopping()),
        };
        let (runtime, database) = (self.runtime.clone(), self.database.clone());
        let ran = tokio::task::spawn_blocking(move || outside(&runtime, &database, &guest));
        let mut settled = Settled::of(ran.await.unwrap_or_else(|_| Err(stopping())));
        settled.standing = standing;
        record(&self.writes, &draft, &settled).await;
        settled
    }
}

/// Runs a call on this thread with a session of its own.
fn outside(runtime: &Runtime, database: &Database, guest: &GuestCall) -> Result<Reply, ToolError> {
    let session = database
        .write_session()
        .map_err(|err| writer::storage_failed(&err.into_cause()))?;
    let (session, result) = runtime.run(guest, Box::new(session), Transactions::None);
    // Closing the connection would roll an open transaction back as well; this says so.
    if let Some(session) = session.filter(|session| session.in_transaction()) {
        let _ = session.rollback();
    }
    result
}

struct Reader {
    database: Database,
    runtime: Runtime,
    jobs: Receiver<ReadJob>,
    writes: Sender<Job>,
    backlog: Backlog,
}

impl Reader {
    fn work(self) {
        let mut spare: Option<Box<Session>> = None;
        while let Ok(job) = self.jobs.recv() {
            let (session, settled) = self.read(&job.guest, &job.draft, spare.take());
            spare = session;
            // The row is queued before the reply leaves, so a later call of the same client finds what
            // this one did to its envelope.
            self.backlog.add(job.draft.settle(&settled), &self.writes);
            let _ = job.reply.send(settled);
        }
    }

    fn read(
        &self,
        guest: &GuestCall,
        draft: &Draft,
        spare: Option<Box<Session>>,
    ) -> (Option<Box<Session>>, Settled) {
        let failed = |err: &rusqlite::Error| (None, Settled::refused(writer::storage_failed(err)));
        let session = match spare.map_or_else(|| self.database.read_session().map(Box::new), Ok) {
            Ok(session) => session,
            Err(err) => return failed(&err.into_cause()),
        };
        if let Err(err) = session.begin_read() {
            return failed(&err);
        }
        let mut settled = match self.admit(draft, &session) {
            Ok(settled) => settled,
            Err(err) => return failed(&err),
        };
        let mut session = Some(session);
        if settled.result.is_ok()
            && let Some(lent) = session.take()
        {
            (session, settled.result) = self.runtime.run(guest, lent, Transactions::WholeCall);
        }
        // A session whose snapshot does not end cleanly is not used again.
        (session.filter(|session| session.commit().is_ok()), settled)
    }

    /// Whether the call's envelope lets it read. Reading costs nothing.
    fn admit(&self, draft: &Draft, session: &Session) -> rusqlite::Result<Settled> {
        let mut settled = Settled::of(Ok(Reply::default()));
        let Some(envelope) = &draft.operation.envelope_id else {
            return Ok(settled);
        };
        let Some(standing) = session.standing(envelope)? else {
            return Ok(Settled::refused(core_tools::unknown_envelope(envelope)));
        };
        settled.standing = Some(standing);
        if let Err(refusal) = standing.admit(Charge::Nothing, self.runtime.equipment.clock.boot_ms()) {
            settled.limit = Some(refusal);
            settled.result = Err(admission::refused(envelope, &standing, refusal));
        }
        Ok(settled)
    }
}
