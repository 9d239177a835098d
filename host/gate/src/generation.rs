//! The parts of a host that a configuration reload replaces, as one set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_components::catalog::Catalog;
use tollgate_core::meter::Figures;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::storage::HeadOf;

use crate::approvers::ApprovalSettings;
use crate::envelope_settings::EnvelopeSettings;
use crate::telemetry::Spans;

/// Everything that calls are judged and run by and that the configuration can change while a host runs. Replaced as a
/// whole or not at all. A call keeps the generation that it began with.
pub struct Generation {
    /// Catalog of packs and tools.
    pub catalog: Arc<Catalog>,
    /// Settings of envelopes, including which calls need one.
    pub envelopes: EnvelopeSettings,
    /// Settings of approvals.
    pub approvals: ApprovalSettings,
    /// Registered directories.
    pub workspaces: Workspaces,
}

impl Generation {
    /// Lookup of the commit that a workspace is at.
    pub fn head_of(&self) -> HeadOf {
        let workspaces = self.workspaces.clone();
        Arc::new(move |name| workspaces.get(name)?.git_head())
    }
}

/// Number of reload requests, by outcome.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// Metrics of this generation and of those before it.
pub(super) fn figures(
    generation: &Generation,
    reloads: &Reloads,
    spans: Option<&Spans>,
    (since_ms, at_ms): (i64, i64),
) -> Figures {
    let catalog = &generation.catalog;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let tools = catalog.all().chain(catalog.prompts());
    Figures {
        since_ms,
        at_ms,
        packs: [
            ("loaded", count(catalog.packs().len())),
            ("failed", count(catalog.failures().len())),
        ],
        tools_changed: count(catalog.changes().len()),
        reloads: [
            ("taken", reloads.taken.load(Ordering::Relaxed)),
            ("refused", reloads.refused.load(Ordering::Relaxed)),
        ],
        spans_dropped: spans.map(Spans::dropped),
        tools: tools
            .filter_map(|tool| tool.meter.read(tool.pack_name(), &tool.spec.name))
            .collect(),
    }
}
