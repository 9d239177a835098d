//! SQLite as the host of native tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::approvals::Requests;
use super::record::Record;
use super::workspaces::Workspaces;
use crate::budget::Reserved;
use crate::{
    Approval, ApprovalError, ApprovalRequest, ApprovalStatus, ArtifactError, ArtifactKind, BudgetError,
    Command, DbError, Envelope, Event, FileEntry, FoundOperation, Host, LedgerError, Level, Listing,
    Operation, OperationFilter, Outcome, ProcessError, Row, SeenWorkTree, Slot, TestOutcome, TestedTree,
    Transaction, Value, WorkTreeChange, WorkspaceError, WorkspaceInfo,
};

/// SQLite as a [`Host`], with a clock that is fixed within a call and sequential ids.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// let session = Session::new(&Pack::EMPTY);
/// // For testing a function that takes a context, without a tool around it.
/// let call = CallInfo::default();
/// let cx = Cx::new(session.backend(), &call);
/// assert_eq!(cx.envelope_id(), None);
/// ```
pub struct Sqlite {
    pub(super) db: Connection,
    /// Parser of the pack's statements, as in the host.
    pub(super) reader: tollgate_sql::Reader,
    pub(super) now: Cell<i64>,
    pub(super) step: Cell<i64>,
    pub(super) ids: RefCell<BTreeMap<String, u32>>,
    /// True in a call of a `Run` tool, which uses storage only through a transaction.
    pub(super) run: Cell<bool>,
    pub(super) in_transaction: Cell<bool>,
    pub(super) record: Record,
    pub(super) requests: Requests,
    pub(super) workspaces: Workspaces,
    pub(super) progress: RefCell<Vec<String>>,
}

/// Limits of the host's databases, so that a statement that the host refuses fails in tests as well.
const LIMITS: [(Limit, i32); 9] = [
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
];

/// A database as the host opens it: a name in quotes that nobody knows is an error, and no text.
pub(super) fn open() -> Connection {
    let db = Connection::open_in_memory().expect("an in-memory database opens");
    for quoted in [
        DbConfig::SQLITE_DBCONFIG_DQS_DML,
        DbConfig::SQLITE_DBCONFIG_DQS_DDL,
    ] {
        db.set_db_config(quoted, false).expect("SQLite has the setting");
    }
    for (limit, value) in LIMITS {
        db.set_limit(limit, value).expect("SQLite has the limit");
    }
    db
}

/// Sets the most queries that one statement joins with UNION, and returns the number before.
pub(super) fn set_joined(db: &Connection, most: i32) -> i32 {
    db.set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, most)
        .expect("SQLite has the limit")
}

impl Sqlite {
    fn reachable(&self) -> Result<(), DbError> {
        if self.run.get() && !self.in_transaction.get() {
            return Err(DbError::TransactionState(
                "a `run` tool reaches storage through a transaction".to_owned(),
            ));
        }
        Ok(())
    }

    fn read(&self, sql: &str) -> Result<std::sync::Arc<tollgate_sql::Statement>, DbError> {
        let read = self.reader.statement(sql);
        read.map_err(|refusal| DbError::Refused(refusal.to_string()))
    }

    /// Runs a statement directly in SQLite, for tests that inspect tables.
    pub(super) fn rows(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        let mut statement = self.db.prepare_cached(sql).map_err(db_error)?;
        let columns = statement.column_count();
        let mut rows = statement
            .query(rusqlite::params_from_iter(params.iter().map(Param)))
            .map_err(db_error)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(db_error)? {
            let values = (0..columns)
                .map(|column| row.get_ref(column).map(value).map_err(db_error))
                .collect::<Result<_, _>>()?;
            all.push(Row::new(values));
        }
        Ok(all)
    }
}

