//! A loaded pack and the inputs it was loaded from.

use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;
use tollgate_sandbox::Limits;
use tollgate_sandbox::bindings::ToolPack;
use tollgate_sandbox::granted::Granted;
use tollgate_sandbox::guest::{CallStore, GuestResult, Stopped};
use tollgate_sandbox::workspaces::Access;
use tollgate_store::storage::Namespace;

use super::manifest::Manifest;
use super::ready::Ready;
use crate::grants::Grants;
use crate::loading::{InstancePool, Origin};

/// A component to load as a pack, with the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name that the operator gave it, which its manifest must state too.
    pub name: String,
    /// Origin of the bytes.
    pub origin: Origin,
    /// Hash that its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// Grants of the pack.
    pub grants: Grants,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as a JSON object.
    pub config: Map<String, Value>,
    /// Globs of its tools that are excluded.
    pub exclude: Vec<String>,
    /// True if its schemas may use all of JSON Schema, although some clients refuse such lists.
    pub full_schemas: bool,
    /// True if tasks of its idempotent tools are resumed when their hosts are gone.
    pub resume: bool,
}

/// A loaded pack.
pub struct Pack {
    /// Validated manifest of the pack.
    pub manifest: Manifest,
    /// Origin of the bytes, for messages.
    pub origin: String,
    /// SHA-256 of the component, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub config: String,
    /// Globs of its tools that are excluded.
    pub exclude: Vec<String>,
    /// True if tasks of its idempotent tools are resumed when their hosts are gone.
    pub resume: bool,
    /// Its tables.
    pub namespace: Namespace,
    /// Further granted capabilities.
    pub granted: Arc<Granted>,
    /// Workspaces and programs it may use.
    pub access: Arc<Access>,
    pub(super) ready: Ready,
    pub(super) pool: InstancePool<ToolPack>,
}

impl Pack {
    /// True if the pack is built into this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }

    /// True once its code is in memory.
    pub fn is_ready(&self) -> bool {
        self.ready.linked().is_some()
    }

    /// Creates an instance in the store of a call. Fails until the code is loaded, which the gate waits for.
    pub fn instantiate(&self, store: &mut CallStore) -> GuestResult<ToolPack> {
        let linked = self.ready.linked().ok_or_else(Stopped::without_code)?;
        Ok(linked.pre.instantiate(store)?)
    }

    /// Pool of instances for coming calls.
    pub fn pool(&self) -> &InstancePool<ToolPack> {
        &self.pool
    }

    /// Loads its code, unless it is loaded. The error lists all problems.
    pub async fn ready(&self) -> Result<(), Vec<String>> {
        self.ready.wait().await
    }
}

/// Reason for which a component did not become a pack: all problems, with remedies.
#[derive(Debug, Error)]
#[error("pack `{pack}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct LoadError {
    /// Name that the operator gave it.
    pub pack: String,
    /// Origin of the bytes.
    pub origin: String,
    /// Problems.
    pub problems: Vec<String>,
}

impl LoadError {
    pub(crate) fn new(pack: &str, origin: &str, problems: Vec<String>) -> LoadError {
        LoadError {
            pack: pack.to_owned(),
            origin: origin.to_owned(),
            problems,
        }
    }
}
