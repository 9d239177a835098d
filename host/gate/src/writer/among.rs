//! Transactions beside those of other hosts.
//!
//! A host that has the database to itself puts all calls that wait into one commit, in the turn of all who write. Beside
//! other hosts that turn would be the limit of all. There a call has a transaction of its own, which holds its pack, or the
//! part of it that the call is about, and its envelope and nothing else, and comes to the end of the ledger with its last statement.

use tollgate_components::catalog::Body;
use tollgate_core::effect::Effect;
use tollgate_store::storage::{Among, Operation};

use crate::intake::Pending;
use crate::job::Job;

/// Limit whose row closes its envelope.
const OVER: &str = "DURATION_EXCEEDED";

/// Turn of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nobody else writes meanwhile.
    Alone,
    /// Others write, if they are in nobody's way.
    Among(Among),
}

impl Turn {
    /// Turn of rows of calls that are over.
    pub(super) fn of_rows(rows: &[Operation]) -> Turn {
        match rows.iter().all(is_plain) {
            true => Turn::side_by_side(),
            false => Turn::Alone,
        }
    }

    /// Jobs at the beginning of a batch that share a transaction, and its turn.
    pub(super) fn of_first(batch: &[Pending]) -> (usize, Turn) {
        let plain = batch
            .iter()
            .take_while(|pending| is_plain_job(&pending.job))
            .count();
        if plain > 0 || batch.is_empty() {
            return (plain, Turn::side_by_side());
        }
        (1, of_call(&batch[0]).unwrap_or(Turn::Alone))
    }

    fn side_by_side() -> Turn {
        Turn::Among(Among::default())
    }
}

/// Turn of a call that touches its pack's tables, its envelope and rows that belong to it alone. What counts over calls of
/// others, such as permits, windows of time and memories of policies, wants the turn of all.
fn of_call(pending: &Pending) -> Option<Turn> {
    let Job::Call { guest, draft, .. } = &pending.job else {
        return None;
    };
    let Body::Guest(pack) = &guest.body else {
        return None;
    };
    let operation = &draft.operation;
    let counts = !draft.permits.is_empty()
        || !draft.windows.is_empty()
        || !draft.remembered.is_empty()
        || !operation.policy_rows.is_empty();
    let is_judged_here = guest.judging.is_some() || guest.review.is_some();
    if counts || is_judged_here || operation.members.is_some() {
        return None;
    }
    let (pack, scope) = (pack.namespace.pack().to_owned(), guest.scope.as_ref());
    let (shared, keys) = match scope {
        Some(scope) => (vec![pack.clone()], vec![format!("{pack}\n{scope}")]),
        None => (Vec::new(), vec![pack]),
    };
    Some(Turn::Among(Among {
        shared,
        keys,
        envelope: operation.envelope_id.clone(),
    }))
}

fn is_plain_job(job: &Job) -> bool {
    match job {
        Job::Record { operation, task, .. } => task.is_none() && is_plain(operation),
        Job::Pulse(_) | Job::Backlog | Job::Flush(_) => true,
        Job::Call { .. } | Job::Admit { .. } | Job::Interrupt { .. } | Job::Maintain { .. } => false,
    }
}

/// True for a row that is only added.
fn is_plain(operation: &Operation) -> bool {
    operation.effect != Effect::Run
        && operation.policy_rows.is_empty()
        && operation.limit_triggered.as_deref() != Some(OVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_more_than_be_there_want_the_turn_of_all() {
        let row = |change: fn(&mut Operation)| {
            let mut operation = Operation::for_tests(1, Some("env_1"), "2026-03-01T00:00:00.000Z");
            change(&mut operation);
            Turn::of_rows(&[operation])
        };
        assert_ne!(row(|_| ()), Turn::Alone);
        assert_eq!(row(|row| row.effect = Effect::Run), Turn::Alone);
        assert_eq!(
            row(|row| row.limit_triggered = Some("DURATION_EXCEEDED".to_owned())),
            Turn::Alone
        );
        assert_eq!(Turn::of_first(&[]), (0, Turn::side_by_side()));
    }
}
