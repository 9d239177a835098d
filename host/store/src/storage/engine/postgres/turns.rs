//! Beginnings of transactions: the turn to write, alone or beside others, and the fence.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_core::deadline::Deadline;

use super::component::Guard;
use super::savepoints::CallGuard;
use super::settings::{IDLE_TIMEOUT_MS, lock_key};
use super::wire::{Around, Wire};
use super::{Failure, Postgres, STATES_WAIT, Transaction, is_id};
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::Among;

/// Time that the server leaves a transaction beyond the deadline of its call, in milliseconds.
const GRACE_MS: u128 = 5_000;

/// Time that a beginning which travels with a statement waits for locks, in milliseconds. The time is the call's.
const LATE_LOCK_MS: u128 = 100;

/// Time that a snapshot of a feed waits for calls that are at work, in milliseconds.
const FEED_LOCK_MS: u128 = 5_000;

/// Name of the lock of those who write alone, which the others share.
const EVERYBODY: &str = "write";

impl Postgres {
    /// Has beginnings of transactions travel with their first statement, or sends them by themselves, which is how it is at first. One that
    /// travels waits for its turn for a moment only: [`must_begin_anew`](Self::must_begin_anew) says that it did not come.
    pub(in crate::storage) fn begin_late(&self, is_late: bool) {
        self.begins_late.set(is_late);
    }

    /// True if the last transaction could not begin when its first statement came, or if a component's statement met another transaction and
    /// one of them had to give way. Nothing of it was done, so it may begin anew. Until then every statement is refused.
    pub(in crate::storage) fn must_begin_anew(&self) -> bool {
        self.must_begin_anew.get()
    }

    /// Notes how the beginning that went with a statement ended. False if the transaction could not begin.
    pub(super) fn has_begun(&self, around: &Around) -> bool {
        if !around.begins {
            return true;
        }
        if let Some(said) = around.said.get() {
            self.note_beginning(said);
            return true;
        }
        self.give_way();
        false
    }

    /// Forgets what should have been sent with a next statement of a transaction that is over.
    fn forget_dues(&self) {
        self.last_row.take();
        self.due_begin.take();
        self.due_batch.take();
        self.call.set(CallGuard::None);
        self.guard.set(Guard::None);
    }

    /// Undoes the transaction, which has to begin anew.
    pub(super) fn give_way(&self) {
        self.forget_dues();
        self.must_begin_anew.set(true);
        self.transaction.set(Transaction::None);
        if self.wire().script("ROLLBACK", None).is_err() {
            self.wire().give_up();
        }
    }

    fn note_beginning(&self, said: &[Option<String>]) {
        self.states_wait
            .set(match said.first().and_then(Option::as_deref) {
                Some("t") => Some(true),
                Some("f") => Some(false),
                _ => None,
            });
    }

    /// Notes a beginning that is sent with the first statement.
    fn begin_with_first(&self, sql: String) -> StoreResult<()> {
        if self.in_transaction() {
            return Err(Failure::seen(StoreFailure::Other, "a transaction is open already").into());
        }
        self.was_lost.set(false);
        self.must_begin_anew.set(false);
        self.last_row.take();
        self.only_reads.set(false);
        self.wire().look();
        let connected = self.connect_anew();
        self.was_lost.set(connected.is_err());
        connected?;
        self.guard.set(Guard::None);
        self.call.set(CallGuard::None);
        self.due_batch.take();
        self.states_wait.set(None);
        self.due_begin.replace(Some(sql));
        self.transaction.set(Transaction::Open);
        Ok(())
    }

    pub(super) fn begin(&self, sql: &str, deadline: Option<&Deadline>) -> StoreResult<()> {
        self.begin_as(|wire| wire.ask_last(sql, deadline))
    }

    /// Begins a transaction under a lock of the session, which is given back in the same trip.
    fn begin_between(&self, lock: &str, begin: &str, unlock: &str) -> StoreResult<()> {
        self.begin_as(|wire| wire.begin_between(lock, begin, unlock).map(|()| Vec::new()))
    }

