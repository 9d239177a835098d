//! Outage of the database server.
//!
//! Calls wait for the server for a limited time, counted from the start of the outage and not from their arrival, so
//! that the waits do not add up. After that each call is refused at once. Rows of refused calls and of reads are kept
//! here until the server is back. So are events that have already happened and that a refusal does not undo: the end
//! of a call that ran, and the end of a client's connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tollgate_core::effect::Effect;
use tollgate_store::storage::Operation;

use crate::failure::unreachable;
use crate::intake::{Intake, QueuedJob};
use crate::job::Job;
use crate::settled::Settled;

/// Time for a server to come back. Waiting calls have their own time limits.
pub(super) const OUTAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts after the waiting time is over. A connection to an unresponsive server takes long to
/// fail.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Most rows that wait.
const MAX_LATE: usize = 8_192;

/// State of the outage, which all lanes share.
#[derive(Clone, Default)]
pub(super) struct Outage(Arc<Mutex<State>>);

/// State of the outage, and the rows that wait for its end.
#[derive(Default)]
struct State {
    since: Option<Instant>,
    tried: Option<Instant>,
    late: Vec<Operation>,
    /// Work for when the server is back, without a waiting caller.
    jobs: Vec<Job>,
    /// True if the outage was logged.
    is_told: bool,
    /// Rows that were dropped for lack of room.
    dropped: u64,
}

impl Outage {
    /// Records that the server could not be reached. True while calls wait for it.
    pub(super) fn goes_on(&self) -> bool {
        let mut state = self.state();
        state.tried = Some(Instant::now());
        state.since.get_or_insert_with(Instant::now).elapsed() < OUTAGE_TIMEOUT
    }

    /// Records a commit, which ends the outage.
    pub(super) fn is_over(&self) {
        let mut state = self.state();
        if let Some(since) = state.since.take()
            && std::mem::take(&mut state.is_told)
        {
            tracing::warn!(
                seconds = since.elapsed().as_secs(),
                "the database server can be reached again"
            );
        }
        if state.dropped > 0 {
            tracing::error!(
                rows = std::mem::take(&mut state.dropped),
                "the ledger lacks rows: more calls were refused during the database outage than could be queued"
            );
        }
    }

    /// True for the first call that is refused in this outage.
    pub(super) fn is_news(&self) -> bool {
        !std::mem::replace(&mut self.state().is_told, true)
    }

    /// True if an attempt just failed and the waiting time is over.
    pub(super) fn is_hopeless(&self) -> bool {
        let state = self.state();
        state.since.is_some_and(|since| since.elapsed() >= OUTAGE_TIMEOUT)
            && state.tried.is_some_and(|tried| tried.elapsed() < RETRY_INTERVAL)
    }

    /// Rows and jobs that waited.
    pub(super) fn take_late(&self) -> (Vec<Operation>, Vec<Job>) {
        let mut state = self.state();
        (std::mem::take(&mut state.late), std::mem::take(&mut state.jobs))
    }

    /// Schedules another attempt at waiting rows, unless a job comes first.
    pub(super) fn look_again(&self, intake: &mut Intake) {
        let waits = {
            let state = self.state();
            !(state.late.is_empty() && state.jobs.is_empty())
        };
        if waits {
            intake.look_again_in(RETRY_INTERVAL);
        }
    }

    /// Keeps the rows of a refused batch, whose calls changed nothing, and the rows of reads.
    pub(super) fn keep(&self, rows: &[Operation], batch: &mut [QueuedJob]) {
        let mut state = self.state();
        rows.iter().for_each(|row| state.add(row.clone()));
        let refused = Settled::turned_away(unreachable());
        for queued in batch {
            let row = match &mut queued.job {
                Job::Call { pending, .. } | Job::Admit { pending, .. } => {
                    // An envelope that the call had opened was lost with its transaction.
                    pending.run_again();
                    pending.finish(&refused).clone()
                }
                Job::Record {
                    operation,
                    task: None,
                    ..
                } if operation.effect != Effect::Run => {
                    queued.is_kept = true;
                    (**operation).clone()
                }
                _ => continue,
            };
            state.add(Operation {
                // It is unknown whether their content was stored.
                artifacts: Vec::new(),
                artifact_ids: None,
                ..row
            });
        }
    }

    /// Keeps events that have happened, whatever a batch's callers are told. A row that exists is not written again.
    pub(super) fn keep_what_happened(&self, batch: &mut [QueuedJob]) {
        let mut state = self.state();
        for queued in batch.iter_mut().filter(|queued| !queued.is_kept) {
            let job = match &queued.job {
                Job::Record {
                    share,
                    operation,
                    task,
                    ..
                } if operation.effect == Effect::Run || task.is_some() => Job::Record {
                    share: share.clone(),
                    operation: operation.clone(),
                    task: task.clone(),
                    done: oneshot::channel().0,
                },
                Job::Interrupt {
                    connection: Some(connection),
                    ..
                } => Job::Interrupt {
                    connection: Some(connection.clone()),
                    done: oneshot::channel().0,
                },
                _ => continue,
            };
            if state.jobs.len() < MAX_LATE {
                state.jobs.push(job);
                queued.is_late = true;
            } else {
                state.dropped += 1;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, row: Operation) {
        if self.late.len() < MAX_LATE {
            self.late.push(row);
        } else {
            self.dropped += 1;
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let rows = self.late.len();
        if rows > 0 {
            tracing::error!(
                rows,
                "the host ends while the database cannot be reached; these rows are not in the ledger"
            );
        }
    }
}
