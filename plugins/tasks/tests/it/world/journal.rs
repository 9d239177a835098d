//! The journal as the model keeps it: which operation is undone and redone, and what becomes of the others.

use std::collections::BTreeSet;

use super::rules::{Raw, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Done,
    Undone(u64),
    Dropped,
    Final,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) seq: i64,
    pub(super) batch: Option<i64>,
    pub(super) actor: &'static str,
    pub(super) roots: BTreeSet<String>,
    pub(super) before: Raw,
    pub(super) after: Raw,
    pub(super) state: State,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) entries: Vec<Entry>,
    tick: u64,
}

/// Choice of an undo or redo.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) back: bool,
    pub(super) root: Option<String>,
    pub(super) actor: Option<&'static str>,
}

/// Outcome of an undo or redo as the model has it.
#[derive(Debug)]
pub(super) enum Outcome {
    Nothing,
    Refused,
    Becomes(Raw, Vec<i64>),
}

impl Journal {
    /// Adds an operation, which ends the redo of what its plans and tasks undid.
    pub(super) fn add(&mut self, entry: Entry) {
        let mut open: Vec<(String, i64)> = entry.roots.iter().map(|root| (root.clone(), 0)).collect();
        while let Some((root, after)) = open.pop() {
            for other in &mut self.entries {
                let undone = matches!(other.state, State::Undone(_));
                if undone && other.seq > after && other.roots.contains(&root) {
                    other.state = State::Dropped;
                    open.extend(other.roots.iter().map(|root| (root.clone(), other.seq)));
                }
            }
        }
        self.entries.push(entry);
    }

    /// Ends the undo of everything that a deleted plan or task was part of.
    pub(super) fn seal(&mut self, root: &str) {
        for entry in &mut self.entries {
            if entry.state == State::Done && entry.roots.contains(root) {
                entry.state = State::Final;
            }
        }
    }

    pub(super) fn revert(&self, choice: &Choice, present: &Raw) -> Outcome {
        let chosen = self
            .entries
            .iter()
            .filter(|entry| {
                let in_state = match entry.state {
                    State::Done => choice.back,
                    State::Undone(_) => !choice.back,
                    State::Dropped | State::Final => false,
                };
                in_state
                    && choice.root.as_ref().is_none_or(|root| entry.roots.contains(root))
                    && choice.actor.is_none_or(|actor| entry.actor == actor)
            })
            .max_by_key(|entry| match entry.state {
                State::Undone(tick) => (tick, -entry.seq),
                _ => (0, entry.seq),
            });
        let Some(chosen) = chosen else {
            return Outcome::Nothing;
        };
        let unit: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| {
                let same_state = matches!(entry.state, State::Done) == choice.back
                    && matches!(entry.state, State::Done | State::Undone(_));
                let same_batch = entry.batch.is_some() && entry.batch == chosen.batch;
                entry.seq == chosen.seq || (same_batch && same_state)
            })
            .collect();
        if choice.actor.is_none() && self.is_out_of_order(&unit, choice.back) {
            return Outcome::Refused;
        }
        self.restored(&unit, choice.back, present)
    }

    fn is_out_of_order(&self, unit: &[&Entry], back: bool) -> bool {
        let first = unit.iter().map(|entry| entry.seq).min().unwrap();
        let last = unit.iter().map(|entry| entry.seq).max().unwrap();
        self.entries.iter().any(|other| {
            let in_the_way = match other.state {
                State::Done => back && other.seq > last,
                State::Undone(_) => !back && other.seq < first,
                State::Dropped | State::Final => false,
            };
            in_the_way && unit.iter().any(|entry| !entry.roots.is_disjoint(&other.roots))
        })
    }

    fn restored(&self, unit: &[&Entry], back: bool, present: &Raw) -> Outcome {
        let mut raw = present.clone();
        let mut order: Vec<&&Entry> = unit.iter().collect();
        if back {
            order.reverse();
        }
        for entry in order {
            let (from, to) = match back {
                true => (&entry.after, &entry.before),
                false => (&entry.before, &entry.after),
            };
            let keys: BTreeSet<_> = from.keys().chain(to.keys()).collect();
            for key in keys.into_iter().filter(|key| from.get(*key) != to.get(*key)) {
                if raw.get(key) != from.get(key) {
                    return Outcome::Refused;
                }
                match to.get(key) {
                    Some(body) => raw.insert(key.clone(), body.clone()),
                    None => raw.remove(key),
                };
            }
        }
        let world = World::read(&raw);
        if !world.faults().is_empty() || world.begins_too_early(&World::read(present)) {
            return Outcome::Refused;
        }
        Outcome::Becomes(raw, unit.iter().map(|entry| entry.seq).collect())
    }

    pub(super) fn set(&mut self, seqs: &[i64], back: bool) {
        self.tick += 1;
        for entry in self.entries.iter_mut().filter(|entry| seqs.contains(&entry.seq)) {
            entry.state = match back {
                true => State::Undone(self.tick),
                false => State::Done,
            };
        }
    }
}
