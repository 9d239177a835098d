//! Restoring a backup: verified as a whole while it is copied, and put in place atomically.

use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::Serialize;
use tollgate_sdk::Timestamp;

use super::list::{List, Unlisted};
use super::{BackupError, HEAD_FILE, HeadLine, LIST_FILE, tree};
use crate::data_dir::{DATABASE, DataDir};
use crate::ledger::head::ExportedHead;
use crate::ledger::key::{LedgerKey, PublicKey};
use crate::liveness;
use crate::storage::Database;

/// A data directory restored from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Path.
    pub path: PathBuf,
    /// Time of the backup.
    pub made_at: String,
    /// Rows of the ledger.
    pub rows: u64,
    /// Signed head, up to which the ledger was verified.
    pub head: ExportedHead,
    /// Path to which the previous data directory was moved.
    pub before: Option<PathBuf>,
}

/// Refuses to replace a data directory on which hosts run, or one that exists if `replaces` is false.
pub fn check(target: &Path, replaces: bool) -> Result<(), BackupError> {
    if is_free(target)? {
        return Ok(());
    }
    let hosts = liveness::hosts_alive(&DataDir::existing(target)?)?.len();
    match (hosts, replaces) {
        (0, true) => Ok(()),
        (0, false) => Err(BackupError::Occupied(target.display().to_string())),
        (hosts, _) => Err(BackupError::InUse {
            path: target.display().to_string(),
            hosts,
        }),
    }
}

/// True if a path does not exist or is an empty folder.
fn is_free(target: &Path) -> Result<bool, BackupError> {
    match target.symlink_metadata() {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(err) => Err(BackupError::io(target)(err)),
        Ok(_) => {
            let dir = Dir::open_ambient_dir(target, ambient_authority()).map_err(BackupError::io(target))?;
            let mut entries = dir.entries().map_err(BackupError::io(target))?;
            Ok(entries.next().is_none())
        }
    }
}

/// Restores a backup into a data directory. If there are `trusted` keys, one of them must have signed the backup. An
/// existing data directory is kept under another name, if it may be replaced at all.
pub fn restore(
    backup: &Path,
    target: &Path,
    trusted: &[PublicKey],
    replaces: bool,
    now_ms: i64,
) -> Result<Restored, BackupError> {
    let target = std::path::absolute(target).map_err(BackupError::io(target))?;
    check(&target, replaces)?;
    let from = Dir::open_ambient_dir(backup, ambient_authority()).map_err(BackupError::io(backup))?;
    let text = match tree::read_text(&from, LIST_FILE) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::NotABackup(backup.display().to_string()));
        }
        Err(err) => return Err(BackupError::io(&backup.join(LIST_FILE))(err)),
    };
    let (list, key) = List::read(&text, trusted).map_err(|unlisted| match unlisted {
        Unlisted::Head(err) => BackupError::Head(err),
        Unlisted::Unreadable(why) => BackupError::NotWhole(format!("{LIST_FILE}: {why}")),
    })?;
    let staging = tree::StagingFolder::beside(&target)?;
    // The copy is verified, not the original, so the backup cannot be exchanged in between.
    fetch(&from, backup, &staging, &list)?;
    let (rows, head) = verify(&staging, &key)?;
    staging
        .dir()
        .remove_file(HEAD_FILE)
        .map_err(BackupError::io(staging.path()))?;
    // A host may have started during the verification.
    check(&target, replaces)?;
    let before = set_aside(&target, now_ms)?;
    staging.put(&target)?;
    Ok(Restored {
        path: target,
        made_at: list.made_at().to_owned(),
        rows,
        head,
        before,
    })
}

/// Copies every listed file, and compares it with the list.
fn fetch(from: &Dir, backup: &Path, staging: &tree::StagingFolder, list: &List) -> Result<(), BackupError> {
    for needed in [DATABASE, HEAD_FILE] {
        if !list.files().contains_key(needed) {
            return Err(BackupError::NotWhole(format!(
                "{LIST_FILE} does not list {needed}"
            )));
        }
    }
    for (path, listed) in list.files() {
        // An endless file is not read to its end.
        let is_longer = from
            .symlink_metadata(path)
            .is_ok_and(|there| there.len() > listed.bytes);
        if is_longer {
            return Err(BackupError::NotWhole(format!(
                "{path} differs from the saved file"
            )));
        }
        let copied = match path.split_once('/') {
            None => tree::copy_file(from, path, staging.dir(), path),
            Some((folder, file)) => copy_into(from, folder, file, staging),
        };
        let copied = copied.map_err(|err| match err.kind() {
            io::ErrorKind::NotFound => BackupError::NotWhole(format!("{path} is missing")),
            _ => BackupError::io(&backup.join(path))(err),
        })?;
        if copied != *listed {
            return Err(BackupError::NotWhole(format!(
                "{path} differs from the saved file"
            )));
        }
    }
    Ok(())
}

fn copy_into(
    from: &Dir,
    folder: &str,
    file: &str,
    staging: &tree::StagingFolder,
) -> io::Result<super::Entry> {
    let from = from.open_dir_nofollow(folder)?;
    match staging.dir().create_dir_with(folder, &tree::private_folder()) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
        _ => {}
    }
    tree::copy_file(&from, file, &staging.dir().open_dir_nofollow(folder)?, file)
}

/// Verifies the ledger of a copy up to the head that was signed with the backup's key. Returns the number of rows.
fn verify(staging: &tree::StagingFolder, key: &PublicKey) -> Result<(u64, ExportedHead), BackupError> {
    let broken = |what: String| BackupError::Broken(what);
    let text = staging
        .dir()
        .read_to_string(HEAD_FILE)
        .map_err(BackupError::io(staging.path()))?;
    let HeadLine { head } =
        serde_json::from_str(&text).map_err(|err| BackupError::NotWhole(format!("{HEAD_FILE}: {err}")))?;
    head.check(std::slice::from_ref(key))?;
    let data = DataDir::existing(staging.path())?;
    let own = LedgerKey::find(&data)?.map(|own| own.public());
    if own.as_ref() != Some(key) {
        return Err(broken(
            "the key of the ledger is not the key that signed the backup".to_owned(),
        ));
    }
    let session = Database::existing(&data.database()).read_session()?;
    if let Some(fault) = session.maintenance().faults()?.first() {
        return Err(broken(format!("SQLite found a fault in the database: {fault}")));
    }
    let verified = session
        .ledger()
        .verify(Some(&head.head), std::slice::from_ref(key))?;
    if let Some(found) = &verified.broken {
        return Err(broken(found.to_string()));
    }
    if verified.head != head.head {
        return Err(broken("the ledger has rows after the signed head".to_owned()));
    }
    Ok((verified.rows, head))
}

/// Moves an existing, non-empty data directory aside.
fn set_aside(target: &Path, now_ms: i64) -> Result<Option<PathBuf>, BackupError> {
    if is_free(target)? {
        return Ok(None);
    }
    let time = Timestamp::from_ms(now_ms).to_string().replace(':', "-");
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let aside = target.with_file_name(format!("{name}.before-{time}"));
    if aside.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(aside.display().to_string()));
    }
    rustix::fs::rename(target, &aside)
        .map_err(io::Error::from)
        .map_err(BackupError::io(target))?;
    Ok(Some(aside))
}
