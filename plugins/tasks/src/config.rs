//! The pack's `config` table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_kit::runs::EvidenceRule;

use crate::model::Workspace;

/// The pack's configuration. Everything has a default.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Lets writes without `task` go to the plan or task that has the focus (default false).
    pub focus_writes: bool,
    /// Maximum number of evidence items in one call (default 20, at most 20).
    #[schemars(range(min = 1, max = 20))]
    pub max_items: usize,
    /// Maximum size of one evidence body in bytes (default 256000, at most 256000).
    #[schemars(range(min = 1, max = 256_000))]
    pub max_artifact_bytes: usize,
    /// Days without a change after which unfinished work counts as stale (default 14).
    #[schemars(range(min = 1, max = 3650))]
    pub stale_days: i64,
    /// Number of ACTIVE tasks in a workspace above which tasks_lint warns (default 3).
    #[schemars(range(min = 1, max = 1000))]
    pub active_limit: usize,
    /// `required`: closing a step needs a test run that passed on the current work tree. Default `optional`.
    pub evidence: EvidenceRule,
    /// Configuration of single workspaces by name.
    pub workspaces: BTreeMap<String, WorkspaceConfig>,
}

/// Configuration of one workspace. Missing keys have the value that applies to all workspaces.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceConfig {
    /// `required`: closing a step of this workspace needs a test run that passed on the current work tree.
    pub evidence: Option<EvidenceRule>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            focus_writes: false,
            max_items: Config::MAX_ITEMS,
            max_artifact_bytes: Config::MAX_ARTIFACT_BYTES,
            stale_days: 14,
            active_limit: 3,
            evidence: EvidenceRule::Optional,
            workspaces: BTreeMap::new(),
        }
    }
}

impl Config {
    const MAX_ITEMS: usize = 20;
    const MAX_ARTIFACT_BYTES: usize = 256_000;

    /// Limit of evidence items in one call.
    pub(crate) fn items(&self) -> usize {
        self.max_items.min(Config::MAX_ITEMS)
    }

    /// Limit of one evidence body, in bytes.
    pub(crate) fn artifact_bytes(&self) -> usize {
        self.max_artifact_bytes.min(Config::MAX_ARTIFACT_BYTES)
    }

    /// Returns whether a workspace refuses checkpoints without evidence that proves them.
    pub(crate) fn requires_evidence(&self, workspace: &Workspace) -> bool {
        let own = self.workspaces.get(workspace.as_str());
        own.and_then(|own| own.evidence).unwrap_or(self.evidence) == EvidenceRule::Required
    }

    /// Age in milliseconds at which work is stale.
    pub(crate) const fn stale_ms(&self) -> i64 {
        self.stale_days.saturating_mul(24 * 60 * 60 * 1000)
    }
}
