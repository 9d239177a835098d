//! Events in rows of the ledger, as `verify` reads them.

use serde_json::Value;

use super::engine::{Column, Once, sql};
use super::error::StoreResult;
use super::handles::Ledger;

impl Ledger<'_> {
    /// Visits each event of a type with the number of its row, in row order. Events that are not valid JSON are
    /// skipped, because the chain shows that they were changed.
    pub(super) fn each_event(self, kind: &str, mut visit: impl FnMut(i64, &Value)) -> StoreResult<()> {
        let sql = "SELECT seq, events FROM core_operations
            WHERE events IS NOT NULL AND instr(events, ?1) > 0 ORDER BY seq";
        self.0
            .engine
            .each(Once(sql), sql![format!("\"{kind}\"")], |row| {
                let seq = row.get(0)?;
                let events: Vec<Value> = match row.column(1)? {
                    Column::Text(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
                    _ => Vec::new(),
                };
                for event in events.iter().filter(|event| event["type"] == kind) {
                    visit(seq, event);
                }
                Ok(())
            })?;
        Ok(())
    }
}
