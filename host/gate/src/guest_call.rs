//! A call that was admitted, as its guest is called.

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
use super::judging::{Judging, Review};
use super::outstanding::Ticket;
use super::seen::{LookedAt, Seen};

/// A call that was admitted. It may run more than once: if a neighbour in its batch costs the
/// whole transaction, it runs again in the next.
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
    /// True if the call's time is the rest of its envelope's.
    pub(super) ends_with_envelope: bool,
    pub(super) cancel: Cancel,
    pub(super) progress: Progress,
    pub(super) artifacts: CallArtifacts,
    /// Part of the pack's tables that it is about, if its tool says so: what it has for itself there.
    pub(super) scope: Option<Vec<String>>,
    /// True if it goes on after a number that rows of all parts have.
    pub(super) is_feed: bool,
    /// Counts the programs that it starts.
    pub(super) programs: Option<Arc<dyn CountPrograms>>,
    /// The work tree before the call, or why it was not seen, if somebody looked.
    pub(super) seen: Option<Seen>,
    /// Work trees of the envelope that the call closes.
    pub(super) closing: Vec<LookedAt>,
    /// Data for judging the call, if a policy judges it and has not yet.
    pub(super) judging: Option<Box<Judging>>,
    /// Data for judging the result, if a policy does.
    pub(super) review: Option<Box<Review>>,
    /// Its place among the calls of its identity that are not over.
    pub(super) _ticket: Option<Ticket>,
}
