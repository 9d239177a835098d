//! One hardened connection to a SQLite file.

mod authorizer;
pub(in crate::storage) mod copies;
mod error;
mod functions;
#[cfg(test)]
mod functions_alike;
mod health;
pub(in crate::storage) mod memory;
pub(in crate::storage) mod migrate;
mod own_sql;
pub(in crate::storage) mod place;
mod repair;
mod run;
pub(in crate::storage) mod schema;
mod statement;
mod wide;
mod write_lock;

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Action;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use tollgate_core::deadline::Deadline;

use self::authorizer::Mode;
use self::functions::IsLate;
use self::memory::{Armed, Budget};
use self::place::Place;
use self::write_lock::TicketLock;
use crate::storage::access::Namespace;
use crate::storage::error::{StoreFailure, StoreResult};
use crate::storage::session::{Access, Changes};

pub(in crate::storage) use self::error::Failure;
pub(in crate::storage) use self::run::Prepared;

/// Time that a session waits for another process's write transaction: longer than any may take.
const BUSY_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval of checking the deadline of a call that waits for the write lock.
const BUSY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// SQLite instructions between two checks of the deadline: well under a millisecond.
const PROGRESS_INTERVAL: i32 = 100;
/// Most memory that the SQL of one call may use, in SQLite and as rows on their way to the component.
pub(in crate::storage) const SQL_MEMORY: u64 = 15 << 20;
/// Part of that budget that must be left, or a statement is interrupted. One instruction fits into it.
const MEMORY_RESERVE: i64 = 2 << 20;
/// Prepared statements that are cached for each session.
const STATEMENT_CACHE: usize = 256;
/// Highest `max_page_count` that SQLite accepts.
const MAX_PAGES: i64 = 4_294_967_294;
/// Bytes of one database page, SQLite's default.
pub const PAGE_BYTES: u64 = 4096;
/// Free room above which no new limit is set: 4 MiB of pages.
const UNLIMITED_PAGES: i64 = 1_024;

/// One connection to SQLite, with the owner of the statements that it currently prepares.
pub(in crate::storage) struct Sqlite {
    pub(in crate::storage) db: Connection,
    state: Arc<State>,
    page_limit: Cell<i64>,
    /// Budget of a component's statements, while a component is entered.
    budget: Cell<Option<Budget>>,
    /// Ticket lock for writing.
    ticket_lock: Option<TicketLock>,
    /// Files of a session that writes.
    place: Option<Place>,
}

/// State of the authorizer and the progress handler.
struct State {
    mode: Mutex<Mode>,
    deadline: Mutex<Option<Deadline>>,
    changes: Mutex<Changes>,
    /// Names that the component's statement defines by WITH, which are not tables.
    with: Mutex<Arc<[String]>>,
}

impl State {
    fn is_late(&self) -> bool {
        lock(&self.deadline).as_ref().is_some_and(Deadline::is_over)
    }
}

