//! What a backend provides: the component's imports on wasm, SQLite and fixed values natively.

use crate::{Command, DbError, FileEntry, Outcome, ProcessError, Row, Value, WorkspaceError, WorkspaceInfo};

/// What a call may ask of its host. [`Cx`](crate::Cx) and [`Db`](crate::Db) are the comfortable
/// side of it; a pack never calls it itself.
pub trait Host {
    /// Runs a statement that returns rows.
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError>;
    /// Runs a statement and returns how many rows it changed.
    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError>;
    /// Starts the transaction of a `Run` tool and hands out storage inside it. Dropping it without
    /// [`commit`](Transaction::commit) undoes it.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError>;
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;
    /// A new identifier, `prefix_` and a sortable rest.
    fn new_id(&self, prefix: &str) -> String;
    /// A line for the operator's log.
    fn log(&self, level: Level, message: &str);
    /// How far the call is, for the client.
    fn progress(&self, done: u64, total: Option<u64>, message: &str);
    /// The workspaces the pack may use.
    fn workspace_names(&self) -> Vec<String>;
    /// What the pack may do in one.
    fn describe_workspace(&self, workspace: &str) -> Result<WorkspaceInfo, WorkspaceError>;
    /// See [`Workspace::list`](crate::Workspace::list).
    fn list_files(
        &self,
        workspace: &str,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError>;
    /// See [`Workspace::stat`](crate::Workspace::stat).
    fn stat_file(&self, workspace: &str, path: &str) -> Result<FileEntry, WorkspaceError>;
    /// See [`Workspace::read_at`](crate::Workspace::read_at).
    fn read_file(
        &self,
        workspace: &str,
        path: &str,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError>;
    /// See [`Workspace::write`](crate::Workspace::write).
    fn write_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError>;
    /// See [`Workspace::append`](crate::Workspace::append).
    fn append_file(&self, workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError>;
    /// See [`Workspace::run`](crate::Workspace::run).
    fn run_process(&self, workspace: &str, command: &Command) -> Result<Outcome, ProcessError>;
}

/// Storage inside a transaction of a `Run` tool.
pub trait Transaction {
    /// Like [`Host::query`].
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError>;
    /// Like [`Host::execute`].
    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError>;
    /// Makes the changes durable.
    fn commit(self: Box<Self>) -> Result<(), DbError>;
}

/// How much an operator should care about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For who writes the pack.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something failed.
    Error,
}

/// What the host knows about a call beside its arguments.
#[derive(Debug, Clone, Default)]
pub struct CallInfo {
    /// The operation's id in the ledger.
    pub op_id: String,
    /// The envelope the call belongs to.
    pub envelope_id: Option<String>,
    /// Who calls, if the transport proved it.
    pub identity: Option<String>,
    /// The MCP client's own name, as it claims.
    pub client: Option<String>,
    /// The pack's `config` table as a JSON object; empty text counts as an empty one.
    pub config: String,
}
