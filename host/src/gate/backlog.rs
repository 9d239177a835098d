//! Rows that nobody waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use tokio::sync::oneshot;

use super::writer::Job;
use crate::storage::Operation;

/// Rows that wait before those who add to them have to wait too.
const MAX_BACKLOG: usize = 8_192;

/// Rows of `read` calls, which commit with whatever comes next, or alone after a while.
#[derive(Clone, Default)]
pub(super) struct Backlog(Arc<Mutex<Vec<Operation>>>);

impl Backlog {
    /// Adds a row. The writer is woken for the first one only, because a wake-up for each would cost
    /// more than the row.
    pub(super) fn add(&self, operation: Operation, writer: &Sender<Job>) {
        let waiting = {
            let mut rows = self.rows();
            rows.push(operation);
            rows.len()
        };
        if waiting == 1 {
            let _ = writer.send(Job::Backlog);
        } else if waiting >= MAX_BACKLOG {
            // The disk does not keep up: whoever reads waits with it.
            let (done, flushed) = oneshot::channel();
            let _ = writer.send(Job::Flush(done));
            let _ = flushed.blocking_recv();
        }
    }

    pub(super) fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut *self.rows())
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
