//! The data directory: the database, the ledger in it, artifacts and backups. No other crate of the host depends on
//! SQLite.

pub mod artifact;
pub mod artifacts;
pub mod backup;
pub mod consoles;
pub mod data_dir;
pub mod exclusive;
pub mod key;
pub mod ledger;
pub mod liveness;
pub mod pulse;
pub mod storage;
