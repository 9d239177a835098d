//! When a call must end: its time is up, or its caller gave up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks calls to end before their time. Clones ask the same calls.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The end of one call by the monotonic clock, or earlier when cancelled.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    cancel: Cancel,
}

impl Deadline {
    /// This long from now.
    pub fn after(time: Duration, cancel: Cancel) -> Deadline {
        Deadline {
            at: Instant::now() + time,
            cancel,
        }
    }

    /// Whether the call must end now.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.at
    }

    /// How long it still may take.
    pub fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether it was cancelled rather than late.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
