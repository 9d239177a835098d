//! Jobs of the writer.

use std::time::Duration;

use tokio::sync::oneshot;
use tollgate_core::share::Share;
use tollgate_sdk::ToolError;
use tollgate_store::storage::{Admitted, Operation, Session, StoreResult, TaskEnd};

use crate::guest_call::GuestCall;
use crate::judged::Waiting;
use crate::pending_operation::PendingOperation;
use crate::settled::Settled;
use crate::task_slot::TaskSlot;

/// A change of the host's own. It may run more than once; only the last run counts.
pub(super) type Work = Box<dyn Fn(&Session) -> StoreResult<()> + Send>;

/// Job of the writer.
pub(super) enum Job {
    /// Run a call and record it.
    Call {
        guest: Box<GuestCall>,
        draft: Box<PendingOperation>,
        reply: Waiting,
    },
    /// Admit a `run` call and remember that it is about to start. Answers with its envelope's standing,
    /// or with the refusal, which is recorded then.
    Admit {
        draft: Box<PendingOperation>,
        reply: oneshot::Sender<Result<Option<Admitted>, Settled>>,
    },
    /// Mark what a connection left open as interrupted, or what all of this host's did, because it stops.
    Interrupt {
        connection: Option<String>,
        done: oneshot::Sender<()>,
    },
    /// Record a call that ran elsewhere or was refused, and tell once its row is on disk, or why it cannot
    /// be put there.
    Record {
        share: Share,
        operation: Box<Operation>,
        /// End of the task that the call may have become.
        task: Option<Box<(TaskSlot, TaskEnd)>>,
        done: oneshot::Sender<Result<(), ToolError>>,
    },
    /// Make a change of the host's own, and tell how long it held the writer.
    Maintain {
        work: Work,
        done: oneshot::Sender<StoreResult<Duration>>,
    },
    /// Rows wait in the backlog. Nobody waits for them.
    Backlog,
    /// Commit what came before.
    Flush(oneshot::Sender<()>),
    /// Say that the writer works, whoever waits.
    Pulse(oneshot::Sender<()>),
}

impl Job {
    /// Share of the job. Jobs of the host itself come in turn with the calls.
    pub(super) fn share(&self) -> Share {
        match self {
            Job::Call { draft, .. } | Job::Admit { draft, .. } => draft.share.clone(),
            Job::Record { share, .. } => share.clone(),
            Job::Interrupt { .. } | Job::Maintain { .. } | Job::Backlog | Job::Flush(_) | Job::Pulse(_) => {
                Share::default()
            }
        }
    }
}
