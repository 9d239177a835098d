//! The status of plans and tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tier, Tool, ToolError};

use crate::closing::{gate_status, set_status};
use crate::error::{Reason, Refusals};
use crate::limits::{NAME, OPERATIONS, short};
use crate::model::{RootKind, Status};
use crate::mutation;
use crate::patch::{self, PatchKind, PatchOp};
use crate::record::Root;
use crate::reply::{Warning, Written};
use crate::scope::Selector;
use crate::store;
use crate::store::event::Event;
use crate::target::RootTarget;
use crate::write::Write;

/// Set the status of a plan or task; DONE if absent. A task is done when all its steps are closed with
/// confirmed checkpoints, a plan when all its tasks are finished.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Complete {
    #[serde(flatten)]
    target: RootTarget,
    /// The status.
    status: Option<Status>,
    /// Complete it although it has no step, or no task.
    #[serde(default)]
    allow_empty: bool,
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
        let mut refusals = Refusals::default();
        gate_status(&write.scope, &root, to, self.allow_empty, &mut refusals)?;
        refusals.finish()?;
        if root.meta().status != to {
            set_status(&mut write, root.clone(), to)?;
        }
        let offer = plan_to_complete(&write, &root, to)?;
        let mut written = Written::about(&root.meta().id, write.finish()?);
        written.next_calls.extend(offer);
        Ok(written)
    }
}

/// The call that completes the plan, if this was the last of its tasks. Somebody has to make it.
fn plan_to_complete(write: &Write<'_>, root: &Root, to: Status) -> Result<Option<NextCall>, ToolError> {
    let Root::Task(task) = root else {
        return Ok(None);
    };
    if !to.is_finished() {
        return Ok(None);
    }
    let wanted = store::root::Wanted {
        kind: RootKind::Task,
        plan: Some(&task.plan),
        statuses: &[Status::Todo, Status::Active, Status::Parked],
        after: 0,
        limit: 2,
    };
    let open = store::root::page(write.scope.db(), &write.scope.workspace, &wanted)?;
    let others = open.iter().any(|other| other.id != task.meta.id);
    let plan = json!({"workspace": write.scope.workspace, "task": task.plan});
    Ok((!others).then(|| NextCall::new("tasks_complete", plan)))
}

/// One patch of a task that is being closed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patch {
    /// What is patched.
    kind: PatchKind,
    /// The step or node by path.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// The step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// The node by id.
    #[schemars(length(max = NAME))]
    task_node_id: Option<String>,
    /// What to change, in order.
    #[schemars(length(min = 1, max = OPERATIONS))]
    ops: Vec<PatchOp>,
}

/// Close a task in one call: optional patches, then completion, all or nothing. Without `apply=true` it only
/// shows what would change. Refused for a stale revision or unmet checkpoints in both cases.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CloseTask {
    #[serde(flatten)]
    target: RootTarget,
    /// Do it; otherwise only show what would change.
    #[serde(default)]
    apply: bool,
    /// Changes before completion, in order.
    #[serde(default)]
    #[schemars(length(max = OPERATIONS))]
    patches: Vec<Patch>,
}

/// What closing a task changed, or would change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskClosed {
    /// The task.
    task: String,
    /// Whether it was done.
    applied: bool,
    /// The task's revision.
    revision: i64,
    /// What changes, field by field.
    diff: Vec<Difference>,
    /// What happened.
    events: Vec<Event>,
    /// Worth knowing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    /// What to do next, ready to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_calls: Vec<NextCall>,
}

/// One field of one record.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// The task, step or node.
    id: String,
    /// The field.
    field: String,
    /// Its JSON before, cut if it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Its JSON after, cut if it is long.
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
        gate_status(&write.scope, &patched, Status::Done, false, &mut refusals)?;
        refusals.finish()?;
        set_status(&mut write, patched.clone(), Status::Done)?;
        let diff = write
            .preview()
            .flat_map(|(_, id, before, after)| differences(id, before, after))
            .collect();
        let offer = plan_to_complete(&write, &patched, Status::Done)?;
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
            let receipt = write.finish()?;
            closed.revision = receipt
                .revisions
                .get(&closed.task)
                .copied()
                .unwrap_or(closed.revision);
            (closed.events, closed.warnings) = (receipt.events, receipt.warnings);
            closed.next_calls.extend(offer);
        } else {
            mutation::pass(cx)?;
        }
        Ok(closed)
    }
}

impl CloseTask {
    fn patch(&self, write: &mut Write<'_>, task: &str) -> Result<(), ToolError> {
        if self.patches.len() > OPERATIONS {
            let fault = format!(
                "has {} entries, at most {OPERATIONS} are taken",
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
