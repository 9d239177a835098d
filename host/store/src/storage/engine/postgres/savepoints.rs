//! Savepoints, and all SQL that is sent before a statement in the same round trip.

use super::Postgres;
use super::Transaction;
use super::component::Guard;
use super::error::Failure;
use super::turns::not_begun;
use super::wire::Around;
use crate::storage::error::{StoreError, StoreResult};

/// State of the savepoint `call`, to which the rows of a call are undone. It is sent with the next statement, and
/// released only when the next one replaces it or the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallGuard {
    None,
    /// Must be sent before anything else, in place of an older one if there is one.
    Due {
        is_first: bool,
    },
    /// Already sent, needed or not.
    Sent,
}

impl Postgres {
    /// Starts a part of the transaction that can be undone separately.
    pub(in crate::storage) fn savepoint(&self) -> StoreResult<()> {
        if self.must_begin_anew() {
            return Err(not_begun());
        }
        self.send_row()?;
        if self.due_begin.borrow().is_none() {
            self.send_due()?;
        }
        // A savepoint of an older statement is below this one, or is replaced together with the older savepoint.
        self.guard.set(Guard::None);
        self.call.set(CallGuard::Due {
            is_first: self.call.get() == CallGuard::None,
        });
        Ok(())
    }

    /// Keeps the changes since the last savepoint.
    pub(in crate::storage) fn release(&self) -> StoreResult<()> {
        self.guard.set(Guard::None);
        if let CallGuard::Due { is_first } = self.call.get() {
            self.forget_due(is_first);
        }
        Ok(())
    }

    /// Undoes the changes since the last savepoint.
    pub(in crate::storage) fn undo(&self) -> StoreResult<()> {
        self.guard.set(Guard::None);
        self.due_batch.take();
        if let CallGuard::Due { is_first } = self.call.get() {
            // Nothing was sent since.
            self.forget_due(is_first);
            return Ok(());
        }
        self.call.set(CallGuard::None);
        self.last_row.take();
        self.script("ROLLBACK TO call; RELEASE call")?;
        if self.in_transaction() {
            self.transaction.set(Transaction::Open);
        }
        Ok(())
    }

    pub(super) fn forget_due(&self, is_first: bool) {
        self.call.set(match is_first {
            true => CallGuard::None,
            false => CallGuard::Sent,
        });
    }

    /// SQL that must precede the next message, and counts as sent from now on: BEGIN and the savepoints of a call and
    /// of a batch.
    pub(super) fn take_due(&self) -> Around {
        let begin = self.due_begin.take();
        let of_call = match self.call.get() {
            CallGuard::Due { is_first: true } => Some("SAVEPOINT call".to_owned()),
            CallGuard::Due { is_first: false } => Some("RELEASE call; SAVEPOINT call".to_owned()),
            CallGuard::None | CallGuard::Sent => None,
        };
        if of_call.is_some() {
            self.call.set(CallGuard::Sent);
        }
        let mut around = Around {
            begins: begin.is_some(),
            ..Around::default()
        };
        [begin, of_call, self.due_batch.take()]
            .into_iter()
            .flatten()
            .for_each(|text| around.push(&text));
        around
    }

    /// Sends pending SQL separately.
    pub(super) fn send_due(&self) -> StoreResult<()> {
        let around = self.take_due();
        if around.before.is_none() {
            return Ok(());
        }
        let sent = self.wire().begin(&around);
        self.of_trip(&around, sent)
    }

    /// Result of a round trip, or an error if the transaction could not begin with it.
    pub(super) fn of_trip<T>(&self, around: &Around, result: Result<T, Failure>) -> StoreResult<T> {
        match self.has_begun(around) {
            true => self.seen(result),
            false => Err(result.err().map_or_else(not_begun, StoreError::from)),
        }
    }
}
