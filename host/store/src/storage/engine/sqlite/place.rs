//! The database's files, and the check that they are still where they were opened.
//!
//! SQLite continues to write to a file that was renamed, removed or replaced, while everyone who opens the path later
//! reads another file. So a commit to such a file is refused, because nobody would find it.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

use crate::storage::error::{StoreError, StoreResult};

/// Identity of a file, independent of its name: device and inode number.
pub(in crate::storage) type File = (u64, u64);

/// Files of an open write session.
pub(in crate::storage) struct Place {
    database: PathBuf,
    log: PathBuf,
    opened: File,
    /// Write-ahead log, once it was seen. SQLite keeps it while the session is open.
    opened_log: Cell<Option<File>>,
}

impl Place {
    /// Files of a database that was just opened. `None` if there are none to check.
    pub(in crate::storage) fn of(path: &Path) -> Option<Place> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Some(Place {
            opened: file(path)?,
            database: path.to_owned(),
            log: PathBuf::from(log),
            opened_log: Cell::new(None),
        })
    }

    /// Fails if the files are not those that were opened.
    pub(in crate::storage) fn check(&self) -> StoreResult<()> {
        if file(&self.database) != Some(self.opened) {
            return Err(moved(&self.database));
        }
        match (self.opened_log.get(), file(&self.log)) {
            (None, found) => self.opened_log.set(found),
            (Some(opened), Some(found)) if opened == found => {}
            (Some(_), _) => return Err(moved(&self.log)),
        }
        Ok(())
    }
}

/// File that a path names now.
#[allow(clippy::disallowed_methods, reason = "the database's own path")]
pub(in crate::storage) fn file(path: &Path) -> Option<File> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Error of a session whose file was replaced.
pub(in crate::storage) fn moved(path: &Path) -> StoreError {
    let what = format!(
        "{} was moved, removed or replaced while the host was running",
        path.display()
    );
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED), Some(what)).into()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests move files")]
mod tests {
    use super::*;
    use crate::storage::Database;
    use crate::storage::error::StoreFailure;

    #[test]
    fn nothing_is_committed_to_files_that_nobody_finds() {
        for (name, replaced) in [("t.db", false), ("t.db", true), ("t.db-wal", false)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("t.db");
            let database = Database::open(&path).unwrap();
            let session = database.write_session().unwrap();
            let note = |session: &crate::storage::Session| -> StoreResult<()> {
                session.begin_write()?;
                let sql =
                    "INSERT INTO core_consents (id, used_at) SELECT 'c' || count(*), 1 FROM core_consents";
                session.sqlite().unwrap().db.execute(sql, [])?;
                session.commit()
            };
            note(&session).unwrap();
            note(&session).unwrap();
            let moved = dir.path().join("moved");
            fs::rename(dir.path().join(name), &moved).unwrap();
            if replaced {
                fs::copy(&moved, &path).unwrap();
            }
            let err = note(&session).unwrap_err();
            assert_eq!(err.failure(), StoreFailure::Moved, "{name}");
            assert!(err.to_string().contains(name), "{err}");
            assert!(!session.in_transaction());
            if name == "t.db" {
                let other = database.read_session().err().unwrap().into_cause();
                assert_eq!(other.failure(), StoreFailure::Moved);
            }
            fs::rename(&moved, dir.path().join(name)).unwrap();
            note(&session).unwrap();
        }
    }

    #[test]
    fn a_transaction_that_began_before_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let session = Database::open(&path).unwrap().write_session().unwrap();
        session.begin_write().unwrap();
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert_eq!(session.commit().unwrap_err().failure(), StoreFailure::Moved);
        session.rollback().unwrap();
    }
}
