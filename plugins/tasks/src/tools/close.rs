//! Tools for a step's gate: confirming checkpoints, and closing with or without confirming in the same call.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::checkpoint::Checkpoints;
use crate::closing::Gate;
use crate::error::{Reason, Refusals};
use crate::evidence::{self, Proof};
use crate::limits::{MAX_ENTRY_CHARS, MAX_NAME_CHARS};
use crate::model::{Checkpoint, EventType};
use crate::record::{Step, Task};
use crate::reply::{Warning, Written};
use crate::scope::{Located, Selector};
use crate::target::StepTarget;
use crate::write::Write;
use crate::{checkpoint, closing, lease, mutation};

/// Confirm checkpoints of a step: criteria, tests, security, perf, docs. `"confirmed": false` withdraws one.
/// Does not close the step; call tasks_done next. Warns if linked evidence is older than the last change.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Verify {
    #[serde(flatten)]
    target: StepTarget,
    /// Checkpoints by name, for example {"criteria": {"confirmed": true, "note": "…"}}. Or "gate" for
    /// criteria and tests, or "all" for every required one.
    checkpoints: Checkpoints,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
}

impl Tool for Verify {
    const NAME: &'static str = "tasks_verify";
    const TITLE: &'static str = "Confirm checkpoints";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(mut self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        write.redact(&mut self.checkpoints);
        let (task, located) = self.target.step(&mut write)?;
        let mut refusals = Refusals::default();
        lease::guard(&write.scope, &located, write.actor(), &mut refusals)?;
        refusals.notes(&self.checkpoints);
        if self.checkpoints.denies() {
            refusals.step_open(&write.scope, &located);
        }
        if !located.record.is_done() {
            closing::progress(&mut write, &task, &mut refusals)?;
        }
        let (confirms, now) = (
            self.checkpoints.confirms(&located.record),
            mutation::now(&write.scope)?,
        );
        evidence::want(&write.scope, &located, confirms.into_keys(), &now, &mut refusals)?;
        refusals.finish()?;
        confirm(&mut write, &located, &self.checkpoints)?;
        let (workspace, step) = (write.scope.workspace.clone(), &located.record.id);
        let actor = write.actor().map(str::to_owned);
        let written = Written::about(&task.meta.id, write.finish()?).step(step, &located.path);
        written.then(cx, &workspace, Some(step), actor.as_deref())
    }
}

/// Confirm checkpoints and close the step, or do neither. Fails with every reason if a checkpoint is missing,
/// the step is blocked or parts of it are open.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct CloseStep {
    #[serde(flatten)]
    target: StepTarget,
    /// Checkpoints by name, for example {"criteria": {"confirmed": true}, "tests": {"confirmed": true}}. Or
    /// "gate" for these two, or "all" for every required one.
    checkpoints: Checkpoints,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
}

impl Tool for CloseStep {
    const NAME: &'static str = "tasks_close_step";
    const TITLE: &'static str = "Confirm and close a step";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(mut self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        write.redact(&mut self.checkpoints);
        let task = self.target.task(&mut write)?;
        let selector = self.target.selector();
        let how = Closing::Confirming(&self.checkpoints);
        Close { task, selector, how }.run(cx, write)
    }
}

