//! Instances of a component that were made before a call needs them.
//!
//! Each is used once, as every instance is; only when it is made differs. Making one takes as long as what
//! most policies and many tools do in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_sandbox::{CallState, Room};
use tollgate_store::storage::Session;
use wasmtime::Store;

/// Most instances of one component that wait. Calls at the same time need one each.
const MAX_READY: usize = 2;

/// An instance in a store that no call has used yet.
pub struct PooledInstance<I> {
    pub instance: I,
    pub used: RetiredInstance,
}

/// A store, and the room that it takes.
pub struct RetiredInstance {
    pub store: Store<CallState>,
    /// Nothing went wrong in it.
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
    /// Clears the store away, and returns what stood in for a session in it.
    pub fn cleared(self) -> Box<Session> {
        self.store.into_data().finish(self.is_sound)
    }
}

/// The instances of one component.
pub struct InstancePool<I>(Mutex<PoolState<I>>);

struct PoolState<I> {
    ready: Vec<PooledInstance<I>>,
    /// Stores of calls that are over. Clearing one away takes time as well.
    used: Vec<RetiredInstance>,
    /// Number of instances requested since the last look.
    wanted: usize,
    /// None could be made. What is wrong shows when a call needs one.
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
    /// None, ever.
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

    /// Keeps a store until somebody has time for it.
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

    /// Adds one.
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

    /// Makes no more.
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
