//! Handles on a [`Session`]: one for each subject, with the statements of that subject.
//!
//! A handle is only a reference to the session. Its statements run in the session's open transaction.

use super::session::Session;

/// Declares each handle, and the method of [`Session`] that returns it.
macro_rules! handles {
    ($($(#[doc = $doc:literal])+ $accessor:ident: $handle:ident,)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy)]
            pub struct $handle<'s>(pub(super) &'s Session);
        )+

        impl Session {
            $(
                $(#[doc = $doc])+
                pub fn $accessor(&self) -> $handle<'_> {
                    $handle(self)
                }
            )+
        }
    };
}

handles! {
    /// Rows of the ledger and the chain of hashes: appending, verifying, exporting.
    ledger: Ledger,
    /// Queries of the ledger's rows: by filter, by id, by time.
    operations: Operations,
    /// Statistics over rows of the ledger.
    stats: Stats,
    /// Test runs, edits and repetitions among the operations of an envelope.
    evidence: Evidence,
    /// Envelopes and their counters: opening, admission, closing.
    envelopes: Envelopes,
    /// Named budgets of envelopes, and reserved units.
    budgets: Budgets,
    /// States of work trees, by envelope and by workspace.
    work_trees: WorkTrees,
    /// Requests for approval and their answers.
    approvals: Approvals,
    /// Permits and slots that count once.
    permits: Permits,
    /// Calls whose clients do not wait for the reply.
    tasks: Tasks,
    /// `run` calls that were admitted and are not recorded yet.
    intents: Intents,
    /// Artifacts of operations.
    artifacts: Artifacts,
    /// Content of artifacts on a server.
    pieces: Pieces,
    /// Client connections that components watch.
    connections: Connections,
    /// Components: their statements, the pages that they use, the definitions of their tools.
    components: Components,
    /// Hosts that work with a database on a server.
    roster: Roster,
    /// Entries that policies remember between calls.
    policy_memory: PolicyMemory,
    /// The database as a whole: health, schema, retention, sizes.
    maintenance: Maintenance,
}
