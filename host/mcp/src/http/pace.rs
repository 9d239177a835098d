//! Pace of one identity: its requests that are worked on at once while another identity calls, too.
//!
//! Work on a request begins before the gate has lines for it: reading, parsing, and later writing the answer take turns
//! on few threads as they come. So an identity with as many requests in flight as there are cores but one has the next
//! wait at the door, before it costs anything, until one of those is done or has stalled. A core is left to others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tollgate_core::share::Share;

/// Time after which a request that is worked on keeps no later one back: it has stalled, or waits for a program or
/// for other identities.
const STALLED_AFTER: Duration = Duration::from_millis(50);
/// Time for which a sender counts as calling.
const RECENTLY: Duration = Duration::from_millis(100);
/// Identities that are remembered. Those without a request make room.
const MAX_SHARES: usize = 1_024;

/// Identities with requests in flight.
#[derive(Clone)]
pub(super) struct Pace {
    most: usize,
    lanes: Arc<Mutex<HashMap<Share, Lane>>>,
}

struct Lane {
    /// Start times of the requests that are worked on.
    running: Vec<Instant>,
    waiting: VecDeque<oneshot::Sender<()>>,
    last: Instant,
}

/// A request that is worked on. Dropping it lets the next one of its identity begin.
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

    /// Waits until a request may begin, which is at once if nobody else calls.
    pub(super) async fn enter(&self, share: &Share) -> Pass {
        if let Some(mut ready) = self.line_up(share) {
            // A place comes free when a request is done, which says so, and when one has stalled, which does not.
            while tokio::time::timeout(STALLED_AFTER, &mut ready).await.is_err() && self.must_wait(share) {}
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

    /// Receiver to wait on, if the identity has enough requests at work and others call.
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

    /// True if an identity has enough requests at work, and others call.
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
    /// Number of requests that are worked on and have not stalled.
    fn at_work(&self, now: Instant) -> usize {
        let at_work = |began: &&Instant| now.saturating_duration_since(**began) < STALLED_AFTER;
        self.running.iter().filter(at_work).count()
    }

    fn is_active(&self, now: Instant) -> bool {
        self.at_work(now) > 0
            || !self.waiting.is_empty()
            || now.saturating_duration_since(self.last) < RECENTLY
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut lanes = self.pace.lanes();
        if let Some(lane) = lanes.get_mut(&self.share) {
            if let Some(index) = lane.running.iter().position(|began| *began == self.began) {
                lane.running.swap_remove(index);
            }
            // The receiver of a request that began because others had stalled, or that was given up, is gone.
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
        // Hers stall, and then one more may begin.
        hers.push(pace.enter(&ada).await);
        // The next one waits for one of hers.
        let mut next = Box::pin(pace.enter(&ada));
        assert!(next.as_mut().now_or_never().is_none());
        hers.pop();
        assert!(next.as_mut().now_or_never().is_some());
    }
}
