//! Slots of `read` calls that a policy counts for each host separately. Kept in memory, so that no `read` call waits
//! for a commit.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_sandbox::permit::Permit;

use super::permits::Overtaken;

/// Number of keys in memory above which expired ones are removed.
const SWEEP_LIMIT: usize = 1_024;
/// Most keys in memory. Beyond that, the half whose slots end first is dropped.
const MAX_KEYS: usize = 100_000;

/// Slots of this host.
#[derive(Default)]
pub(super) struct HostSlots(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// Slots by policy and key.
    held: HashMap<(String, String), Vec<Held>>,
    /// Number of keys after the last sweep.
    swept: usize,
}

struct Held {
    op_id: String,
    until: Instant,
}

impl HostSlots {
    /// Takes one slot of each kind, or none.
    pub(super) fn take(&self, permits: &[&Permit], op_id: &str) -> Result<(), Overtaken> {
        if permits.is_empty() {
            return Ok(());
        }
        let taken = self.taken().take(permits, op_id, Instant::now());
        if taken.is_err() {
            self.undo(permits, op_id);
        }
        taken
    }

    /// Gives back the slots of a call that did not run.
    pub(super) fn undo(&self, permits: &[&Permit], op_id: &str) {
        let mut taken = self.taken();
        for permit in permits {
            taken.give_back(permit, op_id);
        }
    }

    /// Gives back the slots of a call that failed.
    pub(super) fn give_back(&self, permits: &[&Permit], op_id: &str) {
        let is_kept = |permit: &Permit| permit.slot().is_some_and(|slot| slot.kept_by_failed);
        let back: Vec<&Permit> = permits
            .iter()
            .copied()
            .filter(|permit| !is_kept(permit))
            .collect();
        self.undo(&back, op_id);
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn take(&mut self, permits: &[&Permit], op_id: &str, now: Instant) -> Result<(), Overtaken> {
        self.sweep(now);
        for permit in permits {
            let Some(slot) = permit.slot() else {
                continue;
            };
            let key = (permit.policy.clone(), permit.key.clone());
            if self.held.len() >= MAX_KEYS && !self.held.contains_key(&key) {
                self.forget_half();
            }
            let held = self.held.entry(key).or_default();
            held.retain(|held| held.until > now);
            let free = usize::try_from(slot.slots).unwrap_or(usize::MAX);
            if held.len() < free {
                held.push(Held {
                    op_id: op_id.to_owned(),
                    until: now + Duration::from_millis(u64::try_from(slot.held_ms).unwrap_or_default()),
                });
            } else if let Some(policy) = &permit.needed_by {
                let mut ends: Vec<Instant> = held.iter().map(|held| held.until).collect();
                ends.sort_unstable_by(|one, other| other.cmp(one));
                let end = ends.get(free.saturating_sub(1));
                let wait = end.map_or(Duration::ZERO, |end| end.saturating_duration_since(now));
                let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                return Err(Overtaken::by_many(slot, policy, wait_ms));
            }
        }
        Ok(())
    }

    /// Drops the keys whose slots end first. A caller with very many keys must not stop the counting of others.
    fn forget_half(&mut self) {
        let last = |held: &[Held]| held.iter().map(|held| held.until).max();
        let mut ends: Vec<_> = self.held.values().map(|held| last(held)).collect();
        let middle = ends.len() / 2;
        let (_, middle, _) = ends.select_nth_unstable(middle);
        let middle = *middle;
        self.held.retain(|_, held| last(held) > middle);
    }

    fn give_back(&mut self, permit: &Permit, op_id: &str) {
        let key = (permit.policy.clone(), permit.key.clone());
        if let Some(held) = self.held.get_mut(&key) {
            held.retain(|held| held.op_id != op_id);
        }
    }

    /// Removes keys without a taken slot, whenever their number has doubled since the last sweep.
    fn sweep(&mut self, now: Instant) {
        if self.held.len() < SWEEP_LIMIT.max(self.swept.saturating_mul(2)).min(MAX_KEYS) {
            return;
        }
        self.held
            .retain(|_, held| held.iter().any(|held| held.until > now));
        self.swept = self.held.len();
    }
}

#[cfg(test)]
mod tests {
    use tollgate_sandbox::permit::Slot;
    use tollgate_sandbox::sitting::Sitting;

    use super::*;

    fn permit(key: &str, slots: u32, kept_by_failed: bool) -> Permit {
        let sitting = Sitting::over(tollgate_store::storage::StoredOperation::default());
        let slot = Slot {
            slots,
            held_ms: 1_000,
            kept_by_failed,
            reads_by_host: true,
            code: "FULL".to_owned(),
            reason: "it is full".to_owned(),
            remediation: None,
        };
        sitting.take_slot("policy", key, slot).unwrap();
        sitting.keep("policy", Some("policy"));
        sitting.permits().remove(0)
    }

    #[test]
    fn a_key_has_its_slots_until_they_end_or_come_back() {
        let (slots, two, kept) = (HostSlots::default(), permit("a", 2, false), permit("b", 1, true));
        let take = |permits: &[&Permit], op_id: &str| slots.take(permits, op_id).is_ok();
        assert!(take(&[&two], "op_1") && take(&[&two], "op_2"));
        // Of two that it needs it gets both or none.
        assert!(!take(&[&kept, &two], "op_3"));
        assert!(take(&[&kept], "op_4"));
        slots.give_back(&[&two, &kept], "op_4");
        slots.give_back(&[&two], "op_1");
        assert!(take(&[&two], "op_5") && !take(&[&two], "op_6"));
        assert!(!take(&[&kept], "op_6"));
        slots.undo(&[&kept], "op_4");
        assert!(take(&[&kept], "op_6"));
        let later = Instant::now() + Duration::from_secs(2);
        assert!(slots.taken().take(&[&two, &kept], "op_7", later).is_ok());
    }

    #[test]
    fn more_keys_than_are_kept_push_out_those_that_end_first() {
        let mut taken = Taken::default();
        let now = Instant::now();
        let template = permit("key", 1, true);
        for number in 0..MAX_KEYS {
            let mut permit = template.clone();
            permit.key = number.to_string();
            let at = now + Duration::from_micros(number as u64);
            taken.take(&[&permit], "op", at).unwrap();
        }
        let at = now + Duration::from_millis(200);
        let mut take = |key: &str| taken.take(&[&permit(key, 1, true)], "op", at).is_ok();
        assert!(take("another") && !take("another"));
        assert!(!take(&(MAX_KEYS - 1).to_string()), "a late one is still counted");
        assert!(take("0"), "an early one is forgotten");
    }

    #[test]
    fn keys_whose_slots_ended_are_forgotten() {
        let mut taken = Taken::default();
        let now = Instant::now();
        for number in 0..SWEEP_LIMIT {
            taken
                .take(&[&permit(&number.to_string(), 1, true)], "op", now)
                .unwrap();
        }
        assert_eq!(taken.held.len(), SWEEP_LIMIT);
        let later = now + Duration::from_secs(2);
        taken.take(&[&permit("another", 1, true)], "op", later).unwrap();
        assert_eq!(taken.held.len(), 1);
    }
}
