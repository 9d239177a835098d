//! Revising plans after a completed slice or because of a blocker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use super::plan::{PlannedTasks, TaskPlan, check_tasks, under_way};
use super::roadmap::{PlannedSlices, SlicePlan, check_slices, edited};
use crate::act::{Act, Applied, Change};
use crate::arguments::{MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_UNITS};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, SliceKey, header};
use crate::model::{MilestoneId, SliceId, Status, TaskId, Unit};
use crate::store::history::{self, Assessment, Replan};
use crate::store::log::Event;
use crate::store::removed::{self, Removed};
use crate::store::slice::{self, Slice};
use crate::store::{claim, milestone, task};
use crate::violation::{Refusals, Violation};

/// Changes to the slices of a milestone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SliceChanges {
    /// Slices to add to the roadmap.
    #[schemars(length(max = MAX_UNITS))]
    added: Vec<SlicePlan>,
    /// Open slices to change, with their new fields.
    #[schemars(length(max = MAX_UNITS))]
    modified: Vec<SlicePlan>,
    /// Ids of open slices to remove, with their open tasks.
    #[schemars(length(max = MAX_UNITS))]
    removed: Vec<SliceId>,
}

/// Record what a completed slice means for the roadmap, and add, change or remove open slices. A second
/// assessment of the same slice replaces the first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReassessRoadmap {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// Id of the completed slice, for example S01.
    completed_slice_id: SliceId,
    /// Verdict in a word or two, for example `confirmed` or `adjusted`.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    verdict: String,
    /// Reasons for the verdict, with the findings.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    assessment: String,
    /// Slices to add, change or remove.
    #[serde(default)]
    slice_changes: SliceChanges,
    #[serde(flatten)]
    header: Header,
}
change_tool!(
    ReassessRoadmap, "gsd_reassess_roadmap", "Reassess the roadmap", Standard, DESTRUCTIVE, alias "gsd_roadmap_reassess"
);

impl ReassessRoadmap {
    /// Plans of the slices that are added or modified.
    fn planned(&self, known: &[Slice], refusals: &mut Refusals) -> (PlannedSlices, Vec<String>) {
        let SliceChanges { added, modified, .. } = &self.slice_changes;
        let is_known = |edit: &&SlicePlan| known.iter().any(|slice| slice.id == edit.slice_id);
        let milestone = &self.milestone_id;
        let (mut planned, mut warnings) = edited("slice_changes.added", milestone, added, &[], refusals);
        let modified = modified.iter().filter(is_known);
        let (changed, told) = edited("slice_changes.modified", milestone, modified, known, refusals);
        planned.extend(changed);
        warnings.extend(told);
        (planned, warnings)
    }

    /// Checks the changes, and returns warnings about removed tasks.
    fn check_changes(
        &self,
        act: &Act<'_>,
        known: &[Slice],
        refusals: &mut Refusals,
    ) -> Result<Vec<String>, DbError> {
        let SliceChanges {
            added,
            modified,
            removed,
        } = &self.slice_changes;
        let is_known = |id: &SliceId| known.iter().any(|slice| slice.id == *id);
        for slice in added.iter().filter(|slice| is_known(&slice.slice_id)) {
            refusals.add(Violation::argument(
                "slice_changes.added",
                format!(
                    "contains {}, which already exists; put it into modified",
                    slice.slice_id
                ),
            ));
        }
        let missing = modified.iter().map(|edit| &edit.slice_id).chain(removed);
        for id in missing.filter(|id| !is_known(id)) {
            refusals.add(Violation::NotFound(Unit::slice(&self.milestone_id, id)));
        }
        for (field, count) in [
            ("added", added.len()),
            ("modified", modified.len()),
            ("removed", removed.len()),
        ] {
            refusals.at_most(&format!("slice_changes.{field}"), count, MAX_UNITS, "entries");
        }
        for edit in modified.iter().filter(|edit| removed.contains(&edit.slice_id)) {
            refusals.add(Violation::argument(
                "slice_changes",
                format!("cannot both modify and remove {}", edit.slice_id),
            ));
        }
        let mut warnings = Vec::new();
        for id in removed {
            for task in task::heads(act.db(), act.workspace(), self.milestone_id.slice(id))? {
                let unit = Unit::task(&self.milestone_id, id, &task.id);
                act.ownership(&unit, refusals)?;
                warnings.extend(under_way(&task, &unit, act.actor()));
                refusals.extend(guard::protected(unit, task.status, true));
            }
            act.ownership(&Unit::slice(&self.milestone_id, id), refusals)?;
        }
        Ok(warnings)
    }
}

