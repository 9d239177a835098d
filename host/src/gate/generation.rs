//! What loading the configuration again replaces, as one set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core_tools::EnvelopeSettings;
use crate::meter;
use crate::packs::Catalog;
use crate::workspaces::Workspaces;

/// Everything that calls are judged and run by, as far as the configuration can change it while a host
/// runs. It is replaced as a whole or not at all; a call keeps the one it began with to its end.
pub struct Generation {
    /// The packs and their tools.
    pub catalog: Arc<Catalog>,
    /// What envelopes get, and which calls need one.
    pub envelopes: EnvelopeSettings,
    /// The registered directories.
    pub workspaces: Workspaces,
}

/// How often a host was asked for another generation.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// What is counted of a generation and of those before it, in Prometheus' text format.
pub(super) fn metrics(generation: &Generation, reloads: &Reloads) -> String {
    let catalog = &generation.catalog;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let mut text = String::new();
    let build = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let name = "tollgate_build_info";
    meter::figure(&mut text, name, "gauge", "Which Tollgate this is.", &[(build, 1)]);
    let packs = [
        ("loaded", catalog.packs().len()),
        ("failed", catalog.failures().len()),
    ];
    let packs = packs.map(|(state, number)| (format!("{{state=\"{state}\"}}"), count(number)));
    meter::figure(
        &mut text,
        "tollgate_packs",
        "gauge",
        "Packs by what became of them.",
        &packs,
    );
    let changes = [(String::new(), count(catalog.changes().len()))];
    let help = "Tools that are not what the operator accepted.";
    meter::figure(&mut text, "tollgate_tools_changed", "gauge", help, &changes);
    let outcomes = [("taken", &reloads.taken), ("refused", &reloads.refused)];
    let outcomes = outcomes.map(|(outcome, number)| {
        (
            format!("{{outcome=\"{outcome}\"}}"),
            number.load(Ordering::Relaxed),
        )
    });
    let help = "How often the configuration was loaded again.";
    meter::figure(&mut text, "tollgate_reloads_total", "counter", help, &outcomes);
    let tools = catalog.all().chain(catalog.prompts());
    let tools = tools.map(|tool| (tool.pack_name(), tool.spec.name.as_str(), tool.meter.as_ref()));
    meter::calls(&mut text, tools);
    text
}
