//! What clients ask for: one load for each pack. A new pack is one more module and one more line in
//! [`ALL`].

mod envelopes;
mod task_store;

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::Value;

use crate::known::Known;
use crate::promise::Broken;

/// All loads, mixed evenly.
pub(crate) const ALL: &[&dyn Load] = &[
    &task_store::TaskStore,
    &task_store::TaskStore,
    &envelopes::Envelopes,
];

/// The load of one pack.
pub(crate) trait Load: Sync {
    /// The next call. It may be one that is refused, as long as the refusal is in the pack's contract.
    fn next(&self, random: &mut Rng, known: &Known) -> Request;
    /// Remembers the ids that a successful reply gives.
    fn learn(&self, request: &Request, reply: &Value, known: &mut Known);
    /// Whether a code means that something acknowledged is gone. Calls name only what was acknowledged.
    fn lost(&self, code: &str) -> bool;
    /// What must hold in the pack's own tables at any time.
    fn check(&self, db: &Connection) -> rusqlite::Result<Vec<Broken>>;
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) kind: Kind,
}

/// How a call is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its row may be lost with its host.
    Read,
    /// It may belong to an envelope, and counts there.
    Write,
    /// It is about envelopes and the ledger themselves.
    Control,
}

/// A number that must be 0.
fn none(db: &Connection, sql: &str) -> rusqlite::Result<bool> {
    db.query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(|count| count == 0)
}
