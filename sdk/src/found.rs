//! Operations that a pack looks up by their id.

use crate::{Operation, TestOutcome};

/// An operation that was looked up by its id, with [`Ledger::find`](crate::Ledger::find).
///
/// ```
/// # use tollgate_sdk::{FoundOperation, Operation, TestOutcome, TestResult};
/// let run = FoundOperation {
///     operation: Operation { tool: "test_run".to_owned(), ..Operation::default() },
///     tests: Some(TestOutcome::new(TestResult::Passed)),
///     ..FoundOperation::default()
/// };
/// assert!(run.tests.is_some_and(|tests| tests.result == TestResult::Passed));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundOperation {
    /// The operation.
    pub operation: Operation,
    /// Outcome of the tests that the operation ran or reported.
    pub tests: Option<TestOutcome>,
    /// Mutations that the envelope had counted when the operation began, including this one. `None` outside envelopes.
    pub mutations: Option<u64>,
    /// Edits of work trees that the envelope had counted when the operation began.
    pub edits: Option<u64>,
}

/// Work tree of a workspace, compared with the work tree in which an operation ran tests. Returned by
/// [`Ledger::compare_work_tree`](crate::Ledger::compare_work_tree).
///
/// ```
/// # use tollgate_sdk::TestedTree;
/// fn is_current(tree: &TestedTree) -> bool {
///     tree.looked && tree.unchanged == Some(true)
/// }
/// assert!(!is_current(&TestedTree::default()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestedTree {
    /// Workspace of the operation. `None` if no call scanned its work tree.
    pub workspace: Option<String>,
    /// True if the work tree has the state that the operation found. Files that the tests left untracked, and files
    /// that `write` calls of this pack wrote, do not count as differences. `None` if the work tree cannot be compared.
    pub unchanged: Option<bool>,
    /// True if the host scanned the work tree before this call, as `x-looks` in the tool's schema requests. Otherwise
    /// `unchanged` refers to the newest known state.
    pub looked: bool,
    /// Reason why the work tree cannot be compared or was not scanned.
    pub unseen: Option<String>,
}
