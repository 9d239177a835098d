//! Accounting of the space in the store, as content is added.
//!
//! The files are authoritative, and other hosts add files too. The count is the size at the last scan plus what was
//! added since. Above the operator's limit the collector is called. In the meantime the store keeps up to twice the
//! limit, shared by the identities.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use tollgate_core::share::{Holdings, Share};

/// Least size counted for a file: its block on the disk.
const MIN_COUNTED_BYTES: u64 = 4 << 10;
/// Fraction of the limit after which the files are counted again, because other hosts may have added some.
const LOOK_AFTER: u64 = 8;

/// Free space of a store.
pub(super) struct SpaceAccount {
    /// Operator's limit in bytes.
    most: u64,
    state: Mutex<State>,
    wanted: Sender<()>,
    called: Receiver<()>,
}

struct State {
    /// Bytes at the last count, if there was one.
    seen: Option<u64>,
    /// Bytes added since, including reserved ones.
    since: u64,
    /// Reserved bytes among those.
    promised: u64,
    /// Shares of the room since the last count.
    left: Holdings,
}

impl SpaceAccount {
    pub(super) fn new(most: u64) -> SpaceAccount {
        let (wanted, called) = crossbeam_channel::bounded(1);
        SpaceAccount {
            most,
            state: Mutex::new(State::of(None, 0, most)),
            wanted,
            called,
        }
    }

    /// Receives a message when the collector should run.
    pub(super) fn called(&self) -> Receiver<()> {
        self.called.clone()
    }

    /// Reserves room for content, unless its share is full. `look` counts the files, if they have not been counted
    /// yet.
    pub(super) fn take(&self, share: &Share, bytes: u64, look: impl FnOnce() -> u64) -> bool {
        let bytes = bytes.max(MIN_COUNTED_BYTES);
        let mut state = self.state();
        if state.seen.is_none() {
            *state = State::of(Some(look()), 0, self.most);
        }
        let is_room = state.left.allows(share, bytes);
        if is_room {
            state.left.take(share, bytes);
            state.since += bytes;
            state.promised += bytes;
        }
        let is_much = state.since > self.most / LOOK_AFTER;
        if !is_room || is_much || state.seen.unwrap_or_default() + state.since > self.most {
            // One pending message is enough.
            let _ = self.wanted.try_send(());
        }
        is_room
    }

    /// Records that reserved content was stored.
    pub(super) fn fill(&self, bytes: u64) {
        let mut state = self.state();
        state.promised = state.promised.saturating_sub(bytes.max(MIN_COUNTED_BYTES));
    }

    /// Releases reserved room that was not used.
    pub(super) fn give_back(&self, share: &Share, bytes: u64) {
        let bytes = bytes.max(MIN_COUNTED_BYTES);
        let mut state = self.state();
        state.promised = state.promised.saturating_sub(bytes);
        state.since = state.since.saturating_sub(bytes);
        state.left.give_back(share, bytes);
    }

    /// Records the counted size of the files.
    pub(super) fn saw(&self, bytes: u64) {
        let mut state = self.state();
        *state = State::of(Some(bytes), state.promised, self.most);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(seen: Option<u64>, promised: u64, most: u64) -> State {
        let taken = seen.unwrap_or_default().saturating_add(promised);
        let left = most.saturating_mul(2).saturating_sub(taken);
        State {
            seen,
            since: promised,
            promised,
            left: Holdings::new(left, left),
        }
    }
}

/// Counted size of a file with this many bytes.
pub(super) fn counted(bytes: u64) -> u64 {
    bytes.max(MIN_COUNTED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn fill(space: &SpaceAccount, name: &str) -> u64 {
        let share = Share::named(name);
        let mut taken = 0;
        while space.take(&share, MIB, || 0) {
            space.fill(MIB);
            taken += 1;
        }
        taken
    }

    #[test]
    fn there_is_never_more_than_twice_the_limit_and_some_for_everybody() {
        let space = SpaceAccount::new(8 * MIB);
        assert_eq!([fill(&space, "a"), fill(&space, "b")], [8, 4]);
        assert!(space.called().try_recv().is_ok());
        space.saw(16 * MIB);
        assert_eq!(fill(&space, "c"), 0);
        space.saw(8 * MIB);
        assert_eq!([fill(&space, "a"), fill(&space, "b")], [4, 2]);
    }

    #[test]
    fn what_is_not_stored_takes_no_room_and_what_will_be_is_not_forgotten() {
        let space = SpaceAccount::new(MIB);
        let share = Share::default();
        assert!(space.take(&share, MIB, || MIB));
        assert!(!space.take(&share, 1, || 0));
        space.give_back(&share, MIB);
        assert!(space.take(&share, MIB, || 0));
        space.saw(MIB);
        assert!(
            !space.take(&share, 1, || 0),
            "what was promised before still comes"
        );
        space.fill(MIB);
        space.saw(MIB);
        assert!(space.take(&share, 1, || 0));
    }
}
