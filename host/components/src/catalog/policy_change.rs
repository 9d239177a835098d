//! Report of a policy that differs from the one the operator accepted.

use serde::Serialize;

use super::definitions::Change;

/// A policy that differs from the one that the operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyChange {
    /// The operator's name for it.
    pub policy: String,
    /// Changed parts.
    pub parts: Vec<String>,
    /// Time since which it differs.
    pub since: String,
}

impl PolicyChange {
    /// Policy change from the change of its remembered definition.
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
            "policy `{policy}` is a different component: it has a different {} ({since})",
            parts.join(", ")
        )
    }
}
