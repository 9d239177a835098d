//! The `[envelope]` table.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use tollgate_core::{clock, envelope};
use tollgate_gate::{By, EnvelopeSettings, Require, Window};

/// The `[envelope]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvelopeConfig {
    require: Require,
    auto: bool,
    max_mutations: Option<i64>,
    max_test_runs: Option<i64>,
    max_duration_sec: Option<i64>,
    max_edits: Option<i64>,
    budgets: BTreeMap<String, i64>,
    ceiling: envelope::Limits,
    window: Vec<WindowConfig>,
}

/// One `[[envelope.window]]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WindowConfig {
    by: By,
    per: String,
    max_mutations: Option<u32>,
    max_test_runs: Option<u32>,
    max_envelopes: Option<u32>,
    max_edits: Option<u32>,
}

impl WindowConfig {
    fn window(&self) -> Window {
        Window {
            by: self.by,
            // The check of keys has already validated it.
            per_ms: clock::span_ms(&self.per).unwrap_or(i64::MAX),
            per: self.per.clone(),
            max_mutations: self.max_mutations,
            max_test_runs: self.max_test_runs,
            max_envelopes: self.max_envelopes,
            max_edits: self.max_edits,
        }
    }
}

impl EnvelopeConfig {
    /// Settings for the gate.
    pub fn settings(&self) -> EnvelopeSettings {
        EnvelopeSettings {
            require: self.require,
            auto: self.auto,
            windows: Arc::new(self.window.iter().map(WindowConfig::window).collect()),
            default: envelope::Limits {
                max_mutations: self.max_mutations,
                max_test_runs: self.max_test_runs,
                max_duration_sec: self.max_duration_sec,
                max_edits: self.max_edits,
            },
            ceiling: self.ceiling,
            budgets: self.budgets.clone(),
        }
    }
}
