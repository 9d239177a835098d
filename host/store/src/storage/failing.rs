//! Failures that have the same fingerprint.

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Evidence;

impl Evidence<'_> {
    /// Number of operations with a failure fingerprint, up to a place in the ledger.
    pub fn times_seen(self, fingerprint: &str, until: i64) -> StoreResult<i64> {
        let sql = "SELECT count(*) FROM core_operations WHERE failure_fingerprint = ?1 AND seq <= ?2";
        self.0.engine.one(sql, sql![fingerprint, until], |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, operation};

    #[test]
    fn failures_are_counted_up_to_a_place() {
        let (_place, session) = fixture::ledger("");
        session.begin_write().unwrap();
        for (number, fingerprint) in ["aa", "bb", "aa", "cc", "aa", "bb"].into_iter().enumerate() {
            let mut row = operation(number, Some("env_k").filter(|_| number > 1), NOW);
            row.failure_fingerprint = Some(fingerprint.repeat(32));
            session.ledger().record(&row).unwrap();
        }
        session.commit().unwrap();
        assert_eq!(session.evidence().times_seen(&"aa".repeat(32), 4).unwrap(), 2);
        assert_eq!(session.evidence().times_seen(&"aa".repeat(32), 6).unwrap(), 3);
    }
}
