//! Selection of the loaded tools that exist and are listed.

use globset::{Glob, GlobSet, GlobSetBuilder};
use tollgate_core::effect::Effect;

use crate::tools::{Tier, ToolSpec};

/// Which of the loaded tools exist and are listed.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The host's own tools exist.
    pub core: bool,
    /// Globs; when there are any, only tools that match one exist.
    pub tools: Vec<String>,
    /// Globs; tools that match one do not exist.
    pub exclude: Vec<String>,
    /// Only tools that read exist.
    pub read_only: bool,
    /// Up to which tier tools are listed. Without it: core, or all that `tools` names.
    pub tier: Option<Tier>,
    /// Only the tools that find and call others are listed. They exist wherever not all tools are listed, whatever
    /// else is selected.
    pub compact: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            core: true,
            tools: Vec::new(),
            exclude: Vec::new(),
            read_only: false,
            tier: None,
            compact: false,
        }
    }
}

impl Selection {
    /// True if a tool or prompt exists.
    pub(super) fn has(&self, spec: &ToolSpec) -> bool {
        (self.tools.is_empty() || globs(&self.tools).is_match(&spec.name))
            && !globs(&self.exclude).is_match(&spec.name)
            && (!self.read_only || spec.effect == Effect::Read)
    }

    /// Naming tools says enough about which to list.
    pub(super) fn listed_tier(&self) -> Tier {
        match self.tier {
            Some(tier) => tier,
            None if self.tools.is_empty() => Tier::Core,
            None => Tier::Full,
        }
    }
}

/// Globs that were checked when the configuration was read; one that is none matches nothing.
pub(super) fn globs(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match Glob::new(pattern) {
            Ok(glob) => {
                set.add(glob);
            }
            Err(err) => tracing::warn!(%err, "a tool pattern is ignored"),
        }
    }
    set.build().unwrap_or_default()
}
