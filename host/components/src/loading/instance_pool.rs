//! Pool of instances that are created before a call needs them.
//!
//! Each instance is used once, like every instance; only the time of its creation differs. Creating an instance takes
//! as long as the work of most policies and many tools.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_sandbox::{CallState, Room};
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
    _room: Room,
}

impl RetiredInstance {
    pub fn new(store: Store<CallState>, room: Room) -> RetiredInstance {
        RetiredInstance {
            store,
            is_sound: true,
            _room: room,
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
        let mut stock = self.stock();
        stock.wanted += 1;
        stock.ready.pop()
    }

    /// Keeps a store until a thread has time to drop it.
    pub fn put_away(&self, used: RetiredInstance) {
        self.stock().used.push(used);
    }

    /// Retired instances to drop, and the number of instances to make.
    pub fn work(&self) -> (Vec<RetiredInstance>, usize) {
        let mut stock = self.stock();
        let wanted = std::mem::take(&mut stock.wanted);
        let missing = match stock.is_given_up {
            true => 0,
            false => MAX_READY.saturating_sub(stock.ready.len()).min(wanted),
        };
        (std::mem::take(&mut stock.used), missing)
    }

    /// Adds an instance.
    pub fn add(&self, spare: PooledInstance<I>) {
        let mut stock = self.stock();
        if stock.ready.len() < MAX_READY {
            stock.ready.push(spare);
        }
    }

    /// The number of ready instances.
    pub fn ready(&self) -> usize {
        self.stock().ready.len()
    }

    /// Stops creating instances.
    pub fn give_up(&self) {
        self.stock().is_given_up = true;
    }

    fn stock(&self) -> MutexGuard<'_, PoolState<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_others_have_no_instances_made_in_advance() {
        let spares = InstancePool::<()>::none();
        assert!(spares.take().is_none());
        assert_eq!(spares.work().1, 0);
    }
}
