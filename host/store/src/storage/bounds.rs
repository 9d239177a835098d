//! Bounds of a component's migrations: time, memory and room in the database.

use std::time::Duration;

use tollgate_core::deadline::{Cancel, Deadline};

use super::access::{Bounds, Namespace};
use super::engine::sqlite::memory::{self, Denial};
use super::engine::sqlite::{PAGE_BYTES, SQL_MEMORY};
use super::engine::steps::MigrationError;
use super::engine::{Engine, sql};
use super::error::{StoreFailure, StoreResult};
use super::handles::Components;

/// Time limit of the migrations in one transaction. They hold the write lock, for which all hosts on the directory
/// wait longer than that.
pub(super) const MIGRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Deadline of migrations that begin now.
pub(super) fn migration_deadline() -> Deadline {
    Deadline::after(MIGRATION_TIMEOUT, Cancel::default())
}

/// Limit that a migration exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Time,
    Memory,
    Storage,
}

impl Components<'_> {
    /// Migrates a component's tables within its limits, and books the pages that this takes.
    pub(super) fn bounded(
        self,
        namespace: &Namespace,
        deadline: &Deadline,
        body: impl FnOnce() -> Result<(), MigrationError>,
    ) -> Result<(), MigrationError> {
        let bounds = namespace.bounds();
        let quota = i64::try_from(bounds.storage / PAGE_BYTES).unwrap_or(i64::MAX);
        let before = self
            .0
            .limit_growth(quota.saturating_sub(self.used_pages(namespace)?))?;
        self.0
            .begin_bounds(deadline, bounds.memory.saturating_add(SQL_MEMORY));
        let (done, denied) = {
            let _armed = self.0.bound_memory();
            let done = body();
            (done, memory::denied())
        };
        self.0.leave();
        if let Err(err) = done {
            return Err(match reached(&err, deadline, denied) {
                Some(bound) => named(bound, namespace),
                None => err,
            });
        }
        let grown = self.0.lift_limit()? - before;
        if grown != 0 {
            self.book_pages(namespace, grown)?;
        }
        Ok(())
    }

    /// Database pages that a component's rows use. Not counted on a server.
    pub fn used_pages(self, namespace: &Namespace) -> StoreResult<i64> {
        if matches!(self.0.engine, Engine::Postgres(_)) {
            return Ok(0);
        }
        self.0.engine.one(
            "SELECT coalesce(max(pages), 0) FROM core_usage WHERE pack = ?1",
            sql![namespace.pack()],
            |row| row.get(0),
        )
    }

    /// Books database pages that a component's call added or freed.
    pub fn book_pages(self, namespace: &Namespace, pages: i64) -> StoreResult<()> {
        let sql = "INSERT INTO core_usage (pack, pages) VALUES (?1, ?2)
            ON CONFLICT (pack) DO UPDATE SET pages = core_usage.pages + excluded.pages";
        self.0.engine.run(sql, sql![namespace.pack(), pages]).map(drop)
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
        MigrationError::Record(err) => err.failure() == StoreFailure::Full,
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::{MIGRATION_TIMEOUT, Namespace};
    use crate::storage::Database;
    use crate::storage::engine::steps::MigrationStep;

    #[test]
    fn whoever_writes_during_a_long_migration_waits_and_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let (migrating, writing) = (Database::open(&path).unwrap(), Database::open(&path).unwrap());
        let steps = [MigrationStep {
            name: "0001_init".to_owned(),
            sql: "CREATE TABLE shop_items (a BIGINT, b BIGINT, c BIGINT, d BIGINT);
                  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                      INSERT INTO shop_items (a, b, c, d) SELECT i, i, i, i FROM n;
                  CREATE INDEX shop_by_all ON shop_items (d, c, b, a);
                  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000)
                      INSERT INTO shop_items (a) SELECT max(i) FROM n;"
                .to_owned(),
        }];
        let done = AtomicBool::new(false);
        let mut longest = Duration::ZERO;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let migrated = migrating.migrate(&Namespace::of_pack("shop"), &steps);
                done.store(true, Ordering::SeqCst);
                migrated.unwrap();
            });
            let session = writing.write_session().unwrap();
            while !done.load(Ordering::SeqCst) {
                let began = Instant::now();
                session.begin_write().unwrap();
                session
                    .sqlite()
                    .unwrap()
                    .db
                    .execute("UPDATE core_migrations SET reader = reader", [])
                    .unwrap();
                session.commit().unwrap();
                longest = longest.max(began.elapsed());
            }
        });
        assert!(longest > Duration::from_millis(50), "no write met the migration");
        assert!(
            longest < MIGRATION_TIMEOUT + Duration::from_secs(2),
            "{longest:?}"
        );
    }
}
