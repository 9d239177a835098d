//! Planning the tasks of a slice, all at once or one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{DbError, NextCall, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change};
use crate::arguments::{ENTRIES, LINE, NAME, TEXT, UNITS};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, SliceKey, TaskKey, header};
use crate::model::{SliceId, Status, TaskId, Unit};
use crate::store::log::Event;
use crate::store::milestone;
use crate::store::slice::{self, Slice};
use crate::store::task::{self, TaskHead};
use crate::violation::{Refusals, Violation};

/// Plan of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskPlan {
    pub(super) task_id: TaskId,
    /// One-line title of the task.
    #[schemars(length(min = 1, max = LINE))]
    pub(super) title: String,
    /// Description of the work to do.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    pub(super) description: String,
    /// Estimated duration, for example 30m.
    #[serde(default)]
    #[schemars(length(max = NAME))]
    pub(super) estimate: String,
    /// Files that the task changes.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    pub(super) files: Vec<String>,
    /// Check that proves the task is done, in one line.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    pub(super) verify: String,
    /// Inputs that the task needs.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    pub(super) inputs: Vec<String>,
    /// Results that the task produces.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    pub(super) expected_output: Vec<String>,
}

impl TaskPlan {
    pub(super) fn plan(&self) -> task::Plan {
        task::Plan {
            title: self.title.clone(),
            description: self.description.clone(),
            estimate: self.estimate.clone(),
            files: self.files.clone(),
            verify: self.verify.clone(),
            inputs: self.inputs.clone(),
            expected_output: self.expected_output.clone(),
        }
    }
}

/// Add tasks to a slice or change open ones. Unnamed tasks stay; gsd_replan_slice removes them. Next:
/// gsd_task_start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// New goal of the slice. Default: unchanged.
    #[schemars(length(max = TEXT))]
    goal: Option<String>,
    /// Tasks of the slice to plan.
    #[serde(default)]
    #[schemars(length(max = UNITS))]
    tasks: Vec<TaskPlan>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(PlanSlice, "gsd_plan_slice", "Plan a slice", Core, IDEMPOTENT, alias "gsd_slice_plan");

/// Checks planned and removed tasks against the existing ones. Returns warnings about work in progress.
pub(super) fn check_tasks(
    act: &Act<'_>,
    slice: &SliceId,
    planned: &[TaskPlan],
    removed: &[TaskId],
    refusals: &mut Refusals,
) -> Result<Vec<String>, DbError> {
    let milestone = &act.unit.milestone;
    let known = task::heads(act.db(), act.workspace(), milestone, slice)?;
    let find = |id: &TaskId| known.iter().find(|task| task.id == *id);
    let mut warnings = Vec::new();
    for (index, plan) in planned.iter().enumerate().take(UNITS) {
        refusals.task_plan(&format!("tasks[{index}]."), &plan.plan());
        let unit = Unit::task(milestone, slice, &plan.task_id);
        match find(&plan.task_id) {
            Some(head) if head.status.is_closed() => {
                let there = task::get(act.db(), act.workspace(), milestone, slice, &plan.task_id)?;
                if there.is_some_and(|there| there.plan != plan.plan()) {
                    refusals.extend(guard::protected(unit, head.status, false));
                }
            }
            Some(head) => warnings.extend(under_way(head, &unit)),
            None => {}
        }
    }
    for id in removed {
        let unit = Unit::task(milestone, slice, id);
        match find(id) {
            Some(head) => {
                refusals.extend(guard::protected(unit.clone(), head.status, true));
                act.ownership(&unit, refusals)?;
            }
            None => refusals.add(Violation::NotFound(unit)),
        }
    }
    let ids: Vec<&TaskId> = known.iter().map(|task| &task.id).collect();
    refusals.numbers("task_id", planned.iter().map(|plan| &plan.task_id), &ids);
    Ok(warnings)
}

fn under_way(head: &TaskHead, unit: &Unit) -> Option<String> {
    let by = head
        .started_by
        .as_deref()
        .filter(|_| head.status == Status::InProgress)?;
    Some(format!(
        "{unit} is in progress by {by}; tell {by} about the new plan"
    ))
}

