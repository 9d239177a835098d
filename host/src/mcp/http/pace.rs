//! How many requests of one identity are worked on at once while another identity calls, too.
//!
//! Work on a request begins before the gate has lines for it: reading, parsing, and later writing the answer take turns
//! on few threads as they come. So who has many requests in flight has some wait at the door, before they cost
//! anything, until one of its own is done or a short while is over: those in flight may take long.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::share::Share;

/// How long a request waits at most.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long somebody who sent a request counts as calling.
const RECENTLY: Duration = Duration::from_millis(100);
/// Requests of one identity that are worked on beside another's, at least.
const LEAST: usize = 4;
/// Identities that are remembered. Those without a request make room.
const MAX_SHARES: usize = 1_024;

/// Who has requests in flight.
#[derive(Clone)]
pub(super) struct Pace {
    most: usize,
    lanes: Arc<Mutex<HashMap<Share, Lane>>>,
}

struct Lane {
    running: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
    last: Instant,
}

/// A request that is worked on. Dropping it lets the next one of its identity begin.
pub(super) struct Pass {
    share: Share,
    pace: Pace,
}

impl Pace {
    pub(super) fn new() -> Pace {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Pace {
            most: LEAST.max(cores * 2),
            lanes: Arc::default(),
        }
    }

    /// Waits until a request may begin, which is at once if nobody else calls.
    pub(super) async fn enter(&self, share: &Share) -> Pass {
        if let Some(ready) = self.line_up(share) {
            // Late or not, it begins now.
            let _ = tokio::time::timeout(PATIENCE, ready).await;
        }
        if let Some(lane) = self.lanes().get_mut(share) {
            lane.running += 1;
        }
        Pass {
            share: share.clone(),
            pace: self.clone(),
        }
    }

    /// What to wait for, if the identity has enough requests in flight and others call.
    fn line_up(&self, share: &Share) -> Option<oneshot::Receiver<()>> {
        let now = Instant::now();
        let mut lanes = self.lanes();
        if lanes.len() >= MAX_SHARES && !lanes.contains_key(share) {
            lanes.retain(|_, lane| lane.is_active(now));
        }
        let is_enough = lanes.get(share).is_some_and(|lane| lane.running >= self.most);
        let others = lanes.iter().filter(|(other, _)| *other != share);
        let has_company = is_enough && others.into_iter().any(|(_, lane)| lane.is_active(now));
        let lane = lanes.entry(share.clone()).or_insert_with(|| Lane {
            running: 0,
            waiting: VecDeque::new(),
            last: now,
        });
        lane.last = now;
        has_company.then(|| {
            let (begin, ready) = oneshot::channel();
            lane.waiting.push_back(begin);
            ready
        })
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Share, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn is_active(&self, now: Instant) -> bool {
        self.running > 0 || !self.waiting.is_empty() || now.saturating_duration_since(self.last) < RECENTLY
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut lanes = self.pace.lanes();
        if let Some(lane) = lanes.get_mut(&self.share) {
            lane.running = lane.running.saturating_sub(1);
            // Those that waited too long have begun.
            while let Some(next) = lane.waiting.pop_front()
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
            most: 2,
            ..Pace::new()
        };
        let (ada, bob) = (Share::named("ada"), Share::named("bob"));
        let at_once = |share: &Share| pace.enter(share).now_or_never();
        let mut hers: Vec<_> = (0..4)
            .map(|_| at_once(&ada).expect("nobody else calls"))
            .collect();
        let _his = at_once(&bob).expect("one of few");
        assert!(at_once(&ada).is_none());
        hers.push(pace.enter(&ada).await);
        // It waits for one of hers, and no longer than its patience.
        let mut next = Box::pin(pace.enter(&ada));
        assert!(next.as_mut().now_or_never().is_none());
        hers.pop();
        assert!(next.as_mut().now_or_never().is_some());
    }
}
