//! Public keys whose signatures on heads and anchors are trusted.

use thiserror::Error;

use crate::data_dir::{DataDir, DataDirError};
use crate::key::{LedgerKey, PublicKey};
use crate::storage::{Session, StoreError};

/// Default trusted keys: the data directory's, and on a server those that hosts of other directories announced in the
/// database.
pub fn keys(data: &DataDir, session: &Session) -> Result<Vec<PublicKey>, KeysError> {
    let mut keys: Vec<PublicKey> = LedgerKey::find(data)?
        .map(|key| key.public())
        .into_iter()
        .collect();
    for [announced, ..] in session.roster().keys()? {
        // Invalid keys have signed nothing.
        keys.extend(
            announced
                .parse::<PublicKey>()
                .ok()
                .filter(|key| !keys.contains(key)),
        );
    }
    Ok(keys)
}

/// Reason for which the trusted keys are unknown.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
