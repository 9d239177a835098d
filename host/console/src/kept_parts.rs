//! Parts of pages as they were last read, for all pages that show them.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard};

/// Parts as they were last read.
#[derive(Default)]
pub(crate) struct Parts {
    kept: Mutex<Option<Kept>>,
}

/// Markup, and when it was read.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) at: Instant,
    pub(crate) markup: Arc<str>,
    /// Number of questions that wait.
    pub(crate) waiting: usize,
}

impl Parts {
    /// Forgets what was read, because somebody changed it and looks again.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    /// The parts, held while they are read anew, so that all others wait for that.
    pub(crate) async fn hold(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().await
    }
}
