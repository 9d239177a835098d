//! Failures of the database, whatever its engine.

use std::error::Error;
use std::fmt;

use thiserror::Error as ThisError;

use super::engine::postgres::{self, ServerError};
use super::engine::sqlite::Failure;

/// Result of a statement of the host.
pub type StoreResult<T> = Result<T, StoreError>;

/// A statement of the host that failed.
pub struct StoreError(Cause);

/// Cause of a failure.
#[derive(Debug, ThisError)]
enum Cause {
    #[error(transparent)]
    Sqlite(Failure),
    #[error(transparent)]
    Postgres(postgres::Failure),
    /// The server is not used.
    #[error(transparent)]
    Server(ServerError),
    #[error("only a database in a file of SQLite has this")]
    OfSqliteAlone,
    #[error("only a database on a PostgreSQL server has this")]
    OfServersAlone,
    #[error("the session is lost")]
    NoSession,
    #[error("there is no such row")]
    NoRow,
    /// A statement that must change a number of rows changed another.
    #[error("the statement changed {0} rows")]
    Changed(usize),
    #[error("column {index} holds {found}, which is not what it should hold")]
    Column { index: usize, found: &'static str },
    #[error("the value cannot be stored")]
    Json(#[source] serde_json::Error),
}

/// Kinds of failures that the host treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// The disk is full.
    Full,
    /// Another process holds the database.
    Busy,
    /// A flush failed, so nobody knows what the disk has.
    Flush,
    /// The file is damaged, or is not a database.
    Damaged,
    /// The file or its directory cannot be written.
    NotWritable,
    /// The file was moved, removed or replaced since it was opened.
    Moved,
    /// Another transaction was in the way, and the engine undid this one. Running it again may work.
    Conflict,
    /// The deadline passed, or the caller gave up.
    Interrupted,
    /// The connection to the server was lost, or none could be made. Nothing of the open transaction was kept.
    Lost,
    /// The connection was lost while the transaction was committed: nobody knows if it was.
    Unknown,
    /// The ledger has another end than this host knows.
    Fenced,
    /// Any other failure.
    Other,
}

impl StoreError {
    /// The failure of a session that is lost.
    pub fn no_session() -> StoreError {
        StoreError(Cause::NoSession)
    }

    pub(super) fn no_row() -> StoreError {
        StoreError(Cause::NoRow)
    }

    /// The failure of a statement that changed so many rows, which is too many or too few.
    pub(super) fn changed(rows: usize) -> StoreError {
        StoreError(Cause::Changed(rows))
    }

    /// The failure to read a column that holds something else.
    pub(super) fn of_column(index: usize, found: &'static str) -> StoreError {
        StoreError(Cause::Column { index, found })
    }

    /// The failure to write a value as JSON.
    pub(super) fn of_json(err: serde_json::Error) -> StoreError {
        StoreError(Cause::Json(err))
    }

    pub(super) fn of_sqlite(failure: Failure) -> StoreError {
        StoreError(Cause::Sqlite(failure))
    }

    pub(super) fn of_postgres(failure: postgres::Failure) -> StoreError {
        StoreError(Cause::Postgres(failure))
    }

    /// The failure of what SQLite alone has.
    pub(super) fn of_sqlite_alone() -> StoreError {
        StoreError(Cause::OfSqliteAlone)
    }

    /// The failure of what a server alone has.
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

    /// The object of somebody else that is in the way of the host's statements, if that is why they fail.
    pub fn obstacle(&self) -> Option<&str> {
        self.sqlite().and_then(Failure::obstacle)
    }

    /// The first failure of a database among the causes of an error.
    pub fn find<'a>(err: &'a (dyn Error + 'static)) -> Option<StoreFailure> {
        let mut causes = std::iter::successors(Some(err), |err: &&'a (dyn Error + 'static)| (*err).source());
        causes.find_map(|cause| match cause.downcast_ref::<StoreError>() {
            Some(err) => Some(err.failure()),
            None => Failure::kind_of(cause),
        })
    }

    /// True if the statement changed another number of rows than it must.
    pub(super) fn is_miscount(&self) -> bool {
        matches!(self.0, Cause::Changed(_))
    }

    /// The failure of SQLite, if it is one.
    pub(super) fn sqlite(&self) -> Option<&Failure> {
        match &self.0 {
            Cause::Sqlite(failure) => Some(failure),
            _ => None,
        }
    }

    /// The same by value.
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

/// A statement that must change one row has changed one.
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
