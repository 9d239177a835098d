//! One connection to the database, independent of the engine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use tollgate_core::deadline::Deadline;

use super::access::Namespace;
use super::engine::Engine;
use super::engine::postgres::{Postgres, Server};
use super::engine::sqlite::memory::Armed;
use super::engine::sqlite::{Sqlite, place};
use super::error::{StoreError, StoreResult};
use super::heads::Heads;
use super::ledger::Head;

/// Reason for which a session could not be opened.
#[derive(Debug, Error)]
#[error("cannot open the database {path}")]
pub struct OpenError {
    path: String,
    #[source]
    source: StoreError,
}

impl OpenError {
    /// Error because a path names another file than before.
    pub(super) fn moved(path: &Path) -> OpenError {
        OpenError {
            path: path.display().to_string(),
            source: place::moved(path),
        }
    }

    /// Error of opening a session on a server.
    pub(super) fn of_server(server: &Server, source: StoreError) -> OpenError {
        OpenError {
            path: server.to_string(),
            source,
        }
    }

    /// Underlying error of the database.
    pub fn into_cause(self) -> StoreError {
        self.source
    }
}

/// Access of a session: reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// A separate in-memory database that ends with the session.
    Memory,
}

/// Locks of a write transaction that runs in parallel with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Among {
    /// Locks that others may share, but not hold exclusively.
    pub shared: Vec<String>,
    /// Exclusive locks.
    pub keys: Vec<String>,
    /// Envelope that is locked exclusively, together with its enclosing ones.
    pub envelope: Option<String>,
}

/// Evidence for checking whether a transaction was committed if the server did not answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// A row of the ledger. If another host declares this one dead, it may write a row for the same call, with other
    /// content.
    Row {
        /// Id of the call.
        op_id: String,
        /// Duration of the call in milliseconds.
        duration_ms: f64,
    },
    /// Intent of a `run` call that is about to start.
    Intent(String),
}

/// Rows that a component's call changed, by table: inserted, updated, deleted.
pub type Changes = BTreeMap<String, [u64; 3]>;

/// One connection, with the owner of the statements that it currently prepares.
pub struct Session {
    pub(super) engine: Engine,
    /// End of the ledger in the open transaction, once it has written a row.
    pub(super) known_head: Cell<Option<Head>>,
    /// Newest evidence of the current or the previous transaction.
    pub(super) written: RefCell<Option<Written>>,
    /// Lookup of workspaces' commits.
    pub(super) heads: Heads,
}

