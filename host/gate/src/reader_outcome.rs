//! Calls that return from an executor, and the receivers of their outcome.

use tokio::sync::oneshot;
use tollgate_components::policies::Question;

use crate::failure::Failure;
use crate::guest_call::GuestCall;
use crate::pending_operation::{PendingOperation, Recording};
use crate::settled::Settled;

/// State in which a call left its reader.
pub(super) enum ReaderOutcome {
    /// The call is over, with its recording.
    Settled(Box<Settled>, Recording),
    /// The call is over. Its row must be recorded before the reply, because policies remember the call.
    Unrecorded(Box<PendingOperation>, Box<Settled>, Recording),
    /// The policies let it through. It must run outside any transaction.
    Passed(Box<GuestCall>, Box<PendingOperation>),
    /// Policies denied the call or could not be asked. Nothing is recorded yet.
    Denied(Box<PendingOperation>, Failure),
    /// Policies let the result through if the client's user agrees.
    Asked(Box<GuestCall>, Box<PendingOperation>, Question),
}

/// Receiver of a call's outcome after the commit.
pub(super) enum Waiting {
    /// Its caller.
    Caller(oneshot::Sender<Box<Settled>>),
    /// The caller, who does not know the verdicts yet. The call came straight from the reader that had it judged,
    /// which saves a detour through the caller's task.
    Reader(oneshot::Sender<ReaderOutcome>, Box<Recording>),
}

impl Waiting {
    /// Sends the outcome. A caller that is gone needs none: the row is in the ledger.
    pub(super) fn tell(self, settled: Box<Settled>) {
        match self {
            Waiting::Caller(reply) => drop(reply.send(settled)),
            Waiting::Reader(reply, recording) => {
                drop(reply.send(ReaderOutcome::Settled(settled, *recording)))
            }
        }
    }
}
