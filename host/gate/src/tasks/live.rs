//! Unfinished tasks of this host, and one watch for all of them, because other hosts and the command line answer and
//! cancel through the database.
//!
//! A question that does not fit into the list of approvals waits in a queue. The watch enters as many queued
//! questions as there is room for, and wakes none of the other tasks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tollgate_core::deadline::{Cancel, Reason};
use tollgate_store::storage::{Database, NewApproval, Session, StoreResult};

use super::{ending, listed};
use crate::Gate;

/// Interval of checking whether the database changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Unfinished tasks, by id.
#[derive(Default)]
pub(super) struct LiveTasks(Mutex<Tasks>);

#[derive(Default)]
struct Tasks {
    by_id: HashMap<String, Live>,
    /// True if a watch for external changes runs.
    is_watched: bool,
    /// True if a question was queued since the last check.
    has_new_queued: bool,
}

/// An unfinished task.
struct Live {
    cancel: Cancel,
    wake: Arc<Notify>,
    /// Cancelled when its owner's token is no longer valid.
    revoked: Option<CancellationToken>,
    /// Requests for approval that it waits for.
    approvals: Vec<String>,
    /// Its question, while the list of approvals has no room for it.
    queued: Option<Arc<NewApproval>>,
}

/// A question for which the list of approvals had no room.
#[derive(Debug, Clone)]
struct Queued {
    task_id: String,
    new: Arc<NewApproval>,
}

/// Registration of a task among the unfinished ones. Dropping it removes the task.
pub(super) struct Registration {
    id: String,
    gate: Weak<Gate>,
    wake: Arc<Notify>,
    cancel: Cancel,
}

impl LiveTasks {
    /// Adds a task, and runs the watch as long as there are any.
    pub(super) fn enter(
        gate: &Arc<Gate>,
        id: &str,
        cancel: Cancel,
        revoked: Option<CancellationToken>,
    ) -> Registration {
        let wake = Arc::new(Notify::new());
        let live = Live {
            cancel: cancel.clone(),
            wake: Arc::clone(&wake),
            revoked,
            approvals: Vec::new(),
            queued: None,
        };
        let mut tasks = gate.tasks.live.tasks();
        tasks.by_id.insert(id.to_owned(), live);
        if !std::mem::replace(&mut tasks.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(gate)));
        }
        Registration {
            id: id.to_owned(),
            gate: Arc::downgrade(gate),
            wake,
            cancel,
        }
    }

    /// Number of unfinished tasks.
    pub(super) fn count(&self) -> usize {
        self.tasks().by_id.len()
    }

    /// Makes a task read its row, and requests the end of its call if there is a reason.
    pub(super) fn wake(&self, id: &str, end: Option<Reason>) {
        if let Some(live) = self.tasks().by_id.get(id) {
            if let Some(reason) = end {
                live.cancel.cancel_because(reason);
            }
            live.wake.notify_one();
        }
    }

    /// Ends the tasks whose tokens are no longer valid.
    fn end_revoked(&self) {
        let tasks = self.tasks();
        let is_revoked = |live: &&Live| live.revoked.as_ref().is_some_and(CancellationToken::is_cancelled);
        for live in tasks.by_id.values().filter(is_revoked) {
            if !live.cancel.is_cancelled() {
                live.cancel.cancel_because(ending::revoked());
                live.wake.notify_one();
            }
        }
    }

    /// Questions that wait for room in the list of approvals, oldest first, and whether some are new.
    fn queued(&self) -> (Vec<Queued>, bool) {
        let mut tasks = self.tasks();
        let is_new = std::mem::take(&mut tasks.has_new_queued);
        let queued = tasks.by_id.iter().filter_map(|(id, live)| {
            Some(Queued {
                task_id: id.clone(),
                new: live.queued.clone()?,
            })
        });
        let mut queued: Vec<Queued> = queued.collect();
        queued.sort_by(|one, other| (one.new.at_ms, &one.task_id).cmp(&(other.new.at_ms, &other.task_id)));
        (queued, is_new)
    }

    /// Makes tasks wait for their questions, which are now in the list of approvals.
    fn listed(&self, listed: &[Queued]) {
        let mut tasks = self.tasks();
        for Queued { task_id, new } in listed {
            if let Some(live) = tasks.by_id.get_mut(task_id)
                && live.queued.take_if(|queued| queued.id == new.id).is_some()
            {
                live.approvals.push(new.id.clone());
            }
        }
    }

    /// Makes all tasks read their rows.
    pub(super) fn wake_all(&self) {
        self.tasks()
            .by_id
            .values()
            .for_each(|live| live.wake.notify_one());
    }

    /// Requests for approval that tasks wait for, with the tasks.
    fn approvals(&self) -> HashMap<String, Vec<String>> {
        let mut waiting: HashMap<String, Vec<String>> = HashMap::new();
        for (id, live) in &self.tasks().by_id {
            for approval in &live.approvals {
                waiting.entry(approval.clone()).or_default().push(id.clone());
            }
        }
        waiting
    }

    /// True if there are no tasks, so that the watch can end.
    fn is_done(&self) -> bool {
        let mut tasks = self.tasks();
        let is_empty = tasks.by_id.is_empty();
        tasks.is_watched = !is_empty;
        is_empty
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registration {
    /// Sets the requests for approval that it waits for, and the question that waits for room in their list.
    pub(super) fn wait_for(&self, approvals: Vec<String>, queued: Option<Arc<NewApproval>>) {
        let Some(gate) = self.gate.upgrade() else { return };
        let mut tasks = gate.tasks.live.tasks();
        tasks.has_new_queued |= queued.is_some();
        if let Some(live) = tasks.by_id.get_mut(&self.id) {
            live.approvals = approvals;
            live.queued = queued;
        }
    }

    /// Waits until its row changed.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Cancellation of its calls.
    pub(super) fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.upgrade() {
            gate.tasks.live.tasks().by_id.remove(&self.id);
        }
    }
}

