//! An admitted call with everything that its guest needs.

use std::sync::Arc;
use std::time::Duration;

use tollgate_components::catalog::Body;
use tollgate_core::deadline::Cancel;
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::counted_programs::CountPrograms;
use tollgate_sandbox::progress::Progress;
use tollgate_store::artifacts::CallArtifacts;

use super::Generation;
use super::evaluation::{Evaluation, Review};
use super::outstanding::Ticket;
use super::seen::{LookedAt, Seen};

/// An admitted call. It may run more than once: if another call of its batch aborts the whole transaction, it runs
/// again in the next.
pub(super) struct GuestCall {
    pub(super) generation: Arc<Generation>,
    pub(super) body: Body,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) context: wit::Context,
    pub(super) identity: Option<Identity>,
    pub(super) connection: String,
    /// True if later calls come over the same connection.
    pub(super) is_stateful: bool,
    /// True for a caller over stdio or at the command line.
    pub(super) is_local: bool,
    /// Caller as the ledger names it.
    pub(super) actor: Option<String>,
    /// Client as the ledger names it.
    pub(super) client: Option<String>,
    pub(super) effect: Effect,
    pub(super) time: Duration,
    /// True if the call's time limit is the rest of its envelope's time.
    pub(super) ends_with_envelope: bool,
    pub(super) cancel: Cancel,
    pub(super) progress: Progress,
    pub(super) artifacts: CallArtifacts,
    /// Lock names for the part of the pack's tables that it is about, if its tool declares them.
    pub(super) scope: Option<Vec<String>>,
    /// True if it continues after a number that rows of all parts have.
    pub(super) is_feed: bool,
    /// Counts the programs that it starts.
    pub(super) programs: Option<Arc<dyn CountPrograms>>,
    /// Work tree before the call, or the reason of a failed scan.
    pub(super) seen: Option<Seen>,
    /// Work trees of the envelope that the call closes.
    pub(super) closing: Vec<LookedAt>,
    /// Input for judging the call, if a policy judges it and has not yet.
    pub(super) evaluation: Option<Box<Evaluation>>,
    /// Input for judging the result, if a policy does.
    pub(super) review: Option<Box<Review>>,
    /// Its place among its identity's unfinished calls.
    pub(super) _ticket: Option<Ticket>,
}
