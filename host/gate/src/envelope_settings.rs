//! The operator's settings of envelopes, and of the time windows whose limits span envelopes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use tollgate_core::envelope::Limits;

/// Defaults and ceilings of envelopes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvelopeSettings {
    /// Calls that must belong to an envelope.
    pub require: Require,
    /// True if an envelope is opened for a call that may change something and has none.
    pub auto: bool,
    /// Limits over time windows, which span envelopes.
    pub windows: Arc<Vec<Window>>,
    /// Default limits of an envelope.
    pub default: Limits,
    /// Highest limits that a client can request.
    pub ceiling: Limits,
    /// Named budgets that each new envelope gets.
    pub budgets: BTreeMap<String, i64>,
}

/// Calls that must belong to an envelope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Require {
    /// None.
    #[default]
    Never,
    /// Calls that may change something.
    Writes,
    /// All.
    Always,
}

/// Limits for one time window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Calls that are counted together.
    pub by: By,
    /// Length of the window as the operator writes it, such as `1h`.
    pub per: String,
    /// Length of the window in milliseconds.
    pub per_ms: i64,
    /// Most mutations in it.
    pub max_mutations: Option<u32>,
    /// Most test runs in it.
    pub max_test_runs: Option<u32>,
    /// Most envelopes that are opened in it.
    pub max_envelopes: Option<u32>,
    /// Most edits in it that no call made.
    pub max_edits: Option<u32>,
}

/// Calls that are counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Calls about the same workspace.
    #[default]
    Workspace,
    /// Calls of the same authenticated identity. All callers without an identity count as one, because a claimed name
    /// can be changed.
    Actor,
    /// Calls of clients with the same claimed name.
    Client,
    /// All calls of the data directory.
    Everyone,
}

impl By {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            By::Workspace => "workspace",
            By::Actor => "actor",
            By::Client => "client",
            By::Everyone => "everyone",
        }
    }
}
