//! Errors of the database, independent of the engine.

use std::error::Error;
use std::fmt;

use thiserror::Error as ThisError;

use super::engine::postgres::{self, ServerError};
use super::engine::sqlite::Failure;

/// Result of a statement by the host.
pub type StoreResult<T> = Result<T, StoreError>;

/// Error of a statement by the host.
pub struct StoreError(Cause);

/// Cause of an error.
#[derive(Debug, ThisError)]
enum Cause {
    #[error(transparent)]
    Sqlite(Failure),
    #[error(transparent)]
    Postgres(postgres::Failure),
    /// The server cannot be used.
    #[error(transparent)]
    Server(ServerError),
    #[error("only available with SQLite")]
    OfSqliteAlone,
    #[error("only available with PostgreSQL")]
    OfServersAlone,
    #[error("the session was lost")]
    NoSession,
    #[error("no such row")]
    NoRow,
    /// A statement changed an unexpected number of rows.
    #[error("the statement changed {0} rows")]
    Changed(usize),
    #[error("column {index} holds {found}, an unexpected type")]
    Column { index: usize, found: &'static str },
    #[error("cannot store the value")]
    Json(#[source] serde_json::Error),
}

/// Kinds of errors that the host handles differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// The disk is full.
    Full,
    /// Another process holds the database.
    Busy,
    /// A flush failed, so the state of the disk is unknown.
    Flush,
    /// The file is damaged, or is not a database.
    Damaged,
    /// The file or its directory cannot be written.
    NotWritable,
    /// The file was moved, removed or replaced since it was opened.
    Moved,
    /// Another transaction conflicted, and the engine rolled back this one. Running it again may succeed.
    Conflict,
    /// The deadline passed, or the caller cancelled.
    Interrupted,
    /// The connection to the server was lost, or could not be made. Nothing of the open transaction was stored.
    Lost,
    /// The connection was lost during a commit, whose outcome is unknown.
    Unknown,
    /// The end of the ledger differs from what this host knows.
    Fenced,
    /// Any other failure.
    Other,
}

impl StoreError {
    /// Error because the session was lost.
    pub fn no_session() -> StoreError {
        StoreError(Cause::NoSession)
    }

    pub(super) fn no_row() -> StoreError {
        StoreError(Cause::NoRow)
    }

    /// Error because a statement changed this many rows, which is too many or too few.
    pub(super) fn changed(rows: usize) -> StoreError {
        StoreError(Cause::Changed(rows))
    }

    /// Error because a column holds another type.
    pub(super) fn of_column(index: usize, found: &'static str) -> StoreError {
        StoreError(Cause::Column { index, found })
    }

    /// Error because a value could not be written as JSON.
    pub(super) fn of_json(err: serde_json::Error) -> StoreError {
        StoreError(Cause::Json(err))
    }

    pub(super) fn of_sqlite(failure: Failure) -> StoreError {
        StoreError(Cause::Sqlite(failure))
    }

    pub(super) fn of_postgres(failure: postgres::Failure) -> StoreError {
        StoreError(Cause::Postgres(failure))
    }

    /// Error because only SQLite supports the operation.
    pub(super) fn of_sqlite_alone() -> StoreError {
        StoreError(Cause::OfSqliteAlone)
    }

    /// Error because only a server supports the operation.
    pub(super) fn of_servers_alone() -> StoreError {
        StoreError(Cause::OfServersAlone)
    }

    /// Kind of the failure.
    pub fn failure(&self) -> StoreFailure {
        match &self.0 {
            Cause::Sqlite(failure) => failure.kind(),
            Cause::Postgres(failure) => failure.kind(),
            Cause::Server(err) => err.kind(),
            _ => StoreFailure::Other,
        }
    }

    /// Foreign object that blocks the host's statements, if it caused the error.
    pub fn obstacle(&self) -> Option<&str> {
        self.sqlite().and_then(Failure::obstacle)
    }

    /// Kind of the first database error among the causes of an error.
    pub fn find<'a>(err: &'a (dyn Error + 'static)) -> Option<StoreFailure> {
        let mut causes = std::iter::successors(Some(err), |err: &&'a (dyn Error + 'static)| (*err).source());
        causes.find_map(|cause| match cause.downcast_ref::<StoreError>() {
            Some(err) => Some(err.failure()),
            None => Failure::kind_of(cause),
        })
    }

    /// True if the statement changed an unexpected number of rows.
    pub(super) fn is_miscount(&self) -> bool {
        matches!(self.0, Cause::Changed(_))
    }

    /// Underlying SQLite error, if it is one.
    pub(super) fn sqlite(&self) -> Option<&Failure> {
        match &self.0 {
            Cause::Sqlite(failure) => Some(failure),
            _ => None,
        }
    }

    /// Converts into the underlying SQLite error, if it is one.
    pub(super) fn into_sqlite(self) -> Result<Failure, StoreError> {
        match self.0 {
            Cause::Sqlite(failure) => Ok(failure),
            other => Err(StoreError(other)),
        }
    }
}

impl From<ServerError> for StoreError {
    fn from(err: ServerError) -> StoreError {
        StoreError(Cause::Server(err))
    }
}

/// Checks that a statement changed exactly one row.
pub(super) fn exactly_one(changed: usize) -> StoreResult<()> {
    match changed {
        1 => Ok(()),
        other => Err(StoreError::changed(other)),
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
