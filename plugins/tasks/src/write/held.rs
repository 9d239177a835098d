//! Leases in the way of an undo or redo: what a direct call may not do to a step that somebody else holds, an undo or
//! redo may not do either.

use tollgate_sdk::{DbError, NextCall, ToolError};

use serde_json::json;

use super::{Write, parse};
use crate::error::{Reason, Refusals};
use crate::lease;
use crate::record::{Lease, Step};
use crate::store::Kind;
use crate::store::operation::Change;

impl Write<'_> {
    /// The live lease of somebody else that restoring a record goes against. A held step is neither released, confirmed
    /// nor closed by others. An operation that is about leases only also gives none to anybody but the caller.
    pub(super) fn foreign_lease(
        &self,
        change: &Change,
        wanted: Option<&str>,
        is_about_leases: bool,
    ) -> Result<Option<Lease>, ToolError> {
        let lease = match change.kind {
            Kind::Lease => match lease::live(&self.scope, &change.id)? {
                Some(held) => Some(held),
                None if is_about_leases => wanted
                    .map(parse::<Lease>)
                    .transpose()?
                    .filter(|given| lease::left(&self.scope, given).is_some()),
                None => None,
            },
            Kind::Step if passes_the_gate(change)? => lease::live(&self.scope, &change.id)?,
            _ => None,
        };
        Ok(lease.filter(|lease| self.actor() != Some(lease.owner.as_str())))
    }

    /// Refuses to restore a record that goes against a lease.
    pub(super) fn refuse_held(&self, lease: Lease, refusals: &mut Refusals) -> Result<(), ToolError> {
        let reason = Reason::LeaseHeld {
            path: self.place(&lease.step)?,
            left: lease::left(&self.scope, &lease).unwrap_or_default(),
            until: lease::until(&lease),
            holder: lease.owner,
        };
        let look = NextCall::new("tasks_history", json!({"workspace": self.scope.workspace}));
        refusals.add_with(reason, look);
        Ok(())
    }
}

/// Returns whether a change closes or reopens a step, or confirms or withdraws a checkpoint.
fn passes_the_gate(change: &Change) -> Result<bool, DbError> {
    let gate = |body: &Option<String>| -> Result<_, DbError> {
        let step: Option<Step> = body.as_deref().map(parse).transpose()?;
        Ok(step.map(|step| (step.completed_at, step.confirmed)))
    };
    let (before, after) = (gate(&change.before)?, gate(&change.after)?);
    Ok(before.is_some() && after.is_some() && before != after)
}
