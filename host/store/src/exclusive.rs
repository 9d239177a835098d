//! Work that only one host does at a time, under a lock in the data directory or on the database server.

use cap_std::fs::File;
use thiserror::Error;

use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{Database, Session, StoreError};

/// A lock that is held until it is dropped. A lock on a server also ends with its connection.
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

/// Reason for which it is unknown whether another host holds a lock.
#[derive(Debug, Error)]
pub enum ExclusiveError {
    /// The lock file cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The server did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a lock, unless another host of the database holds it. Hosts of a server may have different data directories,
/// so only the server's locks separate them.
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
