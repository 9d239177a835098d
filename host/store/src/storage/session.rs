//! One connection to the database, whatever its engine.

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

/// Reason why a session could not be opened.
#[derive(Debug, Error)]
#[error("the database {path} could not be opened")]
pub struct OpenError {
    path: String,
    #[source]
    source: StoreError,
}

impl OpenError {
    /// The failure of a path that names another file than before.
    pub(super) fn moved(path: &Path) -> OpenError {
        OpenError {
            path: path.display().to_string(),
            source: place::moved(path),
        }
    }

    /// The failure to open a session on a server.
    pub(super) fn of_server(server: &Server, source: StoreError) -> OpenError {
        OpenError {
            path: server.to_string(),
            source,
        }
    }

    /// The failure of the database.
    pub fn into_cause(self) -> StoreError {
        self.source
    }
}

/// Access of a session: reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Of a database of its own that goes with it.
    Memory,
}

/// Part of the database that a write transaction keeps from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Among {
    /// Names that others may have as well, if they do not have them for themselves.
    pub shared: Vec<String>,
    /// Names that nobody else may have.
    pub keys: Vec<String>,
    /// Envelope that nobody else may change, with those around it.
    pub envelope: Option<String>,
}

/// Evidence that a transaction was committed whose end nobody answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// A row of the ledger. Another host that takes this one for gone may write one of the same call, with other content.
    Row {
        /// Id of the call.
        op_id: String,
        /// Time that the call took, in milliseconds.
        duration_ms: f64,
    },
    /// The note of a `run` call that is about to start.
    Intent(String),
}

/// Rows that a component's call changed, by table: inserted, updated, deleted.
pub type Changes = BTreeMap<String, [u64; 3]>;

/// One connection, and whose statements it currently prepares.
pub struct Session {
    pub(super) engine: Engine,
    /// The end of the ledger as the open transaction sees it, once it wrote a row.
    pub(super) known_head: Cell<Option<Head>>,
    /// Last evidence of the open transaction, or of the one before, that it was committed.
    pub(super) written: RefCell<Option<Written>>,
    /// Lookup of workspaces' commits.
    pub(super) heads: Heads,
}

/// Declares methods of [`Session`] that its engine has under the same names.
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

/// Declares methods of [`Session`] that only SQLite has, with what they come to on a server.
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
    /// Prepares the host's own statements from now on, under a deadline.
    pub fn limit_time(&self, deadline: &Deadline);
    /// Prepares the host's own statements from now on, without a deadline.
    pub fn leave(&self);
    /// Changes by the component's statements since the last look.
    pub fn take_changes(&self) -> Changes;
    /// Forgets what was counted since, and goes on counting from what was taken before.
    pub fn set_changes(&self, changes: Changes);
    /// A number that changes with each commit of another session.
    pub fn data_version(&self) -> StoreResult<i64>;
    /// Starts a snapshot; it is taken at the first read.
    pub fn begin_read(&self) -> StoreResult<()>;
    /// Keeps the database from being written until [`thaw`](Session::thaw), as a session does that only reads.
    pub fn freeze(&self) -> StoreResult<()>;
    /// Lets it be written again.
    pub fn thaw(&self) -> StoreResult<()>;
    /// Ends the transaction, durably.
    pub fn commit(&self) -> StoreResult<()>;
    /// Undoes the transaction. Fails if the engine undid it already.
    pub fn rollback(&self) -> StoreResult<()>;
    /// Starts a part of the transaction that can be undone alone.
    pub fn savepoint(&self) -> StoreResult<()>;
    /// Keeps the part since the last savepoint.
    pub fn release(&self) -> StoreResult<()>;
    /// Undoes the part since the last savepoint.
    pub fn undo(&self) -> StoreResult<()>;
    /// True if a transaction is open. SQLite ends one itself after some failures, such as an
    /// interrupted or disk-filling write. PostgreSQL takes nothing but its undoing after any failure.
    pub fn in_transaction(&self) -> bool;
}

of_sqlite! {
    /// Bounds the memory of the component's statement that runs until the result is dropped. A server has its own memory.
    pub(super) fn bound_memory(&self) -> Option<Armed>, or None;
    /// Copies what was committed from the write-ahead log into the file, beside whoever reads or writes.
    /// Pages that somebody still reads past stay in the log. A server does that by itself.
    pub fn checkpoint(&self) -> StoreResult<()>, or Ok(());
    /// Lets the next in line write, unless a transaction is open. On a server the turn ends with the transaction.
    pub fn end_turn(&self), or ();
    /// Pages in use: those of the file less those on the free list. None on a server, where no quota is kept by them.
    pub fn pages(&self) -> StoreResult<i64>, or Ok(0);
    /// Makes room for the host's own rows if a component's limit left hardly any.
    pub fn lift_limit(&self) -> StoreResult<()>, or Ok(());
}

