//! One session on a PostgreSQL server.

mod component;
mod error;
mod examine;
mod faults;
pub(in crate::storage) mod migrate;
mod pristine;
mod provision;
mod roles;
mod run;
mod savepoints;
mod schema;
mod server;
mod settings;
mod statement;
#[cfg(test)]
mod tests;
mod tls;
mod turns;
mod values;
mod wire;

use std::cell::{Cell, Ref, RefCell};

use tokio_postgres::Statement;
use tollgate_core::deadline::Deadline;
use tollgate_sql::postgres::Verb;

use self::component::Guard;
use self::run::{LastRow, Shared};
use self::savepoints::CallGuard;
use self::statement::{Cache, numbered};
use self::wire::Wire;
use super::Text;
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::{Access, Changes};

pub(in crate::storage) use self::error::Failure;
pub use self::examine::{Examined, Weight};
pub use self::provision::{ProvisionError, Provisioned, Wanted};
pub use self::roles::Roles;
pub(in crate::storage) use self::run::{Prepared, ROW_SETTING};
pub(in crate::storage) use self::schema::prepare;
pub(in crate::storage) use self::server::mark_of_hosts;
pub use self::server::{Server, ServerError};
pub(in crate::storage) use self::settings::lock_key;
pub(super) use self::values::column;

/// Query whether a work tree state waits for a row that adds it to the chain.
pub(in crate::storage) const STATES_WAIT: &str =
    "SELECT EXISTS (SELECT 1 FROM core_states_after WHERE chained_seq IS NULL)
    OR EXISTS (SELECT 1 FROM core_work_tree_states WHERE chained_seq IS NULL)";

/// One session on PostgreSQL.
pub(in crate::storage) struct Postgres {
    server: Server,
    access: Access,
    wire: RefCell<Wire>,
    statements: RefCell<Cache>,
    deadline: RefCell<Option<Deadline>>,
    transaction: Cell<Transaction>,
    /// True if the open transaction only reads, so that its outcome does not matter.
    only_reads: Cell<bool>,
    /// True if the last transaction was lost with its connection, and the host did not close the connection itself.
    was_lost: Cell<bool>,
    guard: Cell<Guard>,
    /// Savepoint of a call in the open transaction.
    call: Cell<CallGuard>,
    /// Savepoint SQL of a batch that is sent with the next statement.
    due_batch: RefCell<Option<String>>,
    /// Rows that are being visited, of the innermost statement.
    visited: RefCell<Option<Shared>>,
    /// Rows that the component's statements changed since the last query.
    changes: RefCell<Changes>,
    /// Number that grows with these rows and is never reset.
    row_changes: Cell<u64>,
    /// Row of the ledger that is sent with the next message.
    last_row: RefCell<Option<LastRow>>,
    /// Longest time that a write transaction waits for locks, in milliseconds.
    longest_wait_ms: Cell<u128>,
    /// False if no work tree state waited for a row when the transaction began, and the session has added none since.
    states_wait: Cell<Option<bool>>,
    /// True if BEGIN is sent together with the first statement.
    begins_late: Cell<bool>,
    /// BEGIN of the open transaction that was not sent yet.
    due_begin: RefCell<Option<String>>,
    /// True if the last transaction could not begin when its first statement came, so that nothing was done.
    must_begin_anew: Cell<bool>,
}

/// State of the session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement failed. The server accepts nothing until the transaction, or part of it, is rolled back.
    Failed,
}

impl Postgres {
    /// Opens a session. The schema must exist.
    pub(in crate::storage) fn open(server: &Server, access: Access) -> StoreResult<Postgres> {
        let wire = settings::session(server, access)?;
        Ok(Postgres {
            server: server.clone(),
            access,
            wire: RefCell::new(wire),
            statements: RefCell::default(),
            deadline: RefCell::new(None),
            transaction: Cell::new(Transaction::None),
            only_reads: Cell::new(false),
            was_lost: Cell::new(false),
            guard: Cell::new(Guard::None),
            call: Cell::new(CallGuard::None),
            due_batch: RefCell::default(),
            visited: RefCell::new(None),
            changes: RefCell::default(),
            row_changes: Cell::new(0),
            last_row: RefCell::default(),
            longest_wait_ms: Cell::new(u128::MAX),
            states_wait: Cell::new(None),
            begins_late: Cell::new(false),
            due_begin: RefCell::default(),
            must_begin_anew: Cell::new(false),
        })
    }

    /// Schema of the host's own tables.
    pub(in crate::storage) fn schema(&self) -> &str {
        &self.server.schema
    }

