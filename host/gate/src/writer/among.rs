//! Transactions that run in parallel with those of other lanes and hosts.
//!
//! With a database file, one commit holds all waiting calls, under the single write lock of all writers. On a server
//! that lock would limit all hosts. There a call has a transaction of its own, which locks only its pack, or the part
//! of the pack that the call is about, and its envelope. It appends to the ledger with its last statement.

use std::collections::VecDeque;

use tollgate_components::catalog::Body;
use tollgate_core::effect::Effect;
use tollgate_store::storage::{Among, Operation};

use crate::job::Job;

/// Limit whose row closes its envelope.
const CLOSING_LIMIT: &str = "DURATION_EXCEEDED";

/// Locking mode of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// Exclusive: no other writer runs.
    Alone,
    /// Shared: others write, unless they conflict.
    Among(Among),
}

impl Turn {
    /// True for the row of a finished call, if it needs no lock.
    pub(super) fn is_plain(row: &Operation) -> bool {
        is_plain(row)
    }

    /// Locking mode of a job.
    pub(super) fn of_job(job: &Job) -> Turn {
        match is_plain_job(job) {
            true => Turn::side_by_side(),
            false => of_call(job).map_or(Turn::Alone, Turn::Among),
        }
    }

    pub(super) fn side_by_side() -> Turn {
        Turn::Among(Among::default())
    }
}

/// True if two transactions conflict over part of a pack, or over an envelope.
pub(super) fn meet(one: &Among, other: &Among) -> bool {
    let have = |names: &[String], others: &[String]| names.iter().any(|name| others.contains(name));
    have(&one.keys, &other.keys)
        || have(&one.keys, &other.shared)
        || have(&one.shared, &other.keys)
        || one.envelope.is_some() && one.envelope == other.envelope
}

/// Takes jobs about the same subject from a queue, as many as there is room for and may run. A job overtakes neither
/// a conflicting job nor a job that waits for all earlier ones.
pub(super) fn take_alike<T>(
    line: &mut VecDeque<T>,
    among: &Among,
    room: usize,
    turn: impl Fn(&T) -> Turn,
    may_come: impl Fn(&T) -> bool,
) -> Vec<T> {
    let (mut taken, mut at) = (Vec::new(), 0);
    while at < line.len() && taken.len() < room {
        let Turn::Among(other) = turn(&line[at]) else {
            break;
        };
        let comes = other == *among && may_come(&line[at]);
        match comes.then(|| line.remove(at)).flatten() {
            Some(like) => taken.push(like),
            None if meet(&other, among) => break,
            None => at += 1,
        }
    }
    taken
}

/// Locking mode of a call that touches only its pack's tables, its envelope and rows of its own. Anything that counts
/// across calls of others, such as permits, time windows and memories of policies, needs the exclusive lock.
fn of_call(job: &Job) -> Option<Among> {
    let Job::Call { guest, pending, .. } = job else {
        return None;
    };
    let Body::Guest(pack) = &guest.body else {
        return None;
    };
    let operation = &pending.operation;
    let counts = !pending.permits.is_empty()
        || !pending.windows.is_empty()
        || !pending.remembered.is_empty()
        || !operation.policy_rows.is_empty();
    let is_judged_here = guest.evaluation.is_some() || guest.review.is_some();
    if counts || is_judged_here || operation.members.is_some() {
        return None;
    }
    let (pack, scope) = (pack.namespace.pack().to_owned(), guest.scope.as_ref());
    let (shared, keys) = match scope {
        Some(parts) => {
            let keys = parts.iter().map(|part| format!("{pack}\n{part}")).collect();
            (vec![pack], keys)
        }
        None => (Vec::new(), vec![pack]),
    };
    Some(Among {
        shared,
        keys,
        envelope: operation.envelope_id.clone(),
    })
}

fn is_plain_job(job: &Job) -> bool {
    match job {
        Job::Record { operation, task, .. } => task.is_none() && is_plain(operation),
        Job::Pulse(_) | Job::Backlog => true,
        Job::Call { .. }
        | Job::Admit { .. }
        | Job::Interrupt { .. }
        | Job::Maintain { .. }
        // Earlier jobs may be in any lane.
        | Job::Flush(_) => false,
    }
}

/// True for a row that is only inserted.
fn is_plain(operation: &Operation) -> bool {
    operation.effect != Effect::Run
        && operation.policy_rows.is_empty()
        && operation.limit_triggered.as_deref() != Some(CLOSING_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_more_than_be_there_want_the_turn_of_all() {
        let row = |change: fn(&mut Operation)| {
            let mut operation = Operation::for_tests(1, Some("env_1"), "2026-03-01T00:00:00.000Z");
            change(&mut operation);
            Turn::is_plain(&operation)
        };
        assert!(row(|_| ()));
        assert!(!row(|row| row.effect = Effect::Run));
        assert!(!row(
            |row| row.limit_triggered = Some("DURATION_EXCEEDED".to_owned())
        ));
        assert_eq!(Turn::of_job(&Job::Backlog), Turn::side_by_side());
        let (done, _) = tokio::sync::oneshot::channel();
        assert_eq!(Turn::of_job(&Job::Flush(done)), Turn::Alone);
    }

    fn among(shared: &[&str], keys: &[&str], envelope: Option<&str>) -> Among {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Among {
            shared: names(shared),
            keys: names(keys),
            envelope: envelope.map(str::to_owned),
        }
    }

    /// Takes those that come with the part `a` of a pack out of a line of parts, in which `*` is the whole pack and `!` waits for all that
    /// came before.
    fn taken(line: &str, room: usize, stays: &str) -> (String, String) {
        let part = |name: &str| match name {
            "!" => Turn::Alone,
            "*" => Turn::Among(among(&[], &["tasks"], None)),
            name => Turn::Among(among(&["tasks"], &[&format!("tasks {}", &name[..1])], None)),
        };
        let mut line: VecDeque<&str> = line.split(' ').collect();
        let a = among(&["tasks"], &["tasks a"], None);
        let taken = take_alike(&mut line, &a, room, |name| part(name), |name| *name != stays);
        (taken.join(" "), Vec::from(line).join(" "))
    }

    #[test]
    fn calls_that_come_along_overtake_nothing_that_they_meet() {
        let is = |line, room, stays, along: &str, left: &str| {
            assert_eq!(taken(line, room, stays), (along.to_owned(), left.to_owned()));
        };
        is("a1 b1 a2", 8, "", "a1 a2", "b1");
        is("a1 b1 a2", 1, "", "a1", "b1 a2");
        is("b1 * a1", 8, "", "", "b1 * a1");
        is("a1 ! a2", 8, "", "a1", "! a2");
        // One that may not come is waited for by those that are about the same.
        is("a1 a2 a3", 8, "a2", "a1", "a2 a3");
    }

    #[test]
    fn transactions_meet_in_a_pack_in_a_part_of_it_and_in_an_envelope() {
        let whole = among(&[], &["tasks"], None);
        let (one, other) = (
            among(&["tasks"], &["tasks a"], None),
            among(&["tasks"], &["tasks b"], None),
        );
        let new = among(&["tasks"], &[], None);
        assert!(meet(&whole, &whole) && meet(&whole, &one) && meet(&one, &whole) && meet(&whole, &new));
        assert!(meet(&one, &one) && !meet(&one, &other));
        assert!(!meet(&new, &new) && !meet(&one, &new));
        let within = |key: &str| among(&["tasks"], &[key], Some("env_1"));
        assert!(meet(&within("tasks a"), &within("tasks b")));
        assert!(!meet(&Among::default(), &Among::default()));
    }
}
