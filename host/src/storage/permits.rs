//! What counts once, such as an approval: keys of policies that calls take in their own commits.

use super::session::Session;

/// Most expired keys that go for each new one.
const EXPIRED_BATCH: u32 = 16;

impl Session {
    /// True if nobody has a policy's key now.
    pub fn is_permit_free(&self, policy: &str, key: &str, now_ms: i64) -> rusqlite::Result<bool> {
        let mut statement = self.db.prepare_cached(
            "SELECT 1 FROM core_permits WHERE policy = ?1 AND key = ?2 AND expires_at > ?3",
        )?;
        statement.exists((policy, key, now_ms)).map(|taken| !taken)
    }

    /// Takes a policy's key for an operation. Whether nobody had it before. Wants a write transaction.
    pub fn take_permit(
        &self,
        (policy, key): (&str, &str),
        op_id: &str,
        (now_ms, until_ms): (i64, i64),
    ) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached(
                "DELETE FROM core_permits WHERE rowid IN (SELECT rowid FROM core_permits
                 WHERE policy = ?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3)",
            )?
            .execute((policy, now_ms, EXPIRED_BATCH))?;
        let taken = self
            .db
            .prepare_cached(
                "INSERT INTO core_permits (policy, key, op_id, expires_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (policy, key) DO UPDATE SET op_id = excluded.op_id, expires_at = excluded.expires_at
                 WHERE expires_at <= ?5",
            )?
            .execute((policy, key, op_id, until_ms, now_ms))?;
        Ok(taken == 1)
    }

    /// Gives back all that an operation took.
    pub fn give_permits_back(&self, op_id: &str) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("DELETE FROM core_permits WHERE op_id = ?1")?
            .execute([op_id])
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_is_one_operations_until_it_expires_or_comes_back() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let take = |policy: &str, op_id: &str, now_ms: i64| {
            session
                .take_permit((policy, "k"), op_id, (now_ms, now_ms + 100))
                .unwrap()
        };
        assert!(session.is_permit_free("one", "k", 0).unwrap());
        assert!(take("one", "op_1", 0));
        assert!(!session.is_permit_free("one", "k", 99).unwrap());
        assert!(!take("one", "op_2", 99));
        assert!(take("other", "op_2", 99));
        session.give_permits_back("op_1").unwrap();
        assert!(take("one", "op_3", 50));
        assert!(!take("one", "op_4", 149));
        assert!(session.is_permit_free("one", "k", 150).unwrap());
        assert!(take("one", "op_4", 150));
        session.give_permits_back("op_3").unwrap();
        assert!(!session.is_permit_free("one", "k", 200).unwrap());
        session.commit().unwrap();
    }
}
