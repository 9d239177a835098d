//! Operations on the whole database: copied while others write, and compacted without its free pages.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Serialize;
use thiserror::Error;

use super::{PAGE_BYTES, memory};
use crate::storage::Database;
use crate::storage::engine::Engine;
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::handles::Maintenance;
use crate::storage::session::{OpenError, Session};

/// Interval of attempts to begin a copy while another process holds the file exclusively.
const BUSY_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time for such attempts.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// SQLite instructions between two checks whether compacting takes too long.
const PROGRESS_INTERVAL: i32 = 1_000;

/// Reason for which the database was not copied or compacted.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// SQLite failed.
    #[error("cannot copy the database")]
    Sqlite(#[from] StoreError),
    /// Other processes keep it busy.
    #[error("another process locked the database for {} s; try again", BUSY_TIMEOUT.as_secs())]
    Busy,
    /// Compacting would block others for too long.
    #[error(
        "rewriting the database would take longer than {0:?} and block hosts for that time; nothing was changed"
    )]
    TooLong(Duration),
}

impl From<rusqlite::Error> for CopyError {
    fn from(err: rusqlite::Error) -> CopyError {
        CopyError::Sqlite(err.into())
    }
}

/// Sizes of a database before and after compacting, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Size of the file before.
    pub before: u64,
    /// Size of the file after.
    pub after: u64,
}

impl Database {
    /// Copies everything that is committed at one moment into a new file, while others may write. The copy is a
    /// single file.
    pub fn copy_to(&self, file: &Path) -> Result<(), CopyError> {
        let source = self.read_session()?;
        let mut copy = open(file, OpenFlags::SQLITE_OPEN_CREATE)?;
        {
            let backup = Backup::new(&source.sqlite()?.db, &mut copy)?;
            let started = Instant::now();
            // One step takes a single snapshot: a copy in several steps restarts whenever another process writes in
            // between.
            while backup.step(-1)? != StepResult::Done {
                if started.elapsed() > BUSY_TIMEOUT {
                    return Err(CopyError::Busy);
                }
                std::thread::sleep(BUSY_INTERVAL);
            }
        }
        copy.pragma_update(None, "synchronous", "FULL")?;
        // The journal mode is stored in the file, and a read-only session creates no log files.
        copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        Ok(())
    }

    /// Compacts the database without its free pages. Writers wait. `patience` limits the wait if other processes use
    /// the database.
    pub fn compact(&self, patience: Option<Duration>) -> Result<Compacted, CopyError> {
        let line = self.write_session()?;
        let before = size(&line)?;
        line.checkpoint()?;
        let mut db = open(self.file()?, OpenFlags::empty())?;
        db.busy_timeout(patience.unwrap_or(BUSY_TIMEOUT))?;
        db.pragma_update(None, "synchronous", "FULL")?;
        if let Some(patience) = patience {
            let end = Instant::now() + patience;
            db.progress_handler(PROGRESS_INTERVAL, Some(move || Instant::now() >= end))?;
        }
        let written = line.sqlite()?.in_turn(|| db.execute_batch("VACUUM"));
        written.map_err(|err| match (err.sqlite_error_code(), patience) {
            (Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy), Some(patience)) => {
                CopyError::TooLong(patience)
            }
            _ => CopyError::Sqlite(StoreError::from(err)),
        })?;
        db.progress_handler(0, None::<fn() -> bool>)?;
        // The file shrinks when the log is checkpointed completely. A reader may delay that.
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(Compacted {
            before,
            after: size(&line)?,
        })
    }
}

impl Maintenance<'_> {
    /// Bytes of free pages, which compacting returns. Zero on a server.
    pub fn free_bytes(self) -> StoreResult<u64> {
        let Engine::Sqlite(sqlite) = &self.0.engine else {
            return Ok(0);
        };
        let pages: i64 = sqlite
            .db
            .query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        Ok(u64::try_from(pages).unwrap_or_default() * PAGE_BYTES)
    }
}

fn open(file: &Path, more: OpenFlags) -> StoreResult<Connection> {
    memory::install()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    Ok(Connection::open_with_flags(file, flags)?)
}

fn size(session: &Session) -> StoreResult<u64> {
    let pages: i64 = session
        .sqlite()?
        .db
        .query_row("PRAGMA page_count", [], |row| row.get(0))?;
    Ok(u64::try_from(pages).unwrap_or_default() * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A connection that may do everything, as nobody in the host has one.
    fn plain(file: &Path) -> Connection {
        let db = open(file, OpenFlags::empty()).unwrap();
        db.busy_timeout(BUSY_TIMEOUT).unwrap();
        db
    }

    fn filled(place: &tempfile::TempDir, rows: u32) -> Database {
        let database = Database::open(&place.path().join("tollgate.db")).unwrap();
        let db = plain(database.file().unwrap());
        db.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); BEGIN")
            .unwrap();
        for _ in 0..rows {
            db.execute("INSERT INTO notes (text) VALUES (?1)", ["x".repeat(2_000)])
                .unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
        database
    }

    fn faults(database: &Database) -> Vec<String> {
        database.read_session().unwrap().maintenance().faults().unwrap()
    }

    #[test]
    fn a_copy_is_one_moment_whoever_writes() {
        let place = tempfile::tempdir().unwrap();
        let database = filled(&place, 500);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let db = plain(database.file().unwrap());
                while !stop.load(Ordering::Relaxed) {
                    // Two rows at once, so that half of a commit would be an odd number.
                    let both = "BEGIN IMMEDIATE; INSERT INTO notes (text) VALUES ('y'); INSERT INTO notes (text) VALUES ('y'); COMMIT";
                    db.execute_batch(both).unwrap();
                }
            });
            for number in 0..5 {
                let file = place.path().join(format!("copy-{number}.db"));
                database.copy_to(&file).unwrap();
                assert_eq!(faults(&Database::existing(&file)), [] as [String; 0]);
                assert!(!place.path().join(format!("copy-{number}.db-wal")).exists());
                let rows: i64 = plain(&file)
                    .query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
                    .unwrap();
                assert!(rows >= 500 && rows % 2 == 0, "{rows}");
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn compacting_gives_free_pages_back_beside_sessions_that_are_open() {
        let place = tempfile::tempdir().unwrap();
        let database = filled(&place, 1_000);
        let other = database.write_session().unwrap();
        plain(database.file().unwrap())
            .execute_batch("DELETE FROM notes WHERE id % 10 > 0")
            .unwrap();
        assert!(other.maintenance().free_bytes().unwrap() > 1 << 20);
        let compacted = database.compact(Some(Duration::from_secs(60))).unwrap();
        assert!(compacted.after < compacted.before / 2, "{compacted:?}");
        let file = std::fs::metadata(database.file().unwrap()).unwrap().len();
        assert_eq!(file, compacted.after);
        assert_eq!(other.maintenance().free_bytes().unwrap(), 0);
        other.begin_write().unwrap();
        other.commit().unwrap();
        assert_eq!(faults(&database), [] as [String; 0]);
    }

    #[test]
    fn compacting_that_takes_too_long_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let database = filled(&place, 2_000);
        let refused = database.compact(Some(Duration::ZERO));
        assert!(matches!(refused, Err(CopyError::TooLong(_))), "{refused:?}");
        let session = database.write_session().unwrap();
        assert!(session.maintenance().faults().unwrap().is_empty());
        session.begin_write().unwrap();
        session.commit().unwrap();
    }
}
