//! Link between a call and the task that it may become, shared by everything that runs the call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tollgate_store::storage::{Operation, StoredTask};

/// Use of tasks by a caller.
#[derive(Debug, Clone, Default)]
pub enum Tasking {
    /// The caller waits for every reply, however long it takes.
    #[default]
    Waiting,
    /// A client without tasks. Tools that require tasks refuse it.
    Lacking,
    /// The call may become the task of this slot.
    Slot(TaskSlot),
}

impl Tasking {
    pub(super) fn into_slot(self) -> Option<TaskSlot> {
        match self {
            Tasking::Waiting | Tasking::Lacking => None,
            Tasking::Slot(slot) => Some(slot),
        }
    }
}

/// Slot for the task that a call may become. Clones refer to the same task.
#[derive(Debug, Clone)]
pub struct TaskSlot(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: String,
    is_stored: AtomicBool,
    is_over: AtomicBool,
    is_listed: AtomicBool,
    latest: Mutex<Option<Latest>>,
}

/// Latest call of a task, as the ledger names it.
#[derive(Debug, Clone, Default)]
pub(super) struct Latest {
    pub(super) op_id: String,
    pub(super) envelope_id: Option<String>,
    pub(super) tool: String,
    pub(super) args_hash: String,
}

impl TaskSlot {
    /// Slot with an unguessable id.
    pub(super) fn new() -> TaskSlot {
        TaskSlot(Arc::new(Inner {
            id: format!("tsk_{}", uuid::Uuid::new_v4().simple()),
            is_stored: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            latest: Mutex::default(),
        }))
    }

    /// Slot of a stored task.
    pub(super) fn of(task: &StoredTask) -> TaskSlot {
        let latest = Latest {
            op_id: task.op_id.clone(),
            envelope_id: task.envelope_id.clone(),
            tool: task.tool.clone(),
            args_hash: task.args_hash.clone(),
        };
        TaskSlot(Arc::new(Inner {
            id: task.id.clone(),
            is_stored: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            latest: Mutex::new(Some(latest)),
        }))
    }

    /// Id of the task.
    pub(super) fn id(&self) -> &str {
        &self.0.id
    }

    /// Records the call that the task is about.
    pub(super) fn set_call(&self, operation: &Operation) {
        self.set_latest(Latest {
            op_id: operation.op_id.clone(),
            envelope_id: operation.envelope_id.clone(),
            tool: operation.tool.clone(),
            args_hash: operation.args_hash.clone(),
        });
    }

    pub(super) fn set_latest(&self, latest: Latest) {
        *self.0.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(latest);
    }

    pub(super) fn latest(&self) -> Option<Latest> {
        let latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }

    /// True once the task is stored. Set by the writer, so that its next steps know.
    pub(super) fn is_stored(&self) -> bool {
        self.0.is_stored.load(Ordering::Acquire)
    }

    pub(super) fn set_stored(&self, is_stored: bool) {
        self.0.is_stored.store(is_stored, Ordering::Release);
    }

    /// True if the task's latest question is in the list of approvals. Set by the writer.
    pub(super) fn is_listed(&self) -> bool {
        self.0.is_listed.load(Ordering::Acquire)
    }

    pub(super) fn set_listed(&self, is_listed: bool) {
        self.0.is_listed.store(is_listed, Ordering::Release);
    }

    /// True if the task ended in the commit of its call.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    pub(super) fn set_over(&self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}
