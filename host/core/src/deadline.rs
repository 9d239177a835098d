//! Deadline of a call: its time is up, or its caller cancelled it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Reason for a request to end a call, unless its caller simply gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Code for programs.
    pub code: &'static str,
    /// Message for people in one line, without a full stop.
    pub message: String,
}

/// Cancellation request for calls. Clones share the request.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    asked: Arc<Asked>,
    /// Another cancellation that also applies.
    other: Option<Arc<Asked>>,
    /// Another cancellation that applies until the call begins.
    before: Option<Arc<Asked>>,
}

/// A request to end, with its first reason.
#[derive(Debug, Default)]
struct Asked {
    is_asked: AtomicBool,
    reason: OnceLock<Reason>,
}

impl Asked {
    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }
}

impl Cancel {
    /// Requests cancellation.
    pub fn cancel(&self) {
        self.asked.is_asked.store(true, Ordering::Release);
    }

    /// Requests cancellation for a reason. The first reason counts.
    pub fn cancel_because(&self, reason: Reason) {
        if !self.asked.is_asked() {
            // An earlier reason stays.
            let _ = self.asked.reason.set(reason);
        }
        self.cancel();
    }

    /// Reason for the cancellation, if one was given.
    pub fn reason(&self) -> Option<&Reason> {
        let all = [Some(&self.asked), self.other.as_ref(), self.before.as_ref()];
        let asked = all.into_iter().flatten().find(|asked| asked.is_asked())?;
        asked.reason.get()
    }

    /// True if cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.asked.is_asked() || self.other.as_deref().is_some_and(Asked::is_asked)
    }

    /// True if a call that has not begun should not begin any more.
    pub fn is_pointless(&self) -> bool {
        self.is_cancelled() || self.before.as_deref().is_some_and(Asked::is_asked)
    }

    /// Cancellation that also prevents the call from beginning if `other` is requested, but does not end a running
    /// call for it.
    #[must_use]
    pub fn unless(self, other: &Cancel) -> Cancel {
        Cancel {
            before: Some(Arc::clone(&other.asked)),
            ..self
        }
    }

    /// Cancellation that is also requested if `other` is.
    #[must_use]
    pub fn or(self, other: &Cancel) -> Cancel {
        Cancel {
            other: Some(Arc::clone(&other.asked)),
            ..self
        }
    }
}

/// Deadline of one call by the monotonic clock, or earlier if the call is cancelled. Clones refer to the same call.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    /// Limit on its CPU time, if there is one.
    work: Option<Arc<Work>>,
    cancel: Cancel,
    narrowed: Arc<Narrowed>,
}

/// Limit on CPU time of a thread, so that a call does not end early because others keep the machine busy.
#[derive(Debug)]
struct Work {
    /// CPU time of the thread when the work began.
    began: Duration,
    limit: Duration,
    /// Nanoseconds of voluntary waiting, which count as used.
    waited: AtomicU64,
}

impl Work {
    fn remaining(&self) -> Duration {
        let waited = Duration::from_nanos(self.waited.load(Ordering::Relaxed));
        let used = thread_time().saturating_sub(self.began).saturating_add(waited);
        self.limit.saturating_sub(used)
    }
}

/// CPU time that this thread has used.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A temporary earlier end.
#[derive(Debug)]
struct Narrowed {
    since: Instant,
    /// Nanoseconds after `since`, or [`NEVER`].
    end: AtomicU64,
}

/// No earlier end.
const NEVER: u64 = u64::MAX;

impl Deadline {
    /// Deadline at this time from now.
    pub fn after(time: Duration, cancel: Cancel) -> Deadline {
        let now = Instant::now();
        Deadline {
            at: now + time,
            work: None,
            cancel,
            narrowed: Arc::new(Narrowed {
                since: now,
                end: AtomicU64::new(NEVER),
            }),
        }
    }

