//! Work trees as they were seen before a call, and the reasons why some were not.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_store::storage::Sighting;

/// A work tree before a call, or why it was not seen.
pub(super) type Seen = Result<Arc<Sighting>, Unseen>;

/// Why a work tree was not seen.
#[derive(Debug, Clone)]
pub(super) struct Unseen {
    pub(super) why: String,
    /// The operator gave access to its repository, so it should have been.
    pub(super) has_git: bool,
}

/// Look at a work tree of an envelope that a call closes.
#[derive(Debug, Clone)]
pub(crate) struct LookedAt {
    /// Name of the workspace.
    pub(crate) workspace: String,
    /// Its state, or why nobody knows it.
    pub(crate) seen: Result<Arc<Sighting>, String>,
}

impl LookedAt {
    /// The look as the row of the closing has it.
    pub(crate) fn as_json(&self) -> Value {
        match &self.seen {
            Ok(seen) => json!({"workspace": self.workspace, "state": seen.state}),
            Err(why) => json!({"workspace": self.workspace, "unseen": why}),
        }
    }
}
