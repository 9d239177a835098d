//! MCP tasks: calls that outlive the patience of their clients.
//!
//! A call of a client that supports tasks runs independently of the client. If the call takes long or waits for a
//! person, it becomes a task: a row with its current state, which any host can read. The task ends in the commit of
//! the call's own row.

mod attend;
mod attending;
mod ending;
mod listed;
mod live;
mod notes;
mod pace;
mod reply;
mod resume;
mod waiting;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value};
use tollgate_components::catalog::ToolEntry;
use tollgate_components::tools::TaskMode;
use tollgate_core::identity::Identity;
use tollgate_sdk::{ApprovalStatus, ToolError};
use tollgate_store::storage::{
    Answered, Database, NewApproval, NewTask, Session, StoreResult, StoredTask, TaskEnd, TaskFilter,
};

use crate::call::CallOutcome;
use crate::failure::storage_failed;
use crate::pending_operation::PendingOperation;
use crate::settled::Settled;
use crate::task_slot::{TaskSlot, Tasking};
use crate::{Gate, dispatch};
use live::LiveTasks;
use pace::Pace;
use reply::KeptReply;

pub use attend::{Again, Attended, Began};
pub use listed::yes_field;
pub use waiting::CanAnswer;

/// Time for which a task is stored, in milliseconds: one day.
const TTL_MS: i64 = 24 * 3_600_000;
/// Poll interval that clients are told, in milliseconds.
const POLL_MS: i64 = 1_000;
/// Most open tasks of one owner.
const MAX_OPEN: i64 = 2_000;
/// Most tasks of one owner, and most bytes of their replies.
const MAX_ALL: i64 = 10_000;
const MAX_BYTES: i64 = 256 << 20;
/// Sessions that are kept for reading tasks.
const MAX_READERS: usize = 4;

/// Error code if the tool requires tasks and its caller does not support them.
pub const TASKS_REQUIRED: &str = "TASKS_REQUIRED";

/// Tasks of a gate.
#[derive(Default)]
pub(crate) struct Tasks {
    live: LiveTasks,
    pace: Pace,
    readers: Mutex<Vec<Session>>,
}

/// A task, and its reply if it is over.
#[derive(Debug)]
pub struct TaskReply {
    /// State of the task.
    pub task: StoredTask,
    /// The reply of its call, once it is over.
    pub outcome: Option<CallOutcome>,
}

/// Result of storing a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Stored,
    /// Its call is over, or there are too many tasks.
    NotStored,
}

impl Tasks {
    /// Makes waiting tasks notice that they are over, because the host stops.
    pub(crate) fn end_waits(&self) {
        self.live.wake_all();
    }
}

/// Refuses a client without tasks if a tool requires them.
pub(crate) fn check(tool: &ToolEntry, tasking: &Tasking) -> Result<(), ToolError> {
    match (tool.task, tasking) {
        (TaskMode::Required, Tasking::Lacking) => {
            let why = format!(
                "calls to {} take a long time, so they require a client that supports MCP's tasks extension",
                tool.spec.name
            );
            Err(ToolError::new(TASKS_REQUIRED, why).remediation(
                "Nothing was done. Call with a client that declares io.modelcontextprotocol/tasks.",
            ))
        }
        _ => Ok(()),
    }
}

impl Gate {
    /// Task mode of the tool that a call is about.
    pub fn task_mode(&self, tool: &str, arguments: &Map<String, Value>) -> TaskMode {
        let catalog = self.catalog();
        let found = catalog.find(tool);
        let found = found.map(|tool| dispatch::target_of(&catalog, tool, arguments));
        found.map_or(TaskMode::Never, |tool| tool.task)
    }

    /// Task with an id, if it belongs to this caller. Other callers get the same answer as for an unknown id.
    pub async fn task(&self, id: &str, owner: Option<&Identity>) -> Result<TaskReply, ToolError> {
        let found = self.owned(id, owner).await?;
        self.tasks.pace.look(id, Instant::now())?;
        let found = match self.is_abandoned(&found) {
            true => {
                self.clean_up_after_dead_hosts().await;
                self.owned(id, owner).await?
            }
            false => found,
        };
        self.seen(found).await
    }

    /// A task with its reply, if it is over.
    async fn seen(&self, found: StoredTask) -> Result<TaskReply, ToolError> {
        if !found.state.is_over() {
            return Ok(TaskReply {
                task: found,
                outcome: None,
            });
        }
        let reply_of = found.id.clone();
        let kept = self.look(move |session| session.tasks().reply(&reply_of)).await?;
        let outcome = kept.as_deref().and_then(KeptReply::read);
        Ok(TaskReply {
            task: found,
            outcome: outcome.map(KeptReply::into_outcome),
        })
    }

    /// Tasks that match a filter, newest first, for the operator.
    pub async fn tasks(&self, mut filter: TaskFilter, limit: u32) -> Result<Vec<StoredTask>, ToolError> {
        filter.now_ms = self.clock.now_ms();
        self.look(move |session| session.tasks().list(&filter, limit))
            .await
    }

