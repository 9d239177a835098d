//! Reopening closed units, with a reason that the next worker sees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change, UnitStatus};
use crate::arguments::MAX_TEXT_CHARS;
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, SliceKey, TaskKey, header};
use crate::model::{MilestoneId, MilestoneStatus, SliceId, Status, Unit};
use crate::store::log::Event;
use crate::store::task::TaskHead;
use crate::store::{Reopen, milestone, slice, task};
use crate::violation::Refusals;

fn reopen(act: &Act<'_>, reason: &str) -> Reopen {
    Reopen {
        reason: reason.to_owned(),
        by: act.actor().to_owned(),
        at: act.now(),
    }
}

/// Make a complete or skipped task pending again. gsd_task_start returns the reason to the next worker. Fails
/// in a closed slice or milestone, or if another actor has claimed the task.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReopenTask {
    #[serde(flatten)]
    at: TaskKey,
    /// Reason, written for the next worker.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    #[serde(flatten)]
    header: Header,
}
change_tool!(ReopenTask, "gsd_task_reopen", "Reopen a task", Standard, ADDITIVE, alias "gsd_reopen_task");

impl Change for ReopenTask {
    const CMD: &'static str = "reopen-task";
    type Facts = ();

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        act.scene(Action::ReopenTask, &act.unit, refusals)?;
        act.ownership(&act.unit, refusals)?;
        refusals.text("reason", &self.reason);
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        let reopen = reopen(act, &self.reason);
        task::reopen_one(db, workspace, self.at.path(), &reopen)?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        Ok(Applied {
            status: Status::Pending.to_string(),
            touched: Touched::tasks(&self.at.slice_id, [self.at.task_id.clone()]),
            ..Applied::default()
        })
    }
}

/// Make a complete or skipped slice in_progress again and all its tasks pending. gsd_task_start returns the
/// reason to the next worker. Fails in a complete milestone, while a complete slice depends on it, or if another
/// actor has claimed the slice or one of its tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReopenSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// Reason, written for the next worker.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    #[serde(flatten)]
    header: Header,
}
change_tool!(ReopenSlice, "gsd_slice_reopen", "Reopen a slice", Standard, ADDITIVE, alias "gsd_reopen_slice");

impl Change for ReopenSlice {
    const CMD: &'static str = "reopen-slice";
    type Facts = Vec<TaskHead>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::ReopenSlice, &act.unit, refusals)?;
        act.ownership(&act.unit, refusals)?;
        let tasks = task::heads(act.db(), act.workspace(), self.at.path())?;
        act.ownership_of_all(&tasks, refusals)?;
        let of = |id: &SliceId| Unit::slice(&self.at.milestone_id, id);
        let slices = slice::all(act.db(), act.workspace(), &self.at.milestone_id)?;
        let slices: Vec<_> = slices
            .iter()
            .map(|slice| {
                let depends = slice.plan.depends.iter().map(of).collect();
                (of(&slice.id), slice.status == Status::Complete, depends)
            })
            .collect();
        refusals.extend(guard::complete_dependents(&act.unit, &slices));
        refusals.text("reason", &self.reason);
        Ok(Some(tasks))
    }

    fn apply(&self, act: &Act<'_>, tasks: Self::Facts, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        let reopen = reopen(act, &self.reason);
        slice::reopen_one(db, workspace, self.at.path(), &reopen)?;
        task::reopen_all(db, workspace, self.at.path(), &reopen)?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        let pending = tasks.iter().map(|task| UnitStatus {
            unit: Unit::task(&self.at.milestone_id, &self.at.slice_id, &task.id).to_string(),
            status: Status::Pending.to_string(),
        });
        Ok(Applied {
            status: Status::InProgress.to_string(),
            also: pending.collect(),
            touched: Touched::tasks(&self.at.slice_id, tasks.iter().map(|task| task.id.clone())),
            ..Applied::default()
        })
    }
}

/// Make a complete or parked milestone active again. Its slices stay closed; reopen those to redo with
/// gsd_slice_reopen. gsd_task_start returns the reason to the next worker. Fails while a complete milestone
/// depends on it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReopenMilestone {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// Reason, written for the next worker.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    #[serde(flatten)]
    header: Header,
}
change_tool!(
    ReopenMilestone, "gsd_milestone_reopen", "Reopen a milestone", Standard, ADDITIVE, alias "gsd_reopen_milestone"
);

impl Change for ReopenMilestone {
    const CMD: &'static str = "reopen-milestone";
    type Facts = ();

    header!();

    fn unit(&self) -> Unit {
        Unit::milestone(&self.milestone_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        let found = act.scene(Action::ReopenMilestone, &act.unit, refusals)?;
        let is_complete = |status| status == MilestoneStatus::Complete;
        if found.milestone.is_some_and(|found| is_complete(found.status)) {
            let heads = milestone::heads(act.db(), act.workspace())?;
            let milestones: Vec<_> = heads
                .iter()
                .map(|head| {
                    let depends = head.depends_on.iter().map(Unit::milestone).collect();
                    (Unit::milestone(&head.id), is_complete(head.status), depends)
                })
                .collect();
            refusals.extend(guard::complete_dependents(&act.unit, &milestones));
        }
        refusals.text("reason", &self.reason);
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let reopen = reopen(act, &self.reason);
        milestone::reopen_one(act.db(), act.workspace(), &self.milestone_id, &reopen)?;
        milestone::touch(act.db(), act.workspace(), &self.milestone_id, event.id)?;
        Ok(Applied {
            status: MilestoneStatus::Active.to_string(),
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}
