//! Capabilities that components import, one module each. Each is linked as a view on any state that can provide one.

pub(crate) mod approvals;
pub(crate) mod artifacts;
pub(crate) mod budget;
pub(crate) mod clock_and_ids;
mod compare;
pub(crate) mod connections;
pub(crate) mod judged_call;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod memory;
pub mod prefetch;
pub(crate) mod process;
pub(crate) mod storage;
pub(crate) mod workspace;
