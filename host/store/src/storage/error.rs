//! Failures of the database, whatever its engine.

use std::error::Error;
use std::fmt;

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC, SQLITE_READONLY_DBMOVED};

use super::schema;

/// Result of a statement of the host.
pub type StoreResult<T> = Result<T, StoreError>;

/// A statement of the host that failed.
pub struct StoreError(rusqlite::Error);

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
    /// Any other failure.
    Other,
}

impl StoreError {
    /// The failure of a session that is lost.
    pub fn no_session() -> StoreError {
        StoreError(rusqlite::Error::InvalidQuery)
    }

    /// Kind of the failure.
    pub fn failure(&self) -> StoreFailure {
        StoreError::failure_of(&self.0)
    }

    fn failure_of(err: &rusqlite::Error) -> StoreFailure {
        let code = err.sqlite_error().map(|failure| failure.extended_code);
        if code.is_some_and(|code| [SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC].contains(&code)) {
            return StoreFailure::Flush;
        }
        if code == Some(SQLITE_READONLY_DBMOVED) {
            return StoreFailure::Moved;
        }
        match err.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreFailure::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreFailure::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreFailure::Damaged,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                StoreFailure::NotWritable
            }
            _ => StoreFailure::Other,
        }
    }

    /// The object of somebody else that is in the way of the host's statements, if that is why they fail.
    pub fn obstacle(&self) -> Option<&str> {
        schema::obstacle(&self.0)
    }

    /// The first failure of a database among the causes of an error.
    pub fn find<'a>(err: &'a (dyn Error + 'static)) -> Option<StoreFailure> {
        let mut causes = std::iter::successors(Some(err), |err: &&'a (dyn Error + 'static)| (*err).source());
        causes.find_map(|cause| {
            if let Some(err) = cause.downcast_ref::<StoreError>() {
                return Some(err.failure());
            }
            let err = cause.downcast_ref::<rusqlite::Error>()?;
            Some(StoreError::failure_of(err))
        })
    }

    pub(super) fn sqlite(&self) -> &rusqlite::Error {
        &self.0
    }

    pub(super) fn into_sqlite(self) -> rusqlite::Error {
        self.0
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

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> StoreError {
        StoreError(err)
    }
}
