//! Tasks of this host that are not over, and one watch for all of them: other hosts and the command line answer and cancel
//! through the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tollgate_core::deadline::Cancel;
use tollgate_store::storage::{Database, Session, StoreResult};

use crate::Gate;

/// Time between two looks whether the database changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The tasks, by id.
#[derive(Default)]
pub(super) struct LiveTasks(Mutex<Tasks>);

#[derive(Default)]
struct Tasks {
    by_id: HashMap<String, Live>,
    /// Somebody watches for changes by others.
    is_watched: bool,
}

/// A task that is not over.
#[derive(Clone)]
struct Live {
    cancel: Cancel,
    wake: Arc<Notify>,
    /// Requests for approval that it waits for.
    approvals: Vec<String>,
}

/// A task's place among them. Dropping it takes the task out.
pub(super) struct Place {
    id: String,
    gate: Weak<Gate>,
    wake: Arc<Notify>,
    cancel: Cancel,
}

impl LiveTasks {
    /// Puts a task in, and watches as long as there are any.
    pub(super) fn enter(gate: &Arc<Gate>, id: &str, cancel: Cancel) -> Place {
        let wake = Arc::new(Notify::new());
        let live = Live {
            cancel: cancel.clone(),
            wake: Arc::clone(&wake),
            approvals: Vec::new(),
        };
        let mut tasks = gate.tasks.live.tasks();
        tasks.by_id.insert(id.to_owned(), live);
        if !std::mem::replace(&mut tasks.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(gate)));
        }
        Place {
            id: id.to_owned(),
            gate: Arc::downgrade(gate),
            wake,
            cancel,
        }
    }

    /// Number of them.
    pub(super) fn count(&self) -> usize {
        self.tasks().by_id.len()
    }

    /// Has a task look at its row.
    pub(super) fn wake(&self, id: &str, is_cancelled: bool) {
        if let Some(live) = self.tasks().by_id.get(id) {
            if is_cancelled {
                live.cancel.cancel();
            }
            live.wake.notify_one();
        }
    }

    /// Has all tasks look at their rows.
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

    /// True if there are none, so that nobody needs to watch.
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

impl Place {
    /// Says which requests for approval it waits for.
    pub(super) fn wait_for(&self, approvals: Vec<String>) {
        if let Some(gate) = self.gate.upgrade()
            && let Some(live) = gate.tasks.live.tasks().by_id.get_mut(&self.id)
        {
            live.approvals = approvals;
        }
    }

    /// Waits until its row changed.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Asks its calls to end.
    pub(super) fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.upgrade() {
            gate.tasks.live.tasks().by_id.remove(&self.id);
        }
    }
}

/// A session that looks, and what it saw last.
struct Look {
    session: Session,
    version: i64,
}

/// Changes by others: tasks that somebody wants to end, and tasks that can go on.
#[derive(Default)]
struct Changed {
    cancelled: Vec<String>,
    awake: Vec<String>,
}

async fn watch(gate: Weak<Gate>) {
    let mut look = None;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let Some(gate) = gate.upgrade() else { return };
        if gate.tasks.live.is_done() {
            return;
        }
        let (host, waiting) = (gate.host_id().to_owned(), gate.tasks.live.approvals());
        let now_ms = gate.clock.now_ms();
        let seen = gate
            .lanes
            .aside(move |_, database| changed(look, database, &host, &waiting, now_ms))
            .await;
        look = match seen {
            Some(Ok((look, changed))) => {
                changed
                    .cancelled
                    .iter()
                    .for_each(|id| gate.tasks.live.wake(id, true));
                changed
                    .awake
                    .iter()
                    .for_each(|id| gate.tasks.live.wake(id, false));
                Some(look)
            }
            Some(Err(err)) => {
                tracing::warn!(%err, "changes of tasks were not seen");
                None
            }
            None => None,
        };
    }
}

fn changed(
    look: Option<Look>,
    database: &Database,
    host: &str,
    waiting: &HashMap<String, Vec<String>>,
    now_ms: i64,
) -> StoreResult<(Look, Changed)> {
    let mut look = match look {
        Some(look) => look,
        None => Look {
            session: database.read_session().map_err(|err| err.into_cause())?,
            version: 0,
        },
    };
    let version = look.session.data_version()?;
    if version == look.version {
        return Ok((look, Changed::default()));
    }
    let mut changed = Changed::default();
    for task in look.session.tasks_to_wake(host)? {
        let ids = if task.is_cancelled {
            &mut changed.cancelled
        } else {
            &mut changed.awake
        };
        ids.push(task.id);
    }
    for (approval, ids) in waiting {
        if !look.session.is_approval_open(approval, now_ms)? {
            changed.awake.extend(ids.iter().cloned());
        }
    }
    look.version = version;
    Ok((look, changed))
}
