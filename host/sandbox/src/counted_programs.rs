//! Programs that a call starts, counted by the host. A registered test is a test run, whichever tool starts it.

use tollgate_core::deadline::Deadline;
use tollgate_store::storage::{Session, StoreResult, TestRun};

/// A program that is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A registered test of the workspace.
    Test,
    /// Another program that the operator allowed. Git does not count.
    Other,
}

/// Counts the programs of one call.
pub trait CountPrograms: Send + Sync {
    /// Counts a program that is about to start, in a separate transaction. The inner error says why it must not
    /// start.
    fn count(
        &self,
        session: &Session,
        deadline: &Deadline,
        program: Counted,
    ) -> StoreResult<Result<(), String>>;

    /// Records how a test ended. `alike` has the names of all tests of its workspace with the same words.
    fn test_ended(&self, run: TestRun, alike: &[&str]);
}
