//! Work on one step: confirming, closing, reopening, blocking, remarks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::limits::{ENTRY, NAME, TEXT, short};
use crate::model::{EventType, Workspace};
use crate::record::{Note, Root};
use crate::redact;
use crate::reply::{Warning, Written};
use crate::scope::Selector;
use crate::store::Kind;
use crate::tools::close::{Close, Closing};
use crate::write::Write;

/// Close a step whose checkpoints are confirmed. Refused with every reason at once if they are not, if
/// something below it is open, or if it is blocked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
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
    /// The task's revision as you know it.
    expected_revision: Option<i64>,
    /// The step id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
    /// Who you are, if you hold a lease on the step.
    #[schemars(length(min = 1, max = NAME))]
    owner: Option<String>,
}

impl Tool for Done {
    const NAME: &'static str = "tasks_done";
    const TITLE: &'static str = "Close a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        let task = write.task(self.task.as_deref(), self.expected_revision)?;
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let close = Close {
            task,
            selector,
            owner: self.owner.as_deref(),
            how: Closing::Gated,
        };
        close.run(write)
    }
}

/// Set whether a step is completed. `completed=true` is gated like tasks_done; `force=true` with a `reason`
/// goes past missing checkpoints and is recorded. `completed=false` reopens it and the steps above it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
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
    /// Whether it is completed.
    completed: bool,
    /// Close it although checkpoints are missing.
    #[serde(default)]
    force: bool,
    /// Why it is forced.
    #[schemars(length(min = 1, max = ENTRY))]
    reason: Option<String>,
    /// The task's revision as you know it.
    expected_revision: Option<i64>,
    /// The step id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
    /// Who you are, if you hold a lease on the step.
    #[schemars(length(min = 1, max = NAME))]
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
        refusals.optional_text("reason", self.reason.as_deref(), ENTRY);
        match (self.force, self.completed, &self.reason) {
            (true, true, None) => refusals.add(Reason::input("reason", "is needed with force=true")),
            (true, false, _) => refusals.add(Reason::input("force", "is for completed=true")),
            _ => {}
        }
        refusals.finish()?;
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        let task = write.task(self.task.as_deref(), self.expected_revision)?;
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let how = match (self.completed, self.reason.as_deref().filter(|_| self.force)) {
            (false, _) => Closing::Reopen,
            (true, Some(reason)) => Closing::Forced(reason),
            (true, None) => Closing::Gated,
        };
        Close {
            task,
            selector,
            owner: self.owner.as_deref(),
            how,
        }
        .run(write)
    }
}

/// Block a step, which then cannot be closed, or unblock it with `blocked=false`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
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
    /// Whether it is blocked; true if absent.
    blocked: Option<bool>,
    /// What blocks it.
    #[schemars(length(min = 1, max = ENTRY))]
    reason: Option<String>,
    /// The task's revision as you know it.
    expected_revision: Option<i64>,
    /// The step id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
}

impl Tool for Block {
    const NAME: &'static str = "tasks_block";
    const TITLE: &'static str = "Block or unblock a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        let task = write.task(self.task.as_deref(), self.expected_revision)?;
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let located = write.scope.step(&task.meta.id, &selector)?;
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
        Ok(Written::about(&task.meta.id, write.finish()?).step(&step.id, &located.path))
    }
}

/// Add a progress note to a plan, a task or one of its steps. With `decision=true` it is kept among the
/// decisions. Secrets are redacted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddNote {
    /// The workspace.
    workspace: Workspace,
    /// The plan or task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The step by path such as s:0.s:1.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// The step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// What to note.
    #[schemars(length(min = 1, max = TEXT))]
    note: String,
    /// It records a decision.
    #[serde(default)]
    decision: bool,
    /// The revision as you know it.
    expected_revision: Option<i64>,
    /// The id that the target has to have.
    #[schemars(length(max = NAME))]
    expected_target_id: Option<String>,
}

impl Tool for AddNote {
    const NAME: &'static str = "tasks_note";
    const TITLE: &'static str = "Add a note";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Standard;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        let root: Root = write.root(self.task.as_deref(), self.expected_revision)?;
        let id = root.meta().id.clone();
        let selector = Selector {
            path: self.path.as_deref(),
            id: self.step_id.as_deref(),
            expected: self.expected_target_id.as_deref(),
        };
        let step = selector.step_of(&write.scope, &id)?;
        let mut refusals = Refusals::default();
        refusals.text("note", &self.note, TEXT);
        refusals.finish()?;
        let mut found = 0;
        let note = Note {
            id: write.fresh_id(Kind::Note, "NOTE")?,
            task: id.clone(),
            step: step.as_ref().map(|step| step.record.id.clone()),
            position: write.position(),
            text: redact::clean(&self.note, &mut found),
            decision: self.decision,
            created_at: write.scope.now(),
        };
        write.warnings.extend(Warning::redacted(found));
        write.put(&note)?;
        let data = json!({"note": note.id, "text": short(&note.text, 120), "decision": note.decision});
        write.event(EventType::NoteAdded, &id, note.step.as_deref(), data);
        let mut written = Written::about(&id, write.finish()?);
        written.ids.push(note.id);
        Ok(match &step {
            Some(step) => written.step(&step.record.id, &step.path),
            None => written,
        })
    }
}
