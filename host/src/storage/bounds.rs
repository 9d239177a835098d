//! Bounds of a component's migrations: time, memory and room in the database.

use std::time::Duration;

use rusqlite::ErrorCode;

use super::access::{Bounds, Namespace};
use super::memory::{self, Denial};
use super::migrate::MigrationError;
use super::session::{PAGE, SQL_MEMORY, Session};
use crate::deadline::{Cancel, Deadline};

/// How long the migrations of one transaction may take. They hold the write lock of all hosts on the directory,
/// which wait longer than that for it.
pub(super) const MIGRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The end of migrations that begin now.
pub(super) fn migration_deadline() -> Deadline {
    Deadline::after(MIGRATION_TIMEOUT, Cancel::default())
}

/// The bound that a migration ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Time,
    Memory,
    Storage,
}

impl Session {
    /// Brings a component's tables up to date within its bounds, and books the pages that this takes.
    pub(super) fn bounded(
        &self,
        namespace: &Namespace,
        deadline: &Deadline,
        body: impl FnOnce() -> Result<(), MigrationError>,
    ) -> Result<(), MigrationError> {
        let bounds = namespace.bounds();
        let before = self.pages()?;
        let quota = i64::try_from(bounds.storage / PAGE).unwrap_or(i64::MAX);
        self.limit_growth(quota.saturating_sub(self.used_pages(namespace)?))?;
        self.begin_bounds(deadline, bounds.memory.saturating_add(SQL_MEMORY));
        let (done, denied) = {
            let _armed = self.bound_memory();
            let done = body();
            (done, memory::denied())
        };
        self.leave();
        if let Err(err) = done {
            return Err(match reached(&err, deadline, denied) {
                Some(bound) => named(bound, namespace),
                None => err,
            });
        }
        self.lift_limit()?;
        let grown = self.pages()? - before;
        if grown != 0 {
            self.book_pages(namespace, grown)?;
        }
        Ok(())
    }
}

fn reached(err: &MigrationError, deadline: &Deadline, denied: Option<Denial>) -> Option<Reached> {
    if deadline.is_over() {
        return Some(Reached::Time);
    }
    if denied == Some(Denial::Memory) {
        return Some(Reached::Memory);
    }
    let is_full = match err {
        MigrationError::Record(err) => err.sqlite_error_code() == Some(ErrorCode::DiskFull),
        MigrationError::Failed { reason, .. } => reason.contains("database or disk is full"),
        _ => false,
    };
    is_full.then_some(Reached::Storage)
}

fn named(bound: Reached, namespace: &Namespace) -> MigrationError {
    let pack = namespace.pack().to_owned();
    let Bounds { storage, memory } = namespace.bounds();
    match bound {
        Reached::Time => MigrationError::OutOfTime {
            pack,
            seconds: MIGRATION_TIMEOUT.as_secs(),
        },
        Reached::Memory => MigrationError::OutOfMemory {
            pack,
            mib: memory.saturating_add(SQL_MEMORY) >> 20,
        },
        Reached::Storage => MigrationError::OutOfStorage {
            pack,
            mib: storage >> 20,
        },
    }
}
