//! Times of open envelopes after a copy. A file counts from the boot of the machine, and a server by its own clock.
//! The row of an opening states the time, so a new row of the ledger states the converted one.

use serde_json::{Value, json};
use tollgate_core::clock::Clock;
use tollgate_core::effect::Effect;
use tollgate_core::hash;
use tollgate_sdk::Timestamp;

use crate::storage::endings::{HOST_PACK, MOVED};
use crate::storage::engine::{Once, sql};
use crate::storage::error::StoreResult;
use crate::storage::ledger::{OpType, Operation};
use crate::storage::session::Session;

/// Name of the command in the ledger.
const TOOL: &str = "storage_copy";
/// Most envelopes in one row.
const ENVELOPES_PER_ROW: usize = 1_000;

/// Shifts the times of open envelopes, and of scans of work trees, by the difference between the clocks. Returns the
/// number of rows about it.
pub(super) fn shift(target: &Session, clock: &dyn Clock, host: &str, ahead_ms: i64) -> StoreResult<u64> {
    for table in ["core_work_tree_states", "core_work_trees"] {
        let sql = format!("UPDATE {table} SET looked_boot_ms = looked_boot_ms + ?1");
        target.engine.run(Once(&sql), sql![ahead_ms])?;
    }
    let sql = "SELECT id, opened_boot_ms FROM core_envelopes WHERE state = 'OPEN' ORDER BY id";
    let open: Vec<(String, i64)> = target
        .engine
        .all(Once(sql), &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sql = "UPDATE core_envelopes SET opened_boot_ms = opened_boot_ms + ?1 WHERE state = 'OPEN'";
    target.engine.run(Once(sql), sql![ahead_ms])?;
    let now = Timestamp::from_ms(clock.now_ms()).to_string();
    let mut rows = 0;
    for some in open.chunks(ENVELOPES_PER_ROW) {
        let events = some.iter().map(|(id, opened)| {
            json!({"type": MOVED, "envelope_id": id, "opened_boot_ms": opened.saturating_add(ahead_ms)})
        });
        target.ledger().record(&Operation {
            op_id: clock.new_id("op"),
            timestamp: now.clone(),
            op_type: OpType::Control,
            success: Some(true),
            pack: HOST_PACK.to_owned(),
            tool: TOOL.to_owned(),
            effect: Effect::Write,
            connection: TOOL.to_owned(),
            host_id: host.to_owned(),
            args_hash: hash::sha256_hex(b"{}"),
            events: Some(events.collect::<Value>().to_string()),
            ..Operation::default()
        })?;
        rows += 1;
    }
    Ok(rows)
}