impl Change for PlanSlice {
    const CMD: &'static str = "plan-slice";
    type Facts = (Slice, Vec<String>);

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.scene(Action::PlanSlice, &act.unit, refusals)?;
        if let Some(milestone) = &found.milestone {
            act.dependencies(Action::PlanSlice, &milestone.plan.depends_on, refusals)?;
        }
        refusals.prose("goal", self.goal.as_deref().unwrap_or_default());
        refusals.at_most("tasks", self.tasks.len(), UNITS, "entries");
        let warnings = check_tasks(act, &self.at.slice_id, &self.tasks, &[], refusals)?;
        Ok(found.slice.map(|slice| (slice, warnings)))
    }

    fn apply(
        &self,
        act: &Act<'_>,
        (slice, warnings): Self::Facts,
        event: &Event,
    ) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        if let Some(goal) = &self.goal {
            let plan = slice::Plan {
                goal: goal.clone(),
                ..slice.plan
            };
            slice::plan(db, workspace, &self.at.milestone_id, &self.at.slice_id, &plan)?;
        }
        for planned in &self.tasks {
            let plan = planned.plan();
            task::plan(
                db,
                workspace,
                &self.at.milestone_id,
                &self.at.slice_id,
                &planned.task_id,
                &plan,
            )?;
        }
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        let first = self.tasks.iter().min_by_key(|task| task.task_id.ordinal());
        Ok(Applied {
            status: slice.status.to_string(),
            warnings,
            next_call: first.map(|first| {
                NextCall::new(
                    "gsd_task_start",
                    json!({"workspace": workspace, "milestone_id": self.at.milestone_id,
                        "slice_id": self.at.slice_id, "task_id": first.task_id}),
                )
            }),
            touched: Touched::slice(&self.at.slice_id),
            ..Applied::default()
        })
    }
}

/// Add one task to a slice, or change the plan of an open one. Next: gsd_task_start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanTask {
    #[serde(flatten)]
    at: TaskKey,
    /// One-line title of the task.
    #[schemars(length(min = 1, max = LINE))]
    title: String,
    /// Description of the work to do.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    description: String,
    /// Estimated duration, for example 30m.
    #[serde(default)]
    #[schemars(length(max = NAME))]
    estimate: String,
    /// Files that the task changes.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    files: Vec<String>,
    /// Check that proves the task is done, in one line.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    verify: String,
    /// Inputs that the task needs.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    inputs: Vec<String>,
    /// Results that the task produces.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    expected_output: Vec<String>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(PlanTask, "gsd_plan_task", "Plan a task", Standard, IDEMPOTENT, alias "gsd_task_plan");

impl PlanTask {
    fn plan(&self) -> task::Plan {
        task::Plan {
            title: self.title.clone(),
            description: self.description.clone(),
            estimate: self.estimate.clone(),
            files: self.files.clone(),
            verify: self.verify.clone(),
            inputs: self.inputs.clone(),
            expected_output: self.expected_output.clone(),
        }
    }
}

impl Change for PlanTask {
    const CMD: &'static str = "plan-task";
    type Facts = Option<TaskHead>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.scene(Action::PlanTask, &act.unit, refusals)?;
        if let Some(milestone) = &found.milestone {
            act.dependencies(Action::PlanTask, &milestone.plan.depends_on, refusals)?;
        }
        refusals.task_plan("", &self.plan());
        let known = task::heads(
            act.db(),
            act.workspace(),
            &self.at.milestone_id,
            &self.at.slice_id,
        )?;
        let ids: Vec<&TaskId> = known.iter().map(|task| &task.id).collect();
        refusals.numbers("task_id", [&self.at.task_id], &ids);
        Ok(Some(found.task.map(|task| task.head)))
    }

    fn apply(&self, act: &Act<'_>, before: Self::Facts, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        task::plan(
            db,
            workspace,
            &self.at.milestone_id,
            &self.at.slice_id,
            &self.at.task_id,
            &self.plan(),
        )?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        let status = before.as_ref().map_or(Status::Pending, |head| head.status);
        Ok(Applied {
            status: status.to_string(),
            warnings: before
                .and_then(|head| under_way(&head, &act.unit))
                .into_iter()
                .collect(),
            touched: Touched::slice(&self.at.slice_id),
            ..Applied::default()
        })
    }
}
