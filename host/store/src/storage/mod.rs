//! The database of a data directory, or on a server: the only module that knows its engine.
//!
//! A [`Session`] is one hardened connection. The gate's writer thread owns one, each reader thread
//! another. What a session does with the host's tables is in the methods of small handles, one for
//! each subject: [`Session::envelopes`], [`Session::ledger`] and so on. Components reach a session
//! only through `view::storage`, with the session put into their namespace first, and SQLite itself
//! refuses what lies outside.

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
mod value;
mod verify;
mod work_trees;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::engine::sqlite::{memory, migrate, place};
use self::engine::{Engine, postgres};

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
pub use engine::postgres::{
    Examined, ProvisionError, Provisioned, Roles, Server, ServerError, Wanted, Weight,
};
pub use engine::sqlite::PAGE;
pub use engine::sqlite::copies::{Compacted, CopyError};
pub use engine::sqlite::migrate::{MigrationError, Step};
pub use engine::sqlite::schema::Misplaced;
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
pub use outcome::{Outcome, Ran, TestRun};
pub use permits::Slots;
pub(crate) use pieces::PIECE;
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

/// Makes SQLite ready for a [`Database`]. A program that uses SQLite by itself as well calls this before.
pub fn prepare() -> StoreResult<()> {
    Ok(memory::install()?)
}

/// A session on a database of its own in memory, with the host's tables and those of components.
pub fn scratch<'a>(
    components: impl Iterator<Item = (&'a Namespace, &'a [Step])>,
) -> Result<Session, MigrationError> {
    let session = Session::open(Path::new(":memory:"), session::Access::Memory)?;
    migrate::apply_core(&session)?;
    migrate::apply_together(&session, components).map_err(|(_, err)| err)?;
    Ok(session)
}

/// A session on an empty database of its own in memory.
pub fn nowhere() -> Result<Session, OpenError> {
    Session::open(Path::new(":memory:"), session::Access::Memory)
}

/// Place of the database, and the settings of its sessions.
#[derive(Debug, Clone)]
pub struct Database {
    at: At,
    heads: heads::Heads,
    clock: DatabaseClock,
}

/// Place of a database.
#[derive(Debug, Clone)]
enum At {
    /// A file of SQLite.
    File {
        path: PathBuf,
        /// The file that the path named when the first session was opened.
        opened: Arc<OnceLock<place::File>>,
    },
    /// A PostgreSQL server.
    Server(Box<Server>),
}

impl Database {
    /// Opens or creates the database and brings the host's own tables up to date.
    pub fn open(path: &Path) -> Result<Database, MigrationError> {
        let database = Database::existing(path);
        let session = database.write_session()?;
        migrate::apply_core(&session).map_err(|err| explained(&session, err))?;
        report_misplaced(&session);
        Ok(database)
    }

    /// A database that is what it is: nothing in it is brought up to date.
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

    /// Connects to a PostgreSQL server, checks that it is one to rely on, and brings the host's own tables up to date.
    pub fn connect(server: Server) -> Result<Database, MigrationError> {
        let server = server.of_nobody();
        let session = Session::on_server(&server, session::Access::Write)?;
        postgres::prepare(&session, &server)?;
        report_misplaced(&session);
        let database = Database::on(server);
        database.clock.set(&session)?;
        Ok(database)
    }

    /// A database on a server as it is. Nothing is checked or brought up to date.
    pub fn on(server: Server) -> Database {
        Database {
            at: At::Server(Box::new(server.of_nobody())),
            heads: heads::Heads::default(),
            clock: DatabaseClock::default(),
        }
    }

    /// True if it is on a server, so that hosts of several machines may work with it.
    pub fn is_on_server(&self) -> bool {
        matches!(self.at, At::Server(_))
    }

    /// The clock by which times of envelopes count: the machine's, or that of the server.
    pub fn clock(&self) -> StoreResult<Arc<DatabaseClock>> {
        if self.is_on_server() && !self.clock.is_set() {
            self.clock
                .set(&self.read_session().map_err(OpenError::into_cause)?)?;
        }
        Ok(Arc::new(self.clock.clone()))
    }

