//! Work on the ledger other than appending rows: signing its head, pruning, mirroring, and reports on envelopes.

pub mod head;
pub mod heads;
pub mod mirror;
pub mod report;
pub mod retention;
pub mod trusted;

use serde::Deserialize;

pub use crate::key;

/// Configuration table `[ledger]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerSettings {
    /// Days for which closed envelopes, and rows outside envelopes, are kept.
    pub retention_days: u32,
    /// Number of newest closed envelopes that are kept.
    pub retention_envelopes: u32,
    /// True if the ledger is also written to readable files.
    pub mirror: bool,
    /// True if successful reads are recorded.
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
