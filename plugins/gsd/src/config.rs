//! The pack's `config` table.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_kit::runs::EvidenceRule;

/// Configuration of one workspace. Missing keys have the value that applies to all workspaces.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceConfig {
    /// `required`: completing a task of this workspace needs a test run that passed on the current work tree.
    pub evidence: Option<EvidenceRule>,
}

/// The pack's configuration. Every key has a default.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Allows planning a milestone before its dependencies are complete (default false). Starting always
    /// waits.
    pub plan_ahead: bool,
    /// Requires a passed validation, newer than the milestone's last change, before completion (default
    /// true).
    pub require_validation: bool,
    /// `required`: completing a task needs a test run that passed on the current work tree. Default `optional`.
    pub evidence: EvidenceRule,
    /// Configuration of single workspaces by name.
    pub workspaces: BTreeMap<String, WorkspaceConfig>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            plan_ahead: false,
            require_validation: true,
            evidence: EvidenceRule::Optional,
            workspaces: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Returns whether completing a task of a workspace needs a test run as proof.
    pub(crate) fn requires_evidence(&self, workspace: &str) -> bool {
        let own = self.workspaces.get(workspace);
        own.and_then(|own| own.evidence).unwrap_or(self.evidence) == EvidenceRule::Required
    }
}
