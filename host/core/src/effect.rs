//! The three ways in which the host runs a tool.

use serde::{Deserialize, Serialize};

/// Ways in which the host runs a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// One snapshot.
    #[default]
    Read,
    /// One transaction.
    Write,
    /// Outside, with short transactions.
    Run,
}

impl Effect {
    /// From how the ledger records it.
    pub fn parse(text: &str) -> Option<Effect> {
        let all = [Effect::Read, Effect::Write, Effect::Run];
        all.into_iter().find(|effect| effect.as_str() == text)
    }

    /// As the ledger records it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Run => "run",
        }
    }
}
