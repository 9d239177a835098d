//! Planning the tasks of a slice, all at once or one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change};
use crate::arguments::{MAX_ENTRIES, MAX_LINE_CHARS, MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_UNITS};
use crate::edit::{self, Edit};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, SliceKey, TaskKey, header};
use crate::model::{SliceId, Status, TaskId, Unit};
use crate::store::log::Event;
use crate::store::milestone;
use crate::store::slice::{self, Slice};
use crate::store::task::{self, TaskHead};
use crate::violation::{Refusals, Violation};

/// Plan of a task. Absent fields of a known task stay.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskPlan {
    pub(super) task_id: TaskId,
    /// One-line title. Required for a new task.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    pub(super) title: Option<String>,
    /// Description of the work to do.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub(super) description: Option<String>,
    /// Estimated duration, for example 30m.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub(super) estimate: Option<String>,
    /// Files that the task changes.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) files: Option<Vec<String>>,
    /// Check that proves the task is done, in one line.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub(super) verify: Option<String>,
    /// Inputs that the task needs.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) inputs: Option<Vec<String>>,
    /// Results that the task produces.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) expected_output: Option<Vec<String>>,
    /// Names of fields to empty, such as files.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) clear: Option<Vec<String>>,
}

impl TaskPlan {
    /// The plan after this edit of a known task, or of a new one.
    fn on(
        &self,
        at: &str,
        unit: &Unit,
        known: Option<&task::Plan>,
        refusals: &mut Refusals,
    ) -> (task::Plan, Vec<String>) {
        let default = task::Plan::default();
        let old = known.unwrap_or(&default);
        let mut edit = Edit::new(at, unit, self.clear.as_deref());
        let plan = task::Plan {
            title: edit::title(
                at,
                self.title.as_ref(),
                known.map(|known| known.title.as_str()),
                refusals,
            ),
            description: edit.text("description", self.description.as_ref(), &old.description),
            estimate: edit.text("estimate", self.estimate.as_ref(), &old.estimate),
            files: edit.list("files", self.files.as_ref(), &old.files),
            verify: edit.text("verify", self.verify.as_ref(), &old.verify),
            inputs: edit.list("inputs", self.inputs.as_ref(), &old.inputs),
            expected_output: edit.list(
                "expected_output",
                self.expected_output.as_ref(),
                &old.expected_output,
            ),
        };
        (plan, edit.finish(refusals))
    }
}

/// Add tasks to a slice or change open ones. Absent fields and unnamed tasks stay; gsd_replan_slice removes
/// tasks. Next: gsd_task_start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// New goal of the slice. Default: unchanged.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    goal: Option<String>,
    /// Slice fields to empty. Only `goal` is valid.
    #[schemars(length(max = MAX_ENTRIES))]
    clear: Option<Vec<String>>,
    /// Tasks of the slice to plan.
    #[serde(default)]
    #[schemars(length(max = MAX_UNITS))]
    tasks: Vec<TaskPlan>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(PlanSlice, "gsd_plan_slice", "Plan a slice", Core, IDEMPOTENT, alias "gsd_slice_plan");

/// Tasks as a call plans them, by id, and warnings about them.
#[derive(Debug, Default)]
pub(crate) struct PlannedTasks {
    pub(super) tasks: Vec<(TaskId, task::Plan)>,
    pub(super) warnings: Vec<String>,
}

/// Checks planned and removed tasks against the existing ones.
pub(super) fn check_tasks(
    act: &Act<'_>,
    (slice, field): (&SliceId, &str),
    edits: &[TaskPlan],
    removed: &[TaskId],
    refusals: &mut Refusals,
) -> Result<PlannedTasks, DbError> {
    let milestone = &act.unit.milestone;
    let at_slice = milestone.slice(slice);
    let known = task::heads(act.db(), act.workspace(), at_slice)?;
    let find = |id: &TaskId| known.iter().find(|task| task.id == *id);
    let mut planned = PlannedTasks::default();
    for (index, edit) in edits.iter().enumerate().take(MAX_UNITS) {
        let (at, unit) = (
            format!("{field}[{index}]."),
            Unit::task(milestone, slice, &edit.task_id),
        );
        let there = match find(&edit.task_id) {
            Some(_) => task::get(act.db(), act.workspace(), at_slice.task(&edit.task_id))?,
            None => None,
        };
        let (plan, told) = edit.on(&at, &unit, there.as_ref().map(|there| &there.plan), refusals);
        refusals.task_plan(&at, &plan);
        planned.warnings.extend(told);
        match there {
            Some(there) if there.head.status.is_closed() && there.plan != plan => {
                refusals.extend(guard::protected(unit, there.head.status, false));
            }
            Some(there) => planned
                .warnings
                .extend(under_way(&there.head, &unit, act.actor())),
            None => {}
        }
        planned.tasks.push((edit.task_id.clone(), plan));
    }
    for id in removed {
        let unit = Unit::task(milestone, slice, id);
        match find(id) {
            Some(head) => {
                refusals.extend(guard::protected(unit.clone(), head.status, true));
                act.ownership(&unit, refusals)?;
                planned.warnings.extend(under_way(head, &unit, act.actor()));
            }
            None => refusals.add(Violation::NotFound(unit)),
        }
    }
    let ids: Vec<&TaskId> = known.iter().map(|task| &task.id).collect();
    refusals.numbers("task_id", edits.iter().map(|plan| &plan.task_id), &ids);
    Ok(planned)
}

