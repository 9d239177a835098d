//! Waiting for components that a call needs and that are still loading after the host's start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_components::catalog::{Body, Catalog, ToolEntry};
use tollgate_sandbox::Limits;
use tollgate_sdk::ToolError;

use super::{Call, Gate, Generation};
use crate::core_tools::TOOL_CALL;

/// Time that a list request waits for packs that have never been described. Clients ask for lists once and allow a
/// start 10 s and more.
const LISTING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of checking whether the caller still waits.
const CALLER_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of progress notes to the caller.
const NOTE_INTERVAL: Duration = Duration::from_secs(5);

impl Gate {
    /// Generation that a call is judged and run by. No call runs while policies are loading, and an unknown tool may
    /// belong to a pack that is loading. After the time limit the caller gets the current generation.
    async fn prepared_in(&self, call: &mut Call, limit: Duration) -> Arc<Generation> {
        let mut replaced = self.replaced.subscribe();
        let started = Instant::now();
        loop {
            let generation = self.generation();
            let missing = missing(&generation.catalog, call);
            let left = limit.saturating_sub(started.elapsed());
            if missing.is_empty() || left.is_zero() {
                return generation;
            }
            let what = missing.join(", ");
            if wait(replaced.changed(), left, &what, call).await.is_none() {
                return self.generation();
            }
        }
    }

    pub(super) async fn prepared(&self, call: &mut Call) -> Arc<Generation> {
        let generation = self.generation();
        if generation.catalog.preparing().is_over() {
            return generation;
        }
        self.prepared_in(call, Limits::default().run).await
    }

    /// Waits until it is known whether a tool exists, as long as a call would. Returns `false` if that is still
    /// unknown.
    pub async fn knows_of(&self, tool: &str) -> bool {
        let mut replaced = self.replaced.subscribe();
        let known = async {
            loop {
                let generation = self.generation();
                let catalog = &generation.catalog;
                if catalog.preparing().packs.is_empty() || catalog.find(tool).is_some() {
                    return true;
                }
                if replaced.changed().await.is_err() {
                    return false;
                }
            }
        };
        tokio::time::timeout(Limits::default().run, known)
            .await
            .unwrap_or(false)
    }

    /// Waits a short time for packs whose tools are not known yet. Clients are notified of packs that become known
    /// later.
    pub async fn introduced(&self) {
        let mut replaced = self.replaced.subscribe();
        let introduced = async {
            while !self.generation().catalog.preparing().packs.is_empty() {
                if replaced.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(LISTING_TIMEOUT, introduced).await;
    }
}

/// Components that must be loaded before a call can be judged.
fn missing(catalog: &Catalog, call: &Call) -> Vec<String> {
    let preparing = catalog.preparing();
    if !preparing.policies.is_empty() {
        return preparing.policies.clone();
    }
    let relayed = call.arguments.get("tool").and_then(|tool| tool.as_str());
    let name = relayed.filter(|_| call.tool == TOOL_CALL).unwrap_or(&call.tool);
    let is_there = catalog.find(name).is_some() || catalog.find_prompt(name).is_some();
    if is_there {
        Vec::new()
    } else {
        preparing.packs.clone()
    }
}

/// Waits for the code of a tool's pack, at most as long as the longest of the pack's calls may take. No call passes
/// while policies are missing.
pub(super) async fn code(
    generation: &Generation,
    tool: &ToolEntry,
    call: &mut Call,
) -> Result<(), ToolError> {
    let policies = &generation.catalog.preparing().policies;
    if !policies.is_empty() {
        return Err(unready("policy", &policies.join(", ")));
    }
    let Body::Guest(pack) = &tool.body else {
        return Ok(());
    };
    if pack.is_ready() {
        return Ok(());
    }
    let name = &pack.manifest.name;
    let Limits { read, write, run, .. } = pack.limits;
    match wait(pack.ready(), read.max(write).max(run), name, call).await {
        Some(Ok(())) => Ok(()),
        Some(Err(problems)) => Err(ToolError::new(
            "PACK_FAILED",
            format!("pack `{name}` was not loaded: {}", problems.join("; ")),
        )
        .remediation("Ask the operator to fix the pack; `tollgate packs list` shows the reason.")
        .context("pack", name.as_str())),
        None => Err(unready("pack", name)),
    }
}

fn unready(kind: &str, name: &str) -> ToolError {
    ToolError::new(
        "PREPARING",
        format!("{kind} {name} is being prepared, which happens once"),
    )
    .remediation("Nothing was done. Call again in a few seconds.")
    .context(kind, name)
}

/// Waits for a future, up to a limit and until the caller cancels. The caller gets progress notes.
async fn wait<T>(ready: impl Future<Output = T>, limit: Duration, what: &str, call: &mut Call) -> Option<T> {
    let started = Instant::now();
    let mut ready = std::pin::pin!(ready);
    let mut told: Option<Instant> = None;
    loop {
        if told.is_none_or(|told| told.elapsed() >= NOTE_INTERVAL) {
            call.progress.tell(0, None, &format!("preparing {what}, once"));
            told = Some(Instant::now());
        }
        let left = limit.saturating_sub(started.elapsed());
        if left.is_zero() || call.cancel.is_cancelled() {
            return None;
        }
        if let Ok(ready) = tokio::time::timeout(left.min(CALLER_CHECK_INTERVAL), &mut ready).await {
            return Some(ready);
        }
    }
}
