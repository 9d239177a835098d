//! Instances of a policy that were made before a call needs them.
//!
//! Each judges once, as every instance does; only when it is made differs. Making one takes as long as what
//! most policies do in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use wasmtime::Store;

use crate::sandbox::bindings::policy::Policy as Instance;
use crate::sandbox::{CallState, Room};

/// Most instances of one policy that wait. Calls that are judged at the same time need one each.
const MAX_READY: usize = 2;

/// An instance in a store that no call has used yet.
pub(crate) struct Spare {
    pub(crate) instance: Instance,
    pub(crate) used: Used,
}

/// A store, and the room that it takes.
pub(crate) struct Used {
    pub(crate) store: Store<CallState>,
    /// Nothing went wrong in it.
    pub(crate) is_sound: bool,
    _room: Room,
}

impl Used {
    pub(crate) fn new(store: Store<CallState>, room: Room) -> Used {
        Used {
            store,
            is_sound: true,
            _room: room,
        }
    }
}

/// The instances of one policy.
#[derive(Default)]
pub(crate) struct Spares(Mutex<Stock>);

#[derive(Default)]
struct Stock {
    ready: Vec<Spare>,
    /// Stores of calls that are over. Clearing one away takes time as well.
    used: Vec<Used>,
    /// How many were asked for since the last look.
    wanted: usize,
    /// None could be made. What is wrong shows when a call needs one.
    is_given_up: bool,
}

impl Spares {
    /// One that is ready, if there is one.
    pub(crate) fn take(&self) -> Option<Spare> {
        let mut stock = self.stock();
        stock.wanted += 1;
        stock.ready.pop()
    }

    /// Keeps a store until somebody has time for it.
    pub(crate) fn put_away(&self, used: Used) {
        self.stock().used.push(used);
    }

    /// What is to be cleared away, and how many are to be made.
    pub(crate) fn work(&self) -> (Vec<Used>, usize) {
        let mut stock = self.stock();
        let wanted = std::mem::take(&mut stock.wanted);
        let missing = match stock.is_given_up {
            true => 0,
            false => MAX_READY.saturating_sub(stock.ready.len()).min(wanted),
        };
        (std::mem::take(&mut stock.used), missing)
    }

    /// Adds one.
    pub(crate) fn add(&self, spare: Spare) {
        let mut stock = self.stock();
        if stock.ready.len() < MAX_READY {
            stock.ready.push(spare);
        }
    }

    /// How many are ready.
    pub(crate) fn ready(&self) -> usize {
        self.stock().ready.len()
    }

    /// Makes no more.
    pub(crate) fn give_up(&self) {
        self.stock().is_given_up = true;
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
