//! Host bindings of the WIT package, made by wasmtime.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    reason = "generated"
)]

wasmtime::component::bindgen!({
    world: "tool-pack",
    path: "../../wit",
    imports: { default: trappable },
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    trappable_error_type: {
        "tollgate:host/storage.error" => tollgate_store::storage::SqlError,
        "tollgate:host/budget.error" => crate::bound_types::BudgetError,
        "tollgate:host/ledger.error" => crate::bound_types::LedgerError,
        "tollgate:host/approvals.error" => tollgate_sdk::ApprovalError,
        "tollgate:host/artifacts.error" => tollgate_sdk::ArtifactError,
        "tollgate:host/workspace.error" => tollgate_sdk::WorkspaceError,
        "tollgate:host/process.error" => tollgate_sdk::ProcessError,
    },
    with: {
        "tollgate:host/storage.transaction": crate::bound_types::Transaction,
        "tollgate:host/budget.reservation": crate::bound_types::Reservation,
    },
});

/// The world of policies. Its imports are those of the packs' world.
pub mod policy {
    wasmtime::component::bindgen!({
        world: "policy",
        path: "../../wit",
        imports: { default: trappable },
        additional_derives: [PartialEq],
        with: {
            "tollgate:host/component": crate::bindings::tollgate::host::component,
            "tollgate:host/storage": crate::bindings::tollgate::host::storage,
            "tollgate:host/budget": crate::bindings::tollgate::host::budget,
            "tollgate:host/ledger": crate::bindings::tollgate::host::ledger,
            "tollgate:host/approvals": crate::bindings::tollgate::host::approvals,
            "tollgate:host/workspace": crate::bindings::tollgate::host::workspace,
            "tollgate:host/clock-and-ids": crate::bindings::tollgate::host::clock_and_ids,
            "tollgate:host/log": crate::bindings::tollgate::host::log,
        },
    });
}
