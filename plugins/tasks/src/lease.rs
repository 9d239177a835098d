//! Leases: who works on a step, for so many events of the workspace.

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use crate::error::{Reason, Refusals};
use crate::record::{Lease, Step};
use crate::scope::{Located, Scope};

/// Events a lease lasts unless the call says otherwise.
pub(crate) const LENGTH: i64 = 200;
/// Most events a lease may last.
pub(crate) const LONGEST: i64 = 10_000;

/// How many more events a lease lasts, if any.
pub(crate) fn left(scope: &Scope<'_>, lease: &Lease) -> Option<i64> {
    let left = lease.expires_after.saturating_sub(scope.counters.events);
    (left > 0).then_some(left)
}

/// The lease on a step that still lasts.
pub(crate) fn live(scope: &Scope<'_>, step: &str) -> Result<Option<Lease>, ToolError> {
    Ok(scope
        .get::<Lease>(step)?
        .filter(|lease| left(scope, lease).is_some()))
}

/// Who calls: the owner that the call names, or the identity that the transport proved.
pub(crate) fn owner<'a>(scope: &'a Scope<'_>, named: Option<&'a str>) -> Option<&'a str> {
    named.or_else(|| scope.cx.identity())
}

/// Wants a step that nobody else holds.
pub(crate) fn guard(
    scope: &Scope<'_>,
    step: &Located<Step>,
    named: Option<&str>,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let Some(lease) = live(scope, &step.record.id)? else {
        return Ok(());
    };
    let owner = owner(scope, named);
    if owner != Some(lease.owner.as_str()) {
        let take_over = NextCall::new(
            "tasks_step_claim",
            json!({
                "workspace": scope.workspace, "task": lease.task, "step_id": lease.step,
                "owner": owner.unwrap_or("me"), "force": true, "reason": "say why you take over",
            }),
        );
        let reason = Reason::LeaseHeld {
            path: step.path.to_string(),
            left: left(scope, &lease).unwrap_or_default(),
            holder: lease.owner,
        };
        refusals.add_with(reason, take_over);
    }
    Ok(())
}
