//! Life of a call that may become a task: runs independently of its client, and asks as many questions as it needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tollgate_core::deadline::{Cancel, Reason};
use tollgate_core::failure_class::FailureClass;
use tollgate_core::identity::Identity;
use tollgate_core::task::TaskEvent;
use tollgate_sandbox::progress::{ClientMessage, Wanted};
use tollgate_sdk::{ApprovalStatus, ToolError};
use tollgate_store::storage::{NewTask, StoredTask, TaskEnd};

use super::attend::{Again, Began};
use super::live::{LiveTasks, Registration};
use super::notes::Notes;
use super::reply::KeptReply;
use super::waiting::Waiting;
use super::{Fit, TTL_MS, ending, listed};
use crate::Gate;
use crate::call::{Answers, CallOutcome, UnknownTool};
use crate::task_slot::{Latest, TaskSlot};

/// Time that a client waits for the reply of a call before it gets a task.
const REPLY_TIMEOUT: Duration = Duration::from_millis(250);
/// Time for an unreachable database to come back after it stored a task.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of checking whether the call has begun, if its client waits for a task.
const BEGUN_INTERVAL: Duration = Duration::from_millis(50);
/// Most rounds of questions on one host.
pub(super) const MAX_ROUNDS: u32 = 10;

/// Reason for which a task stops waiting.
enum Woken {
    /// There are answers, or the question was settled elsewhere.
    Go(Answers),
    Cancelled(Reason),
    /// Its time is up.
    Late,
    /// The task was ended elsewhere.
    Over,
}

/// Client of a call that has not become a task yet.
pub(super) struct Client {
    pub(super) say: mpsc::Sender<ClientMessage>,
    pub(super) wanted: Wanted,
    pub(super) tell: oneshot::Sender<Began>,
}

impl Client {
    fn hear(&self, message: ClientMessage) {
        let is_wanted = match &message {
            ClientMessage::Note(_) => self.wanted.notes,
            ClientMessage::Line(line) => self.wanted.lines.is_some_and(|least| line.severity >= least),
        };
        if is_wanted {
            // A client that does not read its messages misses some.
            let _ = self.say.try_send(message);
        }
    }
}

/// A call and its task, with everything that runs them.
pub(super) struct Attending {
    pub(super) gate: Arc<Gate>,
    pub(super) slot: TaskSlot,
    pub(super) again: Again,
    pub(super) cancel: Cancel,
    /// Number of its first round of questions. Rounds on earlier hosts have lower numbers.
    pub(super) first_round: u32,
}

