//! Numbers of rows in the database.

use super::error::StoreResult;
use super::handles::Maintenance;

impl Maintenance<'_> {
    /// Rows of the ledger, and envelopes that are open at a time.
    pub fn totals(self, boot_ms: i64) -> StoreResult<(u64, u64)> {
        let sql = "SELECT count(*) FROM core_operations";
        let rows: i64 = self.0.engine.one(sql, &[], |row| row.get(0))?;
        Ok((
            u64::try_from(rows).unwrap_or_default(),
            self.0.envelopes().count_open(boot_ms)?,
        ))
    }
}
