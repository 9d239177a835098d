//! Interface of a backend: the component's imports on wasm, or SQLite with fixed values natively.

use crate::budget::Reserved;
use crate::workspace::Upcoming;
use crate::{
    Answer, Approval, ApprovalError, ApprovalRequest, ApprovalStatus, ArtifactError, ArtifactKind,
    BudgetError, Command, DbError, Envelope, Event, FileEntry, FoundOperation, LedgerError, Listing,
    Operation, OperationFilter, Outcome, ProcessError, Row, SeenWorkTree, Slot, TestOutcome, TestedTree,
    Value, WorkTreeChange, WorkspaceError, WorkspaceInfo,
};

/// Host of a call as the SDK refers to it. A component has only one, its imports. Because they are called directly, the
/// linker omits every import that no tool uses, and the list of imports shows what a component can do.
#[cfg(target_family = "wasm")]
pub(crate) type HostRef<'a> = &'a crate::guest::Imports;
#[cfg(not(target_family = "wasm"))]
pub(crate) type HostRef<'a> = &'a dyn Host;

/// Requests of a call to its host. [`Cx`](crate::Cx) and [`Db`](crate::Db) are the convenient interface; a pack
/// never uses this trait directly.
///
/// ```
/// use tollgate_sdk::{CallInfo, Cx, DbError, Host, Level, Row, Transaction, Value};
///
/// /// A host without storage.
/// struct Nothing;
///
/// impl Host for Nothing {
///     fn query(&self, _: &str, _: &[Value]) -> Result<Vec<Row>, DbError> {
///         Ok(Vec::new())
///     }
///     fn execute(&self, _: &str, _: &[Value]) -> Result<u64, DbError> {
///         Err(DbError::ReadOnly)
///     }
///     fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
///         Err(DbError::ReadOnly)
///     }
///     fn now_ms(&self) -> i64 {
///         0
///     }
///     fn new_id(&self, prefix: &str) -> String {
///         format!("{prefix}_1")
///     }
///     fn log(&self, _: Level, _: &str) {}
/// }
/// assert!(Cx::new(&Nothing, &CallInfo::default()).workspaces().is_empty());
/// ```
pub trait Host {
    /// Runs a statement that returns rows.
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError>;
    /// Runs a statement and returns the number of changed rows.
    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError>;
    /// Starts the transaction of a `Run` tool and returns storage inside it. Dropping it without
    /// [`commit`](Transaction::commit) rolls the transaction back.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError>;
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;
    /// Creates a new identifier: `prefix_` and a sortable suffix.
    fn new_id(&self, prefix: &str) -> String;
    /// Writes a line to the operator's log.
    fn log(&self, level: Level, message: &str);
    /// See [`Ledger::append`](crate::Ledger::append). By default events are discarded.
    fn append_event(&self, _event: &Event) -> Result<(), LedgerError> {
        Ok(())
    }
    /// See [`Ledger::set_test_outcome`](crate::Ledger::set_test_outcome). By default outcomes are discarded.
    fn set_test_outcome(&self, _outcome: &TestOutcome) -> Result<(), LedgerError> {
        Ok(())
    }
    /// See [`Ledger::seen_work_tree`](crate::Ledger::seen_work_tree). By default work trees are not scanned.
    fn seen_work_tree(&self, _workspace: &str) -> Result<SeenWorkTree, LedgerError> {
        Ok(SeenWorkTree::default())
    }
    /// See [`Ledger::edits_over_envelopes`](crate::Ledger::edits_over_envelopes). By default work trees are not
    /// scanned.
    fn edits_over_envelopes(&self, _workspace: &str) -> Result<Option<u64>, LedgerError> {
        Ok(None)
    }
    /// See [`Ledger::changed_since`](crate::Ledger::changed_since). By default work trees are not scanned.
    fn changed_since(&self, _workspace: &str, _edits: u64) -> Result<Option<WorkTreeChange>, LedgerError> {
        Ok(None)
    }
    /// See [`Ledger::query`](crate::Ledger::query). By default nothing is granted.
    fn query_ledger(&self, _filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Ledger::query_whole`](crate::Ledger::query_whole). By default nothing is granted.
    fn query_whole(&self, _filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Ledger::find`](crate::Ledger::find). By default nothing is granted.
    fn find_operation(&self, _op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Ledger::compare_work_tree`](crate::Ledger::compare_work_tree). By default nothing is granted.
    fn compare_work_tree(&self, _op_id: &str, _workspace: &str) -> Result<TestedTree, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Cx::connection`](crate::Cx::connection). By default no connection lasts.
    fn connection(&self) -> Option<String> {
        None
    }
    /// See [`Cx::is_connected`](crate::Cx::is_connected). By default no connection lasts.
    fn is_connected(&self, _name: &str) -> bool {
        false
    }
    /// See [`Ledger::take_once`](crate::Ledger::take_once). By default nothing is granted.
    fn take_once(&self, _key: &str, _until_ms: i64) -> Result<bool, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Ledger::take_slot`](crate::Ledger::take_slot). By default nothing is granted.
    fn take_slot(&self, _slot: &Slot) -> Result<Option<u64>, LedgerError> {
        Err(LedgerError::Denied)
    }
    /// See [`Cx::keep_artifact`](crate::Cx::keep_artifact). By default artifacts are discarded.
    fn keep_artifact(&self, _kind: ArtifactKind, _content: &[u8]) -> Result<Option<String>, ArtifactError> {
        Ok(None)
    }
    /// See [`Approvals::ask`](crate::Approvals::ask). By default requests fail.
    fn ask_approval(&self, _request: &ApprovalRequest) -> Result<Approval, ApprovalError> {
        Err(ApprovalError::ReadOnly)
    }
    /// See [`Approvals::find`](crate::Approvals::find). By default there is no request.
    fn find_approval(&self, _key: &str) -> Result<Option<Approval>, ApprovalError> {
        Ok(None)
    }
    /// See [`Approvals::settle`](crate::Approvals::settle). By default there is no request.
    fn settle_approval(
        &self,
        _key: &str,
        _status: ApprovalStatus,
        _by: Option<&str>,
        _note: Option<&str>,
    ) -> Result<bool, ApprovalError> {
        Ok(false)
    }
    /// See [`Budget::current`](crate::Budget::current). By default there is no envelope.
    fn envelope(&self) -> Option<Envelope> {
        None
    }
    /// See [`Budget::reserve`](crate::Budget::reserve). By default there is no budget.
    fn reserve(&self, name: &str, _amount: u64) -> Result<Box<dyn Reserved + '_>, BudgetError> {
        Err(BudgetError::Unknown(name.to_owned()))
    }
    /// Reports progress to the client. By default progress is discarded.
    fn progress(&self, _done: u64, _total: Option<u64>, _message: &str) {}
    /// Names of the workspaces that the pack may use. By default, for this method and those below, there are none.
    fn workspace_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Permissions of the pack in a workspace.
    fn describe_workspace(&self, workspace: &str) -> Result<WorkspaceInfo, WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::list`](crate::Workspace::list).
    fn list_files(
        &self,
        workspace: &str,
        _directory: &str,
        _after: Option<&str>,
        _limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::list_unless`](crate::Workspace::list_unless).
    fn list_files_unless(
        &self,
        workspace: &str,
        _directory: &str,
        _known: Option<u64>,
        _limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::stat`](crate::Workspace::stat).
    fn stat_file(&self, workspace: &str, _path: &str) -> Result<FileEntry, WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::read_at`](crate::Workspace::read_at).
    fn read_file(
        &self,
        workspace: &str,
        _path: &str,
        _offset: u64,
        _limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::read_ahead`](crate::Workspace::read_ahead). By default nothing is prefetched.
    fn read_ahead(&self, _workspace: &str, _next: &[Upcoming<'_>]) {}
    /// See [`Workspace::write`](crate::Workspace::write).
    fn write_file(&self, workspace: &str, _path: &str, _content: &[u8]) -> Result<(), WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::append`](crate::Workspace::append).
    fn append_file(&self, workspace: &str, _path: &str, _content: &[u8]) -> Result<(), WorkspaceError> {
        Err(WorkspaceError::Unknown(workspace.to_owned()))
    }
    /// See [`Workspace::run`](crate::Workspace::run).
    fn run_process(&self, workspace: &str, _command: &Command) -> Result<Outcome, ProcessError> {
        Err(ProcessError::UnknownWorkspace(workspace.to_owned()))
    }
}

/// Storage inside a transaction of a `Run` tool.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, params, native::Session};
/// # let (session, call) = (Session::new(&Pack { name: "notes", ..Pack::EMPTY }), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
/// # session.sql("CREATE TABLE notes_notes (text TEXT)");
/// // A `Run` tool gets one around a closure. An error would undo what is in it.
/// let changed = cx.transaction(|db| {
///     db.execute("INSERT INTO notes_notes (text) VALUES (?1)", params!["hello"])
/// })?;
/// assert_eq!(changed, 1);
/// # Ok::<(), tollgate_sdk::DbError>(())
/// ```
pub trait Transaction {
    /// Like [`Host::query`].
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError>;
    /// Like [`Host::execute`].
    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError>;
    /// Makes the changes durable.
    fn commit(self: Box<Self>) -> Result<(), DbError>;
}

/// Severity of a log line.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Level, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// cx.log(Level::Warn, "the clock of the build server is late");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For the author of the pack.
    Debug,
    /// Information.
    Info,
    /// Warning.
    Warn,
    /// Failure.
    Error,
}

/// Client name of a person who runs `tollgate call` in a terminal. The host proves this, because clients cannot have
/// names that begin with `tollgate`.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, TERMINAL, native::Session};
/// let call = CallInfo { client: Some(TERMINAL.to_owned()), ..CallInfo::default() };
/// let session = Session::new(&Pack::EMPTY);
/// assert!(Cx::new(session.backend(), &call).is_at_terminal());
/// ```
pub const TERMINAL: &str = "tollgate terminal";

/// Facts about a call besides its arguments.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// let call = CallInfo { client: Some("an editor".to_owned()), ..CallInfo::default() };
/// let session = Session::new(&Pack::EMPTY);
/// assert_eq!(Cx::new(session.backend(), &call).client(), Some("an editor"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallInfo {
    /// Id of the operation in the ledger.
    pub op_id: String,
    /// Envelope that the call belongs to.
    pub envelope_id: Option<String>,
    /// Identity of the caller, if the transport proved one.
    pub identity: Option<String>,
    /// Name of the MCP client, as the client claims; [`TERMINAL`] for a person at a terminal.
    pub client: Option<String>,
    /// Configuration of the pack as a JSON object; empty text counts as an empty object.
    pub config: String,
    /// UUID of the host process, the same for all its calls.
    pub session_id: String,
    /// Answers of the user, in a call that is repeated after asking.
    pub answers: Vec<Answer>,
    /// State that the call stored when asking, if this call was repeated.
    pub remembered: Option<String>,
}
