//! Failures that have the same fingerprint: how often, since when, and in which envelopes.

use rusqlite::params;

use super::error::StoreResult;
use super::operations::{OperationFilter, StoredOperation};
use super::session::Session;

/// Operations that failed in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Failing {
    /// Their fingerprint.
    pub fingerprint: String,
    /// Number of operations.
    pub seen: i64,
    /// Place of the first one in the ledger.
    pub first_seq: i64,
    /// Number of envelopes that they belong to.
    pub envelopes: i64,
    /// The newest one.
    pub newest: StoredOperation,
}

impl Session {
    /// Failures from a place in the ledger on, of those seen at least so often the newest first.
    pub fn failing(&self, from: i64, at_least: i64, limit: u32) -> StoreResult<Vec<Failing>> {
        let found: Vec<(String, i64, i64, i64)> = self
            .db
            .prepare_cached(
                "SELECT failure_fingerprint, count(*), min(seq), count(DISTINCT envelope_id) FROM core_operations
                 WHERE failure_fingerprint IS NOT NULL AND seq >= ?1 GROUP BY failure_fingerprint
                 HAVING count(*) >= ?2 ORDER BY max(seq) DESC LIMIT ?3",
            )?
            .query_map(params![from, at_least, limit], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        let mut failing = Vec::new();
        for (fingerprint, seen, first_seq, envelopes) in found {
            let filter = OperationFilter {
                failure_fingerprint: Some(fingerprint.clone()),
                ..OperationFilter::default()
            };
            if let Some(newest) = self.operations(&filter, 1)?.pop() {
                failing.push(Failing {
                    fingerprint,
                    seen,
                    first_seq,
                    envelopes,
                    newest,
                });
            }
        }
        Ok(failing)
    }

    /// Number of operations with a fingerprint up to a place in the ledger.
    pub fn times_seen(&self, fingerprint: &str, until: i64) -> StoreResult<i64> {
        Ok(self
            .db
            .prepare_cached(
                "SELECT count(*) FROM core_operations WHERE failure_fingerprint = ?1 AND seq <= ?2",
            )?
            .query_row(params![fingerprint, until], |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, operation};

    #[test]
    fn failures_are_counted_by_fingerprint_and_the_newest_comes_first() {
        let (_place, session) = fixture::ledger("");
        session.begin_write().unwrap();
        for (number, fingerprint) in ["aa", "bb", "aa", "cc", "aa", "bb"].into_iter().enumerate() {
            let mut row = operation(number, Some("env_k").filter(|_| number > 1), NOW);
            row.failure_fingerprint = Some(fingerprint.repeat(32));
            session.record(&row).unwrap();
        }
        session.commit().unwrap();
        let told: Vec<_> = session
            .failing(1, 2, 9)
            .unwrap()
            .into_iter()
            .map(|failing| {
                (
                    failing.fingerprint[..2].to_owned(),
                    failing.seen,
                    failing.first_seq,
                    failing.newest.seq,
                )
            })
            .collect();
        assert_eq!(told, [("bb".to_owned(), 2, 2, 6), ("aa".to_owned(), 3, 1, 5)]);
        assert_eq!(session.failing(6, 1, 9).unwrap().len(), 1);
        assert_eq!(session.times_seen(&"aa".repeat(32), 4).unwrap(), 2);
    }
}
