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
    /// Outcome of the tests that it ran or was told of.
    pub tests: Option<TestOutcome>,
    /// Mutations that its envelope had counted when the operation began, including it. `None` outside of envelopes.
    pub mutations: Option<u64>,
    /// Edits of work trees that its envelope had counted when the operation began.
    pub edits: Option<u64>,
}

/// Work tree of a workspace, compared with the one in which an operation ran tests, with
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
    /// Workspace of the operation. `None` if no call looked at its work tree.
    pub workspace: Option<String>,
    /// True if the work tree is in the state that the operation found, or differs by files that the tests left
    /// untracked or that `write` calls of this pack wrote. `None` if it cannot be compared.
    pub unchanged: Option<bool>,
    /// True if the host looked at the work tree before this call, as `x-looks` of its tool asks. Otherwise
    /// `unchanged` is about the newest known state.
    pub looked: bool,
    /// Reason why it cannot be compared, or was not looked at.
    pub unseen: Option<String>,
}