    fn begin_as(&self, send: impl Fn(&Wire) -> Result<Vec<Option<String>>, Failure>) -> StoreResult<()> {
        if self.in_transaction() {
            return Err(Failure::seen(StoreFailure::Other, "a transaction is open already").into());
        }
        self.must_begin_anew.set(false);
        let begun = self.begin_after(send);
        let failure = begun.as_ref().err().map(StoreError::failure);
        self.was_lost.set(failure == Some(StoreFailure::Lost));
        begun
    }

    fn begin_after(&self, send: impl Fn(&Wire) -> Result<Vec<Option<String>>, Failure>) -> StoreResult<()> {
        self.forget_dues();
        self.only_reads.set(false);
        self.connect_anew()?;
        self.make_way()?;
        let mut begun = send(&self.wire());
        if begun
            .as_ref()
            .is_err_and(|failure| failure.kind() == StoreFailure::Lost)
        {
            // The connection was lost since, and nobody had noticed.
            self.wire().give_up();
            self.connect_anew()?;
            begun = send(&self.wire());
        }
        if begun.is_err() && !self.wire().is_closed() {
            self.wire().script("ROLLBACK", None)?;
        }
        self.guard.set(Guard::None);
        self.call.set(CallGuard::None);
        self.due_batch.take();
        self.transaction.set(match begun {
            Ok(_) => Transaction::Open,
            Err(_) => Transaction::None,
        });
        self.note_beginning(&begun?);
        Ok(())
    }

    /// Waits for turns and locks of write transactions for no longer than this.
    pub(in crate::storage) fn wait_at_most(&self, time: Duration) {
        self.longest_wait_ms.set(time.as_millis());
    }

    fn lock_timeout_ms(&self) -> u128 {
        self.server.lock_timeout_ms().min(self.longest_wait_ms.get())
    }

