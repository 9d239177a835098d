//! Side effects of a call: whether it has begun anything that outlasts it, apart from its own record.

use crate::facts::Transactions;

/// Side effects that a call has begun: rows, files and programs. Each is recorded before it becomes final, so that one
/// in doubt counts.
///
/// Events, artifacts and log lines belong to the record of the call and do not count. A request for an approval does
/// not count either, because a call that asks waits for the answer and is then repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SideEffects {
    has_begun: bool,
    /// True if rows changed in the open transaction of a `run` call, which may still be rolled back.
    is_uncommitted: bool,
}

impl SideEffects {
    /// True if the call may have had a side effect.
    pub fn has_begun(self) -> bool {
        self.has_begun
    }

    /// Records a side effect that is about to be attempted.
    pub(crate) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Records a change of rows. In a transaction that the guest opened, it counts once that is committed.
    pub(crate) fn change_rows(&mut self, transactions: Transactions) {
        match transactions {
            Transactions::Open => self.is_uncommitted = true,
            Transactions::WholeCall | Transactions::None => self.begin(),
        }
    }

    /// Records that the open transaction is about to be committed.
    pub(crate) fn commit(&mut self) {
        self.has_begun |= self.is_uncommitted;
        self.is_uncommitted = false;
    }

    /// Records that the open transaction is rolled back.
    pub(crate) fn roll_back(&mut self) {
        self.is_uncommitted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_transaction_count_once_it_is_committed() {
        let mut effects = SideEffects::default();
        effects.commit();
        assert!(!effects.has_begun(), "a transaction that only read");
        effects.change_rows(Transactions::Open);
        effects.roll_back();
        effects.commit();
        assert!(!effects.has_begun());
        effects.change_rows(Transactions::Open);
        assert!(!effects.has_begun());
        effects.commit();
        effects.roll_back();
        assert!(effects.has_begun());
    }

    #[test]
    fn all_other_effects_count_at_once() {
        for transactions in [Transactions::WholeCall, Transactions::None] {
            let mut effects = SideEffects::default();
            effects.change_rows(transactions);
            assert!(effects.has_begun(), "{transactions:?}");
        }
        let mut effects = SideEffects::default();
        effects.begin();
        effects.roll_back();
        assert!(effects.has_begun());
    }
}
