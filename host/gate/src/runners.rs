//! Slots for `run` calls, which take long: assigned by identity, with some reserved for identities that hold none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tollgate_core::share::Share;

use super::turns::Turns;

/// Slots, and the calls that wait for one.
#[derive(Clone)]
pub(super) struct Runners {
    turns: Arc<Mutex<Turns<oneshot::Sender<RunnerSlot>>>>,
    /// Calls that hold a slot or wait for one.
    calls: TaskTracker,
}

/// Slot of a call. Dropping it lets the next call run.
pub(super) struct RunnerSlot {
    share: Share,
    runners: Runners,
}

impl Runners {
    /// Runners with this many slots, of which a caller that has the process to itself may use `alone`.
    pub(super) fn new(slots: u64, alone: u64) -> Runners {
        Runners {
            turns: Arc::new(Mutex::new(Turns::new(slots, alone))),
            calls: TaskTracker::new(),
        }
    }

    /// Announces that a call is about to request a slot.
    pub(super) fn announce(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    /// Waits for a slot.
    pub(super) async fn enter(&self, share: &Share) -> Option<RunnerSlot> {
        let (ready, slot) = oneshot::channel();
        self.turns().push(share.clone(), ready);
        self.start();
        slot.await.ok()
    }

    /// Waits until no call holds a slot or waits for one.
    pub(super) async fn idle(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Assigns slots to all calls that may have one.
    fn start(&self) {
        loop {
            let next = self.turns().next();
            let Some((share, ready)) = next else {
                return;
            };
            let runners = self.clone();
            // If the receiver is gone, the slot is dropped, which starts this again.
            drop(ready.send(RunnerSlot { share, runners }));
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns<oneshot::Sender<RunnerSlot>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunnerSlot {
    fn drop(&mut self) {
        self.runners.turns().give_back(&self.share);
        self.runners.start();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn enters(runners: &Runners, share: &Share) -> Option<RunnerSlot> {
        let slot = tokio::time::timeout(Duration::from_millis(50), runners.enter(share));
        slot.await.ok().flatten()
    }

    #[tokio::test]
    async fn long_runs_of_one_identity_leave_places_to_another() {
        let runners = Runners::new(8, 8);
        let (ada, bob) = (Share::named("ada"), Share::named("bob"));
        let mut hers = Vec::new();
        while let Some(slot) = enters(&runners, &ada).await {
            hers.push(slot);
        }
        assert_eq!(hers.len(), 4);
        let waiting = tokio::spawn({
            let (runners, ada) = (runners.clone(), ada.clone());
            async move { runners.enter(&ada).await }
        });
        assert!(enters(&runners, &bob).await.is_some());
        hers.pop();
        assert!(waiting.await.unwrap().is_some());
        drop(hers);
        let alone = Share::default();
        let mut own = Vec::new();
        while let Some(slot) = enters(&runners, &alone).await {
            own.push(slot);
        }
        assert_eq!(own.len(), 8);
    }

    #[tokio::test]
    async fn the_end_waits_for_calls_that_have_a_place_or_want_one() {
        let runners = Runners::new(2, 2);
        let token = runners.announce();
        assert!(
            tokio::time::timeout(Duration::from_millis(20), runners.idle())
                .await
                .is_err()
        );
        drop(token);
        runners.idle().await;
    }
}
