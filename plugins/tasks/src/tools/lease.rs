//! Leases on steps: claiming, renewing, releasing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::lease::{self, LENGTH, LONGEST};
use crate::limits::{ENTRY, NAME};
use crate::model::EventType;
use crate::record::{Lease, Step};
use crate::reply::{StepRef, Written};
use crate::scope::Located;
use crate::target::StepTarget;
use crate::write::Write;

/// Lease a step. Until `events` workspace events have passed, only `owner` can verify or close it. The same
/// owner renews the lease by claiming again. Taking over another owner's lease needs `force` and a `reason`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepClaim {
    #[serde(flatten)]
    target: StepTarget,
    /// Your name, the same in every call about the lease.
    #[schemars(length(min = 1, max = NAME))]
    owner: String,
    /// Length of the lease in workspace events (default 200).
    #[schemars(range(min = 1, max = LONGEST))]
    events: Option<i64>,
    /// Take the lease over from its owner (default false).
    #[serde(default)]
    force: bool,
    /// Reason for taking over. Required with `force`.
    #[schemars(length(min = 1, max = ENTRY))]
    reason: Option<String>,
}

impl Tool for StepClaim {
    const NAME: &'static str = "tasks_step_claim";
    const TITLE: &'static str = "Claim a step";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (_, step) = self.target.step(&mut write)?;
        let mut refusals = check(&self.owner, self.events);
        refusals.optional_text("reason", self.reason.as_deref(), ENTRY);
        refusals.step_open(&write.scope, &step);
        if self.force && self.reason.is_none() {
            refusals.add(Reason::input("reason", "is required with force=true"));
        }
        if !self.force {
            lease::guard(&write.scope, &step, Some(&self.owner), &mut refusals)?;
        }
        refusals.finish()?;
        let held = lease::live(&write.scope, &step.record.id)?;
        let over = held
            .map(|lease| lease.owner)
            .filter(|holder| *holder != self.owner);
        let data = json!({"owner": self.owner, "taken_from": over, "reason": self.reason.filter(|_| over.is_some())});
        let workspace = write.scope.workspace.clone();
        let written = grant(
            write,
            &step,
            &self.owner,
            self.events,
            EventType::StepClaimed,
            data,
        )?;
        written.then(cx, &workspace, Some(&step.record.id), Some(&self.owner))
    }
}

/// Renew your lease on a step, from the current event on. Fails if you do not hold one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepRenew {
    #[serde(flatten)]
    target: StepTarget,
    /// Your name, the same in every call about the lease.
    #[schemars(length(min = 1, max = NAME))]
    owner: String,
    /// Length of the lease from now, in workspace events (default 200).
    #[schemars(range(min = 1, max = LONGEST))]
    events: Option<i64>,
}

impl Tool for StepRenew {
    const NAME: &'static str = "tasks_step_renew";
    const TITLE: &'static str = "Renew a lease";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (_, step) = self.target.step(&mut write)?;
        check(&self.owner, self.events).finish()?;
        held(&write, &step, &self.owner)?;
        let data = json!({"owner": self.owner});
        grant(
            write,
            &step,
            &self.owner,
            self.events,
            EventType::LeaseRenewed,
            data,
        )
    }
}

/// Release your lease on a step. Fails if you do not hold one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepRelease {
    #[serde(flatten)]
    target: StepTarget,
    /// Your name, the same in every call about the lease.
    #[schemars(length(min = 1, max = NAME))]
    owner: String,
}

impl Tool for StepRelease {
    const NAME: &'static str = "tasks_step_release";
    const TITLE: &'static str = "Release a lease";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::ADDITIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (task, step) = self.target.step(&mut write)?;
        check(&self.owner, None).finish()?;
        let lease = held(&write, &step, &self.owner)?;
        write.remove(&lease)?;
        let data = json!({"owner": self.owner});
        write.event(
            EventType::LeaseReleased,
            &task.meta.id,
            Some(&step.record.id),
            data,
        );
        Ok(Written::about(&task.meta.id, write.finish()?).step(&step.record.id, &step.path))
    }
}

fn check(owner: &str, events: Option<i64>) -> Refusals {
    let mut refusals = Refusals::default();
    refusals.text("owner", owner, NAME);
    if let Some(events) = events {
        refusals.within("events", events, 1..=LONGEST);
    }
    refusals
}

/// The lease that an owner holds on a step.
fn held(write: &Write<'_>, step: &Located<Step>, owner: &str) -> Result<Lease, ToolError> {
    let mut refusals = Refusals::default();
    lease::guard(&write.scope, step, Some(owner), &mut refusals)?;
    refusals.finish()?;
    lease::live(&write.scope, &step.record.id)?.ok_or_else(|| {
        let (path, owner) = (step.path.to_string(), owner.to_owned());
        Reason::LeaseNotHeld { path, owner }.into()
    })
}

pub(super) fn grant(
    mut write: Write<'_>,
    step: &Located<Step>,
    owner: &str,
    events: Option<i64>,
    event: EventType,
    mut data: Json,
) -> Result<Written, ToolError> {
    let lease = Lease {
        step: step.record.id.clone(),
        task: step.record.task.clone(),
        owner: owner.to_owned(),
        // The event of this call comes first and does not count.
        expires_after: write
            .scope
            .counters
            .events
            .saturating_add(1)
            .saturating_add(events.unwrap_or(LENGTH)),
        claimed_at: write.scope.now(),
    };
    write.put(&lease)?;
    data["expires_after"] = json!(lease.expires_after);
    write.event(event, &lease.task, Some(&lease.step), data);
    let mut written = Written::about(&lease.task, write.finish()?);
    written.step = Some(StepRef::new(&lease.step, &step.path));
    Ok(written)
}
