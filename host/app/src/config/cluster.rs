//! The `[cluster]` table: this host among those of other machines.

use std::time::Duration;

use serde::Deserialize;

/// Shortest lease, in seconds. A host says every 2 s that it is alive.
const LEAST: u64 = 5;

/// The `[cluster]` table. It counts where the database is on a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterConfig {
    url: Option<String>,
    lease_sec: u64,
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        ClusterConfig {
            url: None,
            lease_sec: 15,
        }
    }
}

impl ClusterConfig {
    /// Address of this host for clients, or another one that is known.
    pub fn url(&self, known: Option<&str>) -> Option<String> {
        self.url.as_deref().or(known).map(str::to_owned)
    }

    /// Time without news after which other hosts take this one for gone.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_sec.max(LEAST))
    }
}
