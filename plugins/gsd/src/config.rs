//! The pack's `config` table.

use schemars::JsonSchema;
use serde::Deserialize;

/// The pack's configuration. Every key has a default.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Allows planning a milestone before its dependencies are complete (default false). Starting always
    /// waits.
    pub plan_ahead: bool,
    /// Requires a passed validation, newer than the milestone's last change, before completion (default
    /// true).
    pub require_validation: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            plan_ahead: false,
            require_validation: true,
        }
    }
}
