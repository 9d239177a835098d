//! Work that one host at a time does, such as pruning, whichever process it is in.

use cap_std::fs::File;
use thiserror::Error;

use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{Database, Session, StoreError};

/// The right to do such work, until this is dropped.
pub struct Exclusive {
    _held: Held,
}

/// Lock behind the right. Hosts of a file share its directory, and those of a server the server.
#[expect(dead_code, reason = "held until it is dropped")]
enum Held {
    File(File),
    Server(Box<Session>),
}

/// Reason why nobody can tell if others do the work.
#[derive(Debug, Error)]
pub enum ExclusiveError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Exclusive {
    /// The right to some work. None if another host does it.
    pub fn try_take(
        data: &DataDir,
        database: &Database,
        work: &str,
    ) -> Result<Option<Exclusive>, ExclusiveError> {
        let held = match database.is_on_server() {
            true => database
                .try_lock(work)?
                .map(|session| Held::Server(Box::new(session))),
            false => data.try_lock(&format!("{work}.lock"))?.map(Held::File),
        };
        Ok(held.map(|held| Exclusive { _held: held }))
    }
}