    /// Sets the clock by what a server said of its time just now.
    pub(crate) fn heard_time(&self, server_ms: i64) {
        self.clock.set_to(server_ms);
    }

    /// Notes which host of a server's database this is. Its write transactions fail from now on when others have buried it.
    pub(crate) fn serve(&self, host: &str, place: &str, lease: Duration) {
        if let At::Server(server) = &self.at {
            server.serve(host, place, lease);
        }
    }

    /// Notes the longest lease of all hosts of a server's database, because a host that hangs has its locks for as long.
    pub(crate) fn note_lease(&self, lease_ms: i64) {
        if let At::Server(server) = &self.at {
            server.note_lease(lease_ms);
        }
    }

    /// A secret that all hosts of a server's database share. None if the database is a file, whose hosts share a directory.
    pub fn shared_secret(&self, name: &str) -> StoreResult<Option<[u8; 32]>> {
        if !self.is_on_server() {
            return Ok(None);
        }
        let session = self.write_session().map_err(OpenError::into_cause)?;
        session.roster().secret(name).map(Some)
    }

    /// Says how to look up the commit that a workspace is at, for envelopes that end.
    pub fn know_heads(&self, head_of: HeadOf) {
        self.heads.know(head_of);
    }

    /// Number of calls that write side by side on a server. None in a file, where one commit has all that wait.
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

    /// A session that the engine keeps from writing.
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

    /// Takes a lock of the server, unless a session has it, on whatever host. The session that is returned has it until it
    /// is dropped or loses its connection. A database in a file has no such locks.
    pub fn try_lock(&self, name: &str) -> StoreResult<Option<Session>> {
        let session = self.read_session().map_err(OpenError::into_cause)?;
        let has_it = match &session.engine {
            Engine::Postgres(postgres) => postgres.try_lock(name)?,
            Engine::Sqlite(_) => return Err(StoreError::of_servers_alone()),
        };
        Ok(has_it.then_some(session))
    }

    /// The file of a database that is one.
    fn file(&self) -> StoreResult<&Path> {
        match &self.at {
            At::File { path, .. } => Ok(path),
            At::Server(_) => Err(StoreError::of_sqlite_alone()),
        }
    }

    /// Packs that have tables here, whether they are loaded or not.
    pub fn packs_with_tables(&self) -> Result<Vec<String>, MigrationError> {
        migrate::packs(&self.read_session()?)
    }

    /// Applies a component's migrations that are not applied yet, in one transaction.
    pub fn migrate(&self, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
        let session = self.write_session()?;
        migrate::apply(&session, namespace, steps)?;
        self.forget_roles();
        Ok(())
    }

    /// Forgets what is known of the roles of components, which migrations make.
    fn forget_roles(&self) {
        if let At::Server(server) = &self.at {
            server.forget_roles();
        }
    }

    /// Checks that [`migrate`](Database::migrate) would work. Nothing is changed.
    pub fn try_migrate(&self, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
        let session = self.write_session()?;
        migrate::try_out(&session, namespace, steps)
    }

    /// The same for many components in one transaction: all or none. The error names whose it was.
    pub fn migrate_together<'a>(
        &self,
        components: impl Iterator<Item = (&'a Namespace, &'a [Step])>,
    ) -> Result<(), (String, MigrationError)> {
        let whole = |err: MigrationError| (String::new(), err);
        let session = self.write_session().map_err(|err| whole(err.into()))?;
        migrate::apply_together(&session, components)?;
        self.forget_roles();
        Ok(())
    }
}

/// Fails if a path names another file than the first session opened.
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

/// The failure, with what is in the way of the host's own statements if something is.
fn explained(session: &Session, err: MigrationError) -> MigrationError {
    match err {
        MigrationError::Record(err) => MigrationError::Record(session.maintenance().explain(err)),
        other => other,
    }
}

/// Tells the operator what is in the database and should not be there. Whoever only looks at it can still do so.
fn report_misplaced(session: &Session) {
    match session.maintenance().misplaced_at_a_glance() {
        Ok(found) => {
            for object in found {
                tracing::error!(
                    "the database has what it should not have: {object}; see `tollgate doctor`, which says how to fix it"
                );
            }
        }
        Err(err) => tracing::error!("the schema of the database was not checked: {err}"),
    }
}
