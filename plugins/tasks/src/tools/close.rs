//! The gate of a step: confirming checkpoints, and closing with or without confirming in the same call.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tier, Tool, ToolError};

use crate::checkpoint::Checkpoints;
use crate::error::{Reason, Refusals};
use crate::limits::{ENTRY, NAME};
use crate::model::{Checkpoint, EventType, Status, Workspace};
use crate::record::{Evidence, Step, Task};
use crate::reply::{Warning, Written};
use crate::scope::{Located, Scope, Selector};
use crate::store::record::children;
use crate::write::Write;
use crate::{checkpoint, closing, lease, mutation};

/// Beside an object, `checkpoints` may be one of two words. A listed schema has one type per property, so
/// the other form is said apart.
fn words() -> Json {
    json!({"type": "string", "enum": ["gate", "all"]})
}

/// Confirm checkpoints of a step: criteria, tests, security, perf, docs; `"confirmed": false` takes one back. It
/// does not close the step. Warns when linked evidence is older than the last change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify {
    /// The workspace.
    workspace: Workspace,
    /// The task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The step by path such as s:0.s:1.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// The step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// What is confirmed, such as {"criteria": {"confirmed": true, "note": "…"}}; or "gate" for criteria and
    /// tests, or "all" for all that the step requires.
    #[schemars(with = "Map<String, Json>", extend("x-accepts" = words()))]
    checkpoints: Checkpoints,
    /// The task's revision as you know it.
    expected_revision: Option<i64>,
    /// The step id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
    /// Who you are, if you hold a lease on the step.
    #[schemars(length(min = 1, max = NAME))]
    owner: Option<String>,
}

impl Tool for Verify {
    const NAME: &'static str = "tasks_verify";
    const TITLE: &'static str = "Confirm checkpoints";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(mut self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        write.redact(&mut self.checkpoints);
        let task = write.task(self.task.as_deref(), self.expected_revision)?;
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let located = write.scope.step(&task.meta.id, &selector)?;
        let mut refusals = Refusals::default();
        lease::guard(&write.scope, &located, self.owner.as_deref(), &mut refusals)?;
        refusals.notes(&self.checkpoints);
        if self.checkpoints.denies() {
            refusals.step_open(&write.scope, &located);
        }
        if !located.record.is_done() {
            closing::progress(&mut write, &task, &mut refusals)?;
        }
        refusals.finish()?;
        confirm(&mut write, &located, &self.checkpoints)?;
        Ok(Written::about(&task.meta.id, write.finish()?).step(&located.record.id, &located.path))
    }
}

/// Confirm checkpoints and close the step in one call: both happen or neither. Refused with every reason at
/// once if a required checkpoint is missing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloseStep {
    /// The workspace.
    workspace: Workspace,
    /// The task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The step by path such as s:0.s:1.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// The step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// What is confirmed, criteria or tests among it, such as {"criteria": {"confirmed": true}, "tests":
    /// {"confirmed": true}}; or "gate" for both, or "all" for all that the step requires.
    #[schemars(with = "Map<String, Json>", extend("x-accepts" = words()))]
    checkpoints: Checkpoints,
    /// The task's revision as you know it.
    expected_revision: Option<i64>,
    /// The step id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
    /// Who you are, if you hold a lease on the step.
    #[schemars(length(min = 1, max = NAME))]
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
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        if !self.checkpoints.mentions_gate() {
            return Err(Reason::input("checkpoints", "names neither criteria nor tests").into());
        }
        write.redact(&mut self.checkpoints);
        let task = write.task(self.task.as_deref(), self.expected_revision)?;
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let how = Closing::Confirming(&self.checkpoints);
        Close {
            task,
            selector,
            owner: self.owner.as_deref(),
            how,
        }
        .run(write)
    }
}

/// How a step's completion changes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Closing<'a> {
    /// As it stands.
    Gated,
    /// After confirming checkpoints.
    Confirming(&'a Checkpoints),
    /// Past missing checkpoints, for a reason.
    Forced(&'a str),
    /// Back to open.
    Reopen,
}

/// One change of a step's completion.
pub(crate) struct Close<'a> {
    pub task: Task,
    pub selector: Selector<'a>,
    pub owner: Option<&'a str>,
    pub how: Closing<'a>,
}

