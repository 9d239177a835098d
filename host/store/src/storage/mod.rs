//! The database of a data directory or on a server. The only module that depends on a database engine.
//!
//! A [`Session`] is one hardened connection. The gate's writer thread owns one, and each reader thread another. The
//! operations of a session on the host's tables are methods of small handles, one for each subject:
//! [`Session::envelopes`], [`Session::ledger`] and so on. Components reach a session only through `view::storage`,
//! after the session has entered their namespace, and SQLite itself refuses access to anything outside.

mod access;
mod anchors;
mod approvals;
mod artifacts;
mod bounds;
mod budgets;
mod clock;
mod component_sql;
mod connections;
mod consents;
mod counted;
mod definitions;
mod endings;
mod engine;
mod envelopes;
mod error;
mod evidence;
mod export;
mod failing;
#[cfg(test)]
pub(crate) mod fixture;
mod found;
mod functions;
mod handles;
mod heads;
#[cfg(test)]
mod hostile_sql;
mod intents;
mod ledger;
mod members;
mod newest_states;
mod of_packs;
mod operations;
mod outcome;
mod over;
mod permits;
mod pieces;
mod prune;
mod recollection;
mod recount;
mod repeats;
mod restarts;
mod roster;
mod row_events;
mod session;
mod states_after;
mod states_found;
mod stats;
mod status;
#[cfg(test)]
mod tampering;
mod tasks;
mod totals;
mod transfer;
mod unchained;
mod value;
mod verify;
mod work_trees;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::engine::sqlite::{self, memory, place};
use self::engine::{Engine, postgres};
use self::engine::{migrate, steps};

pub use access::{Bounds, Namespace};
pub use anchors::Anchor;
pub use approvals::{
    Answered, ApprovalFilter, AskedBy, MAX_PENDING, MAX_PENDING_OF_ONE, NewApproval, PolicyRow,
    StoredApproval,
};
pub use artifacts::StoredArtifact;
pub use budgets::Reservation;
pub use clock::DatabaseClock;
pub use component_sql::SqlError;
pub use counted::{CountedRow, CountedVerdict, Times};
pub use definitions::Remembered;
pub use endings::{Ending, WORK_TREES, opened};
pub use engine::misplaced::Misplaced;
pub use engine::postgres::{
    Examined, ProvisionError, Provisioned, Roles, Server, ServerError, Wanted, Weight,
};
pub use engine::sqlite::PAGE_BYTES;
pub use engine::sqlite::copies::{Compacted, CopyError};
pub use engine::steps::{MigrationError, MigrationStep};
pub use envelopes::{Admission, Admitted, Envelope, EnvelopeFilter, MAX_DEPTH};
pub use error::{StoreError, StoreFailure, StoreResult};
pub use evidence::{Restored, TestRow, started};
pub use export::ExportedRow;
pub use found::{FoundOperation, TestedStates};
pub use handles::{
    Approvals, Artifacts, Budgets, Components, Connections, Envelopes, Evidence, Intents, Ledger,
    Maintenance, Operations, Permits, Pieces, PolicyMemory, Roster, Stats, Tasks, WorkTrees,
};
pub use heads::HeadOf;
pub use ledger::{Head, OpType, Operation};
pub use members::MemberCall;
pub use of_packs::{ColumnOf, TextFound, TextOf};
pub use operations::{OperationFilter, SaidByPolicy, StoredOperation, claim, claimed_actor};
pub use outcome::{Ran, StoredTestOutcome, TestRun};
pub use permits::Slots;
pub(crate) use pieces::PIECE_BYTES;
pub use prune::{PruneBatch, PruneError, Pruned, Retention};
pub use recollection::{MemoryOwner, Recollection};
pub use repeats::{RepeatedFailure, SaidOfTests};
pub use restarts::LeftState;
pub use roster::{Member, NewMember};
pub use session::{Among, Changes, OpenError, Session, Written};
pub use stats::{Bucket, By, PolicyTally, Tallied, Tally, TallyQuery, ToolStats};
pub use status::{Applied, DatabaseStatus};
pub use tasks::{
    MAX_REPLY, MAX_RESUMED, NewTask, QUESTIONS_OF_TASKS, StoredTask, TaskCounts, TaskEnd, TaskFilter,
};
pub use tollgate_sql::Problems;
pub use transfer::{Side, Transfer, TransferError, Transferred, TransferredTable};
pub use value::{Statement, Value};
pub use verify::{Broken, Verified};
pub use work_trees::{Cause, Sighting, TreeState, WorkTreeProgress};