    /// Deadline after this much work of this thread, waits included, and at the latest at this time from now.
    pub fn after_work(work: Duration, time: Duration, cancel: Cancel) -> Deadline {
        Deadline {
            work: Some(Arc::new(Work {
                began: thread_time(),
                limit: work,
                waited: AtomicU64::new(0),
            })),
            ..Deadline::after(time, cancel)
        }
    }

    /// Counts time that the call waited voluntarily as work.
    pub fn waited(&self, time: Duration) {
        if let Some(work) = &self.work {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            work.waited.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Moves the end to this time from now, unless it is earlier already. [`widen`](Deadline::widen) undoes this.
    pub fn narrow(&self, time: Duration) {
        let end = self.narrowed.since.elapsed().saturating_add(time);
        let end = u64::try_from(end.as_nanos()).unwrap_or(NEVER);
        self.narrowed.end.store(end, Ordering::Relaxed);
    }

    /// Restores the call's own end.
    pub fn widen(&self) {
        self.narrowed.end.store(NEVER, Ordering::Relaxed);
    }

    /// Time at which the call must end.
    pub fn end(&self) -> Instant {
        match self.narrowed.end.load(Ordering::Relaxed) {
            NEVER => self.at,
            end => self.at.min(self.narrowed.since + Duration::from_nanos(end)),
        }
    }

    /// True if the call must end now. Must be called on the working thread, like everything about CPU time.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.end() || self.has_worked_enough()
    }

    fn has_worked_enough(&self) -> bool {
        self.work
            .as_ref()
            .is_some_and(|work| work.remaining() == Duration::ZERO)
    }

    /// True if the call must end now only because its end was [moved forward](Deadline::narrow).
    pub fn is_narrowed(&self) -> bool {
        let now = Instant::now();
        now >= self.end() && now < self.at
    }

    /// Remaining time.
    pub fn remaining(&self) -> Duration {
        let remaining = self.end().saturating_duration_since(Instant::now());
        match &self.work {
            Some(work) => remaining.min(work.remaining()),
            None => remaining,
        }
    }

    /// True if the call was cancelled, rather than out of time.
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
    fn the_first_reason_counts() {
        let reason = |code| Reason {
            code,
            message: "its time is over".to_owned(),
        };
        let call = Cancel::default();
        assert_eq!(call.reason(), None);
        call.cancel_because(reason("FIRST"));
        call.cancel_because(reason("SECOND"));
        assert!(call.is_cancelled());
        assert_eq!(call.reason().map(|reason| reason.code), Some("FIRST"));
        let given_up = Cancel::default();
        given_up.cancel();
        given_up.cancel_because(reason("LATE"));
        assert_eq!(given_up.reason(), None);
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
    fn what_others_use_of_the_processor_is_no_work() {
        let hour = Duration::from_secs(3600);
        let deadline = Deadline::after_work(Duration::from_millis(30), hour, Cancel::default());
        // Others work, and this thread is not on the processor.
        let busy = std::thread::spawn(|| {
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(120) {}
        });
        busy.join().unwrap();
        assert!(!deadline.is_over() && deadline.remaining() > Duration::ZERO);
        let since = Instant::now();
        while !deadline.is_over() {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "its own work never ends it"
            );
        }
        assert!(since.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn what_waits_works_and_nothing_is_longer_than_its_time() {
        let second = Duration::from_secs(1);
        let deadline = Deadline::after_work(second, 20 * second, Cancel::default());
        deadline.waited(Duration::from_millis(400));
        assert!(!deadline.is_over());
        deadline.waited(Duration::from_millis(600));
        assert!(deadline.is_over());
        assert!(Deadline::after_work(second, Duration::ZERO, Cancel::default()).is_over());
    }

    #[test]
    fn no_end_is_later_than_the_first() {
        let deadline = Deadline::after(Duration::ZERO, Cancel::default());
        deadline.narrow(Duration::from_secs(3600));
        assert!(deadline.is_over() && !deadline.is_narrowed());
    }
}
