//! Scans of work trees before a call, and the reasons for failed scans.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_store::storage::Sighting;

/// Scan of a work tree before a call, or the reason for which it failed.
pub(super) type Seen = Result<Arc<Sighting>, Unseen>;

/// Reason for which a work tree was not scanned.
#[derive(Debug, Clone)]
pub(super) struct Unseen {
    pub(super) why: String,
    /// True if the operator granted access to its repository, so that the scan should have succeeded.
    pub(super) has_git: bool,
}

/// Scan of a work tree of an envelope that a call closes.
#[derive(Debug, Clone)]
pub(crate) struct LookedAt {
    /// Name of the workspace.
    pub(crate) workspace: String,
    /// State of the work tree, or the reason for which it is unknown.
    pub(crate) seen: Result<Arc<Sighting>, String>,
}

impl LookedAt {
    /// The scan as stored in the row of the closing.
    pub(crate) fn as_json(&self) -> Value {
        match &self.seen {
            Ok(seen) => json!({"workspace": self.workspace, "state": seen.state}),
            Err(why) => json!({"workspace": self.workspace, "unseen": why}),
        }
    }
}
