//! Starting tasks: who starts gets all that is needed to do the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, Effect, Hints, Tier, Tool, ToolError};

use super::complete::began_slice;
use crate::act::{Act, Applied, Change, Changed, change, header};
use crate::arguments::{NAME, TEXT, WORKSPACE};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::model::{MilestoneId, SliceId, Status, TaskId, Unit};
use crate::store::log::Event;
use crate::store::{Reopen, milestone, slice, task};
use crate::violation::Refusals;

/// Start a task, or come back to one you started. Returns its plan and, if it or what it belongs to was reopened,
/// why. Refused while what it depends on is open, if somebody else holds it, or if somebody else is at it and
/// you hold no claim.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartTask {
    /// The milestone, such as M01.
    milestone_id: MilestoneId,
    /// The slice, such as S01.
    slice_id: SliceId,
    /// The task, such as T01.
    task_id: TaskId,
    /// Where it belongs: a registered workspace or just a label.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: String,
    /// Who calls.
    #[schemars(length(min = 1, max = NAME))]
    actor_name: Option<String>,
    /// What caused the call.
    #[schemars(length(max = TEXT))]
    trigger_reason: Option<String>,
}

/// A task to work on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// What changed.
    #[serde(flatten)]
    changed: Changed,
    /// What it is called.
    title: String,
    /// What is to be done.
    description: String,
    /// How long it takes.
    estimate: String,
    /// Files it touches.
    files: Vec<String>,
    /// How to see that it is done.
    verify: String,
    /// What it starts from.
    inputs: Vec<String>,
    /// What it produces.
    expected_output: Vec<String>,
    /// What its slice is to achieve.
    slice_goal: String,
    /// Why it, its slice or its milestone was reopened, if one was: what the work has to answer to.
    reopened: Vec<Reopened>,
}

/// Why a unit was reopened.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reopened {
    /// The unit.
    unit: String,
    /// Why, by whom and when.
    #[serde(flatten)]
    reopen: Reopen,
}

impl Tool for StartTask {
    const NAME: &'static str = "gsd_task_start";
    const TITLE: &'static str = "Start a task";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::IDEMPOTENT;
    const ALIASES: &'static [&'static str] = &["gsd_start_task"];
    type Output = Started;

    fn run(self, cx: &Cx<'_>) -> Result<Started, ToolError> {
        let changed = change(cx, &self)?;
        let (db, workspace) = (&cx.db, self.workspace.as_str());
        let missing = || ToolError::from(DbError::Internal);
        let milestone = milestone::get(db, workspace, &self.milestone_id)?.ok_or_else(missing)?;
        let slice = slice::get(db, workspace, &self.milestone_id, &self.slice_id)?.ok_or_else(missing)?;
        let task = task::get(db, workspace, &self.milestone_id, &self.slice_id, &self.task_id)?;
        let task = task.ok_or_else(missing)?;
        let reopened = [
            (self.unit(), task.head.reopen),
            (Unit::slice(&self.milestone_id, &self.slice_id), slice.reopen),
            (Unit::milestone(&self.milestone_id), milestone.reopen),
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
    type Facts = ();

    header!();

    fn unit(&self) -> Unit {
        Unit::task(&self.milestone_id, &self.slice_id, &self.task_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        let found = act.scene(Action::StartTask, &act.unit, refusals)?;
        if let Some(milestone) = &found.milestone {
            act.dependencies(Action::StartTask, &milestone.plan.depends_on, refusals)?;
        }
        if let Some(slice) = &found.slice {
            act.slice_dependencies(slice, refusals)?;
        }
        let holder = act.ownership(&act.unit, refusals)?;
        if let Some(head) = found.task.map(|task| task.head) {
            let holds = holder.is_some_and(|holder| act.header.actor_name == Some(holder.owner.as_str()));
            let by = head.started_by.as_deref();
            refusals.extend(guard::under_way(
                &act.unit,
                Some(head.status),
                by,
                act.actor(),
                holds,
            ));
        }
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        if !task::start(
            db,
            workspace,
            &self.milestone_id,
            &self.slice_id,
            &self.task_id,
            act.actor(),
        )? {
            return Err(DbError::Internal.into());
        }
        let began = slice::begin(db, workspace, &self.milestone_id, &self.slice_id)?;
        milestone::touch(db, workspace, &self.milestone_id, event.id)?;
        Ok(Applied {
            status: Status::InProgress.to_string(),
            also: began_slice(began, &self.milestone_id, &self.slice_id),
            touched: Touched::slice(&self.slice_id),
            ..Applied::default()
        })
    }
}
