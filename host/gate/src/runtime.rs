//! Runtime that all calls on this host share.

use std::sync::Arc;

use tollgate_core::clock::Clock;
use tollgate_sandbox::Sandbox;
use tollgate_sandbox::process::Launcher;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::liveness::Host;

/// Services that all calls share.
#[derive(Clone)]
pub struct CallServices {
    /// The WebAssembly engine.
    pub sandbox: Arc<Sandbox>,
    /// Starts programs.
    pub launcher: Arc<Launcher>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
}

/// Runtime for guests.
#[derive(Clone)]
pub(super) struct Runtime {
    pub(super) services: CallServices,
    pub(super) host: Arc<Host>,
    pub(super) artifacts: Option<Arc<ArtifactStore>>,
    /// True if successful reads are recorded.
    pub(super) records_reads: bool,
}

impl Runtime {
    /// Current time as RFC 3339 text.
    pub(super) fn now(&self) -> String {
        Timestamp::from_ms(self.services.clock.now_ms()).to_string()
    }
}
