//! The `limits` tables of packs.

use std::time::Duration;

use serde::Deserialize;
use tollgate_sandbox::Limits;

/// One `[packs.NAME.limits]` table. Absent keys use the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    memory_mib: Option<usize>,
    storage_mib: Option<u64>,
    read_ms: Option<u64>,
    write_ms: Option<u64>,
    run_ms: Option<u64>,
}

impl LimitsConfig {
    /// The limits, with defaults for absent keys.
    pub fn limits(&self, default: &Limits) -> Limits {
        let time = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
        Limits {
            memory: self.memory_mib.map_or(default.memory, |mib| mib << 20),
            read: time(self.read_ms, default.read),
            write: time(self.write_ms, default.write),
            run: time(self.run_ms, default.run),
            storage: self.storage_mib.map_or(default.storage, |mib| mib << 20),
        }
    }
}