/// Session for checks, and the state at the last check.
struct Look {
    session: Session,
    version: i64,
}

/// External changes: tasks to cancel, and tasks that can continue.
#[derive(Default)]
struct Changed {
    cancelled: Vec<(String, Reason)>,
    awake: Vec<String>,
    /// Questions of identities for which the list of approvals has room.
    fitting: Vec<Queued>,
}

async fn watch(gate: Weak<Gate>) {
    let mut look = None;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let Some(gate) = gate.upgrade() else { return };
        if gate.tasks.live.is_done() {
            return;
        }
        gate.tasks.live.end_revoked();
        let (queued, is_queue_new) = gate.tasks.live.queued();
        let open = Open {
            host: gate.host_id().to_owned(),
            waiting: gate.tasks.live.approvals(),
            queued,
            is_queue_new,
            now_ms: gate.clock.now_ms(),
            boot_ms: gate.clock.boot_ms(),
        };
        let seen = gate
            .executors
            .aside(move |_, database| changed(look, database, open))
            .await;
        look = match seen {
            Some(Ok((look, changed))) => {
                for (id, reason) in changed.cancelled {
                    gate.tasks.live.wake(&id, Some(reason));
                }
                for id in changed.awake {
                    gate.tasks.live.wake(&id, None);
                }
                if !changed.fitting.is_empty() {
                    list(&gate, changed.fitting).await;
                }
                Some(look)
            }
            Some(Err(err)) => {
                tracing::warn!(%err, "reading changes of tasks failed");
                None
            }
            None => None,
        };
    }
}

/// Enters as many queued questions as a change made room for.
async fn list(gate: &Gate, fitting: Vec<Queued>) {
    let entered = Arc::new(Mutex::new(Vec::new()));
    let (seen, now_ms) = (Arc::clone(&entered), gate.clock.now_ms());
    let changed = gate.change_task(move |session| {
        // The transaction may run again; only the last run counts.
        let mut entered = seen.lock().unwrap_or_else(PoisonError::into_inner);
        entered.clear();
        for queued in &fitting {
            if listed::enter_later(session, &queued.task_id, &queued.new, now_ms)? {
                entered.push(queued.clone());
            }
        }
        Ok(!entered.is_empty())
    });
    match changed.await {
        Ok(_) => {
            let entered = entered.lock().unwrap_or_else(PoisonError::into_inner);
            gate.tasks.live.listed(&entered);
        }
        Err(err) => tracing::warn!(%err, "adding questions of tasks to the list of approvals failed"),
    }
}

/// Open tasks of this host, for a check of the database.
struct Open {
    host: String,
    /// Tasks by the requests for approval that they wait for.
    waiting: HashMap<String, Vec<String>>,
    queued: Vec<Queued>,
    is_queue_new: bool,
    now_ms: i64,
    boot_ms: i64,
}

fn changed(look: Option<Look>, database: &Database, open: Open) -> StoreResult<(Look, Changed)> {
    let mut look = match look {
        Some(look) => look,
        None => Look {
            session: database.read_session().map_err(|err| err.into_cause())?,
            version: 0,
        },
    };
    let version = look.session.data_version()?;
    if version == look.version && !open.is_queue_new {
        return Ok((look, Changed::default()));
    }
    let mut changed = Changed::default();
    for task in look.session.tasks().to_wake(&open.host)? {
        if task.is_cancelled {
            let reason = ending::by_envelope(&look.session, task.envelope_id.as_deref(), open.boot_ms)?;
            let reason = reason.unwrap_or_else(ending::cancelled);
            changed.cancelled.push((task.id, reason));
        } else {
            changed.awake.push(task.id);
        }
    }
    for (approval, ids) in &open.waiting {
        if !look.session.approvals().is_open(approval, open.now_ms)? {
            changed.awake.extend(ids.iter().cloned());
        }
    }
    let mut rooms: HashMap<Option<String>, usize> = HashMap::new();
    for queued in open.queued {
        let identity = queued.new.by.identity.clone();
        let room = match rooms.entry(identity) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let room = look.session.approvals().room(
                    &queued.new.component,
                    unknown.key().as_deref(),
                    open.now_ms,
                )?;
                unknown.insert(usize::try_from(room).unwrap_or_default())
            }
        };
        if *room > 0 {
            *room -= 1;
            changed.fitting.push(queued);
        }
    }
    look.version = version;
    Ok((look, changed))
}
