//! Leases on steps. A lease expires by events of the workspace or by time, whichever comes first.

use serde_json::json;
use tollgate_sdk::{NextCall, Timestamp, ToolError, text_enum};

use crate::error::{Reason, Refusals};
use crate::record::{Lease, Step};
use crate::scope::{Located, Scope};

/// Default length of a lease, in events.
pub(crate) const DEFAULT_EVENTS: i64 = 200;
/// Longest lease, in events.
pub(crate) const MAX_EVENTS: i64 = 10_000;

/// Default length of a lease, in minutes.
pub(crate) const DEFAULT_MINUTES: i64 = 120;
/// Longest lease, in minutes: a week.
pub(crate) const MAX_MINUTES: i64 = 7 * 24 * 60;

text_enum! {
    /// End of a lease besides its time and events.
    pub(crate) enum Until {
        Connection = "connection",
    }
}

/// Time after some minutes.
pub(crate) fn after(time: Timestamp, minutes: i64) -> Timestamp {
    time.plus_ms(minutes.saturating_mul(60_000))
}

/// Time at which a lease expires. Leases of earlier versions have the default length.
pub(crate) fn until(lease: &Lease) -> Timestamp {
    lease
        .expires_at
        .unwrap_or_else(|| after(lease.claimed_at, DEFAULT_MINUTES))
}

/// Events until a lease expires, `None` if it has expired or its connection has ended.
pub(crate) fn left(scope: &Scope<'_>, lease: &Lease) -> Option<i64> {
    let left = lease.expires_after.saturating_sub(scope.counters.events);
    let is_in_time = left > 0 && scope.now() < until(lease);
    let is_connected = |name: &String| scope.cx.is_connected(name);
    (is_in_time && lease.connection.as_ref().is_none_or(is_connected)).then_some(left)
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
            other["actor"] = json!(owner);
        }
        let reason = Reason::LeaseHeld {
            path: step.path.to_string(),
            left: left(scope, &lease).unwrap_or_default(),
            until: until(&lease),
            holder: lease.owner,
        };
        // Other work, and no takeover: whether the owner is gone is for the caller to find out.
        refusals.add_with(reason, NextCall::new("tasks_next", other));
    }
    Ok(())
}
