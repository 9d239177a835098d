//! A native backend over SQLite with a fixed clock and counted ids, so that packs are tested
//! without wasm.
//!
//! [`Session`] runs each call as the host does: a `Write` tool in a transaction that an error rolls
//! back, a `Read` tool without the right to write. [`check`](Session::script) style tests feed it
//! lines of `tool {arguments}` and compare what comes back. A [`Workspace`] is a real directory, and
//! programs are really run, as far as the pack asked for them and the session allows them.

mod record;
mod spawn;
mod workspaces;

mod judge;

pub use judge::{Judge, Judged};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};
use serde_json::Value as Json;

use record::Record;
pub use workspaces::Workspace;
use workspaces::Workspaces;

use crate::budget::Reserved;
use crate::permit::Asked;
use crate::{
    BudgetError, CallInfo, Command, Counter, Cx, DbError, Effect, Envelope, Event, FileEntry, Host,
    LedgerError, Level, Operation, OperationFilter, Outcome, Pack, ProcessError, Reply, Row, ToolError,
    Transaction, Value, WorkspaceError, WorkspaceInfo, stale,
};

/// What the clock starts at: 2026-01-01T00:00:00Z.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// The host process, as packs see it.
const SESSION_ID: &str = "00000000-0000-7000-8000-000000000000";

/// A pack over an in-memory or file database.
pub struct Session {
    pack: &'static Pack,
    backend: Sqlite,
    call: RefCell<CallInfo>,
}

impl Session {
    /// The pack over an empty in-memory database.
    ///
    /// # Panics
    /// If a migration fails: the pack's own mistake, which a test should show.
    #[must_use]
    pub fn new(pack: &'static Pack) -> Session {
        Session::open(
            pack,
            Connection::open_in_memory().expect("an in-memory database opens"),
        )
    }

    /// The pack over any database, after its migrations.
    ///
    /// # Panics
    /// If a migration fails.
    #[must_use]
    pub fn open(pack: &'static Pack, db: Connection) -> Session {
        db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;")
            .expect("pragmas are accepted");
        for step in pack.migrations {
            db.execute_batch(&crate::sql::for_sqlite(step.sql))
                .unwrap_or_else(|err| panic!("migration {} fails: {err}", step.name));
        }
        Session {
            pack,
            backend: Sqlite {
                db,
                now: Cell::new(EPOCH_MS),
                step: Cell::new(1000),
                ids: RefCell::new(BTreeMap::new()),
                run: Cell::new(false),
                in_transaction: Cell::new(false),
                record: Record::new(pack),
                workspaces: Workspaces::new(Asked::of(pack.wants)),
                progress: RefCell::default(),
            },
            call: RefCell::new(CallInfo {
                session_id: SESSION_ID.to_owned(),
                ..CallInfo::default()
            }),
        }
    }

    /// Registers a directory. The pack gets of it what it asked for in its `wants`.
    #[must_use]
    pub fn workspace(mut self, workspace: Workspace) -> Session {
        self.backend.workspaces.add(workspace);
        self
    }

    /// Grants a program that the pack asked for.
    #[must_use]
    pub fn allow_program(mut self, program: &str) -> Session {
        self.backend.workspaces.allow(program);
        self
    }

    /// What the calls so far said about their progress, as `done/total message`.
    #[must_use]
    pub fn progress(&self) -> Vec<String> {
        self.backend.progress.borrow().clone()
    }

    /// Sets the pack's `config` table.
    #[must_use]
    pub fn config(self, config: &Json) -> Session {
        self.call.borrow_mut().config = config.to_string();
        self
    }

    /// Sets the MCP client's name for the calls that follow.
    pub fn set_client(&self, client: &str) {
        self.call.borrow_mut().client = Some(client.to_owned());
    }

    /// Sets the proven identity for the calls that follow.
    pub fn set_identity(&self, identity: &str) {
        self.call.borrow_mut().identity = Some(identity.to_owned());
    }

    /// Puts the calls that follow into an envelope, or into none. It counts them as the host does.
    pub fn set_envelope(&self, id: Option<&str>) {
        self.call.borrow_mut().envelope_id = id.map(str::to_owned);
        let counter = |name: &str| Counter {
            name: name.to_owned(),
            used: 0,
            limit: None,
        };
        self.backend.record.envelope.replace(id.map(|id| Envelope {
            id: id.to_owned(),
            counters: vec![counter("mutations"), counter("test_runs")],
            remaining_seconds: None,
        }));
    }

    /// Gives the envelope a named budget.
    pub fn set_budget(&self, name: &str, limit: u64) {
        self.backend.record.set_budget(name, limit);
    }

    /// Sets what queries of the ledger find.
    pub fn set_operations(&self, operations: Vec<Operation>) {
        self.backend.record.operations.replace(operations);
    }

