//! The pack's `config` table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::readers::Reader;

/// The pack's configuration. Everything has a default.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Longest time of a test run in seconds, unless a call asks for less. The pack's limits.run_ms ends it too.
    #[schemars(range(min = 1, max = 86_400))]
    pub test_timeout_sec: u32,
    /// Which reader reads the output of a test command, by the command's registered name. Without an entry the command
    /// and its output tell.
    pub readers: BTreeMap<String, Reader>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            test_timeout_sec: 590,
            readers: BTreeMap::new(),
        }
    }
}
