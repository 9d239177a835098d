//! Work on the ledger beside writing rows: signing its head, pruning it, mirroring it,
//! telling what happened in an envelope.

pub mod head;
pub mod heads;
pub mod mirror;
pub mod report;
pub mod retention;
pub mod trusted;

use serde::Deserialize;

pub use crate::key;

/// The `[ledger]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerSettings {
    /// Closed envelopes, and rows outside of any, are kept for so many days.
    pub retention_days: u32,
    /// Closed envelopes are kept while they are among so many newest ones.
    pub retention_envelopes: u32,
    /// True if the ledger is also written to files that a person can read.
    pub mirror: bool,
    /// True if reads that succeed leave rows.
    pub reads: bool,
}

impl Default for LedgerSettings {
    fn default() -> LedgerSettings {
        LedgerSettings {
            retention_days: 14,
            retention_envelopes: 500,
            mirror: false,
            reads: true,
        }
    }
}
