//! Errors of SQLite.

use std::error::Error;

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC, SQLITE_READONLY_DBMOVED};

use super::schema;
use crate::storage::error::{StoreError, StoreFailure};

/// Error of SQLite or of the library that calls it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(in crate::storage) struct Failure(pub(super) rusqlite::Error);

impl Failure {
    /// Kind of the failure.
    pub(in crate::storage) fn kind(&self) -> StoreFailure {
        kind(&self.0)
    }

    /// Kind of an error with a SQLite error among its causes.
    pub(in crate::storage) fn kind_of(err: &(dyn Error + 'static)) -> Option<StoreFailure> {
        err.downcast_ref().map(kind)
    }

    /// Object that blocks the host's statements, if the error names one.
    pub(in crate::storage) fn obstacle(&self) -> Option<&str> {
        schema::obstacle(&self.0)
    }
}

fn kind(err: &rusqlite::Error) -> StoreFailure {
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

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> StoreError {
        StoreError::of_sqlite(Failure(err))
    }
}
