//! Rate limit for clients that poll their tasks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tollgate_sdk::ToolError;

/// Polls of one task that may come at once.
const MAX_BURST: f64 = 50.0;
/// Sustained polls of one task per second.
const PER_SECOND: f64 = 10.0;
/// Number of known tasks above which those that are not polled are forgotten.
const MAX_KNOWN: usize = 4_096;

/// Polls of tasks by clients.
#[derive(Default)]
pub(super) struct Pace(Mutex<HashMap<String, Looks>>);

struct Looks {
    left: f64,
    at: Instant,
}

impl Looks {
    fn refill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at);
        self.left = since.as_secs_f64().mul_add(PER_SECOND, self.left).min(MAX_BURST);
        self.at = now;
    }
}

impl Pace {
    /// Counts a poll of a task.
    pub(super) fn look(&self, id: &str, now: Instant) -> Result<(), ToolError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN && !known.contains_key(id) {
            known.retain(|_, looks| {
                looks.refill(now);
                looks.left < MAX_BURST
            });
        }
        let looks = known.entry(id.to_owned()).or_insert(Looks {
            left: MAX_BURST,
            at: now,
        });
        looks.refill(now);
        if looks.left < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - looks.left) / PER_SECOND);
            return Err(too_fast(wait));
        }
        looks.left -= 1.0;
        Ok(())
    }
}

fn too_fast(wait: Duration) -> ToolError {
    ToolError::new(
        "POLLING_TOO_FAST",
        "the client polls this task more often than the host answers",
    )
    .remediation("Wait for pollIntervalMs between two polls.")
    .context(
        "retry_after_ms",
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_looks_too_often_waits() {
        let (pace, start) = (Pace::default(), Instant::now());
        let looks = |count: usize, at: Instant| (0..count).filter(|_| pace.look("a", at).is_ok()).count();
        assert_eq!(looks(60, start), 50);
        let refused = pace.look("a", start).unwrap_err();
        assert_eq!(refused.code, "POLLING_TOO_FAST");
        assert_eq!(refused.context["retry_after_ms"], 100);
        assert!(pace.look("b", start).is_ok());
        let later = start + Duration::from_millis(500);
        assert_eq!(looks(60, later), 5);
    }

    #[test]
    fn tasks_that_nobody_looks_at_are_forgotten() {
        let (pace, start) = (Pace::default(), Instant::now());
        for number in 0..MAX_KNOWN {
            pace.look(&number.to_string(), start).unwrap();
        }
        pace.look("more", start + Duration::from_secs(1)).unwrap();
        assert_eq!(pace.0.lock().unwrap().len(), 1);
    }
}
