//! The clock by which times of envelopes count.
//!
//! Hosts of one file are on one machine, and count from its start. Hosts of a server are on several, so they count by the
//! server's clock: each knows how far it is ahead of the time since its own machine's start, and asks anew with each sign of
//! life.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tollgate_core::clock::{Clock, SystemClock};

use super::error::StoreResult;
use super::session::Session;

/// Stands for a clock that no server was asked for.
const UNSET: i64 = i64::MIN;

/// The system's clock, with times of envelopes by the database.
#[derive(Debug, Clone)]
pub struct DatabaseClock {
    /// Milliseconds by which the server's time is ahead of the time since the start of this machine.
    ahead_ms: Arc<AtomicI64>,
}

impl Default for DatabaseClock {
    fn default() -> DatabaseClock {
        DatabaseClock {
            ahead_ms: Arc::new(AtomicI64::new(UNSET)),
        }
    }
}

impl DatabaseClock {
    pub(super) fn is_set(&self) -> bool {
        self.ahead_ms.load(Ordering::Relaxed) != UNSET
    }

    /// Asks the server of a session.
    pub(super) fn set(&self, session: &Session) -> StoreResult<()> {
        self.set_to(session.roster().server_ms()?);
        Ok(())
    }

    /// Takes over a time that the server said just now.
    pub(super) fn set_to(&self, server_ms: i64) {
        self.ahead_ms
            .store(server_ms.saturating_sub(SystemClock.boot_ms()), Ordering::Relaxed);
    }
}

impl Clock for DatabaseClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms()
    }

    fn boot_ms(&self) -> i64 {
        let since_start = SystemClock.boot_ms();
        match self.ahead_ms.load(Ordering::Relaxed) {
            UNSET => since_start,
            ahead_ms => since_start.saturating_add(ahead_ms),
        }
    }

    fn new_id(&self, prefix: &str) -> String {
        SystemClock.new_id(prefix)
    }
}
