//! Beginnings of transactions: the write lock, exclusive or shared, and the fence.

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

/// Time that the server allows a transaction past the deadline of its call, in milliseconds.
const GRACE_MS: u128 = 5_000;

/// Time that a BEGIN sent together with a statement waits for locks, in milliseconds. It counts towards the call's
/// time.
const LATE_LOCK_MS: u128 = 100;

/// Time that a feed's snapshot waits for calls in progress, in milliseconds.
const FEED_LOCK_MS: u128 = 5_000;

/// Name of the write lock: exclusive writers hold it alone, all others share it.
const EVERYBODY: &str = "write";

impl Postgres {
    /// Makes BEGIN travel with the first statement, or be sent separately, which is the default. A BEGIN that travels
    /// waits for its lock only briefly. [`must_begin_anew`](Self::must_begin_anew) tells that it did not get the
    /// lock.
    pub(in crate::storage) fn begin_late(&self, is_late: bool) {
        self.begins_late.set(is_late);
    }

    /// True if the last transaction could not begin when its first statement came, or if a component's statement
    /// conflicted with another transaction and was chosen to give way. Nothing was done, so the transaction may begin
    /// again. Until then every statement is refused.
    pub(in crate::storage) fn must_begin_anew(&self) -> bool {
        self.must_begin_anew.get()
    }

    /// Records the result of a BEGIN that was sent with a statement. Returns false if the transaction could not
    /// begin.
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

    /// Discards pending SQL of a transaction that is over.
    fn forget_dues(&self) {
        self.last_row.take();
        self.due_begin.take();
        self.due_batch.take();
        self.call.set(CallGuard::None);
        self.guard.set(Guard::None);
    }

    /// Rolls back the transaction, which must begin again.
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

    /// Sets the BEGIN that is sent with the first statement.
    fn begin_with_first(&self, sql: String) -> StoreResult<()> {
        if self.in_transaction() {
            return Err(Failure::seen(StoreFailure::Other, "a transaction is already open").into());
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

    /// Begins a transaction under a session lock, which is released in the same round trip.
    fn begin_between(&self, lock: &str, begin: &str, unlock: &str) -> StoreResult<()> {
        self.begin_as(|wire| wire.begin_between(lock, begin, unlock).map(|()| Vec::new()))
    }

    fn begin_as(&self, send: impl Fn(&Wire) -> Result<Vec<Option<String>>, Failure>) -> StoreResult<()> {
        if self.in_transaction() {
            return Err(Failure::seen(StoreFailure::Other, "a transaction is already open").into());
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
            // The connection was lost earlier, without being noticed.
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

    /// Limits the time that write transactions wait for locks.
    pub(in crate::storage) fn wait_at_most(&self, time: Duration) {
        self.longest_wait_ms.set(time.as_millis());
    }

    fn lock_timeout_ms(&self) -> u128 {
        self.server.lock_timeout_ms().min(self.longest_wait_ms.get())
    }

    /// Starts a snapshot, which is taken at the first read.
    pub(in crate::storage) fn begin_read(&self) -> StoreResult<()> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        match self.begins_late.get() {
            true => self.begin_with_first(begin.to_owned())?,
            false => self.begin(begin, None)?,
        }
        self.only_reads.set(true);
        Ok(())
    }

    /// Starts a snapshot after the calls of a pack that are in progress, in any scope. Later calls wait until it is
    /// taken, because a call that began in between could assign a row a lower number than one that the snapshot sees.
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

    /// Starts a write transaction with the exclusive lock, in the order of requests by all sessions.
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

    /// Starts a write transaction for a call, and waits no longer than its deadline. Fails as busy after that.
    pub(in crate::storage) fn begin_write_before(&self, deadline: &Deadline) -> StoreResult<()> {
        let remaining = deadline.remaining().as_millis().max(1);
        let begin = self.begin_in_turn(
            // The deadline ends the wait first, by a cancel request that hits this statement and no later one.
            remaining.saturating_add(GRACE_MS).min(self.lock_timeout_ms()),
            remaining
                .saturating_add(GRACE_MS)
                .min(i32::MAX.unsigned_abs().into()),
        );
        self.begin(&begin, Some(deadline))
            .map_err(|err| match err.failure() {
                StoreFailure::Interrupted => Failure::seen(
                    StoreFailure::Busy,
                    "the write lock was not released before the deadline",
                )
                .into(),
                _ => err,
            })
    }

    /// Starts a write transaction that runs in parallel with those of other hosts. Exclusive writers wait for it, and
    /// so do transactions with the same locks. Each statement sees everything that was committed before.
    pub(in crate::storage) fn begin_write_among(&self, among: &Among) -> StoreResult<()> {
        let everybody = lock_key(&self.server.schema, EVERYBODY);
        let mut turn = format!("SELECT pg_advisory_xact_lock_shared({everybody})");
        // All hosts use the same lock order, so that no two wait for each other.
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

    /// Starts a write transaction outside the write lock, after all others with the same lock. Each of its statements
    /// sees what others committed before.
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

    /// Takes a lock for the lifetime of the session, unless another session holds it.
    pub(in crate::storage) fn try_lock(&self, lock: &str) -> StoreResult<bool> {
        let key = lock_key(&self.server.schema, lock);
        let said = self.seen(self.wire().ask(&format!("SELECT pg_try_advisory_lock({key})")))?;
        Ok(said.first().and_then(Option::as_deref) == Some("t"))
    }

    /// One writer at a time, as with SQLite: each statement sees exactly what earlier transactions committed.
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

/// Error of a transaction that could not begin.
pub(super) fn not_begun() -> StoreError {
    Failure::seen(StoreFailure::Busy, "cannot begin the transaction").into()
}
