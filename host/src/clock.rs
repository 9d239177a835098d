//! Time and identifiers: the only place that reads the wall clock.

use std::time::UNIX_EPOCH;

/// Where time and ids come from.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;
    /// Milliseconds since the machine's start, time asleep included. Nobody can set this clock, and
    /// all processes of the machine see the same.
    fn boot_ms(&self) -> i64;
    /// A new identifier, `prefix_` and 26 characters that sort by time of making.
    fn new_id(&self, prefix: &str) -> String;
}

/// The system's clock and random ids.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
        let now = std::time::SystemTime::now();
        now.duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .unwrap_or_default()
    }

    fn boot_ms(&self) -> i64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec
            .saturating_mul(1000)
            .saturating_add(now.tv_nsec / 1_000_000)
    }

    fn new_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", ulid::Ulid::generate().to_string().to_lowercase())
    }
}
