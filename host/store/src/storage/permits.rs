//! Permits that count once, such as an approval: keys of policies that calls take in their own commits.

use super::engine::{Dialects, sql};
use super::error::StoreResult;
use super::handles::Permits;

/// Most expired keys that are removed for each new one.
const EXPIRED_BATCH: u32 = 16;
/// Tolerance for the end of a slot. A slot that ends later than possible by more than this was taken before the clock
/// was set back. How long ago that was is unknown, so it counts as taken at the next check in a write transaction,
/// and is held from then on.
const SET_BACK_MS: i64 = 60_000;
/// Separator of the parts of a slot's key. The next character ends the range of a key's slots.
const SEPARATOR: [char; 2] = ['\u{1f}', '\u{20}'];
/// Suffix of the operation's id if a call that fails keeps its slot.
const KEPT_SUFFIX: &str = "!kept";

/// Slots of a key, one of which a call takes.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'a> {
    /// Policy that defines the slots.
    pub policy: &'a str,
    /// Key that the calls share.
    pub key: &'a str,
    /// Number of slots.
    pub slots: u32,
    /// Time for which a call holds a slot, in milliseconds.
    pub held_ms: i64,
}

impl Slots<'_> {
    /// Latest possible end of a slot taken now, in milliseconds since 1970 UTC.
    fn latest(&self) -> i64 {
        self.held_ms.saturating_add(self.held_ms.max(SET_BACK_MS))
    }

    /// Exclusive bounds of the keys of these slots' rows.
    fn range(&self) -> [String; 2] {
        let hash = tollgate_core::hash::sha256_hex(self.key.as_bytes());
        SEPARATOR.map(|end| format!("slot{}{hash}{end}", SEPARATOR[0]))
    }
}

