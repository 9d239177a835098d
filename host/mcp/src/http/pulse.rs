//! Cached readiness check. The check is expensive and may be requested often, so it runs at most once a second.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Time for which an answer is valid.
const ANSWER_AGE_LIMIT: Duration = Duration::from_secs(1);

/// Readiness for calls. The error says why not.
pub(super) type Ready = Result<(), &'static str>;

/// Result of the last check.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<Option<(Instant, Ready)>>);

impl Pulse {
    /// Returns the result of the last check if it is recent, and otherwise runs a new check. Concurrent callers share
    /// one check.
    pub(super) async fn feel(&self, look: impl Future<Output = Ready>) -> Ready {
        let mut last = self.0.lock().await;
        match *last {
            Some((at, ready)) if at.elapsed() < ANSWER_AGE_LIMIT => ready,
            _ => {
                let ready = look.await;
                *last = Some((Instant::now(), ready));
                ready
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn everybody_who_asks_together_causes_one_look() {
        let pulse = Pulse::default();
        let looks = AtomicUsize::new(0);
        let look = || async {
            tokio::task::yield_now().await;
            looks.fetch_add(1, Ordering::Relaxed);
            Err("tired")
        };
        let asked = futures::future::join_all((0..100).map(|_| pulse.feel(look()))).await;
        assert!(asked.iter().all(|ready| *ready == Err("tired")));
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }
}
