//! Place in the chain: its policy, the judged tools, and the effect of verdicts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use globset::GlobSet;
use serde::{Deserialize, Serialize};

use super::policy::{Policy, Unloaded};

/// Effect of a policy's verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Verdicts decide.
    #[default]
    Enforce,
    /// Verdicts are only recorded.
    Audit,
}

/// Phase in which a policy is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the call.
    Request,
    /// Before its result leaves.
    Response,
    /// Both.
    #[default]
    Both,
}

impl Phase {
    /// Common part of two phases.
    pub(super) fn and(self, other: Phase) -> Option<Phase> {
        match (self, other) {
            (Phase::Both, phase) | (phase, Phase::Both) => Some(phase),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// One place in the chain.
pub struct Member<P = Policy> {
    /// The operator's name for it.
    pub name: String,
    /// Lower ones judge first; of equals, the one whose name sorts first.
    pub order: i64,
    /// Effect of the verdicts.
    pub mode: Mode,
    /// A call that it cannot judge passes.
    pub fail_open: bool,
    /// Phase in which the policy is asked.
    pub phase: Phase,
    /// Which tools it judges, as configured; none means all.
    pub patterns: Vec<String>,
    /// The same, to be matched.
    pub tools: Option<GlobSet>,
    /// The policy, or why it was not loaded. One that was not loaded can judge nothing.
    pub policy: Result<Arc<P>, Unloaded>,
    /// The number of its refusals since the host started.
    pub denials: Arc<AtomicU64>,
}

impl<P> Member<P> {
    /// True if the policy judges a tool at all.
    pub fn judges(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.is_match(tool))
    }

    /// True if the policy judges a tool in a phase, which is one of the two.
    pub(super) fn judges_in(&self, phase: Phase, tool: &str) -> bool {
        (self.phase == phase || self.phase == Phase::Both) && self.judges(tool)
    }
}
