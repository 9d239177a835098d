//! Tools for one step: closing, reopening, blocking and notes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::evidence;
use crate::limits::{MAX_ENTRY_CHARS, MAX_NAME_CHARS, MAX_TEXT_CHARS, short};
use crate::model::EventType;
use crate::record::Note;
use crate::redact;
use crate::reply::{Warning, Written};
use crate::store::Kind;
use crate::target::StepTarget;
use crate::tools::close::{Close, Closing};

/// Close a step whose checkpoints are confirmed. Fails with every reason at once if one is missing, if a part
/// of the step is open, or if the step is blocked.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Done {
    #[serde(flatten)]
    target: StepTarget,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
}

impl Tool for Done {
    const NAME: &'static str = "tasks_done";
    const TITLE: &'static str = "Close a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        let task = self.target.task(&mut write)?;
        let selector = self.target.selector();
        let close = Close {
            task,
            selector,
            how: Closing::Gated,
        };
        close.run(cx, write)
    }
}

/// Close or reopen a step. `completed=true` is gated like tasks_done; `force=true` with a `reason` overrides
/// missing checkpoints and is recorded. `completed=false` reopens the step and its parents.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Progress {
    #[serde(flatten)]
    target: StepTarget,
    /// true closes the step, false reopens it.
    completed: bool,
    /// Close the step despite missing checkpoints (default false).
    #[serde(default)]
    force: bool,
    /// Reason for reopening or forcing, kept with the step. Required with `force`.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    reason: Option<String>,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
}

impl Tool for Progress {
    const NAME: &'static str = "tasks_progress";
    const TITLE: &'static str = "Complete or reopen a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("reason", self.reason.as_deref(), MAX_ENTRY_CHARS);
        match (self.force, self.completed, &self.reason) {
            (true, true, None) => refusals.add(Reason::input("reason", "is required with force=true")),
            (true, false, _) => refusals.add(Reason::input("force", "requires completed=true")),
            _ => {}
        }
        refusals.finish()?;
        let mut write = self.target.root.begin_as(cx, Self::NAME, self.owner.as_deref())?;
        let task = self.target.task(&mut write)?;
        let selector = self.target.selector();
        let how = match (self.completed, self.reason.as_deref().filter(|_| self.force)) {
            (false, _) => Closing::Reopen(self.reason.as_deref()),
            (true, Some(reason)) => Closing::Forced(reason),
            (true, None) => Closing::Gated,
        };
        Close { task, selector, how }.run(cx, write)
    }
}

/// Block a step, so that it cannot be closed, or unblock it with `blocked=false`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Block {
    #[serde(flatten)]
    target: StepTarget,
    /// true blocks the step (default), false unblocks it.
    blocked: Option<bool>,
    /// Reason why the step is blocked.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    reason: Option<String>,
}

impl Tool for Block {
    const NAME: &'static str = "tasks_block";
    const TITLE: &'static str = "Block or unblock a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (task, located) = self.target.step(&mut write)?;
        let mut step = located.record.clone();
        step.blocked = self.blocked.unwrap_or(true);
        step.block_reason = self.reason.filter(|_| step.blocked);
        let mut refusals = Refusals::default();
        refusals.step_open(&write.scope, &located);
        refusals.step("", &step);
        refusals.finish()?;
        if step != located.record {
            write.put(&step)?;
            let event = if step.blocked {
                EventType::StepBlocked
            } else {
                EventType::StepUnblocked
            };
            let data = json!({"path": located.path.to_string(), "reason": step.block_reason});
            write.event(event, &task.meta.id, Some(&step.id), data);
        }
        write.reply(&task.meta.id, |written| written.step(&step.id, &located.path))
    }
}

/// Add a progress note to a plan, task or step. With `decision=true` the note is a decision. Secrets are
/// redacted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AddNote {
    #[serde(flatten)]
    target: StepTarget,
    /// Text of the note: progress, findings or a decision.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    note: String,
    /// Keep the note among the decisions, which tasks_resume_pack shows (default false).
    #[serde(default)]
    decision: bool,
}

impl Tool for AddNote {
    const NAME: &'static str = "tasks_note";
    const TITLE: &'static str = "Add a note";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Standard;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (root, step) = self.target.root_or_step(&mut write)?;
        let id = root.meta().id.clone();
        let mut refusals = Refusals::default();
        refusals.text("note", &self.note, MAX_TEXT_CHARS);
        refusals.finish()?;
        let mut found = 0;
        let note = Note {
            id: write.fresh_id(Kind::Note, "NOTE")?,
            task: id.clone(),
            step: step.as_ref().map(|step| step.record.id.clone()),
            position: write.position(),
            text: redact::clean(&self.note, &mut found),
            decision: self.decision,
            actor: write.actor().map(str::to_owned),
            created_at: write.scope.now(),
        };
        write.warnings.extend(Warning::redacted(found));
        write.put(&note)?;
        let data = json!({"note": note.id, "text": short(&note.text, 120), "decision": note.decision});
        write.event(EventType::NoteAdded, &id, note.step.as_deref(), data);
        write.reply(&id, |mut written| {
            written.ids.push(note.id);
            match &step {
                Some(step) => written.step(&step.record.id, &step.path),
                None => written,
            }
        })
    }
}
