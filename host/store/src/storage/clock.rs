//! The clock by which the times of envelopes are counted.
//!
//! Hosts of a database file run on one machine and count from its boot. Hosts of a server run on several machines and
//! count by the server's clock. Each host knows the offset between the server's clock and the time since its own
//! machine's boot, and updates the offset with each heartbeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tollgate_core::clock::{Clock, SystemClock};

use super::error::StoreResult;
use super::session::Session;

/// Value for an offset that is not set yet.
const UNSET: i64 = i64::MIN;

/// System clock that takes the times of envelopes from the database.
#[derive(Debug, Clone)]
pub struct DatabaseClock {
    /// Milliseconds by which the server's time is ahead of the time since this machine's boot.
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

    /// Sets the offset by a query on a session.
    pub(super) fn set(&self, session: &Session) -> StoreResult<()> {
        self.set_to(session.roster().server_ms()?);
        Ok(())
    }

    /// Sets the offset by a time that the server just reported.
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
