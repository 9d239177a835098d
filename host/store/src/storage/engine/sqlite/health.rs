//! Health of the database file.

use crate::storage::engine::Engine;
use crate::storage::error::StoreResult;
use crate::storage::handles::Maintenance;

/// Most faults that are reported.
const MAX_FAULTS: u32 = 20;

impl Maintenance<'_> {
    /// Faults that SQLite finds in the file: pages, indexes, rows that violate their tables' rules. Empty for a
    /// server, which has its own checksums.
    pub fn faults(self) -> StoreResult<Vec<String>> {
        let Engine::Sqlite(sqlite) = &self.0.engine else {
            return Ok(Vec::new());
        };
        let mut found: Vec<String> = sqlite
            .db
            .prepare(&format!("PRAGMA quick_check({MAX_FAULTS})"))?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        found.retain(|line| line != "ok");
        Ok(found)
    }

    /// Faults of one table and its indexes, which must contain exactly its rows.
    pub(in crate::storage) fn faults_of(self, table: &str) -> StoreResult<Vec<String>> {
        let Engine::Sqlite(sqlite) = &self.0.engine else {
            return Ok(Vec::new());
        };
        let mut found: Vec<String> = sqlite
            .db
            .prepare(&format!("PRAGMA integrity_check({table})"))?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        found.retain(|line| line != "ok");
        found.truncate(MAX_FAULTS as usize);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use crate::storage::Database;

    #[test]
    fn a_damaged_page_is_a_fault() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tollgate.db");
        let database = Database::open(&path).unwrap();
        let session = database.write_session().unwrap();
        assert!(session.maintenance().faults().unwrap().is_empty());
        session
            .sqlite()
            .unwrap()
            .db
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let pages: u32 = session
            .sqlite()
            .unwrap()
            .db
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        drop(session);
        // The pages of indexes and tables that the schema names; the schema itself stays readable.
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for page in pages / 2..pages {
            file.write_all_at(&[0xa5; 4096], u64::from(page) * 4096).unwrap();
        }
        let faults = database.read_session().unwrap().maintenance().faults();
        assert!(faults.is_err() || faults.is_ok_and(|faults| !faults.is_empty()));
    }
}