impl Sqlite {
    /// Opens a database and hardens the connection.
    pub(in crate::storage) fn open(path: &Path, access: Access) -> StoreResult<Sqlite> {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write | Access::Memory => {
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
            }
        };
        memory::install()?;
        let mut db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        harden(&db)?;
        set_pragmas(&db, access)?;
        let state = Arc::new(State {
            mode: Mutex::new(Mode::Host),
            deadline: Mutex::new(None),
            changes: Mutex::new(Changes::new()),
            with: Mutex::default(),
        });
        let seen = Arc::clone(&state);
        db.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
            authorizer::decide(&lock(&seen.mode), &lock(&seen.with), &context)
        }))?;
        let seen = Arc::clone(&state);
        let is_late: IsLate = Arc::new(move || seen.is_late());
        functions::register(&db, &is_late)?;
        db.progress_handler(
            PROGRESS_INTERVAL,
            Some(move || is_late() || memory::nearly_used_up(MEMORY_RESERVE)),
        )?;
        if access == Access::Write {
            let seen = Arc::clone(&state);
            db.update_hook(Some(move |action: Action, _: &str, table: &str, _: i64| {
                count(&seen, action, table);
            }))?;
        }
        // Without such files on the file system there is no ticket lock, and SQLite waits in its own way.
        let ticket_lock = match access {
            Access::Read | Access::Memory => None,
            Access::Write => TicketLock::open(&path.with_extension("line")).ok(),
        };
        let place = match access {
            Access::Read | Access::Memory => None,
            Access::Write => Place::of(path),
        };
        Ok(Sqlite {
            db,
            ticket_lock,
            place,
            state,
            page_limit: Cell::new(MAX_PAGES),
            budget: Cell::new(None),
        })
    }

    /// Prepares later statements as the component's, under its deadline.
    pub(in crate::storage) fn enter(&self, namespace: &Namespace, deadline: &Deadline) {
        *lock(&self.state.mode) = Mode::Component(namespace.clone());
        *lock(&self.state.deadline) = Some(deadline.clone());
        self.budget.set(Some(Budget::from_now(SQL_MEMORY)));
    }

    /// Sets the names that the component's next statement defines by WITH.
    pub(in crate::storage) fn name_with(&self, names: &Arc<[String]>) {
        *lock(&self.state.with) = Arc::clone(names);
    }

    /// Limits the memory of the component's statement until the result is dropped.
    pub(in crate::storage) fn bound_memory(&self) -> Option<Armed> {
        let end = lock(&self.state.deadline).as_ref().map(Deadline::end);
        self.budget.get().map(|budget| budget.until(end).arm())
    }

    /// Changes by the component's statements since the last query.
    pub(in crate::storage) fn take_changes(&self) -> Changes {
        std::mem::take(&mut *lock(&self.state.changes))
    }

    /// Resets the counted changes to earlier ones.
    pub(in crate::storage) fn set_changes(&self, changes: Changes) {
        *lock(&self.state.changes) = changes;
    }

    /// A number that grows whenever a statement changes rows. Unlike the counted changes, it includes rows that a
    /// DELETE without a condition removes.
    pub(in crate::storage) fn row_changes(&self) -> u64 {
        self.db.total_changes()
    }

    /// Prepares later statements as the host's, under a deadline.
    pub(in crate::storage) fn limit_time(&self, deadline: &Deadline) {
        *lock(&self.state.mode) = Mode::Host;
        *lock(&self.state.deadline) = Some(deadline.clone());
    }

    /// Prepares later statements as the host's, without a deadline.
    pub(in crate::storage) fn leave(&self) {
        *lock(&self.state.mode) = Mode::Host;
        *lock(&self.state.deadline) = None;
        self.budget.set(None);
    }

    /// Runs `body` with the host's rights during a component's call. A prepared statement is not authorized again, so
    /// only its first use needs this.
    pub(in crate::storage) fn as_host<T>(&self, body: impl FnOnce() -> T) -> T {
        let mode = std::mem::replace(&mut *lock(&self.state.mode), Mode::Host);
        let result = body();
        *lock(&self.state.mode) = mode;
        result
    }

    /// Runs `body` with the rights of a component's migration.
    pub(in crate::storage) fn migrating<T>(
        &self,
        namespace: &Namespace,
        body: impl FnOnce(&Connection) -> T,
    ) -> T {
        *lock(&self.state.mode) = Mode::Migration(namespace.clone());
        let result = body(&self.db);
        *lock(&self.state.mode) = Mode::Host;
        result
    }

    /// Limits time and memory of everything that runs until [`leave`](Sqlite::leave), including the host's own
    /// statements.
    pub(in crate::storage) fn begin_bounds(&self, deadline: &Deadline, memory: u64) {
        *lock(&self.state.deadline) = Some(deadline.clone());
        self.budget.set(Some(Budget::from_now(memory)));
    }

    /// Copies committed pages from the write-ahead log into the file, while others read or write. Pages that a reader
    /// still needs stay in the log.
    pub(in crate::storage) fn checkpoint(&self) -> StoreResult<()> {
        Ok(self
            .db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }

    /// A number that changes with each commit of another session.
    pub(in crate::storage) fn data_version(&self) -> StoreResult<i64> {
        self.host_value("PRAGMA data_version")
    }

    /// Starts a snapshot, which is taken at the first read.
    pub(in crate::storage) fn begin_read(&self) -> StoreResult<()> {
        self.host_statement("BEGIN")
    }

    /// Makes the session read-only until [`thaw`](Sqlite::thaw).
    pub(in crate::storage) fn freeze(&self) -> StoreResult<()> {
        Ok(self.db.pragma_update(None, "query_only", true)?)
    }

    /// Makes the session writable again.
    pub(in crate::storage) fn thaw(&self) -> StoreResult<()> {
        Ok(self.db.pragma_update(None, "query_only", false)?)
    }

    /// Starts a write transaction, in the order of requests by all sessions and processes.
    pub(in crate::storage) fn begin_write(&self) -> StoreResult<()> {
        if let Some(ticket_lock) = &self.ticket_lock {
            ticket_lock.enter();
        }
        let begun = self.begin_immediate();
        self.end_turn();
        begun
    }

    /// Begins a write transaction. At that moment SQLite decides where it keeps the originals of changed pages, for
    /// savepoints: in memory like all temporary data, or in a file once they are many. There may be as many as the
    /// component has pages.
    fn begin_immediate(&self) -> StoreResult<()> {
        self.db.pragma_update(None, "temp_store", "FILE")?;
        let begun = self.host_statement("BEGIN IMMEDIATE");
        self.db.pragma_update(None, "temp_store", "MEMORY")?;
        begun?;
        self.in_place().inspect_err(|_| {
            // Nothing was written yet.
            let _ = self.host_statement("ROLLBACK");
        })
    }

    fn in_place(&self) -> StoreResult<()> {
        self.place.as_ref().map_or(Ok(()), Place::check)
    }

    /// Starts a write transaction for a call, and waits no longer than its deadline. Fails as busy after that.
    pub(in crate::storage) fn begin_write_before(&self, deadline: &Deadline) -> StoreResult<()> {
        if let Some(ticket_lock) = &self.ticket_lock {
            ticket_lock.enter_unless(|| deadline.is_over());
        }
        let patience = Instant::now() + BUSY_TIMEOUT;
        let begun = loop {
            self.db
                .busy_timeout(BUSY_CHECK_INTERVAL.min(deadline.remaining()))?;
            let begun = self.begin_immediate();
            let is_busy = begun
                .as_ref()
                .is_err_and(|err| err.failure() == StoreFailure::Busy);
            if !is_busy || deadline.is_over() || Instant::now() >= patience {
                break begun;
            }
        };
        self.end_turn();
        self.db.busy_timeout(BUSY_TIMEOUT)?;
        begun
    }

    /// Commits the transaction durably.
    pub(in crate::storage) fn commit(&self) -> StoreResult<()> {
        let ended = self.in_place().and_then(|()| self.host_statement("COMMIT"));
        self.end_turn();
        ended
    }

    /// Rolls back the transaction. Fails if SQLite already did.
    pub(in crate::storage) fn rollback(&self) -> StoreResult<()> {
        let ended = self.host_statement("ROLLBACK");
        self.end_turn();
        ended
    }

    /// Runs `body`, which writes through another connection, in the order of write requests.
    pub(in crate::storage) fn in_turn<T>(&self, body: impl FnOnce() -> T) -> T {
        if let Some(ticket_lock) = &self.ticket_lock {
            ticket_lock.enter();
        }
        let done = body();
        self.end_turn();
        done
    }

    /// Lets the next writer proceed, unless a transaction is open.
    pub(in crate::storage) fn end_turn(&self) {
        if let Some(ticket_lock) = self.ticket_lock.as_ref().filter(|_| !self.in_transaction()) {
            ticket_lock.leave();
        }
    }

    /// Starts a part of the transaction that can be undone separately.
    pub(in crate::storage) fn savepoint(&self) -> StoreResult<()> {
        self.host_statement("SAVEPOINT call")
    }

    /// Keeps the changes since the last savepoint.
    pub(in crate::storage) fn release(&self) -> StoreResult<()> {
        self.host_statement("RELEASE call")
    }

    /// Undoes the changes since the last savepoint.
    pub(in crate::storage) fn undo(&self) -> StoreResult<()> {
        self.host_statement("ROLLBACK TO call")?;
        self.host_statement("RELEASE call")
    }

    /// True if a transaction is open. SQLite itself ends one after some failures, such as an interrupted or
    /// disk-filling write.
    pub(in crate::storage) fn in_transaction(&self) -> bool {
        !self.db.is_autocommit()
    }

    /// Number of used pages: all pages of the file minus those on the free list.
    pub(in crate::storage) fn pages(&self) -> StoreResult<i64> {
        self.used_pages(self.all_pages()?)
    }

    /// Limits the growth of the file to `remaining` pages, and returns the number of used ones. The limit stays until
    /// [`lift_limit`](Sqlite::lift_limit), because setting it for each call would cost more than it protects.
    pub(in crate::storage) fn limit_growth(&self, remaining: i64) -> StoreResult<i64> {
        let now = self.all_pages()?;
        let highest = now.saturating_add(remaining.max(0)).clamp(1, MAX_PAGES);
        let lowest = highest.min(now.saturating_add(UNLIMITED_PAGES));
        let limit = self.page_limit.get();
        if limit > highest || limit < lowest {
            self.set_page_limit(highest)?;
        }
        self.used_pages(now)
    }

    /// Raises the limit for the host's own rows, if a component's limit left almost no room, and returns the number of
    /// used pages.
    pub(in crate::storage) fn lift_limit(&self) -> StoreResult<i64> {
        let now = self.all_pages()?;
        if self.page_limit.get() < now.saturating_add(UNLIMITED_PAGES) {
            self.set_page_limit(MAX_PAGES)?;
        }
        self.used_pages(now)
    }

    /// Number of all pages of the file. SQLite compiles a pragma again each time, so each one costs as much as a small
    /// statement.
    fn all_pages(&self) -> StoreResult<i64> {
        self.host_value("PRAGMA page_count")
    }

    fn used_pages(&self, all: i64) -> StoreResult<i64> {
        Ok(all - self.host_value("PRAGMA freelist_count")?)
    }

    /// Removes the growth limit, for rows of all components at once.
    pub(in crate::storage) fn drop_limit(&self) -> StoreResult<()> {
        self.set_page_limit(MAX_PAGES)
    }

    fn set_page_limit(&self, limit: i64) -> StoreResult<()> {
        self.db.pragma_update(None, "max_page_count", limit)?;
        self.page_limit.set(limit);
        Ok(())
    }

    pub(in crate::storage) fn host_statement(&self, sql: &str) -> StoreResult<()> {
        Ok(self.db.prepare_cached(sql)?.execute([]).map(drop)?)
    }

    fn host_value(&self, sql: &str) -> StoreResult<i64> {
        Ok(self.db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }
}

fn count(state: &State, action: Action, table: &str) {
    if !matches!(*lock(&state.mode), Mode::Component(_)) {
        return;
    }
    let kind = match action {
        Action::SQLITE_INSERT => 0,
        Action::SQLITE_UPDATE => 1,
        _ => 2,
    };
    let mut changes = lock(&state.changes);
    match changes.get_mut(table) {
        Some(counts) => counts[kind] += 1,
        None => {
            let mut counts = [0; 3];
            counts[kind] = 1;
            changes.insert(table.to_owned(), counts);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Values are replaced as a whole, so they are consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn harden(db: &Connection) -> StoreResult<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false)?;
    // Query plans that do not depend on bound values. Otherwise SQLite prepares a cached statement again for each
    // call, because clearing its bindings counts as a change of plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, 1_000_000),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (Limit::SQLITE_LIMIT_COLUMN, 100),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
        (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        db.set_limit(limit, value)?;
    }
    Ok(())
}

fn set_pragmas(db: &Connection, access: Access) -> StoreResult<()> {
    if access == Access::Write {
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
    }
    db.pragma_update(None, "query_only", access == Access::Read)?;
    db.pragma_update(None, "foreign_keys", true)?;
    // Without this, REPLACE deletes rows without firing their append-only triggers.
    db.pragma_update(None, "recursive_triggers", true)?;
    db.pragma_update(None, "cell_size_check", true)?;
    Ok(db.pragma_update(None, "temp_store", "MEMORY")?)
}