impl Attending {
    /// Runs the call. It belongs to the client until it becomes a task.
    pub(super) async fn run(self, answers: Answers, client: Client) {
        let given = answers.clone();
        let (mut call, mut messages) = self.again.call(&self.slot, self.cancel.clone(), answers);
        // The client gets the component's log lines only while it waits.
        call.progress = call.progress.with_lines(client.wanted.lines);
        let gate = Arc::clone(&self.gate);
        // Separate future, so that a waiting task does not hold the memory of a call.
        let mut running = Box::pin(gate.call(call));
        let mut due = Some(Instant::now() + REPLY_TIMEOUT);
        let mut client = Some(client);
        let mut registration = None;
        let mut notes = Notes::default();
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                Some(message) = messages.recv() => match &client {
                    Some(client) => client.hear(message),
                    None => notes.hear(message),
                },
                () = at(due) => (registration, due) = self.try_begin(&mut client).await,
                () = notes.due(), if registration.is_some() => self.store_note(&mut notes).await,
            }
        };
        drop(running);
        if let Some(registration) = registration {
            return self.follow(&registration, ended, 1, given).await;
        }
        let Some(client) = client else { return };
        while let Ok(message) = messages.try_recv() {
            client.hear(message);
        }
        let _ = client.tell.send(Began::Replied(ended));
    }

    /// Makes the call a task, if it has begun and its client is still there. Otherwise returns when to try again, if
    /// ever.
    async fn try_begin(&self, client: &mut Option<Client>) -> (Option<Registration>, Option<Instant>) {
        let is_gone = client.as_ref().is_none_or(|client| client.tell.is_closed());
        if is_gone {
            return (None, None);
        }
        if self.slot.latest().is_none() {
            return (None, Some(Instant::now() + BEGUN_INTERVAL));
        }
        // The pack of the tool is certainly known only now.
        let mode = self.gate.task_mode(&self.again.tool, &self.again.arguments);
        if !mode.may_take_long() {
            return (None, None);
        }
        (self.begin(client).await, None)
    }

    /// Makes the call a task. If that is impossible, the client keeps waiting.
    async fn begin(&self, client: &mut Option<Client>) -> Option<Registration> {
        let new = self.new_task(self.slot.latest()?);
        if self.gate.store_task(&self.slot, new, None).await != Fit::Stored {
            return None;
        }
        let registration = self.enter();
        let task = self.stored_in_time().await;
        if task.as_ref().is_some_and(|task| task.is_cancelled) {
            // It was cancelled before the watch knew of it.
            self.cancel.cancel();
        }
        if let (Some(task), Some(client)) = (task, client.take()) {
            let _ = client.tell.send(Began::Task(task));
        }
        Some(registration)
    }

    /// Row of a task about a call.
    pub(super) fn new_task(&self, latest: Latest) -> NewTask {
        let owner = self.again.caller.identity.as_ref().map(Identity::as_str);
        NewTask {
            id: self.slot.id().to_owned(),
            owner: owner.map(str::to_owned),
            tool: latest.tool,
            args_hash: latest.args_hash,
            envelope_id: latest.envelope_id,
            op_id: latest.op_id,
            arguments: self.gate.kept_call(&self.again),
            ..NewTask::default()
        }
    }

    /// Adds the task to this host's unfinished tasks.
    pub(super) fn enter(&self) -> Registration {
        let revoked = self.again.caller.revoked.clone();
        LiveTasks::enter(&self.gate, self.slot.id(), self.cancel.clone(), revoked)
    }

    /// Repeats the call of a task whose host is gone, and follows the task to its end.
    pub(super) async fn resume(self, registration: Registration) {
        let ended = self.call_again(&registration, Answers::default()).await;
        self.follow(&registration, ended, self.first_round, Answers::default())
            .await;
    }

    /// The stored task, as soon as the database can be queried. Its client waits for it and knows nothing else.
    async fn stored_in_time(&self) -> Option<StoredTask> {
        let until = Instant::now() + RECOVERY_TIMEOUT;
        loop {
            let task = self.stored().await;
            if task.is_some() || Instant::now() > until {
                return task;
            }
            tokio::time::sleep(REPLY_TIMEOUT).await;
        }
    }

    pub(super) async fn stored(&self) -> Option<StoredTask> {
        let (id, now_ms) = (self.slot.id().to_owned(), self.gate.clock.now_ms());
        self.gate
            .look(move |session| session.tasks().get(&id, now_ms))
            .await
            .ok()
            .flatten()
    }

    /// Ends the task with the outcome of its call, or waits for answers and repeats the call. `given` are the answers
    /// that the call had.
    async fn follow(
        &self,
        registration: &Registration,
        ended: Result<CallOutcome, UnknownTool>,
        round: u32,
        given: Answers,
    ) {
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(unknown) => {
                let failure = ToolError::new("UNKNOWN_TOOL", unknown.to_string());
                return self.end_with(TaskEvent::Broke, failure).await;
            }
        };
        let is_last = round >= self.first_round + MAX_ROUNDS;
        if outcome.is_overtaken && !is_last && !registration.cancel().is_cancelled() {
            // An equal call used the approval first. The policy now says what it requires.
            let given = Answers {
                consent: None,
                ..given
            };
            let ended = self.call_again(registration, given.clone()).await;
            return Box::pin(self.follow(registration, ended, round + 1, given)).await;
        }
        let waiting = match !is_last {
            true => Waiting::of(&outcome, self.again.can, round),
            false => None,
        };
        let Some(waiting) = waiting else {
            return self.end(outcome).await;
        };
        if registration.cancel().is_cancelled() {
            let reason = registration.cancel().reason().cloned();
            return self.end_waiting(reason.unwrap_or_else(ending::cancelled)).await;
        }
        let (id, now_ms) = (self.slot.id().to_owned(), self.gate.clock.now_ms());
        let latest = Latest {
            op_id: outcome.op_id.clone(),
            ..self.slot.latest().unwrap_or_default()
        };
        let waiting = waiting.listed(&id, &self.again, &latest, (round, now_ms));
        let (asked, listed) = (waiting.asked.clone(), waiting.listed.clone());
        let slot = self.slot.clone();
        let is_asked = self
            .gate
            .change_task(move |session| {
                session.tasks().note_call(&id, &latest.op_id)?;
                let (asked, is_listed) = listed::enter(session, listed.as_deref(), &asked)?;
                slot.set_listed(is_listed);
                session.tasks().ask(&id, &asked, now_ms)
            })
            .await;
        if is_asked == Ok(true) {
            let waiting = waiting.after(given.after(&outcome));
            Box::pin(self.wait(registration, waiting, round)).await;
        } else {
            self.end(outcome).await;
        }
    }

    /// Waits for answers, and repeats the call with them.
    pub(super) async fn wait(&self, registration: &Registration, waiting: Waiting, round: u32) {
        let (approvals, queued) = waiting.watched(self.slot.is_listed());
        registration.wait_for(approvals, queued);
        let woken = self.woken(registration, waiting).await;
        registration.wait_for(Vec::new(), None);
        let answers = match woken {
            Woken::Go(answers) => answers,
            Woken::Over => return,
            Woken::Cancelled(reason) => return self.end_waiting(reason).await,
            Woken::Late => return self.end_with(TaskEvent::Broke, late()).await,
        };
        let (id, now_ms) = (self.slot.id().to_owned(), self.gate.clock.now_ms());
        let goes_on = self
            .gate
            .change_task(move |session| session.tasks().resume(&id, now_ms))
            .await;
        if goes_on != Ok(true) {
            return;
        }
        let given = answers.clone();
        let ended = self.call_again(registration, answers).await;
        Box::pin(self.follow(registration, ended, round + 1, given)).await;
    }

    /// Repeats the call of a task.
    async fn call_again(
        &self,
        registration: &Registration,
        answers: Answers,
    ) -> Result<CallOutcome, UnknownTool> {
        let (call, mut messages) = self
            .again
            .call(&self.slot, registration.cancel().clone(), answers);
        let mut running = Box::pin(self.gate.call(call));
        let mut notes = Notes::default();
        loop {
            tokio::select! {
                ended = &mut running => return ended,
                Some(message) = messages.recv() => notes.hear(message),
                () = notes.due() => self.store_note(&mut notes).await,
            }
        }
    }

    async fn woken(&self, registration: &Registration, waiting: Waiting) -> Woken {
        let until = Instant::now() + Duration::from_millis(TTL_MS.unsigned_abs());
        let envelope = self.slot.latest().and_then(|latest| latest.envelope_id);
        loop {
            if self.again.caller.is_revoked() {
                return Woken::Cancelled(ending::revoked());
            }
            let (envelope, boot_ms) = (envelope.clone(), self.gate.clock.boot_ms());
            let (id, approvals) = (self.slot.id().to_owned(), waiting.approvals.clone());
            let listed = waiting.listed.as_ref().map(|new| new.id.clone());
            let now_ms = self.gate.clock.now_ms();
            let looked = self.gate.look(move |session| {
                let task = session.tasks().get(&id, now_ms)?;
                let mut is_settled = false;
                for approval in &approvals {
                    is_settled |= !session.approvals().is_open(approval, now_ms)?;
                }
                let listed = match listed {
                    Some(listed) => session.approvals().get(&listed)?,
                    None => None,
                };
                let closed = ending::by_envelope(session, envelope.as_deref(), boot_ms)?;
                let left_ms = match &envelope {
                    Some(envelope) => session.envelopes().remaining_ms(envelope, boot_ms)?,
                    None => None,
                };
                let status = listed.map(|found| found.status(now_ms));
                Ok((task, is_settled, status, (closed, left_ms)))
            });
            let mut next = until;
            match looked.await {
                Ok((None, ..)) => return Woken::Over,
                Ok((Some(task), ..)) if task.state.is_over() => return Woken::Over,
                // An envelope whose time is up is closed by the next call in it, and its tasks need not wait for
                // that.
                Ok((.., (Some(closed), _))) => return Woken::Cancelled(closed),
                Ok((Some(task), ..)) if task.is_cancelled || registration.cancel().is_cancelled() => {
                    let reason = registration.cancel().reason().cloned();
                    return Woken::Cancelled(reason.unwrap_or_else(ending::cancelled));
                }
                Ok((Some(task), ..)) if task.has_all_answers() => return Woken::Go(waiting.answered(&task)),
                Ok((Some(_), true, ..)) => return Woken::Go(waiting.settled_elsewhere()),
                Ok((Some(_), false, Some(ApprovalStatus::Approved), _)) => {
                    return Woken::Go(waiting.decided(true));
                }
                Ok((Some(_), false, Some(ApprovalStatus::Rejected), _)) => {
                    return Woken::Go(waiting.decided(false));
                }
                Ok((Some(_), false, _, (None, left_ms))) => {
                    let left = left_ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
                    next = left.map_or(until, |left| until.min(Instant::now() + left));
                }
                Err(err) => tracing::warn!(%err, "reading a waiting task failed"),
            }
            tokio::select! {
                () = registration.woken() => {}
                () = tokio::time::sleep_until(next) => {
                    if next >= until {
                        return Woken::Late;
                    }
                }
            }
        }
    }

    async fn end_waiting(&self, reason: Reason) {
        self.end_with(TaskEvent::Stopped, ending::while_it_waited(&reason))
            .await;
    }

    async fn end(&self, outcome: CallOutcome) {
        let is_recorded = outcome.cause != Some(FailureClass::Host);
        if self.slot.is_over() && is_recorded {
            return;
        }
        let latest = Latest {
            op_id: outcome.op_id,
            envelope_id: outcome.envelope_id,
            ..Latest::default()
        };
        let kept = KeptReply::of(&latest, outcome.duration, outcome.result.as_ref());
        self.store_end(kept.end(outcome.cause)).await;
    }

    async fn end_with(&self, event: TaskEvent, failure: ToolError) {
        let latest = self.slot.latest().unwrap_or_default();
        let end = KeptReply::of(&latest, Duration::ZERO, Err(&failure)).end(None);
        self.store_end(TaskEnd { event, ..end }).await;
    }

    async fn store_end(&self, end: TaskEnd) {
        let (id, now_ms) = (self.slot.id().to_owned(), self.gate.clock.now_ms());
        let ended = self
            .gate
            .change_task(move |session| session.tasks().end(&id, &end, now_ms))
            .await;
        if let Err(err) = ended {
            // The next host that polls it ends it, with what the ledger knows.
            tracing::error!(%err, task = self.slot.id(), "storing the end of a task failed");
        }
    }

    async fn store_note(&self, notes: &mut Notes) {
        let Some(note) = notes.take() else { return };
        let (id, now_ms) = (self.slot.id().to_owned(), self.gate.clock.now_ms());
        let noted = self
            .gate
            .change_task(move |session| session.tasks().note(&id, &note, now_ms).map(|()| true));
        if let Err(err) = noted.await {
            tracing::debug!(%err, "storing the progress of a task failed");
        }
    }
}

/// Waits until a time. Waits forever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn late() -> ToolError {
    ToolError::new("TASK_EXPIRED", "nobody answered in time; nothing was changed").remediation("Call again.")
}