impl Change for ReassessRoadmap {
    const CMD: &'static str = "reassess-roadmap";
    /// Plans of added and modified slices, and warnings.
    type Facts = (PlannedSlices, Vec<String>);

    header!();

    fn unit(&self) -> Unit {
        Unit::slice(&self.milestone_id, &self.completed_slice_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::Reassess, &act.unit, refusals)?;
        refusals.line("verdict", &self.verdict, MAX_NAME_CHARS);
        refusals.text("assessment", &self.assessment);
        let known = slice::all(act.db(), act.workspace(), &self.milestone_id)?;
        let mut warnings = self.check_changes(act, &known, refusals)?;
        let (planned, told) = self.planned(&known, refusals);
        warnings.extend(told);
        let removed = &self.slice_changes.removed;
        check_slices(&self.milestone_id, &known, &planned, removed, refusals);
        Ok(Some((planned, warnings)))
    }

    fn apply(
        &self,
        act: &Act<'_>,
        (planned, warnings): Self::Facts,
        event: &Event,
    ) -> Result<Applied, ToolError> {
        let (db, workspace, milestone) = (act.db(), act.workspace(), &self.milestone_id);
        for (id, plan) in &planned {
            slice::plan(db, workspace, milestone.slice(id), plan)?;
        }
        let mut gone = Vec::new();
        for id in &self.slice_changes.removed {
            gone.extend(note_slice(act, id, &self.assessment)?);
            let at = milestone.slice(id);
            for head in task::heads(db, workspace, at)? {
                task::remove(db, workspace, at.task(&head.id))?;
            }
            claim::release_within(db, workspace, &Unit::slice(milestone, id).to_string())?;
            slice::remove(db, workspace, at)?;
        }
        let assessment = Assessment {
            completed_slice: milestone.slice(&self.completed_slice_id),
            verdict: &self.verdict,
            assessment: &self.assessment,
            slice_changes: serde_json::to_value(&self.slice_changes).unwrap_or_default(),
        };
        let first = history::assess(db, workspace, &assessment, act.now())?;
        milestone::touch(db, workspace, milestone, event.id)?;
        Ok(Applied {
            status: if first { "assessed" } else { "assessed again" }.to_owned(),
            warnings,
            touched: Touched {
                claims: !self.slice_changes.removed.is_empty(),
                removed: gone,
                ..Touched::slices(planned.into_iter().map(|(id, _)| id))
            },
            ..Applied::default()
        })
    }
}

/// Replan an open slice after a completed task found a blocker: add, change or remove open tasks. A second
/// record for the same blocker replaces the first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReplanSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// Id of the completed task that found the blocker, for example T01.
    blocker_task_id: TaskId,
    /// Description of the blocker, in a few sentences.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    blocker_description: String,
    /// Summary of the changes to the plan.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    what_changed: String,
    /// Tasks to add, and open tasks with their new plan.
    #[serde(default)]
    #[schemars(length(max = MAX_UNITS))]
    updated_tasks: Vec<TaskPlan>,
    /// Ids of open tasks to remove.
    #[serde(default)]
    #[schemars(length(max = MAX_UNITS))]
    removed_task_ids: Vec<TaskId>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(ReplanSlice, "gsd_replan_slice", "Replan a slice", Standard, DESTRUCTIVE, alias "gsd_slice_replan");

