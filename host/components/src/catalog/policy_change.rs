//! A policy that is another than the operator accepted, as it is told.

use serde::Serialize;

use super::definitions::Change;

/// A policy that is not what the operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyChange {
    /// The operator's name for it.
    pub policy: String,
    /// Which parts of it are others.
    pub parts: Vec<String>,
    /// Since when.
    pub since: String,
}

impl PolicyChange {
    /// Of the change of the definition that stands for the policy.
    pub fn of(change: Change) -> PolicyChange {
        let name = change.pack.split_once('.').map(|(_, name)| name.to_owned());
        PolicyChange {
            policy: name.unwrap_or(change.pack),
            parts: change.parts,
            since: change.since,
        }
    }
}

impl std::fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PolicyChange { policy, parts, since } = self;
        write!(
            f,
            "policy `{policy}` is another component: it has another {} ({since})",
            parts.join(", ")
        )
    }
}