impl Permits<'_> {
    /// True if a policy's key is free now.
    pub fn is_free(self, policy: &str, key: &str, now_ms: i64) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_permits WHERE policy = ?1 AND key = ?2 AND expires_at > ?3";
        let is_taken = self.0.engine.exists(sql, sql![policy, key, now_ms])?;
        Ok(!is_taken)
    }

    /// Milliseconds until a slot is free, if all are taken. `more` slots are taken besides the stored ones.
    pub fn slots_wait(self, slots: Slots<'_>, more: usize, now_ms: i64) -> StoreResult<Option<i64>> {
        let [from, to] = slots.range();
        let latest = slots.latest();
        let sql = "SELECT expires_at FROM core_permits WHERE policy = ?1 AND key > ?2 AND key < ?3
             AND expires_at > ?4 AND expires_at <= ?5 ORDER BY expires_at DESC";
        let until_ms = now_ms.saturating_add(latest);
        let range = sql![slots.policy, from, to, now_ms, until_ms];
        let ends: Vec<i64> = self.0.engine.all(sql, range, |row| row.get(0))?;
        let Some(free) = usize::try_from(slots.slots)
            .unwrap_or(usize::MAX)
            .checked_sub(more.saturating_add(1))
        else {
            // Those of the same request end together with this one.
            return Ok(Some(slots.held_ms));
        };
        Ok(ends.get(free).map(|end| end.saturating_sub(now_ms)))
    }

    /// Takes a slot for an operation, its `number`th. Returns how long all are taken, if they are. Requires a write
    /// transaction.
    pub fn take_slot(
        self,
        slots: Slots<'_>,
        (op_id, number): (&str, usize),
        is_kept: bool,
        now_ms: i64,
    ) -> StoreResult<Result<(), i64>> {
        self.forget_expired(slots.policy, now_ms)?;
        self.hold_from_now(slots, now_ms)?;
        if let Some(wait_ms) = self.slots_wait(slots, 0, now_ms)? {
            return Ok(Err(wait_ms));
        }
        let [from, _] = slots.range();
        let separator = SEPARATOR[0];
        let holder = format!("{op_id}{}", if is_kept { KEPT_SUFFIX } else { "" });
        let sql = "INSERT INTO core_permits (policy, key, op_id, expires_at) VALUES (?1, ?2, ?3, ?4)";
        self.0
            .engine
            .run(
                sql,
                sql![
                    slots.policy,
                    format!("{from}{op_id}{separator}{number}"),
                    holder,
                    now_ms.saturating_add(slots.held_ms)
                ],
            )
            .map(|_| Ok(()))
    }

    /// Sets a new end, by the current clock, for slots that were taken before the clock was set back.
    fn hold_from_now(self, slots: Slots<'_>, now_ms: i64) -> StoreResult<()> {
        let [from, to] = slots.range();
        let end = now_ms.saturating_add(slots.held_ms);
        let latest = now_ms.saturating_add(slots.latest());
        let sql = "UPDATE core_permits SET expires_at = ?4 WHERE policy = ?1 AND key > ?2 AND key < ?3 AND expires_at > ?5";
        self.0
            .engine
            .run(sql, sql![slots.policy, from, to, end, latest])
            .map(drop)
    }

    fn forget_expired(self, policy: &str, now_ms: i64) -> StoreResult<()> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "DELETE FROM core_permits WHERE rowid IN (SELECT rowid FROM core_permits
            WHERE policy = ?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3)",
            postgres: "DELETE FROM core_permits WHERE ctid = ANY (ARRAY(SELECT ctid FROM core_permits
            WHERE policy = ?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3))",
        });
        self.0
            .engine
            .run(sql, sql![policy, now_ms, EXPIRED_BATCH])
            .map(drop)
    }

    /// Takes a policy's key for an operation. Returns whether the key was free. Requires a write transaction.
    pub fn take(
        self,
        (policy, key): (&str, &str),
        op_id: &str,
        (now_ms, until_ms): (i64, i64),
    ) -> StoreResult<bool> {
        self.forget_expired(policy, now_ms)?;
        let sql = "INSERT INTO core_permits (policy, key, op_id, expires_at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (policy, key) DO UPDATE SET op_id = excluded.op_id, expires_at = excluded.expires_at
            WHERE core_permits.expires_at <= ?5";
        let taken = self
            .0
            .engine
            .run(sql, sql![policy, key, op_id, until_ms, now_ms])?;
        Ok(taken == 1)
    }

    /// Gives back the permits of an operation, except slots that calls keep when they fail.
    pub fn give_back(self, op_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_permits WHERE op_id = ?1", sql![op_id])
            .map(drop)
    }

    /// Gives back all permits of an operation that did not run.
    pub fn undo(self, op_id: &str) -> StoreResult<()> {
        self.give_back(op_id)?;
        self.give_back(&format!("{op_id}{KEPT_SUFFIX}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Slots<'static> {
        Slots {
            policy: "rate",
            key: "ada",
            slots: 3,
            held_ms: 1_000,
        }
    }

    #[test]
    fn no_window_of_any_place_in_time_has_more_calls_than_slots() {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        let mut passed = Vec::new();
        for now_ms in (0..5_000).step_by(7) {
            let op_id = format!("op_{now_ms}");
            let taken = session
                .permits()
                .take_slot(three(), (&op_id, 0), false, now_ms)
                .unwrap();
            match taken {
                Ok(()) => passed.push(now_ms),
                Err(wait_ms) => assert_eq!(now_ms + wait_ms, passed[passed.len() - 3] + 1_000),
            }
        }
        assert_eq!(passed.len(), 15);
        assert!(
            passed.windows(4).all(|four| four[3] - four[0] >= 1_000),
            "{passed:?}"
        );
        // Other keys and policies have slots of their own.
        let other = Slots {
            key: "bob",
            ..three()
        };
        assert_eq!(session.permits().slots_wait(other, 0, 5_000).unwrap(), None);
        let other = Slots {
            policy: "other",
            ..three()
        };
        assert_eq!(session.permits().slots_wait(other, 2, 5_000).unwrap(), None);
        assert_eq!(
            session.permits().slots_wait(other, 3, 5_000).unwrap(),
            Some(1_000)
        );
        session.commit().unwrap();
    }

    #[test]
    fn a_slot_comes_back_unless_it_is_kept() {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        let take = |op_id: &str, number: usize, is_kept: bool| {
            session
                .permits()
                .take_slot(three(), (op_id, number), is_kept, 0)
                .unwrap()
        };
        let wait = || session.permits().slots_wait(three(), 0, 10).unwrap();
        assert!(
            take("op_1", 0, false).is_ok() && take("op_1", 1, false).is_ok() && take("op_2", 0, true).is_ok()
        );
        assert_eq!(wait(), Some(990));
        session.permits().give_back("op_2").unwrap();
        assert_eq!(wait(), Some(990));
        session.permits().give_back("op_1").unwrap();
        assert_eq!(session.permits().slots_wait(three(), 1, 10).unwrap(), None);
        assert_eq!(session.permits().slots_wait(three(), 2, 10).unwrap(), Some(990));
        session.permits().undo("op_2").unwrap();
        assert_eq!(session.permits().slots_wait(three(), 2, 10).unwrap(), None);
        session.commit().unwrap();
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_nobody_for_long() {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        let day = 86_400_000;
        for number in 0..3 {
            let taken = session.permits().take_slot(three(), ("op_1", number), false, day);
            assert!(taken.unwrap().is_ok());
        }
        // A small clock step lets no call through early.
        assert!(
            session
                .permits()
                .slots_wait(three(), 0, day - 500)
                .unwrap()
                .is_some()
        );
        assert_eq!(session.permits().slots_wait(three(), 0, 0).unwrap(), None);
        // A check alone cannot tell since when they are held. The call that takes one finds them taken from now on,
        // and not for longer.
        let take = |now_ms: i64| {
            session
                .permits()
                .take_slot(three(), ("op_2", 0), false, now_ms)
                .unwrap()
        };
        assert_eq!(take(0), Err(1_000));
        assert_eq!(take(999), Err(1));
        assert_eq!(take(1_000), Ok(()));
        session.commit().unwrap();
    }

    #[test]
    fn a_key_is_one_operations_until_it_expires_or_comes_back() {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        let take = |policy: &str, op_id: &str, now_ms: i64| {
            session
                .permits()
                .take((policy, "k"), op_id, (now_ms, now_ms + 100))
                .unwrap()
        };
        assert!(session.permits().is_free("one", "k", 0).unwrap());
        assert!(take("one", "op_1", 0));
        assert!(!session.permits().is_free("one", "k", 99).unwrap());
        assert!(!take("one", "op_2", 99));
        assert!(take("other", "op_2", 99));
        session.permits().give_back("op_1").unwrap();
        assert!(take("one", "op_3", 50));
        assert!(!take("one", "op_4", 149));
        assert!(session.permits().is_free("one", "k", 150).unwrap());
        assert!(take("one", "op_4", 150));
        session.permits().give_back("op_3").unwrap();
        assert!(!session.permits().is_free("one", "k", 200).unwrap());
        session.commit().unwrap();
    }
}
