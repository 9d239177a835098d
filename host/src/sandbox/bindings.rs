//! Host bindings of the WIT package, made by wasmtime.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    reason = "generated"
)]

wasmtime::component::bindgen!({
    world: "tool-pack",
    path: "../wit",
    imports: { default: trappable },
    trappable_error_type: {
        "tollgate:host/storage.error" => crate::storage::SqlError,
        "tollgate:host/budget.error" => crate::view::budget::BudgetError,
        "tollgate:host/ledger.error" => crate::view::ledger::LedgerError,
        "tollgate:host/artifacts.error" => tollgate_sdk::ArtifactError,
        "tollgate:host/workspace.error" => tollgate_sdk::WorkspaceError,
        "tollgate:host/process.error" => tollgate_sdk::ProcessError,
    },
    with: {
        "tollgate:host/storage.transaction": crate::view::storage::Transaction,
        "tollgate:host/budget.reservation": crate::view::budget::Reservation,
    },
});