    /// A task for the operator, of any owner.
    pub async fn any_task(&self, id: &str) -> Result<TaskReply, ToolError> {
        let (key, now_ms) = (id.to_owned(), self.clock.now_ms());
        let found = self.look(move |session| {
            let Some(task) = session.tasks().get(&key, now_ms)? else {
                return Ok(None);
            };
            Ok(Some((session.tasks().reply(&key)?, task)))
        });
        let (reply, task) = found.await?.ok_or_else(|| unknown(id))?;
        let outcome = reply.as_deref().and_then(KeptReply::read);
        Ok(TaskReply {
            task,
            outcome: outcome.map(KeptReply::into_outcome),
        })
    }

    /// Cancels a task of this caller. A task that is over stays unchanged.
    pub async fn cancel_task(&self, id: &str, owner: Option<&Identity>) -> Result<(), ToolError> {
        self.owned(id, owner).await?;
        self.cancel_any_task(id).await.map(drop)
    }

    /// Cancels a task of any owner. Returns whether it was still open.
    pub async fn cancel_any_task(&self, id: &str) -> Result<bool, ToolError> {
        let (key, now_ms) = (id.to_owned(), self.clock.now_ms());
        let wanted = self
            .change_task(move |session| session.tasks().want_cancelled(&key, now_ms))
            .await?;
        self.tasks.live.wake(id, wanted.then(ending::cancelled));
        if wanted && self.is_of_nobody(id).await? {
            self.clean_up_after_dead_hosts().await;
        }
        Ok(wanted)
    }

    /// Accepts answers to the questions of this caller's task. Each question is answered once. Answers to anything
    /// else are ignored.
    pub async fn answer_task(
        &self,
        id: &str,
        owner: Option<&Identity>,
        answers: Vec<(String, Value)>,
    ) -> Result<(), ToolError> {
        let found = self.owned(id, owner).await?;
        if !answers.iter().any(|(key, _)| found.is_outstanding(key)) {
            return Ok(());
        }
        let (key, now_ms) = (id.to_owned(), self.clock.now_ms());
        self.change_task(move |session| {
            let mut is_first = false;
            for (question, answer) in &answers {
                is_first |= answer_once(session, &key, (question, answer), now_ms)?;
            }
            Ok(is_first)
        })
        .await?;
        self.tasks.live.wake(id, None);
        Ok(())
    }

    /// Number of unfinished tasks of this host.
    pub fn open_tasks(&self) -> usize {
        self.tasks.live.count()
    }

    async fn owned(&self, id: &str, owner: Option<&Identity>) -> Result<StoredTask, ToolError> {
        let (key, now_ms) = (id.to_owned(), self.clock.now_ms());
        let found = self
            .look(move |session| session.tasks().get(&key, now_ms))
            .await?;
        let is_owner = |task: &StoredTask| task.owner.as_deref() == owner.map(Identity::as_str);
        found.filter(is_owner).ok_or_else(|| unknown(id))
    }

    /// True if no host works on a task any more.
    fn is_abandoned(&self, task: &StoredTask) -> bool {
        let is_other = task.host_id != self.host.id();
        !task.state.is_over() && is_other && !self.host.is_alive(&task.host_id)
    }

    async fn is_of_nobody(&self, id: &str) -> Result<bool, ToolError> {
        let (key, now_ms) = (id.to_owned(), self.clock.now_ms());
        let found = self
            .look(move |session| session.tasks().get(&key, now_ms))
            .await?;
        Ok(found.is_some_and(|task| self.is_abandoned(&task)))
    }

    async fn clean_up_after_dead_hosts(&self) {
        let cleaned = self.executors.aside(|runtime, database| {
            let clock = &*runtime.services.clock;
            runtime.host.clean_up_after_dead_hosts(database, clock)
        });
        if let Some(Err(err)) = cleaned.await {
            tracing::error!("ending the tasks of a host that died failed: {err:#}");
        }
    }

    /// Stores a task.
    async fn store_task(&self, slot: &TaskSlot, mut new: NewTask, listed: Option<Arc<NewApproval>>) -> Fit {
        new.now_ms = self.clock.now_ms();
        (new.ttl_ms, new.poll_ms) = (TTL_MS, POLL_MS);
        new.host_id = self.host.id().to_owned();
        let stored = slot.clone();
        let added = self
            .change_task(move |session| {
                let counted = session.tasks().count(new.owner.as_deref())?;
                let is_room = counted.open < MAX_OPEN && counted.all < MAX_ALL && counted.bytes < MAX_BYTES;
                let mut new = new.clone();
                if let Some(asked) = new.asked.take() {
                    let listed = listed.as_deref().filter(|_| is_room);
                    let (asked, is_listed) = listed::enter(session, listed, &asked)?;
                    new.asked = Some(asked);
                    stored.set_listed(is_listed);
                }
                let is_added = is_room && session.tasks().insert(&new)?;
                stored.set_stored(is_added);
                Ok(is_added)
            })
            .await;
        match added {
            Ok(true) => Fit::Stored,
            Ok(false) => Fit::NotStored,
            Err(err) => {
                slot.set_stored(false);
                tracing::error!(%err, "a call did not become a task");
                Fit::NotStored
            }
        }
    }

