//! Calls that may become tasks, from the view of the waiting client.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tollgate_components::tools::TaskMode;
use tollgate_core::deadline::Cancel;
use tollgate_sandbox::progress::{ClientMessage, Progress, Wanted};
use tollgate_store::storage::{NewTask, StoredTask};

use super::attending::{Attending, Client};
use super::waiting::{CanAnswer, Waiting};
use super::{Fit, ending};
use crate::Gate;
use crate::call::{Answers, Call, CallOutcome, Caller, UnknownTool};
use crate::task_slot::{Latest, TaskSlot, Tasking};

/// Capacity of the buffer of messages for the client.
const BUFFERED_MESSAGES: usize = 16;
/// A call that can be repeated.
#[derive(Debug, Clone)]
pub struct Again {
    /// Tool of the call.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Envelope that the request named.
    pub envelope: Option<Value>,
    /// Caller.
    pub caller: Caller,
    /// Questions that the client can answer.
    pub can: CanAnswer,
}

impl Again {
    /// Creates the call, and the receiver of its component's messages.
    pub(super) fn call(
        &self,
        slot: &TaskSlot,
        cancel: Cancel,
        answers: Answers,
    ) -> (Call, mpsc::Receiver<ClientMessage>) {
        let (progress, messages) = Progress::listened(Wanted {
            notes: true,
            lines: None,
        });
        let call = Call {
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            malformed: Vec::new(),
            envelope: self.envelope.clone(),
            caller: self.caller.clone(),
            cancel,
            progress,
            answers,
            task: Tasking::Slot(slot.clone()),
        };
        (call, messages)
    }
}

/// First result of a call for its client.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the large one is what nearly every call comes to"
)]
pub enum Began {
    /// The call ended before it became a task.
    Replied(Result<CallOutcome, UnknownTool>),
    /// The call continues as a task.
    Task(StoredTask),
}

/// A call that runs independently. Dropping this before it becomes a task cancels the call.
pub struct Attended {
    /// Messages for the client, until the call ended or became a task.
    pub messages: mpsc::Receiver<ClientMessage>,
    began: oneshot::Receiver<Began>,
    cancel: Cancel,
    /// Cancelled when the caller's token is no longer valid.
    revoked: Option<CancellationToken>,
}

impl Attended {
    /// Requests cancellation of the call.
    pub fn give_up(&self) {
        match &self.revoked {
            Some(revoked) if revoked.is_cancelled() => self.cancel.cancel_because(ending::revoked()),
            _ => self.cancel.cancel(),
        }
    }

    /// Receivers of the first result and of messages until then. Pass the result to [`took`](Attended::took).
    pub fn parts(
        &mut self,
    ) -> (
        impl Future<Output = Option<Began>> + '_,
        &mut mpsc::Receiver<ClientMessage>,
    ) {
        let began = &mut self.began;
        (async move { began.await.ok() }, &mut self.messages)
    }

    /// Accepts the first result. A call that became a task is not cancelled any more. `None` if the host failed.
    pub fn took(&mut self, began: Option<Began>) -> Option<Began> {
        if matches!(began, Some(Began::Task(_))) {
            self.cancel = Cancel::default();
        }
        began
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Gate {
    /// Starts a call that becomes a task if it takes long, unless its tool keeps clients waiting.
    pub fn attend(self: &Arc<Gate>, again: Again, answers: Answers, lines: Wanted) -> Attended {
        let (say, messages) = mpsc::channel(BUFFERED_MESSAGES);
        let (tell, began) = oneshot::channel();
        let cancel = Cancel::default();
        let revoked = again.caller.revoked.clone();
        let attending = Attending {
            gate: Arc::clone(self),
            slot: TaskSlot::new(),
            again,
            cancel: cancel.clone(),
            first_round: 1,
        };
        let client = Client {
            say,
            wanted: lines,
            tell,
        };
        tokio::spawn(attending.run(answers, client));
        Attended {
            messages,
            began,
            cancel,
            revoked,
        }
    }

    /// Creates a task for a call that was refused until a person answers. `given` are the answers that the call had.
    /// `None` if there is nothing to wait for.
    pub async fn wait_as_task(
        self: &Arc<Gate>,
        again: Again,
        given: Answers,
        outcome: &CallOutcome,
    ) -> Option<StoredTask> {
        if self.task_mode(&again.tool, &again.arguments) == TaskMode::Never {
            return None;
        }
        let waiting = Waiting::of(outcome, again.can, 1)?.after(given.after(outcome));
        let slot = TaskSlot::new();
        let latest = Latest {
            op_id: outcome.op_id.clone(),
            envelope_id: outcome.envelope_id.clone(),
            tool: again.tool.clone(),
            args_hash: hash_of(&again.arguments),
        };
        slot.set_latest(latest.clone());
        let attending = Attending {
            gate: Arc::clone(self),
            slot,
            again,
            cancel: Cancel::default(),
            first_round: 1,
        };
        let at = (attending.first_round, self.clock.now_ms());
        let waiting = waiting.listed(attending.slot.id(), &attending.again, &latest, at);
        let new = NewTask {
            asked: Some(waiting.asked.clone()),
            ..attending.new_task(latest)
        };
        // One task of the runtime both stores and follows it, so that a client that leaves in between leaves no task
        // that is not followed.
        let (tell, stored) = oneshot::channel();
        tokio::spawn(async move {
            let slot = &attending.slot;
            let listed = waiting.listed.clone();
            if attending.gate.store_task(slot, new, listed).await != Fit::Stored {
                return;
            }
            let registration = attending.enter();
            if tell.send(attending.stored().await).is_err() {
                // Its client is gone and does not know of the task.
                attending.cancel.cancel();
            }
            attending.wait(&registration, waiting, 1).await;
        });
        stored.await.ok().flatten()
    }
}

fn hash_of(arguments: &Map<String, Value>) -> String {
    let canonical = tollgate_sdk::canonical_json(&Value::Object(arguments.clone()));
    tollgate_core::hash::sha256_hex(canonical.as_bytes())
}
