//! The status of plans and tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tier, Tool, ToolError};

use crate::closing::{cancel_tasks, set_status, want_content};
use crate::error::{Reason, Refusals};
use crate::evidence;
use crate::limits::{MAX_ENTRY_CHARS, MAX_OPERATIONS, short};
use crate::model::Status;
use crate::mutation;
use crate::patch::{self, Patch, PatchKind};
use crate::record::Root;
use crate::reply::{Warning, Written};
use crate::scope::{Scope, Selector};
use crate::store::event::Event;
use crate::target::RootTarget;
use crate::work;
use crate::write::Write;

/// Set the status of a plan or task (default DONE). DONE fails while a task has open steps or a plan has
/// unfinished tasks. Cancelling a plan cancels its unfinished tasks.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Complete {
    #[serde(flatten)]
    target: RootTarget,
    /// New status (default DONE).
    status: Option<Status>,
    /// Allow DONE without steps or tasks.
    #[serde(default)]
    allow_empty: bool,
    /// Reason, kept with the status.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    reason: Option<String>,
}

impl Tool for Complete {
    const NAME: &'static str = "tasks_complete";
    const TITLE: &'static str = "Set a status";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let root = self.target.root(&mut write)?;
        self.target.expect(&root.meta().id)?;
        let to = self.status.unwrap_or(Status::Done);
        let reason = self.reason.as_deref();
        let mut refusals = Refusals::default();
        refusals.optional_text("reason", reason, MAX_ENTRY_CHARS);
        let wants_content = !self.allow_empty || write.scope.config.requires_evidence(&write.scope.workspace);
        if to == Status::Done && wants_content {
            want_content(&write.scope, &root, &mut refusals)?;
        }
        let mut canceled = Vec::new();
        if let (Root::Plan(plan), Status::Canceled) = (&root, to) {
            canceled = cancel_tasks(&mut write, &plan.meta.id, reason)?;
        }
        set_status(&mut write, root.clone(), to, reason)?;
        write.faults(&mut refusals)?;
        refusals.finish()?;
        let workspace = write.scope.workspace.clone();
        let actor = write.actor().map(str::to_owned);
        let mut written = Written::about(&root.meta().id, write.finish()?);
        written.tasks = canceled;
        let mut written = written.then(cx, &workspace, None, actor.as_deref())?;
        if matches!(to, Status::Todo | Status::Active) {
            written.keep_open(&Scope::known(cx, &workspace)?, &root.meta().id);
        }
        Ok(written)
    }
}

/// Close a task in one call: optional patches, then completion, all or nothing. Without `apply=true` it
/// previews the changes. Preview and change fail if `expected_revision` is stale or a checkpoint is not
/// confirmed.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct CloseTask {
    #[serde(flatten)]
    target: RootTarget,
    /// Apply the changes; otherwise only preview them (default false).
    #[serde(default)]
    apply: bool,
    /// Patches to apply before completion, in order.
    #[serde(default)]
    #[schemars(length(max = MAX_OPERATIONS))]
    patches: Vec<Patch>,
}

/// Result or preview of closing a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskClosed {
    /// Id of the task.
    task: String,
    /// True if the changes were applied.
    applied: bool,
    /// Revision of the task.
    revision: i64,
    /// Changes, field by field.
    diff: Vec<Difference>,
    /// Events of the write, in order, if the call asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    /// Warnings. The call succeeded nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    /// Suggested next calls with complete arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_calls: Vec<NextCall>,
}

/// Changed field of a record.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// Id of the task, step or node.
    id: String,
    /// Name of the field.
    field: String,
    /// JSON before the change, cut if long.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// JSON after the change, cut if long.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl Tool for CloseTask {
    const NAME: &'static str = "tasks_close_task";
    const TITLE: &'static str = "Close a task";
    const EFFECT: Effect = Effect::Write;
    type Output = TaskClosed;

    fn run(self, cx: &Cx<'_>) -> Result<TaskClosed, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let task = self.target.task(&mut write)?;
        let id = task.meta.id.clone();
        self.target.expect(&id)?;
        self.patch(&mut write, &id)?;
        let patched = Root::Task(write.get(&id)?.unwrap_or(task));
        let mut refusals = Refusals::default();
        want_content(&write.scope, &patched, &mut refusals)?;
        set_status(&mut write, patched.clone(), Status::Done, None)?;
        write.faults(&mut refusals)?;
        refusals.finish()?;
        let diff = write
            .preview()
            .flat_map(|(_, id, before, after)| differences(id, before, after))
            .collect();
        let workspace = write.scope.workspace.clone();
        let mut closed = TaskClosed {
            revision: write.scope.head(&id)?.revision,
            task: id,
            applied: self.apply,
            diff,
            events: Vec::new(),
            warnings: Vec::new(),
            next_calls: Vec::new(),
        };
        if self.apply {
            let actor = write.actor().map(str::to_owned);
            let receipt = write.finish()?;
            closed.revision = receipt
                .revisions
                .get(&closed.task)
                .copied()
                .unwrap_or(closed.revision);
            (closed.events, closed.warnings) = (receipt.events, receipt.warnings);
            let scope = Scope::known(cx, &workspace)?;
            let upcoming = work::upcoming(&scope, &scope.root(&closed.task)?, None, actor.as_deref())?;
            closed.next_calls.extend(upcoming.call);
        } else {
            mutation::pass(cx)?;
        }
        Ok(closed)
    }
}

impl CloseTask {
    fn patch(&self, write: &mut Write<'_>, task: &str) -> Result<(), ToolError> {
        if self.patches.len() > MAX_OPERATIONS {
            let fault = format!(
                "has {} entries; at most {MAX_OPERATIONS} are allowed",
                self.patches.len()
            );
            return Err(Reason::input("patches", fault).into());
        }
        for patch in &self.patches {
            let id = match patch.kind {
                PatchKind::Task => patch.task_node_id.as_deref(),
                PatchKind::Step | PatchKind::TaskDetail => patch.step_id.as_deref(),
            };
            let selector = Selector {
                path: patch.path.as_deref(),
                id,
                expected: None,
            };
            patch::apply(write, task, patch.kind, &selector, &patch.ops)?;
        }
        Ok(())
    }
}

/// The fields of a record that change.
fn differences(id: &str, before: Option<&str>, after: Option<&str>) -> Vec<Difference> {
    let fields = |text: Option<&str>| -> Map<String, Json> {
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    };
    let (before, after) = (fields(before), fields(after));
    let names = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| Difference {
            id: id.to_owned(),
            field: name.clone(),
            before: before.get(name).map(|value| short(&value.to_string(), 300)),
            after: after.get(name).map(|value| short(&value.to_string(), 300)),
        })
        .collect()
}
