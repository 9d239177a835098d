//! Leases on steps, measured in events of the workspace.

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use crate::error::{Reason, Refusals};
use crate::record::{Lease, Step};
use crate::scope::{Located, Scope};

/// Default length of a lease, in events.
pub(crate) const LENGTH: i64 = 200;
/// Longest lease, in events.
pub(crate) const LONGEST: i64 = 10_000;

/// Events until a lease expires, `None` if it has expired.
pub(crate) fn left(scope: &Scope<'_>, lease: &Lease) -> Option<i64> {
    let left = lease.expires_after.saturating_sub(scope.counters.events);
    (left > 0).then_some(left)
}

/// The unexpired lease on a step.
pub(crate) fn live(scope: &Scope<'_>, step: &str) -> Result<Option<Lease>, ToolError> {
    Ok(scope
        .get::<Lease>(step)?
        .filter(|lease| left(scope, lease).is_some()))
}

/// Owner that the call names, otherwise the identity that the transport authenticated.
pub(crate) fn owner<'a>(scope: &'a Scope<'_>, named: Option<&'a str>) -> Option<&'a str> {
    named.or_else(|| scope.cx.identity())
}

/// Requires a step that nobody else has leased.
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
        let mut other = json!({"workspace": scope.workspace});
        if let Some(owner) = owner {
            other["owner"] = json!(owner);
        }
        let reason = Reason::LeaseHeld {
            path: step.path.to_string(),
            left: left(scope, &lease).unwrap_or_default(),
            holder: lease.owner,
        };
        // Other work, and no takeover: whether the owner is gone is for the caller to find out.
        refusals.add_with(reason, NextCall::new("tasks_next", other));
    }
    Ok(())
}
