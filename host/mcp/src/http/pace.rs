//! Limit on one identity's concurrent requests while other identities are calling.
//!
//! Work on a request starts before it reaches the gate's queues: reading, parsing and later writing the answer share a
//! few threads in order of arrival. An identity may therefore have at most one request fewer at work than there are
//! cores. Its next request waits, at no cost, until one of those ends or stalls. This leaves a core for others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tollgate_core::share::Share;

/// Time after which a running request no longer delays later ones. It has stalled, or waits for a program or for other
/// identities.
const STALL_TIMEOUT: Duration = Duration::from_millis(50);
/// Time for which an identity counts as calling.
const ACTIVE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of remembered identities. Those without a request are dropped.
const MAX_SHARES: usize = 1_024;

/// Identities with requests in flight.
#[derive(Clone)]
pub(super) struct Pace {
    most: usize,
    lanes: Arc<Mutex<HashMap<Share, Lane>>>,
}

struct Lane {
    /// Start times of the running requests.
    running: Vec<Instant>,
    waiting: VecDeque<oneshot::Sender<()>>,
    last: Instant,
}

/// Permission for a running request. Dropping it lets the next request of its identity start.
pub(super) struct Pass {
    share: Share,
    began: Instant,
    pace: Pace,
}

impl Pace {
    pub(super) fn new() -> Pace {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Pace {
            most: cores.saturating_sub(1).max(1),
            lanes: Arc::default(),
        }
    }

    /// Waits until a request may start. Returns immediately if no other identity is calling.
    pub(super) async fn enter(&self, share: &Share) -> Pass {
        if let Some(mut ready) = self.line_up(share) {
            // A request that ends wakes the next one. A stalled request does not, so this checks periodically.
            while tokio::time::timeout(STALL_TIMEOUT, &mut ready).await.is_err() && self.must_wait(share) {}
        }
        let began = Instant::now();
        if let Some(lane) = self.lanes().get_mut(share) {
            lane.running.push(began);
        }
        Pass {
            share: share.clone(),
            began,
            pace: self.clone(),
        }
    }

    /// Receiver to wait on, if the identity has enough running requests and others are calling.
    fn line_up(&self, share: &Share) -> Option<oneshot::Receiver<()>> {
        let now = Instant::now();
        let mut lanes = self.lanes();
        if lanes.len() >= MAX_SHARES && !lanes.contains_key(share) {
            lanes.retain(|_, lane| lane.is_active(now));
        }
        let must_wait = self.is_ahead(&lanes, share, now);
        let lane = lanes.entry(share.clone()).or_insert_with(|| Lane {
            running: Vec::new(),
            waiting: VecDeque::new(),
            last: now,
        });
        lane.last = now;
        must_wait.then(|| {
            let (begin, ready) = oneshot::channel();
            lane.waiting.push_back(begin);
            ready
        })
    }

    fn must_wait(&self, share: &Share) -> bool {
        self.is_ahead(&self.lanes(), share, Instant::now())
    }

    /// Returns whether an identity has enough running requests and others are calling.
    fn is_ahead(&self, lanes: &HashMap<Share, Lane>, share: &Share, now: Instant) -> bool {
        let at_work = lanes.get(share).map_or(0, |lane| lane.at_work(now));
        let mut others = lanes.iter().filter(|(other, _)| *other != share);
        at_work >= self.most && others.any(|(_, lane)| lane.is_active(now))
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Share, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Number of running requests that have not stalled.
    fn at_work(&self, now: Instant) -> usize {
        let at_work = |began: &&Instant| now.saturating_duration_since(**began) < STALL_TIMEOUT;
        self.running.iter().filter(at_work).count()
    }

    fn is_active(&self, now: Instant) -> bool {
        self.at_work(now) > 0
            || !self.waiting.is_empty()
            || now.saturating_duration_since(self.last) < ACTIVE_INTERVAL
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut lanes = self.pace.lanes();
        if let Some(lane) = lanes.get_mut(&self.share) {
            if let Some(index) = lane.running.iter().position(|began| *began == self.began) {
                lane.running.swap_remove(index);
            }
            // If a request started because others stalled, or was abandoned, its receiver is gone.
            while lane.at_work(Instant::now()) < self.pace.most
                && let Some(next) = lane.waiting.pop_front()
                && next.send(()).is_err()
            {}
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn many_requests_of_one_wait_for_each_other_only_while_another_calls() {
        let pace = Pace {
            most: 1,
            ..Pace::new()
        };
        let (ada, bob) = (Share::named("ada"), Share::named("bob"));
        let at_once = |share: &Share| pace.enter(share).now_or_never();
        let mut hers: Vec<_> = (0..4)
            .map(|_| at_once(&ada).expect("nobody else calls"))
            .collect();
        let _his = at_once(&bob).expect("one of few");
        assert!(at_once(&ada).is_none());
        // Ada's requests stall, so one more may start.
        hers.push(pace.enter(&ada).await);
        // The next one waits for one of Ada's.
        let mut next = Box::pin(pace.enter(&ada));
        assert!(next.as_mut().now_or_never().is_none());
        hers.pop();
        assert!(next.as_mut().now_or_never().is_some());
    }
}