    /// Name under which the state of a workspace's work tree is stored. Each data directory has its own work trees.
    pub(in crate::storage) fn work_tree_of(&self, workspace: &str) -> String {
        match self.server.served.get() {
            Some(served) => format!("{}/{workspace}", served.place),
            None => workspace.to_owned(),
        }
    }

    /// False if no work tree state waits for a row. `None` if that is unknown without a query.
    pub(in crate::storage) fn states_wait(&self) -> Option<bool> {
        self.states_wait.get()
    }

    /// Records that a state may wait, because one is added.
    pub(in crate::storage) fn add_state(&self) {
        self.states_wait.set(None);
    }

    /// Table of an owner, with its schema.
    pub(in crate::storage) fn table_of(&self, owner: &str, table: &str) -> String {
        format!("{}.{table}", settings::quoted(&self.server.schema_of(owner)))
    }

    /// Allows longer pauses in the open transaction, because its next statement depends on another database.
    pub(in crate::storage) fn allow_pauses(&self) -> StoreResult<()> {
        self.script("SET LOCAL idle_in_transaction_session_timeout = '10min'")
    }

    fn wire(&self) -> Ref<'_, Wire> {
        self.wire.borrow()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.deadline.borrow().clone()
    }

    fn visited(&self) -> Option<Shared> {
        self.visited.borrow().clone()
    }

    /// Sets the rows that are visited now, and returns the previous ones.
    fn visit_now(&self, rows: Option<Shared>) -> Option<Shared> {
        self.visited.replace(rows)
    }

    /// Records a possible write by the host, which a component's failed statement must not undo.
    fn pass_guard(&self) {
        if self.guard.get() == Guard::Fresh {
            self.guard.set(Guard::Passed);
        }
    }

    fn kept(&self, sql: &str) -> Option<Statement> {
        self.statements.borrow_mut().get(sql)
    }

    fn prepare_anew(&self, sql: Text<'_>) -> StoreResult<Statement> {
        self.make_way()?;
        let deadline = self.deadline();
        let statement = self.seen(self.wire().prepare(&numbered(sql.sql), deadline.as_ref()))?;
        if sql.is_kept {
            self.statements.borrow_mut().keep(sql.sql, &statement);
        }
        Ok(statement)
    }

    /// Records whether the result of a round trip ends the transaction. Every result passes through here, because
    /// PostgreSQL answers COMMIT after a failure with a rollback and without an error.
    fn seen<T>(&self, result: Result<T, Failure>) -> StoreResult<T> {
        if let Err(failure) = &result {
            if matches!(failure.kind(), StoreFailure::Lost | StoreFailure::Unknown) || self.wire().is_closed()
            {
                // Whatever state the connection is in, its transaction must not continue.
                self.wire().give_up();
                if self.in_transaction() {
                    self.was_lost.set(failure.kind() == StoreFailure::Lost);
                }
                self.transaction.set(Transaction::None);
            } else if failure.code().is_some() && self.transaction.get() == Transaction::Open {
                self.transaction.set(Transaction::Failed);
            }
        }
        Ok(result?)
    }

    fn script(&self, sql: &str) -> StoreResult<()> {
        self.make_way()?;
        self.seen(self.wire().script(sql, None))
    }

    /// Runs statements under the session's deadline.
    fn script_in_time(&self, sql: &str) -> StoreResult<()> {
        self.make_way()?;
        let deadline = self.deadline();
        self.seen(self.wire().script(sql, deadline.as_ref()))
    }

    /// Reconnects if the connection was lost. No transaction is open.
    fn connect_anew(&self) -> StoreResult<()> {
        if self.wire().is_closed() {
            let wire = settings::session(&self.server, self.access)?;
            self.statements.borrow_mut().clear();
            self.wire.replace(wire);
        }
        Ok(())
    }

    /// Commits the transaction durably.
    pub(in crate::storage) fn commit(&self) -> StoreResult<()> {
        if let CallGuard::Due { is_first } = self.call.get() {
            self.forget_due(is_first);
        }
        self.take_over()?;
        match self.transaction.get() {
            Transaction::None => Err(Failure::seen(StoreFailure::Lost, "no transaction is open").into()),
            Transaction::Failed => {
                self.rollback()?;
                let what = "a statement of the transaction failed, so the transaction was rolled back";
                Err(Failure::seen(StoreFailure::Other, what).into())
            }
            Transaction::Open => {
                self.transaction.set(Transaction::None);
                if self.due_begin.take().is_some() {
                    // Nothing was sent in it.
                    return Ok(());
                }
                if self.wire().is_closed() {
                    self.was_lost.set(true);
                    let what = "the connection was lost before the transaction could be committed";
                    return Err(Failure::seen(StoreFailure::Lost, what).into());
                }
                let committed = self.commit_with_row();
                if self.only_reads.get() && committed.is_err() {
                    // The transaction only read, so its results are valid.
                    self.wire().give_up();
                    return Ok(());
                }
                let failure = committed.as_ref().err().map(Failure::kind);
                self.was_lost.set(matches!(
                    failure,
                    Some(StoreFailure::Lost | StoreFailure::Unknown)
                ));
                Ok(committed?)
            }
        }
    }

    /// Rolls back the transaction. Fails if none is open.
    pub(in crate::storage) fn rollback(&self) -> StoreResult<()> {
        self.call.set(CallGuard::None);
        self.due_batch.take();
        self.last_row.take();
        if self.due_begin.take().is_some() {
            self.transaction.set(Transaction::None);
            return Ok(());
        }
        self.make_way()?;
        if !self.in_transaction() {
            return Err(Failure::seen(StoreFailure::Other, "no transaction is open").into());
        }
        self.transaction.set(Transaction::None);
        Ok(self.wire().script("ROLLBACK", None)?)
    }

    /// Counts rows that a component's statement changed.
    fn count(&self, table: &str, verb: Verb, rows: u64) {
        if rows == 0 {
            return;
        }
        self.add_row_changes(rows);
        let mut changes = self.changes.borrow_mut();
        let counts = changes.entry(table.to_owned()).or_default();
        counts[match verb {
            Verb::Insert => 0,
            Verb::Update => 1,
            Verb::Delete => 2,
        }] += rows;
    }

    fn add_row_changes(&self, rows: u64) {
        self.row_changes.set(self.row_changes.get().wrapping_add(rows));
    }

    /// A number that grows whenever a component's statement changes rows.
    pub(in crate::storage) fn row_changes(&self) -> u64 {
        self.row_changes.get()
    }

    /// Changes by the component's statements since the last query.
    pub(in crate::storage) fn take_changes(&self) -> Changes {
        self.changes.take()
    }

    /// Resets the counted changes to earlier ones.
    pub(in crate::storage) fn set_changes(&self, changes: Changes) {
        self.changes.replace(changes);
    }

    /// True if a statement of the transaction failed, so that only a rollback, full or partial, is possible.
    pub(in crate::storage) fn is_failed(&self) -> bool {
        self.transaction.get() == Transaction::Failed
    }

    /// True if a transaction is open, failed or not.
    pub(in crate::storage) fn in_transaction(&self) -> bool {
        self.transaction.get() != Transaction::None
    }

    /// True if a transaction is open and none of its statements failed.
    pub(in crate::storage) fn is_open(&self) -> bool {
        self.transaction.get() == Transaction::Open
    }

    /// True if the last transaction was lost with its connection, or had none.
    pub(in crate::storage) fn is_lost(&self) -> bool {
        self.was_lost.get()
    }

    /// Runs statements in sequence. Only for tests.
    #[cfg(test)]
    pub(in crate::storage) fn run_script(&self, sql: &str) -> StoreResult<()> {
        self.pass_guard();
        self.script(sql)
    }

    /// Sets a deadline for the host's own statements.
    pub(in crate::storage) fn limit_time(&self, deadline: &Deadline) {
        self.deadline.replace(Some(deadline.clone()));
    }

    /// Removes the deadline from the host's own statements.
    pub(in crate::storage) fn leave(&self) {
        self.deadline.replace(None);
    }

    /// A number that changes with each commit of another session.
    pub(in crate::storage) fn data_version(&self) -> StoreResult<i64> {
        self.make_way()?;
        let said = self.seen(self.wire().ask(settings::DATA_VERSION))?;
        let text = said.first().and_then(Option::as_deref);
        text.and_then(|text| text.parse().ok())
            .ok_or_else(StoreError::no_row)
    }

    /// Makes later transactions read-only.
    pub(in crate::storage) fn freeze(&self) -> StoreResult<()> {
        self.script("SET default_transaction_read_only = on")
    }

    /// Makes later transactions writable again.
    pub(in crate::storage) fn thaw(&self) -> StoreResult<()> {
        self.script("SET default_transaction_read_only = off")
    }
}

/// True for an id generated by the host, which can be embedded in a statement unquoted.
pub(in crate::storage) fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
