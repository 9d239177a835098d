//! Place in the chain: its policy, the tools it judges, and the effect of its verdicts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use globset::GlobSet;
use serde::{Deserialize, Serialize};

use super::policy::{Policy, Unloaded};

/// Effect of a policy's verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Verdicts decide on the call.
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
    /// Before the result is sent.
    Response,
    /// Both.
    #[default]
    Both,
}

impl Phase {
    /// Intersection of two phases.
    pub(super) fn and(self, other: Phase) -> Option<Phase> {
        match (self, other) {
            (Phase::Both, phase) | (phase, Phase::Both) => Some(phase),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// One place in the chain.
pub struct Member<P = Policy> {
    /// Name that the operator gave it.
    pub name: String,
    /// Position: lower values judge first, and names decide between equal ones.
    pub order: i64,
    /// Effect of the verdicts.
    pub mode: Mode,
    /// True if a call that it cannot judge passes.
    pub fail_open: bool,
    /// Phase in which the policy is asked.
    pub phase: Phase,
    /// Globs of the tools that it judges, as configured. Empty means all.
    pub patterns: Vec<String>,
    /// Compiled globs of these tools.
    pub tools: Option<GlobSet>,
    /// The policy, or the reason for which it was not loaded. A policy that was not loaded cannot judge.
    pub policy: Result<Arc<P>, Unloaded>,
    /// Number of its denials since the host started.
    pub denials: Arc<AtomicU64>,
}

impl<P> Member<P> {
    /// True if the policy judges a tool in any phase.
    pub fn judges(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.is_match(tool))
    }

    /// True if the policy judges a tool in a phase, which is `Request` or `Response`.
    pub(super) fn judges_in(&self, phase: Phase, tool: &str) -> bool {
        (self.phase == phase || self.phase == Phase::Both) && self.judges(tool)
    }
}
