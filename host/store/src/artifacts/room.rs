//! Room in the store, counted as content comes.
//!
//! The files are the truth, and other hosts put some as well: what is counted here is what there was at the last look,
//! and what came since. Above the operator's limit the collector is called; up to twice the limit more is kept
//! meanwhile, which identities share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use tollgate_core::share::{Holdings, Share};

/// Least count of one file: its block on the disk.
const LEAST: u64 = 4 << 10;
/// The part of the limit after which somebody looks again, for the sake of what other hosts put.
const LOOK_AFTER: u64 = 8;

/// The room of a store.
pub(super) struct Room {
    /// The operator's limit in bytes.
    most: u64,
    state: Mutex<State>,
    wanted: Sender<()>,
    called: Receiver<()>,
}

struct State {
    /// Bytes at the last look, if somebody looked.
    seen: Option<u64>,
    /// Bytes that came since, or are about to.
    since: u64,
    /// Of those, the ones that are about to.
    promised: u64,
    /// Holdings in the room of the last look.
    left: Holdings,
}

impl Room {
    pub(super) fn new(most: u64) -> Room {
        let (wanted, called) = crossbeam_channel::bounded(1);
        Room {
            most,
            state: Mutex::new(State::of(None, 0, most)),
            wanted,
            called,
        }
    }

    /// Hears when the collector should look.
    pub(super) fn called(&self) -> Receiver<()> {
        self.called.clone()
    }

    /// Takes room for content, unless its share of it is full. `look` counts the files, if nobody did yet.
    pub(super) fn take(&self, share: &Share, bytes: u64, look: impl FnOnce() -> u64) -> bool {
        let bytes = bytes.max(LEAST);
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
            // One call that was not heard yet is enough.
            let _ = self.wanted.try_send(());
        }
        is_room
    }

    /// Notes that promised content was stored.
    pub(super) fn fill(&self, bytes: u64) {
        let mut state = self.state();
        state.promised = state.promised.saturating_sub(bytes.max(LEAST));
    }

    /// Gives room back that was taken and not filled.
    pub(super) fn give_back(&self, share: &Share, bytes: u64) {
        let bytes = bytes.max(LEAST);
        let mut state = self.state();
        state.promised = state.promised.saturating_sub(bytes);
        state.since = state.since.saturating_sub(bytes);
        state.left.give_back(share, bytes);
    }

    /// Notes what the files take.
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

/// Count of a file of so many bytes.
pub(super) fn counted(bytes: u64) -> u64 {
    bytes.max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn fill(room: &Room, name: &str) -> u64 {
        let share = Share::named(name);
        let mut taken = 0;
        while room.take(&share, MIB, || 0) {
            room.fill(MIB);
            taken += 1;
        }
        taken
    }

    #[test]
    fn there_is_never_more_than_twice_the_limit_and_some_for_everybody() {
        let room = Room::new(8 * MIB);
        assert_eq!([fill(&room, "a"), fill(&room, "b")], [8, 4]);
        assert!(room.called().try_recv().is_ok());
        room.saw(16 * MIB);
        assert_eq!(fill(&room, "c"), 0);
        room.saw(8 * MIB);
        assert_eq!([fill(&room, "a"), fill(&room, "b")], [4, 2]);
    }

    #[test]
    fn what_is_not_stored_takes_no_room_and_what_will_be_is_not_forgotten() {
        let room = Room::new(MIB);
        let share = Share::default();
        assert!(room.take(&share, MIB, || MIB));
        assert!(!room.take(&share, 1, || 0));
        room.give_back(&share, MIB);
        assert!(room.take(&share, MIB, || 0));
        room.saw(MIB);
        assert!(
            !room.take(&share, 1, || 0),
            "what was promised before still comes"
        );
        room.fill(MIB);
        room.saw(MIB);
        assert!(room.take(&share, 1, || 0));
    }
}
