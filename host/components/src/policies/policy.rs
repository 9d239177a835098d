//! A loaded policy and the inputs it was loaded from.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;
use tollgate_sandbox::bindings::policy::{Policy as Instance, PolicyPre};
use tollgate_sandbox::granted::Granted;
use tollgate_sandbox::guest::{CallStore, GuestResult};
use tollgate_sandbox::workspaces::Access;
use tollgate_sandbox::{CallState, Limits};
use tollgate_store::storage::Namespace;

use super::manifest::Manifest;
use super::member::{Mode, Phase};
use crate::grants::Grants;
use crate::loading::{Code, InstancePool, Origin};

/// Limits for judging one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgingLimits {
    /// Linear memory in bytes.
    pub memory: usize,
    /// CPU time of one verdict.
    pub time: Duration,
    /// Bytes of the database that the policy's rows may take.
    pub storage: u64,
}

impl Default for JudgingLimits {
    fn default() -> JudgingLimits {
        JudgingLimits {
            memory: 16 << 20,
            time: Duration::from_millis(50),
            storage: 64 << 20,
        }
    }
}

impl JudgingLimits {
    /// The same limits for the sandbox, where the time limit depends on the effect of a call.
    pub fn of_calls(&self) -> Limits {
        Limits {
            memory: self.memory,
            read: self.time,
            write: self.time,
            run: self.time,
            storage: self.storage,
        }
    }
}

/// A component to load as a policy, with the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name that the operator gave to this place in the chain.
    pub name: String,
    /// Origin of the bytes.
    pub origin: Origin,
    /// Hash that its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// Effect of the verdicts.
    pub mode: Mode,
    /// True if a call that it cannot judge passes.
    pub fail_open: bool,
    /// Phase in which the policy is asked.
    pub phase: Phase,
    /// Globs of the tools that it judges. Empty means all.
    pub tools: Vec<String>,
    /// Position: lower values judge first.
    pub order: i64,
    /// Grants of the policy.
    pub grants: Grants,
    /// Limits for judging.
    pub limits: JudgingLimits,
    /// Its `config` table.
    pub config: Map<String, Value>,
}

/// A loaded policy.
pub struct Policy {
    /// Manifest of the policy.
    pub manifest: Manifest,
    /// Origin of the bytes, for messages.
    pub origin: String,
    /// SHA-256 of the component, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Limits for judging.
    pub limits: JudgingLimits,
    /// Its `config` table as JSON text.
    pub settings: String,
    /// Its tables.
    pub namespace: Namespace,
    /// Phases in which the policy is asked: those that it judges and that the operator selected.
    pub phase: Phase,
    /// Granted use of the ledger.
    pub granted: Arc<Granted>,
    /// Workspaces it may read.
    pub access: Arc<Access>,
    pub(super) pre: PolicyPre<CallState>,
    pub(super) pool: InstancePool<Instance>,
    pub(super) _code: Code,
}

impl Policy {
    /// Pool of instances for coming calls.
    pub fn pool(&self) -> &InstancePool<Instance> {
        &self.pool
    }

    /// Creates an instance in the store of a judgement.
    pub fn instantiate(&self, store: &mut CallStore) -> GuestResult<Instance> {
        Ok(self.pre.instantiate(store)?)
    }

    /// True if the policy has tables of its own.
    pub fn has_tables(&self) -> bool {
        !self.manifest.migrations.is_empty()
    }

    /// True if the policy is built into this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }
}

/// Reason for which a component did not become a policy: all problems, with remedies.
#[derive(Debug, Clone, Error)]
#[error("policy `{policy}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct Unloaded {
    /// Name that the operator gave it.
    pub policy: String,
    /// Origin of the bytes.
    pub origin: String,
    /// Problems.
    pub problems: Vec<String>,
}

impl Unloaded {
    pub(super) fn of(name: &str, origin: &str, problems: Vec<String>) -> Unloaded {
        Unloaded {
            policy: name.to_owned(),
            origin: origin.to_owned(),
            problems,
        }
    }
}