impl Change for ReplanSlice {
    const CMD: &'static str = "replan-slice";
    type Facts = (Slice, PlannedTasks);

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let blocker = Unit::task(&self.at.milestone_id, &self.at.slice_id, &self.blocker_task_id);
        let found = act.unblocked_scene(Action::Replan, &blocker, refusals)?;
        refusals.text("blocker_description", &self.blocker_description);
        refusals.text("what_changed", &self.what_changed);
        refusals.at_most("updated_tasks", self.updated_tasks.len(), MAX_UNITS, "entries");
        refusals.at_most(
            "removed_task_ids",
            self.removed_task_ids.len(),
            MAX_UNITS,
            "entries",
        );
        for task in &self.updated_tasks {
            if self.removed_task_ids.contains(&task.task_id) {
                refusals.add(Violation::argument(
                    "removed_task_ids",
                    format!("contains {}, which updated_tasks changes", task.task_id),
                ));
            }
        }
        let (updated, removed) = (&self.updated_tasks, &self.removed_task_ids);
        let at = (&self.at.slice_id, "updated_tasks");
        let planned = check_tasks(act, at, updated, removed, refusals)?;
        Ok(found.slice.map(|slice| (slice, planned)))
    }

    fn apply(
        &self,
        act: &Act<'_>,
        (slice, planned): Self::Facts,
        event: &Event,
    ) -> Result<Applied, ToolError> {
        let (db, workspace, at) = (act.db(), act.workspace(), self.at.path());
        let (milestone, slice_id) = (at.milestone, at.slice);
        for (id, plan) in &planned.tasks {
            task::plan(db, workspace, at.task(id), plan)?;
        }
        let mut gone = Vec::new();
        for id in &self.removed_task_ids {
            gone.extend(note_task(act, slice_id, id, &self.what_changed)?);
            task::remove(db, workspace, at.task(id))?;
            claim::release(db, workspace, &Unit::task(milestone, slice_id, id))?;
        }
        let record = Replan {
            blocker: at.task(&self.blocker_task_id),
            blocker_description: &self.blocker_description,
            what_changed: &self.what_changed,
        };
        history::replan(db, workspace, &record, act.now())?;
        milestone::touch(db, workspace, milestone, event.id)?;
        Ok(Applied {
            status: slice.status.to_string(),
            warnings: planned.warnings,
            touched: Touched {
                claims: !self.removed_task_ids.is_empty(),
                removed: gone,
                ..Touched::tasks(slice_id, planned.tasks.into_iter().map(|(id, _)| id))
            },
            ..Applied::default()
        })
    }
}

/// Notes the removal of a slice and its tasks, as far as they have files. Returns their keys.
fn note_slice(act: &Act<'_>, id: &SliceId, reason: &str) -> Result<Vec<Unit>, DbError> {
    let (db, workspace, milestone) = (act.db(), act.workspace(), &act.unit.milestone);
    let mut noted = Vec::new();
    let tasks = task::heads(db, workspace, milestone.slice(id))?;
    for head in &tasks {
        noted.extend(note_task(act, id, &head.id, reason)?);
    }
    let unit = Unit::slice(milestone, id);
    let had_file = !tasks.is_empty() || removed::get(db, workspace, &unit)?.is_some();
    let known = slice::get(db, workspace, milestone.slice(id))?;
    if let Some(slice) = known.filter(|slice| had_file || slice.status != Status::Pending) {
        note(act, &unit, slice.plan.title, reason)?;
        noted.push(unit);
    }
    Ok(noted)
}

/// Notes the removal of a task, if it has a file. Returns its key.
fn note_task(act: &Act<'_>, slice: &SliceId, id: &TaskId, reason: &str) -> Result<Option<Unit>, DbError> {
    let milestone = &act.unit.milestone;
    let unit = Unit::task(milestone, slice, id);
    let had_file = removed::get(act.db(), act.workspace(), &unit)?.is_some();
    let task = task::get(act.db(), act.workspace(), milestone.slice(slice).task(id))?;
    let Some(task) = task.filter(|task| had_file || task.head.reopened > 0) else {
        return Ok(None);
    };
    note(act, &unit, task.head.title, reason)?;
    Ok(Some(unit))
}

fn note(act: &Act<'_>, unit: &Unit, title: String, reason: &str) -> Result<(), DbError> {
    let removed = Removed {
        unit: unit.to_string(),
        title,
        at: act.now(),
        by: act.actor().to_owned(),
        reason: reason.to_owned(),
    };
    removed::put(act.db(), act.workspace(), &unit.milestone, &removed)
}
