//! The pack's `config` table.

use schemars::JsonSchema;
use serde::Deserialize;

/// The pack's configuration. Everything has a default.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Milestones may be planned before those they depend on are complete; only starting waits.
    pub plan_ahead: bool,
    /// A milestone is completed only after a validation that passed and is newer than its last change.
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
