//! Types that the bindings name: resources of guests, and reasons of refusals.

use thiserror::Error;
use tollgate_core::budget::Budget;
use tollgate_store::storage::StoreError;
use wasmtime::component::ResourceTableError;

use crate::annotations::BadEvent;
use crate::permit::BadPermit;

/// A transaction of a `run` tool. What it stands for is in the call's state.
pub struct Transaction(pub(crate) ());

/// Units that a call holds.
pub struct Reservation {
    pub(crate) name: String,
    pub(crate) units: i64,
    /// Its row, in a `run` call.
    pub(crate) id: Option<String>,
}

/// Reason why a reservation failed.
#[derive(Debug, Error)]
pub enum BudgetError {
    /// There is no open envelope around the call.
    #[error("the call belongs to no open envelope")]
    NoEnvelope,
    /// Not configured or not granted.
    #[error("there is no budget `{0}`")]
    Unknown(String),
    /// Not enough is left.
    #[error("budget `{0}` is exhausted")]
    Exhausted(String, Budget),
    /// A `read` tool cannot reserve.
    #[error("a `read` tool cannot reserve")]
    ReadOnly,
    /// A `run` tool's storage transaction is open.
    #[error("a transaction is open")]
    TransactionOpen,
    /// The host's own storage failed.
    #[error("storage failed")]
    Storage(#[from] StoreError),
    /// The call holds too many resources.
    #[error("too many resources")]
    Table(#[from] ResourceTableError),
}

/// Reason why a request to the ledger failed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// Queries were not granted, or a policy tried to append.
    #[error("that was not granted")]
    Denied,
    /// Its event is not recorded.
    #[error(transparent)]
    Event(#[from] BadEvent),
    /// A key that is none.
    #[error(transparent)]
    Permit(#[from] BadPermit),
    /// The host's own storage failed.
    #[error("storage failed")]
    Storage(#[from] StoreError),
}
