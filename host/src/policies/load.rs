//! From a source to a policy that can judge.

use serde_json::{Map, Value};

use super::chain::{Mode, Phase};
use crate::packs::{Grants, LoadError, Loader, Origin};
use crate::sandbox::bindings::policy::PolicyPre;
use crate::sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use crate::sandbox::{CallState, Limits};
use crate::storage::Namespace;

/// A component that should become a policy, and the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The operator's name for this place in the chain.
    pub name: String,
    /// Where its bytes are.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// What its verdicts do.
    pub mode: Mode,
    /// A call it cannot judge passes.
    pub fail_open: bool,
    /// When it is asked.
    pub phase: Phase,
    /// Globs of the tools it judges.
    pub tools: Vec<String>,
    /// Its place: lower ones judge first.
    pub order: i64,
    /// What it may touch.
    pub grants: Grants,
    /// What judging may use.
    pub limits: Limits,
    /// Its `config` table.
    pub config: Map<String, Value>,
}

/// A loaded policy.
pub struct Policy {
    /// What it calls itself.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// One line for people.
    pub summary: String,
    /// Where it came from.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// How many bytes it has.
    pub size: usize,
    /// What judging may use.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub settings: String,
    /// Its tables.
    pub namespace: Namespace,
    pre: PolicyPre<CallState>,
}

impl Policy {
    /// What a judgement instantiates.
    pub(crate) fn pre(&self) -> &PolicyPre<CallState> {
        &self.pre
    }
}

impl Policy {
    /// Loads a policy: its bytes, its manifest, its settings, its tables.
    pub async fn load(loader: &Loader, source: &Source) -> Result<Policy, LoadError> {
        let origin = source.origin.to_string();
        Policy::try_load(loader, source)
            .await
            .map_err(|problems| LoadError::of_policy(&source.name, &origin, problems))
    }
}