/// Prepares SQLite for a [`Database`]. A program that also uses SQLite directly must call this first.
pub fn prepare() -> StoreResult<()> {
    Ok(memory::install()?)
}

/// Session on a separate in-memory database, with the tables of the host and of components.
pub fn scratch<'a>(
    components: impl Iterator<Item = (&'a Namespace, &'a [MigrationStep])>,
) -> Result<Session, MigrationError> {
    let session = Session::open(Path::new(":memory:"), session::Access::Memory)?;
    sqlite::migrate::apply_core(&session)?;
    migrate::apply_together(&session, components).map_err(|(_, err)| err)?;
    Ok(session)
}

/// Session on an empty in-memory database.
pub fn empty_session() -> Result<Session, OpenError> {
    Session::open(Path::new(":memory:"), session::Access::Memory)
}

/// Location of the database, and the settings of its sessions.
#[derive(Debug, Clone)]
pub struct Database {
    at: At,
    heads: heads::Heads,
    clock: DatabaseClock,
}

/// Location of a database.
#[derive(Debug, Clone)]
enum At {
    /// A SQLite file.
    File {
        path: PathBuf,
        /// Identity of the file when the first session was opened.
        opened: Arc<OnceLock<place::File>>,
    },
    /// A PostgreSQL server.
    Server(Box<Server>),
}

impl Database {
    /// Opens or creates the database and migrates the host's own tables.
    pub fn open(path: &Path) -> Result<Database, MigrationError> {
        let database = Database::existing(path);
        let session = database.write_session()?;
        let was_empty = sqlite::migrate::apply_core(&session).map_err(|err| explained(&session, err))?;
        if !was_empty {
            report_misplaced(&session);
        }
        Ok(database)
    }

    /// Database in its present state, without migrations.
    pub fn existing(path: &Path) -> Database {
        Database {
            at: At::File {
                path: path.to_owned(),
                opened: Arc::default(),
            },
            heads: heads::Heads::default(),
            clock: DatabaseClock::default(),
        }
    }

    /// Connects to a PostgreSQL server, checks it, and migrates the host's own tables.
    pub fn connect(server: Server) -> Result<Database, MigrationError> {
        let server = server.of_nobody();
        let session = Session::on_server(&server, session::Access::Write)?;
        postgres::prepare(&session, &server)?;
        report_misplaced(&session);
        let database = Database::on(server);
        database.clock.set(&session)?;
        Ok(database)
    }

    /// Database on a server in its present state, without checks or migrations.
    pub fn on(server: Server) -> Database {
        Database {
            at: At::Server(Box::new(server.of_nobody())),
            heads: heads::Heads::default(),
            clock: DatabaseClock::default(),
        }
    }

    /// True if it is on a server, so that hosts on several machines may use it.
    pub fn is_on_server(&self) -> bool {
        matches!(self.at, At::Server(_))
    }

    /// Clock for the times of envelopes: the machine's, or the server's.
    pub fn clock(&self) -> StoreResult<Arc<DatabaseClock>> {
        if self.is_on_server() && !self.clock.is_set() {
            self.clock
                .set(&self.read_session().map_err(OpenError::into_cause)?)?;
        }
        Ok(Arc::new(self.clock.clone()))
    }

    /// Sets the clock by a time that a server just reported.
    pub(crate) fn heard_time(&self, server_ms: i64) {
        self.clock.set_to(server_ms);
    }

    /// Sets this host's id for a server's database. From now on its write transactions fail after other hosts have
    /// declared it dead.
    pub(crate) fn serve(&self, host: &str, place: &str, lease: Duration) {
        if let At::Server(server) = &self.at {
            server.serve(host, place, lease);
        }
    }

    /// Records the longest lease of all hosts on a server's database, because a host that hangs keeps its locks for
    /// that long.
    pub(crate) fn note_lease(&self, lease_ms: i64) {
        if let At::Server(server) = &self.at {
            server.note_lease(lease_ms);
        }
    }

    /// Secret that all hosts of a server's database share. `None` for a file, whose hosts share a directory.
    pub fn shared_secret(&self, name: &str) -> StoreResult<Option<[u8; 32]>> {
        if !self.is_on_server() {
            return Ok(None);
        }
        let session = self.write_session().map_err(OpenError::into_cause)?;
        session.roster().secret(name).map(Some)
    }

    /// Sets the lookup of workspaces' commits, for envelopes that end.
    pub fn know_heads(&self, head_of: HeadOf) {
        self.heads.know(head_of);
    }