/// Warning about a task that another actor works on.
pub(super) fn under_way(head: &TaskHead, unit: &Unit, actor: &str) -> Option<String> {
    let by = head
        .started_by
        .as_deref()
        .filter(|by| head.status == Status::InProgress && *by != actor)?;
    Some(format!(
        "{unit} is in progress by {by}; tell {by} about the new plan"
    ))
}

impl Change for PlanSlice {
    const CMD: &'static str = "plan-slice";
    /// The slice, its new plan if that changed, and the tasks.
    type Facts = (Slice, Option<slice::Plan>, PlannedTasks);

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.unblocked_scene(Action::PlanSlice, &act.unit, refusals)?;
        let mut edit = Edit::new("", &act.unit, self.clear.as_deref());
        let old = found.slice.as_ref().map_or("", |slice| slice.plan.goal.as_str());
        let goal = edit.text("goal", self.goal.as_ref(), old);
        let told = edit.finish(refusals);
        refusals.prose("goal", &goal);
        refusals.at_most("tasks", self.tasks.len(), MAX_UNITS, "entries");
        let mut tasks = check_tasks(act, (&self.at.slice_id, "tasks"), &self.tasks, &[], refusals)?;
        tasks.warnings.extend(told);
        Ok(found.slice.map(|slice| {
            let plan = (slice.plan.goal != goal).then(|| slice::Plan {
                goal,
                ..slice.plan.clone()
            });
            (slice, plan, tasks)
        }))
    }

    fn apply(
        &self,
        act: &Act<'_>,
        (slice, plan, planned): Self::Facts,
        event: &Event,
    ) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        if let Some(plan) = &plan {
            slice::plan(db, workspace, self.at.path(), plan)?;
        }
        for (id, plan) in &planned.tasks {
            task::plan(db, workspace, self.at.path().task(id), plan)?;
        }
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        Ok(Applied {
            status: slice.status.to_string(),
            warnings: planned.warnings,
            touched: Touched::tasks(&self.at.slice_id, planned.tasks.into_iter().map(|(id, _)| id)),
            ..Applied::default()
        })
    }
}

/// Add one task to a slice, or change the plan of an open one. Absent fields stay. Next: gsd_task_start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanTask {
    #[serde(flatten)]
    at: TaskKey,
    /// One-line title. Required for a new task.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    title: Option<String>,
    /// Description of the work to do.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    description: Option<String>,
    /// Estimated duration, for example 30m.
    #[schemars(length(max = MAX_NAME_CHARS))]
    estimate: Option<String>,
    /// Files that the task changes.
    #[schemars(length(max = MAX_ENTRIES))]
    files: Option<Vec<String>>,
    /// Check that proves the task is done, in one line.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    verify: Option<String>,
    /// Inputs that the task needs.
    #[schemars(length(max = MAX_ENTRIES))]
    inputs: Option<Vec<String>>,
    /// Results that the task produces.
    #[schemars(length(max = MAX_ENTRIES))]
    expected_output: Option<Vec<String>>,
    /// Names of fields to empty, such as files.
    #[schemars(length(max = MAX_ENTRIES))]
    clear: Option<Vec<String>>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(PlanTask, "gsd_plan_task", "Plan a task", Standard, IDEMPOTENT, alias "gsd_task_plan");

impl PlanTask {
    fn edit(&self) -> TaskPlan {
        TaskPlan {
            task_id: self.at.task_id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            estimate: self.estimate.clone(),
            files: self.files.clone(),
            verify: self.verify.clone(),
            inputs: self.inputs.clone(),
            expected_output: self.expected_output.clone(),
            clear: self.clear.clone(),
        }
    }
}

impl Change for PlanTask {
    const CMD: &'static str = "plan-task";
    /// The task before, its new plan, and warnings.
    type Facts = (Option<TaskHead>, task::Plan, Vec<String>);

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.unblocked_scene(Action::PlanTask, &act.unit, refusals)?;
        let before = found.task.as_ref().map(|task| &task.plan);
        let (plan, mut warnings) = self.edit().on("", &act.unit, before, refusals);
        refusals.task_plan("", &plan);
        let known = task::heads(act.db(), act.workspace(), self.at.slice())?;
        let ids: Vec<&TaskId> = known.iter().map(|task| &task.id).collect();
        refusals.numbers("task_id", [&self.at.task_id], &ids);
        let head = found.task.map(|task| task.head);
        warnings.extend(
            head.as_ref()
                .and_then(|head| under_way(head, &act.unit, act.actor())),
        );
        Ok(Some((head, plan, warnings)))
    }

    fn apply(
        &self,
        act: &Act<'_>,
        (before, plan, warnings): Self::Facts,
        event: &Event,
    ) -> Result<Applied, ToolError> {
        let (db, workspace, at) = (act.db(), act.workspace(), &self.at);
        task::plan(db, workspace, at.path(), &plan)?;
        milestone::touch(db, workspace, &at.milestone_id, event.id)?;
        let status = before.map_or(Status::Pending, |head| head.status);
        Ok(Applied {
            status: status.to_string(),
            warnings,
            touched: Touched::tasks(&at.slice_id, [at.task_id.clone()]),
            ..Applied::default()
        })
    }
}
