//! Failures of the newest rows by fingerprint, and the newest calls that policies denied.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tollgate_store::storage::CountedRow;

/// Number of rows in which failures are remembered.
pub(super) const WINDOW_ROWS: i64 = 200_000;
/// Number of remembered denials.
const MAX_DENIALS: usize = 10;

/// Failures with the same fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailingSum {
    /// Their fingerprint.
    pub(crate) fingerprint: Arc<str>,
    /// Number of calls.
    pub(crate) seen: i64,
    /// Place of the first one.
    pub(crate) first_seq: i64,
    /// Place of the newest one.
    pub(crate) newest_seq: i64,
    /// Number of envelopes that they belong to.
    pub(crate) envelopes: i64,
}

/// Position of a failure, and its envelope.
type Place = (i64, Option<Arc<str>>);

#[derive(Default)]
pub(super) struct Failures {
    /// All failures of the window, oldest first.
    window: VecDeque<(i64, Arc<str>)>,
    groups: HashMap<Arc<str>, VecDeque<Place>>,
    denied: VecDeque<i64>,
}

impl Failures {
    /// Counts a row that is newer than all counted ones.
    pub(super) fn add(&mut self, row: &CountedRow) {
        if stopped(row) {
            self.denied.push_back(row.seq);
            if self.denied.len() > MAX_DENIALS {
                self.denied.pop_front();
            }
        }
        if let Some(fingerprint) = &row.failure_fingerprint {
            let fingerprint = self.known(fingerprint);
            self.window.push_back((row.seq, Arc::clone(&fingerprint)));
            let group = self.groups.entry(fingerprint).or_default();
            group.push_back((row.seq, row.envelope_id.as_deref().map(Arc::from)));
        }
        self.forget(row.seq - WINDOW_ROWS);
    }

    /// Counts a row that is older than all counted ones, and in the window.
    pub(super) fn add_before(&mut self, row: &CountedRow) {
        if stopped(row) && self.denied.len() < MAX_DENIALS {
            self.denied.push_front(row.seq);
        }
        if let Some(fingerprint) = &row.failure_fingerprint {
            let fingerprint = self.known(fingerprint);
            self.window.push_front((row.seq, Arc::clone(&fingerprint)));
            let group = self.groups.entry(fingerprint).or_default();
            group.push_front((row.seq, row.envelope_id.as_deref().map(Arc::from)));
        }
    }

    /// Shared copy of a fingerprint, if it is already known.
    fn known(&self, fingerprint: &str) -> Arc<str> {
        match self.groups.get_key_value(fingerprint) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(fingerprint),
        }
    }

    /// Drops rows up to a position.
    fn forget(&mut self, until: i64) {
        while self.window.front().is_some_and(|(seq, _)| *seq <= until) {
            let Some((_, fingerprint)) = self.window.pop_front() else {
                return;
            };
            let Some(group) = self.groups.get_mut(&fingerprint) else {
                continue;
            };
            group.pop_front();
            if group.is_empty() {
                self.groups.remove(&fingerprint);
            }
        }
    }

    /// Failures since a position, seen at least a number of times, newest first.
    pub(super) fn since(&self, from: i64, at_least: i64, most: usize) -> Vec<FailingSum> {
        let mut found: Vec<(i64, usize, &Arc<str>, &VecDeque<Place>)> = Vec::new();
        for (fingerprint, group) in &self.groups {
            let first = group.partition_point(|(seq, _)| *seq < from);
            let seen = i64::try_from(group.len() - first).unwrap_or(i64::MAX);
            if let Some((newest, _)) = group.back().filter(|_| seen >= at_least.max(1)) {
                found.push((*newest, first, fingerprint, group));
            }
        }
        found.sort_unstable_by_key(|(newest, ..)| -newest);
        found.truncate(most);
        let sums = found.into_iter().map(|(newest_seq, first, fingerprint, group)| {
            let places = group.range(first..);
            let envelopes: HashSet<&str> = places
                .clone()
                .filter_map(|(_, envelope)| envelope.as_deref())
                .collect();
            FailingSum {
                fingerprint: Arc::clone(fingerprint),
                seen: i64::try_from(places.len()).unwrap_or(i64::MAX),
                first_seq: group.get(first).map_or(newest_seq, |(seq, _)| *seq),
                newest_seq,
                envelopes: i64::try_from(envelopes.len()).unwrap_or(i64::MAX),
            }
        });
        sums.collect()
    }

    /// Positions of the newest calls that policies denied, newest first.
    pub(super) fn denied(&self) -> Vec<i64> {
        self.denied.iter().rev().copied().collect()
    }
}

/// Returns whether a policy denied the call.
fn stopped(row: &CountedRow) -> bool {
    row.success == Some(false) && row.verdicts.iter().any(|said| said.stopped())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64, fingerprint: &str, envelope: &str) -> CountedRow {
        CountedRow {
            seq,
            failure_fingerprint: Some(fingerprint.to_owned()),
            envelope_id: Some(envelope.to_owned()),
            ..CountedRow::default()
        }
    }

    #[test]
    fn failures_are_grouped_and_leave_the_window_when_they_are_old() {
        let mut failures = Failures::default();
        failures.add(&row(10, "aa", "e1"));
        failures.add(&row(11, "bb", "e1"));
        failures.add(&row(12, "aa", "e2"));
        failures.add_before(&row(9, "aa", "e2"));
        let told = |failures: &Failures, from, least| {
            let found = failures.since(from, least, 9).into_iter();
            let told = found.map(|one| {
                (
                    one.fingerprint.to_string(),
                    one.seen,
                    one.first_seq,
                    one.envelopes,
                )
            });
            told.collect::<Vec<_>>()
        };
        assert_eq!(
            told(&failures, 0, 1),
            [("aa".to_owned(), 3, 9, 2), ("bb".to_owned(), 1, 11, 1)]
        );
        assert_eq!(told(&failures, 10, 2), [("aa".to_owned(), 2, 10, 2)]);
        failures.add(&row(11 + WINDOW_ROWS, "cc", "e3"));
        assert_eq!(told(&failures, 0, 1)[1..], [("aa".to_owned(), 1, 12, 1)]);
    }
}