    /// Has the writer change a task. Returns the result of the committed change.
    async fn change_task(
        &self,
        change: impl Fn(&Session) -> StoreResult<bool> + Send + 'static,
    ) -> Result<bool, ToolError> {
        let came_to = Arc::new(Mutex::new(false));
        let seen = Arc::clone(&came_to);
        let is_on_disk = self.executors.change(Box::new(move |session| {
            // The transaction may run again; only the last run counts.
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = change(session)?;
            Ok(())
        }));
        if !is_on_disk.await {
            return Err(not_stored());
        }
        Ok(*came_to.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the database, off the threads of calls.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Session) -> StoreResult<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let spare = self.readers().pop();
        let looked = self
            .executors
            .aside(move |_, database| look_with(spare, database, look))
            .await;
        match looked {
            Some(Ok((session, seen))) => {
                let mut readers = self.readers();
                if readers.len() < MAX_READERS {
                    readers.push(session);
                }
                Ok(seen)
            }
            Some(Err(err)) => {
                tracing::warn!(err = tollgate_core::text::chain(&err), "looking up tasks failed");
                Err(storage_failed(&err).error)
            }
            None => Err(not_stored()),
        }
    }

    fn readers(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.tasks.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look_with<T>(
    spare: Option<Session>,
    database: &Database,
    look: impl FnOnce(&Session) -> StoreResult<T>,
) -> StoreResult<(Session, T)> {
    let session = match spare {
        Some(session) => session,
        None => database.read_session().map_err(|err| err.into_cause())?,
    };
    session.begin_read()?;
    let seen = look(&session)?;
    session.commit()?;
    Ok((session, seen))
}

/// Stores an answer, unless the same question was already answered in the list of approvals. A stored answer removes
/// the question from the list.
fn answer_once(
    session: &Session,
    id: &str,
    (question, answer): (&str, &Value),
    now_ms: i64,
) -> StoreResult<bool> {
    let Some(task) = session.tasks().get(id, now_ms)? else {
        return Ok(false);
    };
    for approval in task.approvals() {
        if !session.approvals().is_open(approval, now_ms)? {
            return Ok(false);
        }
    }
    if !session.tasks().answer(id, question, answer, now_ms)? {
        return Ok(false);
    }
    let withdrawn = Answered {
        status: ApprovalStatus::Withdrawn,
        by: None,
        identity: task.owner.clone(),
        op_id: task.op_id.clone(),
        note: Some("the client's user answered it".to_owned()),
        at_ms: now_ms,
    };
    for approval in task.approvals() {
        session.approvals().answer(approval, &withdrawn)?;
    }
    Ok(true)
}

/// Records which call a task makes, in the transaction that admits the call.
pub(crate) fn begin_with_intent(session: &Session, pending: &PendingOperation) -> StoreResult<()> {
    match &pending.task {
        Some(slot) if slot.is_stored() => session.tasks().note_call(slot.id(), &pending.operation.op_id),
        _ => Ok(()),
    }
}

/// Ends the task of a call in the transaction of the call's row, if the call became one.
pub(crate) fn end_with_row(
    session: &Session,
    pending: &PendingOperation,
    settled: &Settled,
    now_ms: i64,
) -> StoreResult<()> {
    match ending_of(pending, settled) {
        Some((slot, end)) => end_stored(session, &slot, &end, now_ms),
        None => Ok(()),
    }
}

/// End of the task that a call may have become. `None` if it continues with a question, or cannot be a task.
pub(crate) fn ending_of(pending: &PendingOperation, settled: &Settled) -> Option<(TaskSlot, TaskEnd)> {
    let slot = pending.task.clone()?;
    let result = settled.result.as_ref().map_err(|failure| &failure.error);
    if result.is_err_and(|error| error.asking.is_some()) {
        return None;
    }
    slot.set_call(&pending.operation);
    let kept = KeptReply::of(&slot.latest()?, pending.started.elapsed(), result);
    Some((slot, kept.end(settled.cause())))
}

/// Ends a task, if it is stored.
pub(crate) fn end_stored(session: &Session, slot: &TaskSlot, end: &TaskEnd, now_ms: i64) -> StoreResult<()> {
    if slot.is_stored() && session.tasks().end(slot.id(), end, now_ms)? {
        slot.set_over();
    }
    Ok(())
}

/// Error for a task that does not exist or belongs to another caller.
fn unknown(id: &str) -> ToolError {
    let id = tollgate_core::text::clean(tollgate_core::text::cut(id, 100));
    ToolError::new(
        "UNKNOWN_TASK",
        format!("there is no task `{id}`, or it has expired"),
    )
    .remediation("Use a taskId that tools/call returned to the same identity, within its ttlMs.")
}

fn not_stored() -> ToolError {
    ToolError::new(
        "STORAGE_FAILED",
        "the database did not accept the change of the task",
    )
    .remediation("Try again; if it fails again, check the host's log.")
}
