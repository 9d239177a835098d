//! Used answers of clients. Each answer counts once, across all hosts of the data directory.

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Approvals;

/// Time for which a used answer is remembered, in milliseconds. Much longer than any answer is valid, so that none
/// becomes usable again if the clock is set back a little.
const REMEMBERED_MS: i64 = 24 * 3_600 * 1_000;

impl Approvals<'_> {
    /// Uses an answer up. Returns whether it was still unused. Requires a write transaction.
    pub fn use_consent(self, id: &str, now_ms: i64) -> StoreResult<bool> {
        self.0.engine.run(
            "DELETE FROM core_consents WHERE used_at < ?1",
            sql![now_ms.saturating_sub(REMEMBERED_MS)],
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
        // After this time the seal has expired, so the answer cannot be used again.
        let later = 1_001 + REMEMBERED_MS;
        assert!(!session.approvals().use_consent("two", later).unwrap());
        assert!(session.approvals().use_consent("one", later).unwrap());
        session.commit().unwrap();
    }
}
