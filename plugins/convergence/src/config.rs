//! The pack's `config` table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::readers::Reader;

/// The pack's configuration. Every key has a default.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Time limit of a test run in seconds, unless a call sets a lower one. The pack's limits.run_ms applies
    /// too.
    #[schemars(range(min = 1, max = 86_400))]
    pub test_timeout_sec: u32,
    /// Reader of a test command's output, by the command's registered name. Default: detected from the
    /// command and its output.
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