impl Close<'_> {
    pub(crate) fn run(self, mut write: Write<'_>) -> Result<Written, ToolError> {
        let (id, workspace) = (self.task.meta.id.clone(), write.scope.workspace.clone());
        let located = write.scope.step(&id, &self.selector)?;
        let mut refusals = Refusals::default();
        lease::guard(&write.scope, &located, self.owner, &mut refusals)?;
        match self.how {
            Closing::Reopen if !located.record.is_done() => {}
            Closing::Reopen => {
                if self.task.meta.status == Status::Done {
                    closing::want_open_plan(&write.scope, &self.task, &mut refusals)?;
                }
                refusals.finish()?;
                refusals = Refusals::default();
                closing::reopen_step(&mut write, &self.task, &located)?;
            }
            // Closing what is closed changes nothing.
            _ if located.record.is_done() => {}
            _ => self.close(&mut write, &located, &mut refusals)?,
        }
        refusals.finish()?;
        let mut written = Written::about(&id, write.finish()?).step(&located.record.id, &located.path);
        if !matches!(self.how, Closing::Reopen) {
            let radar = json!({"workspace": workspace, "task": id});
            written.next_calls.push(NextCall::new("tasks_radar", radar));
        }
        Ok(written)
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
            refusals.notes(checkpoints);
            names = checkpoints.names();
            let confirms = checkpoints.confirms(&located.record);
            located.record = closing::confirmed(located.record, &confirms, &names, write.scope.now());
        }
        let forced = match self.how {
            Closing::Forced(reason) => Some(reason),
            _ => None,
        };
        closing::gate_step(write, &located, &names, forced.is_some(), refusals)?;
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

/// Confirms checkpoints of a step, with the event and the warnings that go with it.
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
        write.scope.now(),
    );
    for checkpoint in confirms.keys() {
        if let Some(warning) = stale(&write.scope, &step, *checkpoint)? {
            write.warnings.push(warning);
        }
    }
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
    if !newly.is_empty() || !withdrawn.is_empty() || step.required != located.record.required {
        write.put(&step)?;
        let mut data = json!({"path": located.path.to_string(), "checkpoints": newly});
        if !withdrawn.is_empty() {
            data["withdrawn"] = json!(withdrawn);
        }
        write.event(EventType::StepVerified, &step.task, Some(&step.id), data);
        return Ok(step);
    }
    Ok(located.record.clone())
}

/// Whether the evidence for a checkpoint is older than the last change of anything.
fn stale(scope: &Scope<'_>, step: &Step, checkpoint: Checkpoint) -> Result<Option<Warning>, ToolError> {
    const LATEST: usize = 200;
    let evidence = children::<Evidence>(scope.db(), &scope.workspace, &step.id, LATEST)?;
    let now = mutation::now(scope)?;
    let passed = evidence
        .iter()
        .filter(|evidence| evidence.record.checkpoint == Some(checkpoint))
        .map(|evidence| now.since(&evidence.record.taken))
        .min();
    Ok(passed.filter(|&passed| passed > 0).map(|passed| {
        Warning::new(
            "STALE_EVIDENCE",
            format!("{passed} mutations came after the evidence for {checkpoint} was taken; take it again"),
        )
    }))
}

impl Write<'_> {
    /// Takes secrets out of what is said of checkpoints, with the warning that tells of it.
    fn redact(&mut self, checkpoints: &mut Checkpoints) {
        let mut found = 0;
        checkpoints.redact(&mut found);
        self.warnings.extend(Warning::redacted(found));
    }
}

impl Refusals {
    /// Wants notes on checkpoints within bounds.
    fn notes(&mut self, checkpoints: &Checkpoints) {
        if let Checkpoints::Named(said) = checkpoints {
            if said.is_empty() {
                self.add(Reason::input("checkpoints", "names none"));
            }
            for (checkpoint, said) in said {
                self.optional_text(
                    &format!("checkpoints.{checkpoint}.note"),
                    said.note.as_deref(),
                    ENTRY,
                );
            }
        }
    }
}
