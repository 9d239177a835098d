//! Work that one host at a time does: by a lock of the data directory, or of the server that the database is on.

use cap_std::fs::File;
use thiserror::Error;

use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{Database, Session, StoreError};

/// A lock that lasts until it is dropped. One of a server ends with its connection, too.
pub struct Exclusive {
    _held: Held,
}

#[allow(
    dead_code,
    reason = "a lock is held by what has it, and nothing is done with that"
)]
enum Held {
    File(File),
    Session(Box<Session>),
}

/// Reason why nobody knows if another host has a lock.
#[derive(Debug, Error)]
pub enum ExclusiveError {
    /// The file of the lock cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The server did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a lock, unless another host of the database has it. Hosts of a server may have data directories of their own, so
/// that its locks alone keep them apart.
pub fn try_lock(
    data: &DataDir,
    database: &Database,
    name: &str,
) -> Result<Option<Exclusive>, ExclusiveError> {
    let held = match database.is_on_server() {
        true => database
            .try_lock(name)?
            .map(|session| Held::Session(Box::new(session))),
        false => data.try_lock(name)?.map(Held::File),
    };
    Ok(held.map(|held| Exclusive { _held: held }))
}
