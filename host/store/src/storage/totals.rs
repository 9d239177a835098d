//! Row counts of the database.

use super::engine::{Engine, Once};
use super::error::StoreResult;
use super::handles::Maintenance;

impl Maintenance<'_> {
    /// Number of rows in the ledger, and of envelopes that are open at a time.
    pub fn totals(self, boot_ms: i64) -> StoreResult<(u64, u64)> {
        let sql = "SELECT count(*) FROM core_operations";
        let rows: i64 = self.0.engine.one(sql, &[], |row| row.get(0))?;
        Ok((
            u64::try_from(rows).unwrap_or_default(),
            self.0.envelopes().count_open(boot_ms)?,
        ))
    }

    /// Size of the whole database on a server in bytes. `None` for a file, whose size its caller reads.
    pub fn bytes_on_server(self) -> StoreResult<Option<u64>> {
        if let Engine::Sqlite(_) = self.0.engine {
            return Ok(None);
        }
        let sql = "SELECT pg_database_size(current_database())";
        let bytes: i64 = self.0.engine.one(Once(sql), &[], |row| row.get(0))?;
        Ok(Some(u64::try_from(bytes).unwrap_or_default()))
    }
}
