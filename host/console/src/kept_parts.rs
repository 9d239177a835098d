//! Cache for parts of pages that several pages show.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard};

/// Parts as they were last read.
#[derive(Default)]
pub(crate) struct Parts {
    kept: Mutex<Option<Kept>>,
}

/// Markup, and the time at which it was read.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) at: Instant,
    pub(crate) markup: Arc<str>,
    /// Number of open requests for approval.
    pub(crate) waiting: usize,
}

impl Parts {
    /// Clears the cache after a change.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    /// Locks the cache. Others wait while its content is refreshed.
    pub(crate) async fn hold(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().await
    }
}
