//! Types that the bindings refer to: resources of guests, and errors.

use thiserror::Error;
use tollgate_core::budget::Budget;
use tollgate_store::storage::StoreError;
use wasmtime::component::ResourceTableError;

use crate::annotations::BadEvent;
use crate::permit::BadPermit;

/// Transaction of a `run` tool. Its state is in the call's state.
pub struct Transaction(pub(crate) ());

/// Reserved units of a call.
pub struct Reservation {
    pub(crate) name: String,
    pub(crate) units: i64,
    /// Id of its row, in a `run` call.
    pub(crate) id: Option<String>,
}

/// Reason for which a reservation failed.
#[derive(Debug, Error)]
pub enum BudgetError {
    /// The call is not in an open envelope.
    #[error("the call does not belong to an open envelope")]
    NoEnvelope,
    /// The budget is not configured or not granted.
    #[error("there is no budget `{0}`")]
    Unknown(String),
    /// Too few units are left.
    #[error("budget `{0}` is exhausted")]
    Exhausted(String, Budget),
    /// A `read` tool cannot reserve.
    #[error("a `read` tool cannot reserve budget units")]
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

/// Reason for which a request to the ledger failed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// Queries are not granted, or a policy tried to append.
    #[error("the request was not granted")]
    Denied,
    /// The event is not recorded.
    #[error(transparent)]
    Event(#[from] BadEvent),
    /// A key is invalid.
    #[error(transparent)]
    Permit(#[from] BadPermit),
    /// The host's own storage failed.
    #[error("storage failed")]
    Storage(#[from] StoreError),
}
