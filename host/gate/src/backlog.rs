//! Backlog of ledger rows that no caller waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use tokio::sync::oneshot;
use tollgate_core::share::{Holdings, Share};
use tollgate_store::storage::Operation;

use super::job::Job;

/// Most rows that wait. Identities share this number. A caller whose share is full waits until its rows are written.
const MAX_BACKLOG: u64 = 8_192;

/// Rows of `read` calls, which are committed with the next job, or alone after a while.
#[derive(Clone, Default)]
pub(super) struct Backlog(Arc<Mutex<Rows>>);

struct Rows {
    rows: Vec<Operation>,
    whose: Holdings,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            rows: Vec::new(),
            whose: Holdings::new(MAX_BACKLOG, MAX_BACKLOG),
        }
    }
}

impl Backlog {
    /// Adds a row. Wakes the writer only for the first one, because a wake-up for each row would cost more than the
    /// row.
    pub(super) fn add(&self, operation: Operation, share: &Share, writer: &Sender<Job>) {
        let (is_first, is_full) = {
            let mut waiting = self.rows();
            waiting.rows.push(operation);
            waiting.whose.take(share, 1);
            (waiting.rows.len() == 1, !waiting.whose.allows(share, 1))
        };
        if is_first {
            let _ = writer.send(Job::Backlog);
        } else if is_full {
            // The disk is too slow, so the reader is throttled.
            let (done, flushed) = oneshot::channel();
            let _ = writer.send(Job::Flush(done));
            let _ = flushed.blocking_recv();
        }
    }

    pub(super) fn take(&self) -> Vec<Operation> {
        let mut waiting = self.rows();
        waiting.whose.clear();
        std::mem::take(&mut waiting.rows)
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