    /// Number of concurrent writing calls on a server. `None` for a file, where one commit holds all waiting calls.
    pub fn lanes(&self) -> Option<NonZeroUsize> {
        match &self.at {
            At::File { .. } => None,
            At::Server(server) => Some(server.lanes),
        }
    }

    /// A session that may write.
    pub fn write_session(&self) -> Result<Session, OpenError> {
        let mut session = self.session(session::Access::Write)?;
        session.heads = self.heads.clone();
        Ok(session)
    }

    /// A session that the engine makes read-only.
    pub fn read_session(&self) -> Result<Session, OpenError> {
        self.session(session::Access::Read)
    }

    fn session(&self, access: session::Access) -> Result<Session, OpenError> {
        let (path, opened) = match &self.at {
            At::File { path, opened } => (path, opened),
            At::Server(server) => return Session::on_server(server, access),
        };
        check_place(path, opened)?;
        let session = Session::open(path, access)?;
        check_place(path, opened)?;
        Ok(session)
    }

    /// Takes a lock on the server, unless any session on any host holds it. The returned session holds the lock until
    /// it is dropped or loses its connection. A database file has no such locks.
    pub fn try_lock(&self, name: &str) -> StoreResult<Option<Session>> {
        let session = self.read_session().map_err(OpenError::into_cause)?;
        let has_it = match &session.engine {
            Engine::Postgres(postgres) => postgres.try_lock(name)?,
            Engine::Sqlite(_) => return Err(StoreError::of_servers_alone()),
        };
        Ok(has_it.then_some(session))
    }

    /// File of the database, if it is one.
    fn file(&self) -> StoreResult<&Path> {
        match &self.at {
            At::File { path, .. } => Ok(path),
            At::Server(_) => Err(StoreError::of_sqlite_alone()),
        }
    }

    /// Packs that have tables here, loaded or not.
    pub fn packs_with_tables(&self) -> Result<Vec<String>, MigrationError> {
        steps::packs(&self.read_session()?)
    }

    /// Applies a component's migrations that are not applied yet, in one transaction.
    pub fn migrate(&self, namespace: &Namespace, steps: &[MigrationStep]) -> Result<(), MigrationError> {
        let session = self.write_session()?;
        migrate::apply(&session, namespace, steps)?;
        self.forget_roles();
        Ok(())
    }

    /// Clears the cached roles of components, which migrations create.
    fn forget_roles(&self) {
        if let At::Server(server) = &self.at {
            server.forget_roles();
        }
    }

    /// Checks that [`migrate`](Database::migrate) would work. Nothing is changed.
    pub fn try_migrate(&self, namespace: &Namespace, steps: &[MigrationStep]) -> Result<(), MigrationError> {
        let session = self.write_session()?;
        migrate::try_out(&session, namespace, steps)
    }

    /// Applies the migrations of many components in one transaction, all or none. The error names the component.
    pub fn migrate_together<'a>(
        &self,
        components: impl Iterator<Item = (&'a Namespace, &'a [MigrationStep])>,
    ) -> Result<(), (String, MigrationError)> {
        let whole = |err: MigrationError| (String::new(), err);
        let session = self.write_session().map_err(|err| whole(err.into()))?;
        migrate::apply_together(&session, components)?;
        self.forget_roles();
        Ok(())
    }
}

/// Fails if a path names another file than the one that the first session opened.
fn check_place(path: &Path, opened: &OnceLock<place::File>) -> Result<(), OpenError> {
    let Some(found) = place::file(path) else {
        return match opened.get() {
            None => Ok(()),
            Some(_) => Err(OpenError::moved(path)),
        };
    };
    match *opened.get_or_init(|| found) == found {
        true => Ok(()),
        false => Err(OpenError::moved(path)),
    }
}

/// Adds to an error the object that blocks the host's own statements, if there is one.
fn explained(session: &Session, err: MigrationError) -> MigrationError {
    match err {
        MigrationError::Record(err) => MigrationError::Record(session.maintenance().explain(err)),
        other => other,
    }
}

/// Logs objects that should not be in the database. Callers that only read can still do so.
fn report_misplaced(session: &Session) {
    match session.maintenance().misplaced_at_a_glance() {
        Ok(found) => {
            for object in found {
                tracing::error!(
                    "the database schema is not as expected: {object}; run `tollgate doctor` to see how to fix it"
                );
            }
        }
        Err(err) => tracing::error!("cannot check the schema of the database: {err}"),
    }
}
