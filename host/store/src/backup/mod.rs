//! Backups of a data directory: taken while hosts run, and verified before they are restored.
//!
//! A backup is a folder with a snapshot of the database, keys, artifacts, downloaded components, protected
//! configurations, the signed head of the ledger, and a signed list of all files with sizes and hashes. The backup is
//! written next to its target and renamed, so that there is never a partial one.

mod list;
mod restore;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tollgate_core::text::counted;
use tollgate_sdk::Timestamp;

use crate::data_dir::{DATABASE, DataDir, DataDirError};
use crate::ledger::head::{BadHead, ExportedHead};
use crate::ledger::key::LedgerKey;
use crate::storage::StoreError;
use crate::storage::{CopyError, Database, OpenError, Verified};

pub use list::{Entry, List};
pub use restore::{Restored, check, restore};

/// File with the list of files in a backup.
const LIST_FILE: &str = "backup.json";
/// File with the signed head in a backup. `ledger verify --head` reads it as well.
const HEAD_FILE: &str = "head.json";
/// Folders that are copied with their contents. Compiled components and mirror files are left out, because they can
/// be recreated.
const COPIED_FOLDERS: [&str; 3] = ["artifacts", "components", "protections"];
/// Key of the cache, which is not copied either.
const CACHE_KEY: &str = "cache.key";
/// Lock file: exclusive while artifacts are removed, shared while they must stay.
const ARTIFACTS_LOCK: &str = "artifacts/lock";

/// Reason for which a backup was not made or not restored.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The target of the backup exists already.
    #[error("{0} already exists; choose another folder, for example {0}-2")]
    Exists(String),
    /// The target is inside the data directory.
    #[error("{0} is in the data directory; name a folder elsewhere, preferably on another disk")]
    Inside(String),
    /// A file or folder cannot be read or written.
    #[error("{path} cannot be used")]
    Io {
        /// Path of the file or folder.
        path: String,
        #[source]
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// SQLite failed.
    #[error("cannot read the copy of the database")]
    Sqlite(#[from] StoreError),
    /// The folder is not a backup.
    #[error("{0} is not a backup: {LIST_FILE} is missing; name a folder that `tollgate backup` created")]
    NotABackup(String),
    /// A file does not match the list, or is not in it.
    #[error("the backup is incomplete: {0}")]
    NotWhole(String),
    /// The signature is invalid.
    #[error("the backup cannot be verified: {0}")]
    Head(#[from] BadHead),
    /// The ledger in the backup is broken.
    #[error("the ledger failed verification: {0}")]
    Broken(String),
    /// Hosts are running on the data directory.
    #[error("{path} is in use by {}; stop all hosts first (`tollgate doctor` lists them)", counted(*.hosts, "host"))]
    InUse {
        /// Data directory.
        path: String,
        /// Number of hosts.
        hosts: usize,
    },
    /// The data directory exists already.
    #[error(
        "{0} already exists; pass --force to replace it with the backup (the existing data is kept under another \
         name), or choose another directory with --data-dir"
    )]
    Occupied(String),
}

impl BackupError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
        move |source| BackupError::Io {
            path: path.display().to_string(),
            source,
        }
    }
}

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// Path.
    pub path: PathBuf,
    /// Number of files.
    pub files: usize,
    /// Size in bytes.
    pub bytes: u64,
    /// Rows of the ledger.
    pub rows: u64,
    /// Signed head.
    pub head: ExportedHead,
}

/// Line of `head.json`, as `ledger export` writes it.
#[derive(Serialize, Deserialize)]
struct HeadLine {
    head: ExportedHead,
}

/// Copies a data directory to a new folder, while hosts may be running.
pub fn backup(data: &DataDir, target: &Path, now_ms: i64) -> Result<Backup, BackupError> {
    let target = std::path::absolute(target).map_err(BackupError::io(target))?;
    if target.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(target.display().to_string()));
    }
    let folder = target.parent().unwrap_or(Path::new("/"));
    let own = data.path().canonicalize().map_err(BackupError::io(data.path()))?;
    if folder.canonicalize().is_ok_and(|folder| folder.starts_with(&own)) {
        return Err(BackupError::Inside(target.display().to_string()));
    }
    // Created on first use, which may be now: it must exist before keys are copied.
    let key = LedgerKey::open(data)?;
    let staging = tree::StagingFolder::beside(&target)?;
    // No artifact that this snapshot names is collected before it is copied.
    let _kept = data
        .has("artifacts")
        .then(|| tree::share(data, ARTIFACTS_LOCK))
        .transpose()?;
    Database::existing(&data.database()).copy_to(&staging.path().join(DATABASE))?;
    let mut list = List::new(now_ms);
    copy_keys(data.dir(), &staging, &mut list).map_err(BackupError::io(data.path()))?;
    for name in COPIED_FOLDERS.into_iter().filter(|name| data.has(name)) {
        let from = data.private_dir(name)?;
        tree::copy(&from, &staging, name, &mut list).map_err(BackupError::io(&data.path().join(name)))?;
    }
    list.add(
        DATABASE,
        tree::entry(staging.dir(), DATABASE).map_err(BackupError::io(staging.path()))?,
    );
    let (verified, head) = sign(staging.path(), &key, now_ms)?;
    let line = serde_json::to_string(&HeadLine { head: head.clone() });
    let line = line
        .map_err(io::Error::other)
        .map_err(BackupError::io(staging.path()))?
        + "\n";
    tree::write(staging.dir(), HEAD_FILE, line.as_bytes()).map_err(BackupError::io(staging.path()))?;
    list.add(
        HEAD_FILE,
        tree::entry(staging.dir(), HEAD_FILE).map_err(BackupError::io(staging.path()))?,
    );
    let (files, bytes) = (list.files().len(), list.bytes());
    let signed = list.signed(&key).map_err(BackupError::io(staging.path()))?;
    tree::write(staging.dir(), LIST_FILE, signed.as_bytes()).map_err(BackupError::io(staging.path()))?;
    staging.put(&target)?;
    Ok(Backup {
        path: target,
        files,
        bytes,
        rows: verified.rows,
        head,
    })
}

fn copy_keys(from: &Dir, staging: &tree::StagingFolder, list: &mut List) -> io::Result<()> {
    for entry in from.entries()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".key") && name != CACHE_KEY {
            let copied = tree::copy_file(from, &name, staging.dir(), &name)?;
            list.add(&name, copied);
        }
    }
    Ok(())
}

/// Verifies the ledger of a copy, and signs its head.
fn sign(copy: &Path, key: &LedgerKey, now_ms: i64) -> Result<(Verified, ExportedHead), BackupError> {
    let session = Database::existing(&copy.join(DATABASE)).read_session()?;
    if let Some(fault) = session.maintenance().faults()?.first() {
        return Err(BackupError::Broken(format!(
            "SQLite found a fault in the database: {fault}"
        )));
    }
    let verified = session.ledger().verify(None, &[key.public()])?;
    if let Some(broken) = &verified.broken {
        return Err(BackupError::Broken(broken.to_string()));
    }
    let now = Timestamp::from_ms(now_ms).to_string();
    let head = ExportedHead::sign(verified.head.clone(), verified.pruned, now, key);
    Ok((verified, head))
}
