//! Beginnings of transactions: the turn to write, alone or beside others, and the fence.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_core::deadline::Deadline;

use super::settings::{IDLE_TIMEOUT_MS, lock_key};
use super::{Failure, Postgres, STATES_WAIT, is_id};
use crate::storage::error::{StoreFailure, StoreResult};
use crate::storage::session::Among;

/// Time that the server leaves a transaction beyond the deadline of its call, in milliseconds.
const GRACE_MS: u128 = 5_000;

/// Name of the lock of those who write alone, which the others share.
const EVERYBODY: &str = "write";

impl Postgres {
    /// Waits for turns and locks of write transactions for no longer than this.
    pub(in crate::storage) fn wait_at_most(&self, time: Duration) {
        self.longest_wait_ms.set(time.as_millis());
    }

    fn lock_timeout_ms(&self) -> u128 {
        self.server.lock_timeout_ms().min(self.longest_wait_ms.get())
    }

    /// Starts a snapshot; it is taken at the first read.
    pub(in crate::storage) fn begin_read(&self) -> StoreResult<()> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", None)?;
        self.only_reads.set(true);
        Ok(())
    }

    /// Starts a write transaction, after all that other sessions asked for before.
    pub(in crate::storage) fn begin_write(&self) -> StoreResult<()> {
        self.begin(
            &self.begin_in_turn(self.lock_timeout_ms(), self.server.idle_timeout_ms()),
            None,
        )
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
        let begin = self.begin_with(
            self.server.lock_timeout_ms(),
            self.server.idle_timeout_ms(),
            &turn,
        );
        self.begin(&begin, None)
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
