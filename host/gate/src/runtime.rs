//! Everything on this host that calls run with.

use std::sync::Arc;

use tollgate_core::clock::Clock;
use tollgate_sandbox::Sandbox;
use tollgate_sandbox::process::Launcher;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::liveness::Host;

/// Equipment of calls.
#[derive(Clone)]
pub struct Equipment {
    /// The engine.
    pub sandbox: Arc<Sandbox>,
    /// Starts programs.
    pub launcher: Arc<Launcher>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
}

/// Runtime of guests.
#[derive(Clone)]
pub(super) struct Runtime {
    pub(super) equipment: Equipment,
    pub(super) host: Arc<Host>,
    pub(super) artifacts: Option<Arc<ArtifactStore>>,
    /// True if reads that succeed leave rows.
    pub(super) records_reads: bool,
}

impl Runtime {
    /// The time as RFC 3339 text.
    pub(super) fn now(&self) -> String {
        Timestamp::from_ms(self.equipment.clock.now_ms()).to_string()
    }
}
