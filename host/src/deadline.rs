//! When a call must end: its time is up, or its caller gave up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Asks calls to end before their time. Clones ask the same calls.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
    /// Somebody else whose asking counts.
    other: Option<Arc<AtomicBool>>,
    /// Somebody else whose asking counts until the call begins.
    before: Option<Arc<AtomicBool>>,
}

impl Cancel {
    /// Asks.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        let asked = |by: &Arc<AtomicBool>| by.load(Ordering::Relaxed);
        asked(&self.asked) || self.other.as_ref().is_some_and(asked)
    }

    /// Whether a call that has not begun need not begin any more.
    pub fn is_pointless(&self) -> bool {
        let asked = |by: &Arc<AtomicBool>| by.load(Ordering::Relaxed);
        self.is_cancelled() || self.before.as_ref().is_some_and(asked)
    }

    /// The same, with another whose asking keeps the call from beginning, and does not end it once it began.
    #[must_use]
    pub fn unless(self, other: &Cancel) -> Cancel {
        Cancel {
            before: Some(Arc::clone(&other.asked)),
            ..self
        }
    }

    /// The same, with another whose asking counts too.
    #[must_use]
    pub fn or(self, other: &Cancel) -> Cancel {
        Cancel {
            other: Some(Arc::clone(&other.asked)),
            ..self
        }
    }
}

/// The end of one call by the monotonic clock, or earlier when cancelled. Clones are about the same call.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    cancel: Cancel,
    narrowed: Arc<Narrowed>,
}

/// An earlier end that holds for a while.
#[derive(Debug)]
struct Narrowed {
    since: Instant,
    /// Nanoseconds after `since`, or [`NEVER`].
    end: AtomicU64,
}

/// No earlier end.
const NEVER: u64 = u64::MAX;

impl Deadline {
    /// This long from now.
    pub fn after(time: Duration, cancel: Cancel) -> Deadline {
        let now = Instant::now();
        Deadline {
            at: now + time,
            cancel,
            narrowed: Arc::new(Narrowed {
                since: now,
                end: AtomicU64::new(NEVER),
            }),
        }
    }

    /// Ends the call this long from now, unless it ends before or [`widen`](Deadline::widen) comes before.
    pub fn narrow(&self, time: Duration) {
        let end = self.narrowed.since.elapsed().saturating_add(time);
        let end = u64::try_from(end.as_nanos()).unwrap_or(NEVER);
        self.narrowed.end.store(end, Ordering::Relaxed);
    }

    /// Gives the call its own end back.
    pub fn widen(&self) {
        self.narrowed.end.store(NEVER, Ordering::Relaxed);
    }

    /// When the call must end.
    pub fn end(&self) -> Instant {
        match self.narrowed.end.load(Ordering::Relaxed) {
            NEVER => self.at,
            end => self.at.min(self.narrowed.since + Duration::from_nanos(end)),
        }
    }

    /// Whether the call must end now.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.end()
    }

    /// Whether it must end now only because its end was [moved forward](Deadline::narrow).
    pub fn is_narrowed(&self) -> bool {
        let now = Instant::now();
        now >= self.end() && now < self.at
    }

    /// How long it still may take.
    pub fn remaining(&self) -> Duration {
        self.end().saturating_duration_since(Instant::now())
    }

    /// Whether it was cancelled rather than late.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_call_from_beginning_does_not_end_it() {
        let leaving = Cancel::default();
        let call = Cancel::default().unless(&leaving);
        assert!(!call.is_pointless());
        leaving.cancel();
        assert!(call.is_pointless() && !call.is_cancelled());
        let other = Cancel::default();
        other.cancel();
        assert!(other.is_pointless());
    }

    #[test]
    fn an_earlier_end_holds_for_all_clones_until_it_is_taken_back() {
        let deadline = Deadline::after(Duration::from_secs(3600), Cancel::default());
        let clone = deadline.clone();
        assert!(!clone.is_over() && !clone.is_narrowed());
        deadline.narrow(Duration::ZERO);
        assert!(clone.is_over() && clone.is_narrowed());
        assert_eq!(clone.remaining(), Duration::ZERO);
        deadline.widen();
        assert!(!clone.is_over());
        assert!(clone.remaining() > Duration::from_secs(3000));
    }

    #[test]
    fn no_end_is_later_than_the_first() {
        let deadline = Deadline::after(Duration::ZERO, Cancel::default());
        deadline.narrow(Duration::from_secs(3600));
        assert!(deadline.is_over() && !deadline.is_narrowed());
    }
}
