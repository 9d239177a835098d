//! Starting tasks. The reply has everything that the work needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, ToolError};

use super::change_tool;
use super::complete::began_slice;
use crate::act::{Act, Applied, Change, Changed};
use crate::files::Touched;
use crate::guard::Action;
use crate::header::{Header, TaskKey, header};
use crate::model::{Status, Unit};
use crate::store::log::Event;
use crate::store::task::TaskHead;
use crate::store::{Reopen, milestone, slice, task};
use crate::violation::Refusals;

/// Start a task, or resume your own. Returns its plan and reopening reasons. Fails if a dependency is
/// open, or another actor has claimed or started the task. Next: gsd_task_complete.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StartTask {
    #[serde(flatten)]
    at: TaskKey,
    #[serde(flatten)]
    header: Header,
}

/// A started task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The change.
    #[serde(flatten)]
    changed: Changed,
    /// Title of the task.
    title: String,
    /// Description of the work to do.
    description: String,
    /// Estimated duration.
    estimate: String,
    /// Files that the task changes.
    files: Vec<String>,
    /// Check that proves the task is done.
    verify: String,
    /// Inputs that the task needs.
    inputs: Vec<String>,
    /// Results that the task produces.
    expected_output: Vec<String>,
    /// Goal of the task's slice.
    slice_goal: String,
    /// Reopenings of the task, its slice or its milestone, whose reasons the work must address.
    reopened: Vec<Reopened>,
}

/// Reopening of a unit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reopened {
    /// Key of the unit.
    unit: String,
    /// Reason, actor and time.
    #[serde(flatten)]
    reopen: Reopen,
}

change_tool!(StartTask => Started, "gsd_task_start", "Start a task", Core, IDEMPOTENT, alias "gsd_start_task");

impl StartTask {
    /// The change with everything that the work needs.
    fn reply(self, cx: &Cx<'_>, changed: Changed) -> Result<Started, ToolError> {
        let (db, workspace) = (&cx.db, self.header.workspace.as_str());
        let missing = || ToolError::from(DbError::Internal);
        let milestone = milestone::get(db, workspace, &self.at.milestone_id)?.ok_or_else(missing)?;
        let slice = slice::get(db, workspace, self.at.slice())?.ok_or_else(missing)?;
        let task = task::get(db, workspace, self.at.path())?.ok_or_else(missing)?;
        let reopened = [
            (self.unit(), task.head.reopen),
            (
                Unit::slice(&self.at.milestone_id, &self.at.slice_id),
                slice.reopen,
            ),
            (Unit::milestone(&self.at.milestone_id), milestone.reopen),
        ];
        Ok(Started {
            changed,
            title: task.plan.title,
            description: task.plan.description,
            estimate: task.plan.estimate,
            files: task.plan.files,
            verify: task.plan.verify,
            inputs: task.plan.inputs,
            expected_output: task.plan.expected_output,
            slice_goal: slice.plan.goal,
            reopened: reopened
                .into_iter()
                .filter_map(|(unit, reopen)| {
                    let unit = unit.to_string();
                    reopen.map(|reopen| Reopened { unit, reopen })
                })
                .collect(),
        })
    }
}

impl Change for StartTask {
    const CMD: &'static str = "start-task";
    /// The task before.
    type Facts = Option<TaskHead>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.task_scene(Action::StartTask, refusals)?;
        Ok(Some(found.task.map(|task| task.head)))
    }

    fn unchanged(&self, act: &Act<'_>, head: &Self::Facts) -> Result<Option<Applied>, DbError> {
        let is_own = head.as_ref().is_some_and(|head| {
            head.status == Status::InProgress && head.started_by.as_deref() == Some(act.actor())
        });
        Ok(is_own.then(|| Applied {
            status: Status::InProgress.to_string(),
            ..Applied::default()
        }))
    }

    fn apply(&self, act: &Act<'_>, _: Self::Facts, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        task::start(db, workspace, self.at.path(), act.actor())?;
        let began = slice::begin(db, workspace, self.at.slice())?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        Ok(Applied {
            status: Status::InProgress.to_string(),
            also: began_slice(began, &self.at.milestone_id, &self.at.slice_id),
            touched: Touched::tasks(&self.at.slice_id, [self.at.task_id.clone()]),
            ..Applied::default()
        })
    }
}
