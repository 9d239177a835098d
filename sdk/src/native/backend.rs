//! Host for native tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::approvals::Requests;
use super::record::Record;
use super::storage::Storage;
use super::workspaces::Workspaces;
use crate::budget::Reserved;
use crate::{
    Approval, ApprovalError, ApprovalRequest, ApprovalStatus, ArtifactError, ArtifactKind, BudgetError,
    Command, DbError, Envelope, Event, FileEntry, FoundOperation, Host, LedgerError, Level, Listing,
    Operation, OperationFilter, Outcome, ProcessError, Row, SeenWorkTree, Slot, TestOutcome, TestedTree,
    Transaction, Value, WorkTreeChange, WorkspaceError, WorkspaceInfo,
};

/// [`Host`] for native tests, with sequential ids and a clock that is fixed within a call.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// let session = Session::new(&Pack::EMPTY);
/// // For testing a function that takes a context, without a tool around it.
/// let call = CallInfo::default();
/// let cx = Cx::new(session.backend(), &call);
/// assert_eq!(cx.envelope_id(), None);
/// ```
pub struct Backend {
    pub(super) storage: Storage,
    pub(super) now: Cell<i64>,
    pub(super) step: Cell<i64>,
    pub(super) ids: RefCell<BTreeMap<String, u32>>,
    /// True in a call of a `Run` tool, which can use storage only in a transaction.
    pub(super) run: Cell<bool>,
    pub(super) in_transaction: Cell<bool>,
    pub(super) record: Record,
    pub(super) requests: Requests,
    pub(super) workspaces: Workspaces,
    pub(super) progress: RefCell<Vec<String>>,
}

impl Backend {
    fn reachable(&self) -> Result<(), DbError> {
        if self.run.get() && !self.in_transaction.get() {
            return Err(DbError::TransactionState(
                "a `run` tool can access storage only in a transaction".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Host for Backend {
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        self.reachable()?;
        self.storage.query(sql, params)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        self.reachable()?;
        self.storage.execute(sql, params)
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
        self.in_transaction.set(true);
        self.requests.begin();
        self.storage.begin("run")?;
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
    backend: &'a Backend,
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
        self.backend.storage.commit("run")
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.backend.in_transaction.set(false);
        if !self.committed.get() {
            self.backend.requests.roll_back();
            // `drop` cannot report an error, and the next statement would fail anyway.
            let _ = self.backend.storage.roll_back("run");
        }
    }
}