impl Host for Sqlite {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        self.reachable()?;
        let read = self.read(sql)?;
        self.rows(&read.sql, params)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        self.reachable()?;
        let read = self.read(sql)?;
        let mut statement = self.db.prepare_cached(&read.sql).map_err(db_error)?;
        let changed = statement
            .execute(rusqlite::params_from_iter(params.iter().map(Param)))
            .map_err(db_error)?;
        Ok(changed as u64)
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
        self.in_transaction.set(true);
        self.requests.begin();
        self.db.execute_batch("SAVEPOINT run").map_err(db_error)?;
        Ok(Box::new(Open {
            backend: self,
            committed: Cell::new(false),
        }))
    }

    fn now_ms(&self) -> i64 {
        self.now.get()
    }

    fn new_id(&self, prefix: &str) -> String {
        let mut ids = self.ids.borrow_mut();
        let count = ids.entry(prefix.to_owned()).or_default();
        *count += 1;
        format!("{prefix}_{count}")
    }

    fn log(&self, _level: Level, _message: &str) {}

    fn append_event(&self, event: &Event) -> Result<(), LedgerError> {
        self.record.append(event)
    }

    fn set_test_outcome(&self, outcome: &TestOutcome) -> Result<(), LedgerError> {
        self.record.test_outcome.replace(Some(outcome.clone()));
        Ok(())
    }

    fn seen_work_tree(&self, workspace: &str) -> Result<SeenWorkTree, LedgerError> {
        Ok(self
            .record
            .work_trees
            .borrow()
            .get(workspace)
            .cloned()
            .unwrap_or_default())
    }

    fn edits_over_envelopes(&self, workspace: &str) -> Result<Option<u64>, LedgerError> {
        Ok(self.record.edits_over_envelopes.borrow().get(workspace).copied())
    }

    fn changed_since(&self, workspace: &str, edits: u64) -> Result<Option<WorkTreeChange>, LedgerError> {
        let changes = self.record.work_tree_changes.borrow();
        Ok(changes.get(&(workspace.to_owned(), edits)).cloned())
    }

    fn query_ledger(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.record.query(filter)
    }

    fn query_whole(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.record.query_whole(filter)
    }

    fn find_operation(&self, op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
        self.record.find(op_id)
    }

    fn compare_work_tree(&self, op_id: &str, _workspace: &str) -> Result<TestedTree, LedgerError> {
        self.record.compare(op_id)
    }

    fn connection(&self) -> Option<String> {
        self.record.connection()
    }

    fn is_connected(&self, name: &str) -> bool {
        !self.record.ended.borrow().iter().any(|ended| ended == name)
    }

    fn take_once(&self, key: &str, _until_ms: i64) -> Result<bool, LedgerError> {
        Ok(self.record.is_free(key))
    }

    fn take_slot(&self, slot: &Slot) -> Result<Option<u64>, LedgerError> {
        Ok(self.record.take_slot(slot))
    }

    fn keep_artifact(&self, kind: ArtifactKind, content: &[u8]) -> Result<Option<String>, ArtifactError> {
        self.record.keep(kind, content, || self.new_id("art"))
    }

    fn ask_approval(&self, request: &ApprovalRequest) -> Result<Approval, ApprovalError> {
        self.requests.ask(request, self.now.get(), || self.new_id("apv"))
    }

    fn find_approval(&self, key: &str) -> Result<Option<Approval>, ApprovalError> {
        self.requests.find(key, self.now.get())
    }

    fn settle_approval(
        &self,
        key: &str,
        status: ApprovalStatus,
        by: Option<&str>,
        note: Option<&str>,
    ) -> Result<bool, ApprovalError> {
        self.requests.settle(key, status, (by, note), self.now.get())
    }

    fn envelope(&self) -> Option<Envelope> {
        self.record.current()
    }

    fn reserve(&self, name: &str, amount: u64) -> Result<Box<dyn Reserved + '_>, BudgetError> {
        self.record.reserve(name, amount, self.in_transaction.get())
    }

    fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        let total = total.map(|total| format!("/{total}")).unwrap_or_default();
        self.progress
            .borrow_mut()
            .push(format!("{done}{total} {message}"));
    }

    fn workspace_names(&self) -> Vec<String> {
        self.workspaces.names()
    }

    fn describe_workspace(&self, workspace: &str) -> Result<WorkspaceInfo, WorkspaceError> {
        self.workspaces.describe(workspace)
    }

    fn list_files(
        &self,
        workspace: &str,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        self.workspaces.list(workspace, directory, after, limit)
    }

    fn list_files_unless(
        &self,
        workspace: &str,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        self.workspaces.list_unless(workspace, directory, known, limit)
    }

    fn stat_file(&self, workspace: &str, path: &str) -> Result<FileEntry, WorkspaceError> {
        self.workspaces.stat(workspace, path)
    }

    fn read_file(
        &self,
        workspace: &str,
        path: &str,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError> {
        self.workspaces.read(workspace, path, offset, limit)
    }

    fn write_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        self.workspaces.write(workspace, path, content, false)
    }

    fn append_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        self.workspaces.write(workspace, path, content, true)
    }

    fn run_process(&self, workspace: &str, command: &Command) -> Result<Outcome, ProcessError> {
        if self.in_transaction.get() {
            return Err(ProcessError::TransactionOpen);
        }
        self.workspaces.run(workspace, command)
    }
}

/// Transaction of a `Run` tool.
struct Open<'a> {
    backend: &'a Sqlite,
    committed: Cell<bool>,
}

impl Transaction for Open<'_> {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        self.backend.query(sql, params)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        self.backend.execute(sql, params)
    }

    fn commit(self: Box<Self>) -> Result<(), DbError> {
        self.committed.set(true);
        self.backend.db.execute_batch("RELEASE run").map_err(db_error)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.backend.in_transaction.set(false);
        if !self.committed.get() {
            self.backend.requests.roll_back();
            // Nothing can be reported from here, and the next statement would fail anyway.
            let _ = self.backend.db.execute_batch("ROLLBACK TO run; RELEASE run");
        }
    }
}

/// A parameter in rusqlite's terms.
struct Param<'a>(&'a Value);

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

fn db_error(err: rusqlite::Error) -> DbError {
    match err.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => DbError::Constraint(err.to_string()),
        Some(ErrorCode::ReadOnly) => DbError::ReadOnly,
        Some(ErrorCode::DiskFull) => DbError::Full,
        _ => DbError::Refused(err.to_string()),
    }
}