impl Session {
    /// True if the last transaction ended because the connection to a server was lost, or could not be made.
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

    /// A session on a server whose tables are up to date.
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

    /// The connection to SQLite, for what only SQLite has.
    pub(super) fn sqlite(&self) -> StoreResult<&Sqlite> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite),
            Engine::Postgres(_) => Err(StoreError::of_sqlite_alone()),
        }
    }

    /// Last evidence of the open transaction, or of the one before, that it was committed.
    pub fn written(&self) -> Option<Written> {
        self.written.borrow().clone()
    }

    /// True if the open transaction wrote a row of the ledger.
    pub(super) fn has_row(&self) -> bool {
        matches!(&*self.written.borrow(), Some(Written::Row { .. }))
    }

    /// Notes that a state of a work tree is added that no row holds yet.
    pub(super) fn add_state(&self) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.add_state();
        }
    }

    fn begin_anew(&self) {
        self.known_head.set(None);
        self.written.replace(None);
    }

    /// Prepares a component's statements from now on, under its deadline.
    pub fn enter(&self, namespace: &Namespace, deadline: &Deadline) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.enter(namespace, deadline),
            Engine::Postgres(postgres) => postgres.limit_time(deadline),
        }
    }

    /// Bounds time and memory of what runs until [`leave`](Session::leave), the host's own statements in between
    /// included.
    pub(super) fn begin_bounds(&self, deadline: &Deadline, memory: u64) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_bounds(deadline, memory),
            Engine::Postgres(postgres) => postgres.limit_time(deadline),
        }
    }

    /// Keeps the file from growing by more than `remaining` pages. The limit stays until
    /// [`lift_limit`](Session::lift_limit), because setting it anew for each call would cost more
    /// than it protects.
    pub fn limit_growth(&self, remaining: i64) -> StoreResult<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.limit_growth(remaining),
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// True if a statement of the host's failed and nothing but undoing works, of the transaction or of the part since the last
    /// savepoint. SQLite undoes the one statement, and goes on.
    pub fn is_failed(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.is_failed(),
        }
    }

    /// Components with tables whose statements run as the role of the server's URL. None in a file, where there are no roles.
    pub fn without_roles(&self) -> StoreResult<Vec<String>> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(postgres) => postgres.without_roles(),
        }
    }

    /// True if a host that starts can make roles for components on the server.
    pub fn may_make_roles(&self) -> StoreResult<bool> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(false),
            Engine::Postgres(postgres) => postgres.may_make_roles(),
        }
    }

    /// On a server, has beginnings of transactions travel with their first statement, which saves a trip, or sends them by themselves,
    /// which is how it is at first. One that travels waits for its turn for a moment only.
    pub fn begin_late(&self, is_late: bool) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.begin_late(is_late);
        }
    }

    /// True if the last transaction could not begin when its first statement came, because its turn did not come or the connection was
    /// lost, or if it had to give way to another one. Nothing of it was done, so it may begin anew, by itself.
    /// Until a transaction begins every statement is refused.
    pub fn must_begin_anew(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.must_begin_anew(),
        }
    }

    /// Waits for turns and locks of write transactions on a server for no longer than this. Those that do not come fail as busy.
    pub fn wait_at_most(&self, time: Duration) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.wait_at_most(time);
        }
    }

    /// Runs `body` with the host's rights in the middle of a component's call. A statement that is
    /// prepared already is not judged again, so only its first use needs this.
    pub fn as_host<T>(&self, body: impl FnOnce() -> T) -> T {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.as_host(body),
            Engine::Postgres(_) => body(),
        }
    }

    /// Starts a write transaction, after all that other sessions and processes asked for before.
    pub fn begin_write(&self) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write(),
            Engine::Postgres(postgres) => postgres.begin_write(),
        }
    }

    /// Starts a write transaction beside those of other hosts of a server. Those that write alone wait for it. In a file it is
    /// like any other.
    pub fn begin_write_among(&self, among: &Among) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write(),
            Engine::Postgres(postgres) => postgres.begin_write_among(among),
        }
    }

    /// Starts a snapshot that sees all rows of a pack whose numbers are lower than the highest one that it sees: on a server, calls of the
    /// pack that are at work end before. Fails as busy if they do not end soon. In a file there is one at a time.
    pub fn begin_read_of_feed(&self, pack: &str) -> StoreResult<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_read(),
            Engine::Postgres(postgres) => postgres.begin_read_of_feed(pack),
        }
    }

    /// The same for a call that waits no longer than until its deadline. Fails as busy then.
    pub fn begin_write_before(&self, deadline: &Deadline) -> StoreResult<()> {
        self.begin_anew();
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_write_before(deadline),
            Engine::Postgres(postgres) => postgres.begin_write_before(deadline),
        }
    }
}