    /// Starts a snapshot; it is taken at the first read.
    pub(in crate::storage) fn begin_read(&self) -> StoreResult<()> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        match self.begins_late.get() {
            true => self.begin_with_first(begin.to_owned())?,
            false => self.begin(begin, None)?,
        }
        self.only_reads.set(true);
        Ok(())
    }

    /// Starts a snapshot after the calls of a pack that are at work, whatever part of it they have. Others wait until it is taken,
    /// because a call that began in between could give a row a lower number than one that the snapshot sees.
    pub(in crate::storage) fn begin_read_of_feed(&self, pack: &str) -> StoreResult<()> {
        let key = lock_key(&self.server.schema, &format!("turn {pack}"));
        let wait_ms = self.lock_timeout_ms().min(FEED_LOCK_MS);
        let lock = format!("SET LOCAL lock_timeout = {wait_ms}; SELECT pg_advisory_lock({key})");
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";
        let unlock = format!("SELECT pg_advisory_unlock({key})");
        self.begin_between(&lock, begin, &unlock)?;
        self.only_reads.set(true);
        Ok(())
    }

    /// Starts a write transaction, after all that other sessions asked for before.
    pub(in crate::storage) fn begin_write(&self) -> StoreResult<()> {
        let everybody = lock_key(&self.server.schema, EVERYBODY);
        self.begin_write_with(&format!("SELECT pg_advisory_xact_lock({everybody})"))
    }

    /// Starts a write transaction with these locks.
    fn begin_write_with(&self, turn: &str) -> StoreResult<()> {
        let (lock_ms, idle_ms) = (self.lock_timeout_ms(), self.server.idle_timeout_ms());
        if !self.begins_late.get() {
            return self.begin(&self.begin_with(lock_ms, idle_ms, turn), None);
        }
        let begin = self.begin_with(lock_ms.min(LATE_LOCK_MS), idle_ms, turn);
        self.begin_with_first(format!("{begin}; SET LOCAL lock_timeout = {lock_ms}"))
    }

    /// The same for a call that waits no longer than until its deadline. Fails as busy then.
    pub(in crate::storage) fn begin_write_before(&self, deadline: &Deadline) -> StoreResult<()> {
        let remaining = deadline.remaining().as_millis().max(1);
        let begin = self.begin_in_turn(
            // The deadline ends the wait first, and by a request to cancel that meets this statement and no later one.
            remaining.saturating_add(GRACE_MS).min(self.lock_timeout_ms()),
            remaining
                .saturating_add(GRACE_MS)
                .min(i32::MAX.unsigned_abs().into()),
        );
        self.begin(&begin, Some(deadline))
            .map_err(|err| match err.failure() {
                StoreFailure::Interrupted => Failure::seen(
                    StoreFailure::Busy,
                    "the turn to write did not come before the deadline",
                )
                .into(),
                _ => err,
            })
    }

    /// Starts a write transaction beside those of other hosts. Those that write alone wait for it, and those that want the same.
    /// Each statement sees what was committed before.
    pub(in crate::storage) fn begin_write_among(&self, among: &Among) -> StoreResult<()> {
        let everybody = lock_key(&self.server.schema, EVERYBODY);
        let mut turn = format!("SELECT pg_advisory_xact_lock_shared({everybody})");
        // In an order that all hosts have, so that no two wait for each other.
        let sorted = |names: &[String]| -> BTreeSet<i64> {
            let keys = names.iter();
            keys.map(|name| lock_key(&self.server.schema, &format!("turn {name}")))
                .collect()
        };
        for (names, lock) in [
            (&among.shared, "pg_advisory_xact_lock_shared"),
            (&among.keys, "pg_advisory_xact_lock"),
        ] {
            for key in sorted(names) {
                turn.push_str(&format!("; SELECT {lock}({key})"));
            }
        }
        if let Some(envelope) = among.envelope.as_deref().filter(|id| is_id(id)) {
            turn.push_str(&format!("; SELECT core_hold('{envelope}')"));
        }
        self.begin_write_with(&turn)
    }

    /// Starts a write transaction beside the turn, after all others with the same lock. Each of its statements sees what
    /// others committed before.
    pub(in crate::storage) fn begin_beside(&self, lock: &str) -> StoreResult<()> {
        let key = lock_key(&self.server.schema, lock);
        self.begin(
            &format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {IDLE_TIMEOUT_MS};
                 SELECT pg_advisory_xact_lock({key})"
            ),
            self.deadline().as_ref(),
        )
    }

    /// Takes a lock for as long as the session lasts, unless another session has it.
    pub(in crate::storage) fn try_lock(&self, lock: &str) -> StoreResult<bool> {
        let key = lock_key(&self.server.schema, lock);
        let said = self.seen(self.wire().ask(&format!("SELECT pg_try_advisory_lock({key})")))?;
        Ok(said.first().and_then(Option::as_deref) == Some("t"))
    }

    /// One writes at a time, as with SQLite: each statement sees what the one before committed, and nothing else.
    fn begin_in_turn(&self, lock_ms: u128, idle_ms: u128) -> String {
        let everybody = lock_key(&self.server.schema, EVERYBODY);
        let turn = format!("SELECT pg_advisory_xact_lock({everybody})");
        self.begin_with(lock_ms, idle_ms, &turn)
    }

    fn begin_with(&self, lock_ms: u128, idle_ms: u128, turn: &str) -> String {
        let served = self.server.served.get().filter(|served| is_id(&served.host));
        let is_alive = served.map_or_else(String::new, |served| {
            format!("; SELECT core_alive('{}'); {STATES_WAIT}", served.host)
        });
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {lock_ms};
             SET LOCAL idle_in_transaction_session_timeout = {idle_ms}; {turn}{is_alive}"
        )
    }
}

/// The failure of a transaction that could not begin.
pub(super) fn not_begun() -> StoreError {
    Failure::seen(StoreFailure::Busy, "the transaction could not begin").into()
}
