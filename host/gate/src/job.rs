//! Jobs of the writer.

use std::time::Duration;

use tokio::sync::oneshot;
use tollgate_core::share::Share;
use tollgate_store::storage::{Admitted, Operation, Session, StoreResult, TaskEnd};

use crate::failure::Failure;
use crate::guest_call::GuestCall;
use crate::pending_operation::PendingOperation;
use crate::reader_outcome::Waiting;
use crate::settled::Settled;
use crate::task_slot::TaskSlot;

/// A change that the host makes. It may run more than once; only the last run counts.
pub(super) type Work = Box<dyn Fn(&Session) -> StoreResult<()> + Send>;

/// Job of the writer.
pub(super) enum Job {
    /// Runs a call and records it.
    Call {
        guest: Box<GuestCall>,
        pending: Box<PendingOperation>,
        reply: Waiting,
    },
    /// Admits a `run` call and records that it is about to start. Answers with its envelope's state, or with the
    /// refusal, which is then recorded.
    Admit {
        pending: Box<PendingOperation>,
        reply: oneshot::Sender<Result<Option<Admitted>, Settled>>,
    },
    /// Marks open work of a connection as interrupted, or all of this host's because it stops.
    Interrupt {
        connection: Option<String>,
        done: oneshot::Sender<()>,
    },
    /// Records a call that ran elsewhere or was refused. Answers once its row is on disk, or with the reason for
    /// which it cannot be.
    Record {
        share: Share,
        operation: Box<Operation>,
        /// End of the task that the call may have become.
        task: Option<Box<(TaskSlot, TaskEnd)>>,
        done: oneshot::Sender<Result<(), Failure>>,
    },
    /// Makes a change for the host. Answers with the time that it held the writer.
    Maintain {
        work: Work,
        done: oneshot::Sender<StoreResult<Duration>>,
    },
    /// Rows wait in the backlog, without a waiting caller.
    Backlog,
    /// Commits all earlier jobs.
    Flush(oneshot::Sender<()>),
    /// Reports that the writer is alive, even while jobs wait.
    Pulse(oneshot::Sender<()>),
}

impl Job {
    /// Share of the job. Jobs of the host itself take turns with the calls.
    pub(super) fn share(&self) -> Share {
        match self {
            Job::Call { pending, .. } | Job::Admit { pending, .. } => pending.share.clone(),
            Job::Record { share, .. } => share.clone(),
            Job::Interrupt { .. } | Job::Maintain { .. } | Job::Backlog | Job::Flush(_) | Job::Pulse(_) => {
                Share::default()
            }
        }
    }
}
