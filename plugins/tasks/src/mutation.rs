//! How many mutations there were: what evidence is measured against.
//!
//! The count is the pack's own, of the workspace. It is read and advanced here only, so that it can give
//! way to a count of everything that happens in an envelope.

use crate::scope::Scope;
use crate::store::workspace::Counters;

/// Tools that record something about the work and do not change it.
const BOOKKEEPING: &[&str] = &[
    "tasks_evidence_capture",
    "tasks_verify",
    "tasks_note",
    "tasks_step_claim",
    "tasks_step_renew",
    "tasks_step_release",
    "tasks_template_save",
];

/// How many mutations there were so far.
pub(crate) fn count(scope: &Scope<'_>) -> i64 {
    scope.counters.mutations
}

/// Counts a write by a tool.
pub(crate) fn advance(counters: &mut Counters, tool: &str) {
    if !BOOKKEEPING.contains(&tool) {
        counters.mutations = counters.mutations.saturating_add(1);
    }
}
