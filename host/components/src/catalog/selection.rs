//! Selection of the loaded tools that are enabled and of those that are listed.

use globset::{Glob, GlobSet, GlobSetBuilder};
use tollgate_core::effect::Effect;

use crate::tools::{Tier, ToolSpec};

/// Selection of the loaded tools that are enabled and listed.
#[derive(Debug, Clone)]
pub struct Selection {
    /// True if the host's own tools are enabled.
    pub core: bool,
    /// Globs. If there are any, only matching tools are enabled.
    pub tools: Vec<String>,
    /// Globs. Matching tools are disabled.
    pub exclude: Vec<String>,
    /// True if only tools that read are enabled.
    pub read_only: bool,
    /// Highest tier that is listed. Default: core, or all tiers if `tools` is set.
    pub tier: Option<Tier>,
    /// True if only the discovery tools are listed. They are enabled whenever some tools are not listed, whatever
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
    /// True if a tool or prompt is enabled.
    pub(super) fn has(&self, spec: &ToolSpec) -> bool {
        (self.tools.is_empty() || globs(&self.tools).is_match(&spec.name))
            && !globs(&self.exclude).is_match(&spec.name)
            && (!self.read_only || spec.effect == Effect::Read)
    }

    /// Highest listed tier. A selection that names tools lists all of them by default.
    pub(super) fn listed_tier(&self) -> Tier {
        match self.tier {
            Some(tier) => tier,
            None if self.tools.is_empty() => Tier::Core,
            None => Tier::Full,
        }
    }
}

/// Compiles globs that were checked when the configuration was read. An invalid glob matches nothing.
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
