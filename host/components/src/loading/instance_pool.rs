//! Pool of instances that are created before a call needs them.
//!
//! Each instance is used once, like every instance; only the time of its creation differs. Creating an instance takes
//! as long as the work of most policies and many tools.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_sandbox::{CallState, PoolSlot};
use tollgate_store::storage::Session;
use wasmtime::Store;

/// Most ready instances of one component. Concurrent calls need one each.
const MAX_READY: usize = 2;

/// An instance in a store that no call has used yet.
pub struct PooledInstance<I> {
    pub instance: I,
    pub used: RetiredInstance,
}

/// A used store and the pool slot that it occupies.
pub struct RetiredInstance {
    pub store: Store<CallState>,
    /// True if nothing went wrong in it.
    pub is_sound: bool,
    _slot: PoolSlot,
}

impl RetiredInstance {
    pub fn new(store: Store<CallState>, slot: PoolSlot) -> RetiredInstance {
        RetiredInstance {
            store,
            is_sound: true,
            _slot: slot,
        }
    }
}

impl RetiredInstance {
    /// Drops the store, and returns the session that stood in for a call's.
    pub fn cleared(self) -> Box<Session> {
        self.store.into_data().finish(self.is_sound)
    }
}

/// Pool of instances of one component.
pub struct InstancePool<I>(Mutex<PoolState<I>>);

struct PoolState<I> {
    ready: Vec<PooledInstance<I>>,
    /// Stores of finished calls. Dropping one takes time as well.
    used: Vec<RetiredInstance>,
    /// Number of instances requested since the last refill.
    wanted: usize,
    /// True if creating an instance failed. The error shows when a call needs one.
    is_given_up: bool,
}

impl<I> Default for InstancePool<I> {
    fn default() -> InstancePool<I> {
        InstancePool(Mutex::new(PoolState {
            ready: Vec::new(),
            used: Vec::new(),
            wanted: 0,
            is_given_up: false,
        }))
    }
}

impl<I> InstancePool<I> {
    /// A pool that stays empty.
    pub fn none() -> InstancePool<I> {
        let none = InstancePool::default();
        none.give_up();
        none
    }

    /// Takes a ready instance, if there is one.
    pub fn take(&self) -> Option<PooledInstance<I>> {
        let mut state = self.state();
        state.wanted += 1;
        state.ready.pop()
    }

    /// Keeps a store until a thread has time to drop it.
    pub fn put_away(&self, used: RetiredInstance) {
        self.state().used.push(used);
    }

    /// Retired instances to drop, and the number of instances to make.
    pub fn work(&self) -> (Vec<RetiredInstance>, usize) {
        let mut state = self.state();
        let wanted = std::mem::take(&mut state.wanted);
        let missing = match state.is_given_up {
            true => 0,
            false => MAX_READY.saturating_sub(state.ready.len()).min(wanted),
        };
        (std::mem::take(&mut state.used), missing)
    }

    /// Adds an instance.
    pub fn add(&self, pooled: PooledInstance<I>) {
        let mut state = self.state();
        if state.ready.len() < MAX_READY {
            state.ready.push(pooled);
        }
    }

    /// The number of ready instances.
    pub fn ready(&self) -> usize {
        self.state().ready.len()
    }

    /// Stops creating instances.
    pub fn give_up(&self) {
        self.state().is_given_up = true;
    }

    fn state(&self) -> MutexGuard<'_, PoolState<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_others_have_no_instances_made_in_advance() {
        let pool = InstancePool::<()>::none();
        assert!(pool.take().is_none());
        assert_eq!(pool.work().1, 0);
    }
}
