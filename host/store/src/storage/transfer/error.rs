//! Reasons for which a database was not copied.

use thiserror::Error;

use crate::storage::engine::steps::MigrationError;
use crate::storage::error::StoreError;
use crate::storage::session::OpenError;
use crate::storage::verify::Broken;

/// Reason for which a database was not copied. The target is as empty as before.
#[derive(Debug, Error)]
pub enum TransferError {
    /// A database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A statement failed.
    #[error("the {side} database failed: {doing}")]
    Store {
        /// `source` or `target`.
        side: Side,
        /// Step that failed.
        doing: &'static str,
        /// Cause.
        #[source]
        source: StoreError,
    },
    /// The outcome of the last step is unknown.
    #[error(
        "the connection was lost while the copy was being committed; `tollgate storage status` shows whether the rows \
         exist; if they do not, copy again"
    )]
    Unknown(#[source] StoreError),
    /// The tables of the target could not be created.
    #[error("cannot create the tables of {owner} in the target database")]
    Tables {
        /// Component.
        owner: String,
        /// Cause.
        #[source]
        source: MigrationError,
    },
    /// Both databases are on servers.
    #[error("one of the two databases must be a file; copy to a file first")]
    NoFile,
    /// The chain of the ledger is broken.
    #[error(
        "the ledger of the {side} database failed verification: {broken}; nothing is copied; run `tollgate \
         ledger verify` for details"
    )]
    Broken {
        /// `source` or `target`.
        side: Side,
        /// First fault.
        broken: Broken,
    },
    /// The ledger of the target has another end.
    #[error("the ledger of the copy ends at {copied}, and that of the source at {wanted}; nothing was kept")]
    OtherHead {
        /// Head of the copy.
        copied: String,
        /// Head of the source.
        wanted: String,
    },
    /// The target is not empty.
    #[error(
        "the target database is in use: table {table} has rows; name an empty database, or another schema with ?schema=NAME"
    )]
    NotEmpty {
        /// First table with rows.
        table: String,
    },
    /// A component that is not loaded has tables in the source.
    #[error(
        "the source database has tables of {0}, which is not loaded, so its tables cannot be created in the target; \
         load it, or leave its rows behind with --leave-out {0}"
    )]
    Unloaded(String),
    /// A table is missing.
    #[error(
        "table {table} is missing from the {side} database, so nothing is copied; restore a backup, or leave its \
         component behind with --leave-out"
    )]
    NoTable {
        /// `source` or `target`.
        side: Side,
        /// Table.
        table: String,
    },
    /// A table has different columns on the two sides.
    #[error(
        "table {table} has different columns in the two databases: {here}, and {there}; use one version of Tollgate \
         for both"
    )]
    OtherColumns {
        /// Table.
        table: String,
        /// Columns on one side.
        here: String,
        /// Columns on the other.
        there: String,
    },
    /// A value does not fit into its column.
    #[error("table {table}, column {column}, row {row}: {why}; nothing was kept")]
    Misfit {
        /// Table.
        table: String,
        /// Column.
        column: String,
        /// `rowid` or `ctid` of the row.
        row: String,
        /// Reason.
        why: String,
    },
    /// Rows were refused.
    #[error(
        "table {table}: the target refused one of the rows {first} to {last}, in the order of the source; nothing was kept"
    )]
    Refused {
        /// Table.
        table: String,
        /// Number of the first row that was sent together, from 1.
        first: u64,
        /// Last row.
        last: u64,
        /// Cause.
        #[source]
        source: StoreError,
    },
    /// A table differs on the two sides after the copy.
    #[error(
        "table {table} differs after the copy: {here} rows with the SHA-256 {here_hash} became {there} with {there_hash}; \
         nothing was kept"
    )]
    Differs {
        /// Table.
        table: String,
        /// Rows of the source.
        here: u64,
        /// Their hash.
        here_hash: String,
        /// Rows of the target.
        there: u64,
        /// Their hash.
        there_hash: String,
    },
    /// Another program started to use a database.
    #[error("{0}; nothing was kept")]
    NotAlone(String),
}

/// Side of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Database that is read.
    Source,
    /// Database that is written.
    Target,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Target => "target",
        })
    }
}

impl Side {
    /// Names the step that a statement failed in.
    pub(super) fn failed(self, doing: &'static str) -> impl FnOnce(StoreError) -> TransferError {
        move |source| TransferError::Store {
            side: self,
            doing,
            source,
        }
    }
}