/// Change of a step's completion.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Closing<'a> {
    /// Close with the confirmations that the step has.
    Gated,
    /// Confirm checkpoints and close.
    Confirming(&'a Checkpoints),
    /// Close despite missing checkpoints, with a reason.
    Forced(&'a str),
    /// Reopen the step, for a reason if one is given.
    Reopen(Option<&'a str>),
}

/// Change of a step's completion.
pub(crate) struct Close<'a> {
    pub task: Task,
    pub selector: Selector<'a>,
    pub how: Closing<'a>,
}

impl Close<'_> {
    pub(crate) fn run(self, cx: &Cx<'_>, mut write: Write<'_>) -> Result<Written, ToolError> {
        let (id, workspace) = (self.task.meta.id.clone(), write.scope.workspace.clone());
        let located = write.scope.step(&id, &self.selector)?;
        let mut refusals = Refusals::default();
        lease::guard(&write.scope, &located, write.actor(), &mut refusals)?;
        if let Closing::Confirming(checkpoints) = self.how {
            refusals.notes(checkpoints);
        }
        match self.how {
            Closing::Reopen(_) if !located.record.is_done() => {}
            Closing::Reopen(reason) => {
                closing::reopen_step(&mut write, &self.task, &located, reason)?;
                write.faults(&mut refusals)?;
            }
            // Closing a closed step changes nothing.
            _ if located.record.is_done() => {}
            _ => self.close(&mut write, &located, &mut refusals)?,
        }
        refusals.finish()?;
        let actor = write.actor().map(str::to_owned);
        let written = Written::about(&id, write.finish()?).step(&located.record.id, &located.path);
        written.then(cx, &workspace, None, actor.as_deref())
    }

    fn close(
        &self,
        write: &mut Write<'_>,
        located: &Located<Step>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let mut names = BTreeSet::new();
        let mut located = located.clone();
        if let Closing::Confirming(checkpoints) = self.how {
            names = checkpoints.names();
            let confirms = checkpoints.confirms(&located.record);
            located.record = closing::confirmed(
                located.record,
                &confirms,
                &names,
                (write.scope.now(), write.actor()),
            );
        }
        let forced = match self.how {
            Closing::Forced(reason) => Some(reason),
            _ => None,
        };
        let gate = Gate {
            names: &names,
            force: forced.is_some(),
            owner: write.actor(),
        };
        closing::gate_step(write, &located, &gate, refusals)?;
        let now = mutation::now(&write.scope)?;
        // What is not confirmed is refused for that already, unless it is forced: force replaces no evidence.
        let mut wanting = evidence::to_prove(&write.scope, &located.record, &names)?;
        if forced.is_none() {
            for unconfirmed in checkpoint::missing(&located.record, &names) {
                wanting.remove(&unconfirmed);
            }
        }
        evidence::want(&write.scope, &located, wanting, &now, refusals)?;
        closing::progress(write, &self.task, refusals)?;
        if !refusals.is_empty() {
            return Ok(());
        }
        if let Closing::Confirming(checkpoints) = self.how {
            let before = Located {
                record: self.stored(write, &located)?,
                path: located.path.clone(),
            };
            located.record = confirm(write, &before, checkpoints)?;
            if located.record == before.record {
                // All were confirmed before. The stream has both events all the same.
                let confirmed: Vec<Checkpoint> = located.record.confirmed.keys().copied().collect();
                let data = json!({"path": located.path.to_string(), "checkpoints": confirmed});
                let (task, id) = (&located.record.task, &located.record.id);
                write.event(EventType::StepVerified, task, Some(id), data);
            }
        }
        let forced = forced.filter(|_| !checkpoint::missing(&located.record, &names).is_empty());
        closing::close_step(write, &located, forced)
    }

    fn stored(&self, write: &Write<'_>, located: &Located<Step>) -> Result<Step, ToolError> {
        Ok(write
            .get::<Step>(&located.record.id)?
            .unwrap_or_else(|| located.record.clone()))
    }
}

/// Confirms checkpoints of a step and plans the event and the warnings.
pub(crate) fn confirm(
    write: &mut Write<'_>,
    located: &Located<Step>,
    checkpoints: &Checkpoints,
) -> Result<Step, ToolError> {
    let confirms = checkpoints.confirms(&located.record);
    let step = closing::confirmed(
        located.record.clone(),
        &confirms,
        &checkpoints.names(),
        (write.scope.now(), write.actor()),
    );
    let confirming: Vec<Checkpoint> = confirms.keys().copied().collect();
    let proof = Proof::of(&write.scope, &step.id)?;
    let now = mutation::now(&write.scope)?;
    let warnings = evidence::warnings(&write.scope, &proof, &confirming, &now)?;
    write.warnings.extend(warnings);
    let newly: Vec<Checkpoint> = confirms
        .keys()
        .copied()
        .filter(|checkpoint| !located.record.confirmed.contains_key(checkpoint))
        .collect();
    let withdrawn: Vec<Checkpoint> = located
        .record
        .confirmed
        .keys()
        .copied()
        .filter(|checkpoint| !step.confirmed.contains_key(checkpoint))
        .collect();
    let notes = checkpoints.denials();
    let changes = !newly.is_empty() || !withdrawn.is_empty() || step.required != located.record.required;
    if !changes && !notes.is_empty() {
        let text =
            "no confirmed checkpoint was withdrawn, so the note was not stored; store it with tasks_note";
        write.warnings.push(Warning::new("NOTE_NOT_KEPT", text));
    }
    if changes {
        write.put(&step)?;
        let mut data = json!({"path": located.path.to_string(), "checkpoints": newly});
        if !withdrawn.is_empty() {
            data["withdrawn"] = json!(withdrawn);
            data["confirmed_before"] = json!(closing::notes(&located.record, &withdrawn));
        }
        if !notes.is_empty() {
            data["notes"] = json!(notes);
        }
        write.event(EventType::StepVerified, &step.task, Some(&step.id), data);
        return Ok(step);
    }
    Ok(located.record.clone())
}

impl Write<'_> {
    /// Redacts secrets in checkpoint notes and adds a warning.
    fn redact(&mut self, checkpoints: &mut Checkpoints) {
        let mut found = 0;
        checkpoints.redact(&mut found);
        self.warnings.extend(Warning::redacted(found));
    }
}

impl Refusals {
    /// Requires known checkpoints, with notes within their limits.
    fn notes(&mut self, checkpoints: &Checkpoints) {
        match checkpoints {
            Checkpoints::Faulty { field, fault } => self.add(Reason::input(field, fault)),
            Checkpoints::Named(said) => {
                if said.is_empty() {
                    self.add(Reason::input("checkpoints", "is empty"));
                }
                for (checkpoint, said) in said {
                    let field = format!("checkpoints.{checkpoint}.note");
                    self.optional_text(&field, said.note.as_deref(), MAX_ENTRY_CHARS);
                }
            }
            Checkpoints::Gate | Checkpoints::All => {}
        }
    }
}
