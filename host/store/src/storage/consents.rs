//! Answers of clients that were used. Each counts once, on every host of the data directory.

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Approvals;

/// Time that a used answer is remembered, in milliseconds: much longer than any is good for, so that a clock that is
/// set back a little brings none to life again.
const REMEMBERED: i64 = 24 * 3_600 * 1_000;

impl Approvals<'_> {
    /// Uses an answer up. Whether it was still unused. Wants a write transaction.
    pub fn use_consent(self, id: &str, now_ms: i64) -> StoreResult<bool> {
        self.0.engine.run(
            "DELETE FROM core_consents WHERE used_at < ?1",
            sql![now_ms.saturating_sub(REMEMBERED)],
        )?;
        let sql = "INSERT INTO core_consents (id, used_at) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
        let inserted = self.0.engine.run(sql, sql![id, now_ms])?;
        Ok(inserted == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_used_once_and_forgotten_long_after() {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        assert!(session.approvals().use_consent("one", 1_000).unwrap());
        assert!(!session.approvals().use_consent("one", 2_000).unwrap());
        assert!(session.approvals().use_consent("two", 2_000).unwrap());
        // After its life no seal opens, so that nobody can bring it again.
        let later = 1_001 + REMEMBERED;
        assert!(!session.approvals().use_consent("two", later).unwrap());
        assert!(session.approvals().use_consent("one", later).unwrap());
        session.commit().unwrap();
    }
}
