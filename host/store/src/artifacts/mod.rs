//! Artifacts: content that operations refer to and that is kept for a while, such as a test's whole log.
//!
//! Content is named by its hash. The store keeps content in files in `artifacts/` of the data directory, readable by
//! its owner alone, or in the database of a server. The artifacts of an operation are rows of `core_artifacts`,
//! written in the same commit as the operation's row. Content is stored before its rows or shortly after. Content is
//! removed when it expires, when space runs short, or when no row names it. Missing content says nothing about the
//! ledger.
//!
//! A call gets a [`CallArtifacts`]. To store content of unknown size, stream it:
//!
//! ```
//! # use std::io::Write as _;
//! # use tollgate_store::artifacts::{ArtifactKind, CallArtifacts};
//! # fn keep_log(artifacts: &CallArtifacts, output: &mut impl std::io::Read) -> std::io::Result<()> {
//! if let Some(mut log) = artifacts.create(ArtifactKind::Log)? {
//!     std::io::copy(output, &mut log)?;
//!     let id = log.keep()?;
//! }
//! # Ok(())
//! # }
//! ```

mod collect;
mod contents;
mod files;
#[cfg(test)]
mod fixture;
mod given;
mod rows;
mod space;
mod store;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tollgate_core::hash::sha256_hex;
use tollgate_core::share::Share;

use given::Given;

pub use crate::artifact::{Artifact, ArtifactKind};
pub use collect::{Kept, collect};
pub use contents::{ArtifactsError, ContentStore, into_files};
pub use store::{ArtifactStore, ArtifactWriter};

/// Configuration table `[artifacts]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArtifactSettings {
    /// True if any content is stored.
    pub enabled: bool,
    /// Storage of new content. Default: the storage that goes with the database.
    pub store: Option<ContentStore>,
    /// Hours until content expires.
    pub ttl_hours: u32,
    /// Limit on all content in MiB. The oldest content is removed first.
    pub max_mib: u64,
    /// Limit on one artifact in MiB.
    pub max_artifact_mib: u64,
    /// True if output of processes is stored.
    pub logs: bool,
    /// True if diffs are stored.
    pub diffs: bool,
    /// True if the arguments of every call are stored.
    pub arguments: bool,
    /// True if the results of every call are stored.
    pub results: bool,
}

impl Default for ArtifactSettings {
    fn default() -> ArtifactSettings {
        ArtifactSettings {
            enabled: false,
            store: None,
            ttl_hours: 72,
            max_mib: 1024,
            max_artifact_mib: 16,
            logs: true,
            diffs: true,
            arguments: false,
            results: false,
        }
    }
}

impl ArtifactSettings {
    /// True if content of this kind is stored.
    pub fn wants(&self, kind: ArtifactKind) -> bool {
        self.enabled
            && match kind {
                ArtifactKind::Log => self.logs,
                ArtifactKind::Diff => self.diffs,
                ArtifactKind::Arguments => self.arguments,
                ArtifactKind::Result => self.results,
            }
    }
}

/// Call that an artifact belongs to.
#[derive(Clone, Default)]
struct Call {
    share: Share,
    kept: Arc<Mutex<Vec<Artifact>>>,
    is_short: Arc<AtomicBool>,
}

impl Call {
    fn kept(&self) -> MutexGuard<'_, Vec<Artifact>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that there was no room for content.
    fn refuse(&self) {
        self.is_short.store(true, Ordering::Relaxed);
    }
}

/// Reserved room for content by its hash. Room for content that is never stored is released.
#[derive(Default)]
struct Promised {
    store: Option<Arc<ArtifactStore>>,
    share: Share,
    contents: Mutex<HashMap<String, Promise>>,
}

/// Content that will be stored.
struct Promise {
    bytes: u64,
    /// Newest artifact of the call with this content.
    artifact: String,
}

impl Promised {
    fn contents(&self) -> MutexGuard<'_, HashMap<String, Promise>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        if let Some(store) = &self.store {
            for promise in self.contents().values() {
                store.space.give_back(&self.share, promise.bytes);
            }
        }
    }
}

/// Artifacts of one call.
#[derive(Clone, Default)]
pub struct CallArtifacts {
    store: Option<Arc<ArtifactStore>>,
    call: Call,
    given: Arc<Mutex<Given>>,
    promised: Arc<Promised>,
}

impl CallArtifacts {
    /// Artifacts of a call, in this store if the host has one.
    pub fn new(store: Option<Arc<ArtifactStore>>, share: Share) -> CallArtifacts {
        CallArtifacts {
            promised: Arc::new(Promised {
                store: store.clone(),
                share: share.clone(),
                contents: Mutex::default(),
            }),
            store,
            call: Call {
                share,
                ..Call::default()
            },
            given: Arc::default(),
        }
    }

    /// Creates an artifact of unknown size, unless the operator does not want this kind. Dropping the writer stores
    /// nothing.
    pub fn create(&self, kind: ArtifactKind) -> std::io::Result<Option<ArtifactWriter>> {
        match &self.store {
            Some(store) if store.settings().wants(kind) => {
                ArtifactWriter::begin(Arc::clone(store), kind, self.call.clone()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Artifacts that the call has stored so far.
    pub fn kept(&self) -> Vec<Artifact> {
        self.call.kept().clone()
    }

    /// Discards the call's artifacts, because the call runs again or is rolled back.
    pub fn forget(&self) {
        self.call.kept().clear();
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Given::default();
    }

    /// Artifact for content that the host has in memory and will store after the call.
    pub fn announce(&self, kind: ArtifactKind, content: &str) -> Option<Artifact> {
        let store = self.store.as_ref()?;
        if !store.settings().wants(kind) {
            return None;
        }
        let artifact = store.describe(kind, content.as_bytes(), &self.call.share);
        self.promise(store, &artifact).then_some(artifact)
    }

    /// True if content of the call was not stored, or not completely, for lack of room.
    pub fn is_short(&self) -> bool {
        self.call.is_short.load(Ordering::Relaxed)
    }

    /// Reserves room for content, once for equal contents. Returns `false` if there is none.
    fn promise(&self, store: &ArtifactStore, artifact: &Artifact) -> bool {
        let mut contents = self.promised.contents();
        if let Some(promise) = contents.get_mut(&artifact.hash) {
            promise.artifact.clone_from(&artifact.id);
            return true;
        }
        let bytes = u64::try_from(artifact.size).unwrap_or_default();
        let is_room = store.take_room(&self.call.share, bytes);
        if is_room {
            let promise = Promise {
                bytes,
                artifact: artifact.id.clone(),
            };
            contents.insert(artifact.hash.clone(), promise);
        } else {
            self.call.refuse();
        }
        is_room
    }

    /// Stores announced content, if there was room for it.
    pub fn store(&self, content: &[u8]) {
        let Some(store) = &self.store else {
            return;
        };
        let hash = sha256_hex(store.cut(content));
        let Some(promise) = self.promised.contents().remove(&hash) else {
            return;
        };
        match store.put(content, &promise.artifact) {
            Ok(()) => store.space.fill(promise.bytes),
            Err(err) => {
                store.space.give_back(&self.call.share, promise.bytes);
                tracing::warn!(%err, "cannot store an artifact");
            }
        }
    }

    pub fn wants(&self, kind: ArtifactKind) -> bool {
        self.store
            .as_ref()
            .is_some_and(|store| store.settings().wants(kind))
    }
}
