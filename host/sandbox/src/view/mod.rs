//! The capabilities that components import, one module each, as views on a call's state.

mod approvals;
mod artifacts;
pub mod budget;
mod clock_and_ids;
mod compare;
mod connections;
pub(crate) mod git;
mod judged_call;
pub mod ledger;
mod log;
mod memory;
pub mod prefetch;
mod process;
pub mod storage;
mod workspace;

use wasmtime::component::Linker;

use crate::CallState;

/// Links every capability this host offers. One that is not offered yet is not linked, so a
/// component that needs it is refused when it is loaded.
pub fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    storage::add_to_linker(linker)?;
    budget::add_to_linker(linker)?;
    ledger::add_to_linker(linker)?;
    approvals::add_to_linker(linker)?;
    memory::add_to_linker(linker)?;
    judged_call::add_to_linker(linker)?;
    artifacts::add_to_linker(linker)?;
    clock_and_ids::add_to_linker(linker)?;
    connections::add_to_linker(linker)?;
    log::add_to_linker(linker)?;
    workspace::add_to_linker(linker)?;
    process::add_to_linker(linker)
}
