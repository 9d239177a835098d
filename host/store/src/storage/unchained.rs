//! Rows of other tables that wait for the next row of the ledger, which adds them to the chain.

use super::engine::{AsSql, Engine, sql};
use super::error::{StoreResult, exactly_one};

/// Most rows of a table that one row of the ledger adds to the chain. Data of earlier versions has many that are not
/// in the chain.
pub(super) const MAX_OF_ROW: u32 = 64;

/// Stores the row of the ledger that added other rows to the chain. `update` sets `?2` in the row with the key `?1`.
pub(super) fn chain<K: AsSql>(engine: &Engine, update: &str, keys: &[K], seq: i64) -> StoreResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut chain = engine.prepare(update)?;
    for key in keys {
        chain.run(sql![key, seq]).and_then(exactly_one)?;
    }
    Ok(())
}
