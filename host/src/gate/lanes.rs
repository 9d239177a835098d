//! Where calls run: readers side by side, writes one after another, runs on their own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;
use tokio::sync::{Semaphore, oneshot};
use tollgate_sdk::ToolError;

use super::guest::{GuestCall, Runtime};
use super::queue::Queue;
use super::writer::{self, Backlog, Job};
use super::{Draft, Reply, Settled, admission};
use crate::core_tools;
use crate::envelope::Charge;
use crate::sandbox::state::Transactions;
use crate::storage::{Database, OpenError, Session};

/// Threads for `read` calls. More than the cores, so that stalled guests leave room for others.
const READERS: usize = 8;
/// How long a `read` call waits before one more reader is woken for it.
const PATIENCE: Duration = Duration::from_millis(5);
/// `run` calls at once.
const RUNNERS: usize = 8;

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
    reads: Arc<Queue<ReadJob>>,
    writes: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    pub(super) fn open(database: &Database, runtime: Runtime) -> Result<Lanes, OpenError> {
        let backlog = Backlog::default();
        let (writes, write_jobs) = crossbeam_channel::unbounded();
        let reads = Arc::new(Queue::new(READERS));
        let mut threads = vec![writer::start(
            database.clone(),
            runtime.clone(),
            write_jobs,
            backlog.clone(),
        )?];
        for number in 0..READERS {
            let reader = Reader {
                database: database.clone(),
                runtime: runtime.clone(),
                jobs: Arc::clone(&reads),
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
            runners: Arc::new(Semaphore::new(RUNNERS)),
            reads,
            writes: Some(writes),
            threads,
        })
    }

    /// Runs a call on a snapshot. Its row follows later.
    pub(super) async fn read(&self, guest: GuestCall, draft: Draft) -> Settled {
        let (reply, mut answer) = oneshot::channel();
        self.reads.push(ReadJob { guest, draft, reply });
        let answered = match tokio::time::timeout(PATIENCE, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                self.reads.hurry();
                answer.await
            }
        };
        answered.unwrap_or_else(|_| Settled::refused(stopping()))
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
    /// reply.
    pub(super) async fn run(&self, guest: GuestCall, draft: Draft) -> Settled {
        let Ok(_permit) = self.runners.acquire().await else {
            return Settled::refused(stopping());
        };
        let (reply, admitted) = oneshot::channel();
        self.send(Job::Admit {
            draft: Box::new(draft.clone()),
            reply,
        });
        let standing = match admitted.await {
            Ok(Ok(standing)) => standing,
            Ok(Err(refused)) => return refused,
            Err(_) => return Settled::refused(stopping()),
        };
        let runtime = self.runtime.clone();
        let database = self.database.clone();
        let ran = tokio::task::spawn_blocking(move || {
            let session = match database.write_session() {
                Ok(session) => Box::new(session),
                Err(err) => return Err(writer::storage_failed(&err.into_cause())),
            };
            let (session, result) = runtime.run(&guest, session, Transactions::None);
            // Closing the connection would roll an open transaction back as well; this says so.
            if let Some(session) = session.filter(|session| session.in_transaction()) {
                let _ = session.rollback();
            }
            result
        });
        let mut settled = Settled::of(ran.await.unwrap_or_else(|_| Err(stopping())));
        settled.standing = standing;
        self.record(draft, &settled).await;
        settled
    }

    /// Records a call that was refused before any guest ran.
    pub(super) async fn refuse(&self, draft: Draft, refusal: ToolError) -> Settled {
        let settled = Settled::refused(refusal);
        self.record(draft, &settled).await;
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

    /// Waits until what was queued is on disk.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        self.send(Job::Flush(done));
        let _ = flushed.await;
    }

    async fn record(&self, draft: Draft, settled: &Settled) {
        let (done, recorded) = oneshot::channel();
        self.send(Job::Record {
            operation: Box::new(draft.settle(settled)),
            done,
        });
        let _ = recorded.await;
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
        self.reads.close();
        self.writes = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn stopping() -> ToolError {
    ToolError::new("HOST_STOPPING", "the host is stopping; nothing was changed")
        .remediation("Call again once it is back.")
}

struct Reader {
    database: Database,
    runtime: Runtime,
    jobs: Arc<Queue<ReadJob>>,
    writes: Sender<Job>,
    backlog: Backlog,
}

impl Reader {
    fn work(self) {
        let mut spare: Option<Box<Session>> = None;
        while let Some(job) = self.jobs.pop() {
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
        if let Err(refusal) = standing.admit(Charge::Nothing, self.runtime.clock.boot_ms()) {
            settled.limit = Some(refusal);
            settled.result = Err(admission::refused(envelope, &standing, refusal));
        }
        Ok(settled)
    }
}
