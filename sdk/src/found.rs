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