/// Declares methods of [`Session`] that every engine has under the same names.
macro_rules! of_the_engine {
    ($($(#[doc = $doc:literal])+ $vis:vis fn $name:ident(&self$(, $value:ident: $type:ty)*)$( -> $result:ty)?;)+) => {
        impl Session {
            $(
                $(#[doc = $doc])+
                $vis fn $name(&self$(, $value: $type)*)$( -> $result)? {
                    match &self.engine {
                        Engine::Sqlite(engine) => engine.$name($($value),*),
                        Engine::Postgres(engine) => engine.$name($($value),*),
                    }
                }
            )+
        }
    };
}

/// Declares methods of [`Session`] that only SQLite has, with their result on a server.
macro_rules! of_sqlite {
    ($($(#[doc = $doc:literal])+ $vis:vis fn $name:ident(&self$(, $value:ident: $type:ty)*)$( -> $result:ty)?, or $otherwise:expr;)+) => {
        impl Session {
            $(
                $(#[doc = $doc])+
                $vis fn $name(&self$(, $value: $type)*)$( -> $result)? {
                    match &self.engine {
                        Engine::Sqlite(engine) => engine.$name($($value),*),
                        Engine::Postgres(_) => $otherwise,
                    }
                }
            )+
        }
    };
}

of_the_engine! {
    /// Prepares later statements as the host's, under a deadline.
    pub fn limit_time(&self, deadline: &Deadline);
    /// Prepares later statements as the host's, without a deadline.
    pub fn leave(&self);
    /// Changes by the component's statements since the last query.
    pub fn take_changes(&self) -> Changes;
    /// Resets the counted changes to earlier ones.
    pub fn set_changes(&self, changes: Changes);
    /// A number that grows whenever a component's statement changes rows, even if they are restored later.
    pub fn row_changes(&self) -> u64;
    /// A number that changes with each commit of another session.
    pub fn data_version(&self) -> StoreResult<i64>;
    /// Starts a snapshot, which is taken at the first read.
    pub fn begin_read(&self) -> StoreResult<()>;
    /// Makes the database read-only until [`thaw`](Session::thaw).
    pub fn freeze(&self) -> StoreResult<()>;
    /// Makes the database writable again.
    pub fn thaw(&self) -> StoreResult<()>;
    /// Commits the transaction durably.
    pub fn commit(&self) -> StoreResult<()>;
    /// Rolls back the transaction. Fails if the engine already did.
    pub fn rollback(&self) -> StoreResult<()>;
    /// Starts a part of the transaction that can be undone separately.
    pub fn savepoint(&self) -> StoreResult<()>;
    /// Keeps the changes since the last savepoint.
    pub fn release(&self) -> StoreResult<()>;
    /// Undoes the changes since the last savepoint.
    pub fn undo(&self) -> StoreResult<()>;
    /// True if a transaction is open. SQLite itself ends one after some failures, such as an interrupted or
    /// disk-filling write. After any failure, PostgreSQL accepts only a rollback.
    pub fn in_transaction(&self) -> bool;
}

of_sqlite! {
    /// Limits the memory of the component's statement until the result is dropped. No limit on a server.
    pub(super) fn bound_memory(&self) -> Option<Armed>, or None;
    /// Copies committed pages from the write-ahead log into the file, while others read or write. Pages that a reader
    /// still needs stay in the log. A server does this by itself.
    pub fn checkpoint(&self) -> StoreResult<()>, or Ok(());
    /// Lets the next writer proceed, unless a transaction is open. On a server the lock ends with the transaction.
    pub fn end_turn(&self), or ();
    /// Number of used pages: all pages of the file minus those on the free list. Zero on a server, where there is no
    /// page quota.
    pub fn pages(&self) -> StoreResult<i64>, or Ok(0);
    /// Limits the growth of the file to `remaining` pages, and returns the number of [used pages](Session::pages). The
    /// limit stays until [`lift_limit`](Session::lift_limit), because setting it for each call would cost more than it
    /// protects.
    pub fn limit_growth(&self, remaining: i64) -> StoreResult<i64>, or Ok(0);
    /// Raises the limit for the host's own rows, if a component's limit left almost no room. Returns the number of
    /// [used pages](Session::pages).
    pub fn lift_limit(&self) -> StoreResult<i64>, or Ok(0);
}

impl Session {
    /// True if the last transaction ended because the connection to a server was lost or could not be made.
    pub fn is_lost(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.is_lost(),
        }
    }
}

impl Session {
    pub(super) fn open(path: &Path, access: Access) -> Result<Session, OpenError> {
        let sqlite = Sqlite::open(path, access).map_err(|source| OpenError {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Session {
            engine: Engine::Sqlite(sqlite),
            known_head: Cell::new(None),
            written: RefCell::default(),
            heads: Heads::default(),
        })
    }

    /// Session on a server whose tables are up to date.
    pub(super) fn on_server(server: &Server, access: Access) -> Result<Session, OpenError> {
        let postgres =
            Postgres::open(server, access).map_err(|source| OpenError::of_server(server, source))?;
        Ok(Session {
            engine: Engine::Postgres(Box::new(postgres)),
            known_head: Cell::new(None),
            written: RefCell::default(),
            heads: Heads::default(),
        })
    }

    /// Connection to SQLite, for operations that only SQLite has.
    pub(super) fn sqlite(&self) -> StoreResult<&Sqlite> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite),
            Engine::Postgres(_) => Err(StoreError::of_sqlite_alone()),
        }
    }

    /// Newest evidence of the current or the previous transaction.
    pub fn written(&self) -> Option<Written> {
        self.written.borrow().clone()
    }

    /// True if the open transaction wrote a row of the ledger.
    pub(super) fn has_row(&self) -> bool {
        matches!(&*self.written.borrow(), Some(Written::Row { .. }))
    }

    /// Records that a work tree state is added that is not in the chain yet.
    pub(super) fn add_state(&self) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.add_state();
        }
    }

    fn begin_anew(&self) {
        self.known_head.set(None);
        self.written.replace(None);
    }

    /// Prepares later statements as the component's, under its deadline.
    pub fn enter(&self, namespace: &Namespace, deadline: &Deadline) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.enter(namespace, deadline),
            Engine::Postgres(postgres) => postgres.limit_time(deadline),
        }
    }

    /// Limits time and memory of everything that runs until [`leave`](Session::leave), including the host's own
    /// statements.
    pub(super) fn begin_bounds(&self, deadline: &Deadline, memory: u64) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_bounds(deadline, memory),
            Engine::Postgres(postgres) => postgres.limit_time(deadline),
        }
    }

    /// True if a statement of the host failed and only a rollback is possible, of the transaction or to the last
    /// savepoint. SQLite undoes only the failed statement and continues.
    pub fn is_failed(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.is_failed(),
        }
    }

    /// Components with tables whose statements run as the role of the server's URL. Empty for a file, where there are
    /// no roles.
    pub fn without_roles(&self) -> StoreResult<Vec<String>> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(postgres) => postgres.without_roles(),
        }
    }

    /// True if a starting host can create roles for components on the server.
    pub fn may_make_roles(&self) -> StoreResult<bool> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(false),
            Engine::Postgres(postgres) => postgres.may_make_roles(),
        }
    }

    /// On a server, makes BEGIN travel with the first statement, which saves a round trip, or be sent separately,
    /// which is the default. A BEGIN that travels waits for its lock only briefly.
    pub fn begin_late(&self, is_late: bool) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.begin_late(is_late);
        }
    }

    /// True if the last transaction could not begin when its first statement came, because its lock was not available
    /// or the connection was lost, or if it had to give way to another one. Nothing was done, so the transaction may
    /// begin again, with a separate BEGIN. Until a transaction begins every statement is refused.
    pub fn must_begin_anew(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.must_begin_anew(),
        }
    }

    /// Limits the time that write transactions on a server wait for locks. After that they fail as busy.
    pub fn wait_at_most(&self, time: Duration) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.wait_at_most(time);
        }
    }

    /// Runs `body` with the host's rights during a component's call. A prepared statement is not authorized again, so
    /// only its first use needs this.
    pub fn as_host<T>(&self, body: impl FnOnce() -> T) -> T {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.as_host(body),
            Engine::Postgres(_) => body(),
        }
    }

    /// Starts a write transaction, in the order of requests by all sessions and processes.
    pub fn begin_write(&self) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write(),
            Engine::Postgres(postgres) => postgres.begin_write(),
        }
    }

    /// Starts a write transaction that runs in parallel with those of other hosts of a server. Exclusive writers wait
    /// for it. In a file it is an ordinary write transaction.
    pub fn begin_write_among(&self, among: &Among) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write(),
            Engine::Postgres(postgres) => postgres.begin_write_among(among),
        }
    }

    /// Starts a snapshot that sees all rows of a pack whose numbers are lower than the highest visible one: on a
    /// server, it waits for the pack's calls in progress. Fails as busy if they do not end soon. In a file only one
    /// call writes at a time.
    pub fn begin_read_of_feed(&self, pack: &str) -> StoreResult<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_read(),
            Engine::Postgres(postgres) => postgres.begin_read_of_feed(pack),
        }
    }

    /// Starts a write transaction for a call, and waits no longer than its deadline. Fails as busy after that.
    pub fn begin_write_before(&self, deadline: &Deadline) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write_before(deadline),
            Engine::Postgres(postgres) => postgres.begin_write_before(deadline),
        }
    }
}
