//! Leases on steps: claiming, renewing, releasing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::lease::{self, DEFAULT_EVENTS, DEFAULT_MINUTES, MAX_EVENTS, MAX_MINUTES, Until};
use crate::limits::{MAX_ENTRY_CHARS, MAX_NAME_CHARS};
use crate::model::EventType;
use crate::record::{Lease, Step};
use crate::reply::{StepRef, Written};
use crate::scope::Located;
use crate::target::StepTarget;
use crate::write::Write;

/// Lease a step: only `actor` can verify or close it, until `minutes` or `events` have passed. The same actor
/// renews the lease by claiming again. Taking over another actor's lease needs `force` and a `reason`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepClaim {
    #[serde(flatten)]
    target: StepTarget,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
    /// Length of the lease in workspace events (default 200).
    #[schemars(range(min = 1, max = MAX_EVENTS))]
    events: Option<i64>,
    /// Length of the lease in minutes (default 120).
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    minutes: Option<i64>,
    /// `connection` also ends the lease when your connection ends.
    until: Option<Until>,
    /// Take the lease over from its owner (default false).
    #[serde(default)]
    force: bool,
    /// Reason for taking over. Required with `force`.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    reason: Option<String>,
}

impl Tool for StepClaim {
    const NAME: &'static str = "tasks_step_claim";
    const TITLE: &'static str = "Claim a step";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        let (_, step) = self.target.step(&mut write)?;
        let length = Length {
            events: self.events,
            minutes: self.minutes,
            until: self.until,
        };
        let mut refusals = length.check(&write);
        refusals.optional_text("reason", self.reason.as_deref(), MAX_ENTRY_CHARS);
        refusals.step_open(&write.scope, &step);
        if self.force && self.reason.is_none() {
            refusals.add(Reason::input("reason", "is required with force=true"));
        }
        if !self.force {
            lease::guard(&write.scope, &step, write.actor(), &mut refusals)?;
        }
        refusals.finish()?;
        let owner = write.actor().unwrap_or_default().to_owned();
        let held = lease::live(&write.scope, &step.record.id)?;
        let over = held.map(|lease| lease.owner).filter(|holder| *holder != owner);
        let reason = self.reason.filter(|_| over.is_some());
        if let Some(holder) = &over {
            let why = reason.as_deref().unwrap_or("no reason given");
            write.say(format!(
                "leased {} to {owner}, taken from {holder} ({why})",
                step.record.id
            ));
        }
        let data = json!({"owner": owner, "taken_from": over, "reason": reason});
        let workspace = write.scope.workspace.clone();
        let written = grant(
            write,
            &step,
            owner.clone(),
            length,
            (EventType::StepClaimed, data),
        )?;
        written.then(cx, &workspace, Some(&step.record.id), Some(&owner))
    }
}

/// Renew your lease on a step, from the current event and time on. Fails if you do not hold one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepRenew {
    #[serde(flatten)]
    target: StepTarget,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
    /// Length of the lease from now, in workspace events (default 200).
    #[schemars(range(min = 1, max = MAX_EVENTS))]
    events: Option<i64>,
    /// Length of the lease from now, in minutes (default 120).
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    minutes: Option<i64>,
    /// `connection` also ends the lease when your connection ends. Default: unchanged.
    until: Option<Until>,
}

impl Tool for StepRenew {
    const NAME: &'static str = "tasks_step_renew";
    const TITLE: &'static str = "Renew a lease";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        let (_, step) = self.target.step(&mut write)?;
        let length = Length {
            events: self.events,
            minutes: self.minutes,
            until: self.until,
        };
        length.check(&write).finish()?;
        let Lease {
            owner, connection, ..
        } = held(&write, &step)?;
        let length = Length {
            // Bound to the connection over which it is renewed.
            until: length.until.or(connection.map(|_| Until::Connection)),
            ..length
        };
        let data = json!({"owner": owner});
        grant(write, &step, owner, length, (EventType::LeaseRenewed, data))
    }
}

/// Release your lease on a step. Fails if you do not hold one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepRelease {
    #[serde(flatten)]
    target: StepTarget,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
}

impl Tool for StepRelease {
    const NAME: &'static str = "tasks_step_release";
    const TITLE: &'static str = "Release a lease";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::ADDITIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        let (task, step) = self.target.step(&mut write)?;
        Length::default().check(&write).finish()?;
        let lease = held(&write, &step)?;
        write.remove(&lease)?;
        let data = json!({"owner": lease.owner});
        write.event(
            EventType::LeaseReleased,
            &task.meta.id,
            Some(&step.record.id),
            data,
        );
        Ok(Written::about(&task.meta.id, write.finish()?).step(&step.record.id, &step.path))
    }
}

/// Length of a lease as a call gives it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Length {
    events: Option<i64>,
    minutes: Option<i64>,
    until: Option<Until>,
}

impl Length {
    /// The default length, until something ends the lease earlier.
    pub(super) fn until(until: Option<Until>) -> Length {
        Length {
            until,
            ..Length::default()
        }
    }

    /// Requires a holder, and lengths within their limits.
    fn check(self, write: &Write<'_>) -> Refusals {
        let mut refusals = Refusals::default();
        if write.actor().is_none() {
            refusals.add(Reason::input("actor", "is required for a lease"));
        }
        if let Some(events) = self.events {
            refusals.within("events", events, 1..=MAX_EVENTS);
        }
        if let Some(minutes) = self.minutes {
            refusals.within("minutes", minutes, 1..=MAX_MINUTES);
        }
        refusals
    }
}

/// The caller's lease on a step.
fn held(write: &Write<'_>, step: &Located<Step>) -> Result<Lease, ToolError> {
    let mut refusals = Refusals::default();
    lease::guard(&write.scope, step, write.actor(), &mut refusals)?;
    refusals.finish()?;
    lease::live(&write.scope, &step.record.id)?.ok_or_else(|| {
        let owner = write.actor().unwrap_or_default().to_owned();
        let path = step.path.to_string();
        Reason::LeaseNotHeld { path, owner }.into()
    })
}

/// Leases a step and plans the event.
pub(super) fn grant(
    mut write: Write<'_>,
    step: &Located<Step>,
    owner: String,
    length: Length,
    (event, mut data): (EventType, Json),
) -> Result<Written, ToolError> {
    let now = write.scope.now();
    let connection = match length.until {
        None => None,
        Some(Until::Connection) => Some(write.scope.cx.connection().ok_or_else(|| {
            Reason::input(
                "until",
                "is connection, but this client has no lasting connection; omit until",
            )
        })?),
    };
    let lease = Lease {
        step: step.record.id.clone(),
        task: step.record.task.clone(),
        owner,
        // The event of this call comes first and does not count.
        expires_after: write
            .scope
            .counters
            .events
            .saturating_add(1)
            .saturating_add(length.events.unwrap_or(DEFAULT_EVENTS)),
        expires_at: Some(lease::after(now, length.minutes.unwrap_or(DEFAULT_MINUTES))),
        connection,
        claimed_at: now,
    };
    write.put(&lease)?;
    data["expires_after"] = json!(lease.expires_after);
    data["expires_at"] = json!(lease.expires_at);
    if let Some(until) = length.until {
        data["until"] = json!(until);
    }
    write.event(event, &lease.task, Some(&lease.step), data);
    let mut written = Written::about(&lease.task, write.finish()?);
    written.step = Some(StepRef::new(&lease.step, &step.path));
    Ok(written)
}
