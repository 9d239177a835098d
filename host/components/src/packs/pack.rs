//! A loaded pack, and what it is loaded from.

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

/// A component that should become a pack, and the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name the operator gave it, which its manifest must state too.
    pub name: String,
    /// Origin of the bytes.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// Grants of the pack.
    pub grants: Grants,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as a JSON object.
    pub config: Map<String, Value>,
    /// Tools of it that must not exist.
    pub exclude: Vec<String>,
    /// True if its schemas may use all of JSON Schema, although some clients refuse such lists.
    pub full_schemas: bool,
    /// True if tasks of its idempotent tools are repeated whose hosts are gone.
    pub resume: bool,
}

/// A loaded pack.
pub struct Pack {
    /// Manifest of the pack, checked.
    pub manifest: Manifest,
    /// Origin of the bytes in words.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub config: String,
    /// Globs of tools that must not exist.
    pub exclude: Vec<String>,
    /// True if tasks of its idempotent tools are repeated whose hosts are gone.
    pub resume: bool,
    /// Its tables.
    pub namespace: Namespace,
    /// Further granted capabilities.
    pub granted: Arc<Granted>,
    /// Workspaces and programs it may use.
    pub access: Arc<Access>,
    pub(super) ready: Ready,
    pub(super) spares: InstancePool<ToolPack>,
}

impl Pack {
    /// True if the pack is part of this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }

    /// True once its code is in memory.
    pub fn is_ready(&self) -> bool {
        self.ready.linked().is_some()
    }

    /// Makes an instance in the store of a call. Fails until the code is there, which the gate waits for.
    pub fn instantiate(&self, store: &mut CallStore) -> GuestResult<ToolPack> {
        let linked = self.ready.linked().ok_or_else(Stopped::without_code)?;
        Ok(linked.pre.instantiate(store)?)
    }

    /// Instances that were made before a call needs them.
    pub fn spares(&self) -> &InstancePool<ToolPack> {
        &self.spares
    }

    /// Brings its code in, if it is not there. The error is everything that is wrong.
    pub async fn ready(&self) -> Result<(), Vec<String>> {
        self.ready.wait().await
    }
}

/// Reason why a component did not become a pack: everything that is wrong, with remedies.
#[derive(Debug, Error)]
#[error("pack `{pack}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct LoadError {
    /// The operator's name for it.
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
