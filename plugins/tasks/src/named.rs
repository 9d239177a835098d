//! Names of what a call changed, in its row of the ledger.

use std::collections::BTreeSet;

use tollgate_sdk::{Cx, Event, LedgerError, ToolError};

use crate::store::root::Head;

/// Most entities that are named of one write. A batch may have several writes, and a call names at most 1,000.
const MAX_NAMED: usize = 500;

/// The focus of a workspace.
pub(crate) const FOCUS: &str = "tasks/focus";

/// A plan, for example `tasks/PLAN-001`, or a task below its plan.
pub(crate) fn root(head: &Head) -> String {
    match &head.plan {
        Some(plan) => format!("tasks/{plan}/{}", head.id),
        None => format!("tasks/{}", head.id),
    }
}

/// A template of a workspace.
pub(crate) fn template(name: &str) -> String {
    format!("tasks/templates/{name}")
}

/// The pack's count of calls without changes in an envelope.
pub(crate) fn envelope(id: &str) -> String {
    format!("tasks/envelopes/{id}")
}

/// Names changed entities in the row of the call. Names beyond the limits of a row are left out, because no write fails
/// for them.
pub(crate) fn record(cx: &Cx<'_>, tool: &str, names: &BTreeSet<String>) -> Result<(), ToolError> {
    let event_type = format!("tasks.{}", tool.strip_prefix("tasks_").unwrap_or(tool));
    let event = Event::new(&event_type).changed(names.iter().take(MAX_NAMED).cloned());
    match cx.ledger().append(&event) {
        Ok(()) | Err(LedgerError::TooLarge(_)) => Ok(()),
        Err(err) => Err(err.into()),
    }
}
