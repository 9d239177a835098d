//! Putting a backup back: checked as a whole on the way, and in place at once.

use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::Serialize;
use tollgate_sdk::Timestamp;

use super::list::{List, Unlisted};
use super::{BackupError, HEAD, HeadLine, LIST, tree};
use crate::data_dir::{DATABASE, DataDir};
use crate::ledger::head::ExportedHead;
use crate::ledger::key::{LedgerKey, PublicKey};
use crate::liveness;
use crate::storage::Database;

/// A data directory that was made of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Its path.
    pub path: PathBuf,
    /// Time of the backup.
    pub made_at: String,
    /// Rows of the ledger.
    pub rows: u64,
    /// The signed head, up to which the ledger was checked.
    pub head: ExportedHead,
    /// The path of the data directory that was there before.
    pub before: Option<PathBuf>,
}

/// Refuses to replace a data directory that hosts work on, or that is there and not to be replaced.
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

/// True if there is nothing at a path, or an empty folder.
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

/// Makes a data directory of a backup. `trusted` are keys of which one must have signed it, if there are any. A data
/// directory that is there is kept under another name, if it may be replaced at all.
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
    let text = match tree::read_text(&from, LIST) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            return Err(BackupError::NotABackup(backup.display().to_string()));
        }
        Err(err) => return Err(BackupError::io(&backup.join(LIST))(err)),
    };
    let (list, key) = List::read(&text, trusted).map_err(|unlisted| match unlisted {
        Unlisted::Head(err) => BackupError::Head(err),
        Unlisted::Unreadable(why) => BackupError::NotWhole(format!("{LIST}: {why}")),
    })?;
    let draft = tree::PendingOperation::beside(&target)?;
    // What is checked is the copy: nobody can exchange the backup in between.
    fetch(&from, backup, &draft, &list)?;
    let (rows, head) = verify(&draft, &key)?;
    draft
        .dir()
        .remove_file(HEAD)
        .map_err(BackupError::io(draft.path()))?;
    // A host may have started while that was checked.
    check(&target, replaces)?;
    let before = set_aside(&target, now_ms)?;
    draft.put(&target)?;
    Ok(Restored {
        path: target,
        made_at: list.made_at().to_owned(),
        rows,
        head,
        before,
    })
}

/// Copies every file that is listed, and compares it with the list.
fn fetch(from: &Dir, backup: &Path, draft: &tree::PendingOperation, list: &List) -> Result<(), BackupError> {
    for needed in [DATABASE, HEAD] {
        if !list.files().contains_key(needed) {
            return Err(BackupError::NotWhole(format!("{LIST} does not name {needed}")));
        }
    }
    for (path, listed) in list.files() {
        // A file without end is not read to it.
        let is_longer = from
            .symlink_metadata(path)
            .is_ok_and(|there| there.len() > listed.bytes);
        if is_longer {
            return Err(BackupError::NotWhole(format!("{path} is not what was saved")));
        }
        let copied = match path.split_once('/') {
            None => tree::copy_file(from, path, draft.dir(), path),
            Some((folder, file)) => copy_into(from, folder, file, draft),
        };
        let copied = copied.map_err(|err| match err.kind() {
            io::ErrorKind::NotFound => BackupError::NotWhole(format!("{path} is missing")),
            _ => BackupError::io(&backup.join(path))(err),
        })?;
        if copied != *listed {
            return Err(BackupError::NotWhole(format!("{path} is not what was saved")));
        }
    }
    Ok(())
}

fn copy_into(
    from: &Dir,
    folder: &str,
    file: &str,
    draft: &tree::PendingOperation,
) -> io::Result<super::Entry> {
    let from = from.open_dir_nofollow(folder)?;
    match draft.dir().create_dir_with(folder, &tree::private_folder()) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
        _ => {}
    }
    tree::copy_file(&from, file, &draft.dir().open_dir_nofollow(folder)?, file)
}

/// Follows the ledger of a copy up to the head that was signed with the backup's key. How many rows it has.
fn verify(draft: &tree::PendingOperation, key: &PublicKey) -> Result<(u64, ExportedHead), BackupError> {
    let broken = |what: String| BackupError::Broken(what);
    let text = draft
        .dir()
        .read_to_string(HEAD)
        .map_err(BackupError::io(draft.path()))?;
    let HeadLine { head } =
        serde_json::from_str(&text).map_err(|err| BackupError::NotWhole(format!("{HEAD}: {err}")))?;
    head.check(std::slice::from_ref(key))?;
    let data = DataDir::existing(draft.path())?;
    let own = LedgerKey::find(&data)?.map(|own| own.public());
    if own.as_ref() != Some(key) {
        return Err(broken("its key is not the one that signed the backup".to_owned()));
    }
    let session = Database::existing(&data.database()).read_session()?;
    if let Some(fault) = session.maintenance().faults()?.first() {
        return Err(broken(format!("SQLite finds in the database: {fault}")));
    }
    let verified = session
        .ledger()
        .verify(Some(&head.head), std::slice::from_ref(key))?;
    if let Some(found) = &verified.broken {
        return Err(broken(found.to_string()));
    }
    if verified.head != head.head {
        return Err(broken("it goes on behind the signed head".to_owned()));
    }
    Ok((verified.rows, head))
}

/// Moves a data directory out of the way, if there is one with something in it.
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
