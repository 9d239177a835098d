//! Registered tests that a call starts, counted by the host: whichever tool starts one, it is a test run.

use tollgate_core::deadline::Deadline;
use tollgate_store::storage::{Ran, Session, StoreResult};

/// Counts the registered tests of one call.
pub trait CountTests: Send + Sync {
    /// Counts one that is about to start, in a transaction of its own. The inner error says why it must not start.
    fn count(&self, session: &Session, deadline: &Deadline) -> StoreResult<Result<(), String>>;

    /// Notes how one ended.
    fn ended(&self, ran: Ran);
}