    /// What the calls so far added to their records.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.backend.record.events.borrow().clone()
    }

    /// The envelope as a call would see it now.
    #[must_use]
    pub fn envelope(&self) -> Option<Envelope> {
        self.backend.record.current()
    }

    /// Lets time pass. Every call takes one second beside.
    pub fn advance_ms(&self, ms: i64) {
        self.backend.now.set(self.backend.now.get() + ms);
    }

    /// Runs one tool.
    pub fn call(&self, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
        let entry = self.pack.tool(tool).ok_or_else(|| {
            ToolError::new(
                "UNKNOWN_TOOL",
                format!("`{tool}` is not a tool of {}", self.pack.name),
            )
        })?;
        self.backend
            .now
            .set(self.backend.now.get() + self.backend.step.get());
        let call = self.call.borrow().clone();
        let cx = Cx::new(&self.backend, &call);
        self.backend.record.enter(entry.name, entry.effect);
        self.backend.run.set(entry.effect == Effect::Run);
        self.backend.workspaces.enter(entry.effect);
        let read_only = entry.effect == Effect::Read;
        self.pragma("query_only", if read_only { "ON" } else { "OFF" });
        self.pragma_free("SAVEPOINT call");
        let result = (entry.call)(&cx, arguments);
        let kept = result.is_ok() || cx.keeps_rows();
        if !kept && entry.effect == Effect::Write {
            self.pragma_free("ROLLBACK TO call");
        }
        self.pragma_free("RELEASE call");
        self.backend.run.set(false);
        self.backend.record.leave(kept);
        let warnings = self.backend.workspaces.leave(kept);
        result.map(|mut reply| {
            stale::mark_text(&mut reply.structured, &(entry.output_schema)(), &warnings);
            reply
        })
    }

    /// What a prompt says.
    pub fn prompt(&self, name: &str, arguments: &str) -> Result<String, ToolError> {
        let entry = self.pack.prompt(name).ok_or_else(|| {
            ToolError::new(
                "UNKNOWN_PROMPT",
                format!("`{name}` is not a prompt of {}", self.pack.name),
            )
        })?;
        let call = self.call.borrow().clone();
        self.backend.workspaces.enter(Effect::Read);
        self.pragma("query_only", "ON");
        let said = (entry.call)(&Cx::new(&self.backend, &call), arguments);
        self.backend.workspaces.leave(false);
        said.map(|reply| reply.text.unwrap_or_default())
    }

    /// Runs lines of `tool {arguments}` and returns a line of each outcome: `ok` with the structured
    /// reply, or `err` with the code, the message, and a line for each blocker. Blank lines and
    /// lines that start with `#` are kept; `+ms` lets time pass.
    #[must_use]
    pub fn script(&self, script: &str) -> String {
        let mut out = String::new();
        for line in script.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                let _ = writeln!(out, "{line}");
            } else if let Some(ms) = line.strip_prefix('+') {
                self.advance_ms(
                    ms.parse()
                        .unwrap_or_else(|_| panic!("`+{ms}` is no number of milliseconds")),
                );
            } else {
                let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
                out.push_str(&outcome(&self.call(tool, arguments)));
            }
        }
        out
    }

    /// Runs SQL outside any tool, for looking at tables or preparing them.
    ///
    /// # Panics
    /// If the SQL fails.
    pub fn sql(&self, sql: &str) -> Vec<Row> {
        self.pragma("query_only", "OFF");
        self.backend
            .query(sql, &[])
            .unwrap_or_else(|err| panic!("{sql}: {err}"))
    }

    /// The backend, for calling store functions without a tool around them.
    pub fn backend(&self) -> &Sqlite {
        &self.backend
    }

    fn pragma(&self, name: &str, value: &str) {
        self.pragma_free(&format!("PRAGMA {name} = {value}"));
    }

    fn pragma_free(&self, sql: &str) {
        self.backend
            .db
            .execute_batch(sql)
            .unwrap_or_else(|err| panic!("{sql}: {err}"));
    }
}

fn outcome(result: &Result<Reply, ToolError>) -> String {
    let mut line = String::new();
    match result {
        Ok(reply) => {
            let _ = writeln!(line, "ok {}", reply.structured);
        }
        Err(err) => {
            let _ = write!(line, "err {}: {}", err.code, err.message);
            if !err.context.is_empty() {
                let _ = write!(line, " {}", Json::Object(err.context.clone()));
            }
            if let Some(next) = &err.next_call {
                let _ = write!(line, " -> {} {}", next.tool, Json::Object(next.arguments.clone()));
            }
            line.push('\n');
            for blocker in &err.blockers {
                let _ = write!(line, "  - {}: {}", blocker.code, blocker.message);
                if let Some(next) = &blocker.next_call {
                    let _ = write!(line, " -> {} {}", next.tool, Json::Object(next.arguments.clone()));
                }
                line.push('\n');
            }
        }
    }
    line
}

/// SQLite as a [`Host`], with a clock that stands still within a call and ids that are counted.
pub struct Sqlite {
    db: Connection,
    now: Cell<i64>,
    step: Cell<i64>,
    ids: RefCell<BTreeMap<String, u32>>,
    /// The call is a `Run` tool's, which reaches storage through a transaction only.
    run: Cell<bool>,
    in_transaction: Cell<bool>,
    record: Record,
    workspaces: Workspaces,
    progress: RefCell<Vec<String>>,
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
}

impl Host for Sqlite {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        self.reachable()?;
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

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        self.reachable()?;
        let mut statement = self.db.prepare_cached(sql).map_err(db_error)?;
        let changed = statement
            .execute(rusqlite::params_from_iter(params.iter().map(Param)))
            .map_err(db_error)?;
        Ok(changed as u64)
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
        self.in_transaction.set(true);
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

    fn query_ledger(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.record.query(filter)
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

/// The transaction of a `Run` tool.
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
