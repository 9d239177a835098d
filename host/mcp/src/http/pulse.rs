//! A look at the host that many may ask for and that costs something: taken once a second at most.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Time for which an answer is valid.
const GOOD: Duration = Duration::from_secs(1);

/// Readiness for calls; the error says why not.
pub(super) type Ready = Result<(), &'static str>;

/// The last look.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<Option<(Instant, Ready)>>);

impl Pulse {
    /// Result of the last look, if it was just now, and of this one otherwise. Those who ask at the same time
    /// share one.
    pub(super) async fn feel(&self, look: impl Future<Output = Ready>) -> Ready {
        let mut last = self.0.lock().await;
        match *last {
            Some((at, ready)) if at.elapsed() < GOOD => ready,
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
