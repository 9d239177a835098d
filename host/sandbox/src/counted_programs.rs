//! Programs that a call starts, counted by the host: whichever tool starts a registered test, it is a test run.

use tollgate_core::deadline::Deadline;
use tollgate_store::storage::{Session, StoreResult, TestRun};

/// A program that is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A registered test of the workspace.
    Test,
    /// Another program that the operator allowed. Git is none.
    Other,
}

/// Counts the programs of one call.
pub trait CountPrograms: Send + Sync {
    /// Counts one that is about to start, in a transaction of its own. The inner error says why it must not start.
    fn count(
        &self,
        session: &Session,
        deadline: &Deadline,
        program: Counted,
    ) -> StoreResult<Result<(), String>>;

    /// Notes how a test ended, and which one. `alike` are the names of all tests of its workspace with the same words.
    fn test_ended(&self, run: TestRun, alike: &[&str]);
}
