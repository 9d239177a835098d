//! Planning and reassessing roadmaps: milestones and the slices they are made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change, header};
use crate::arguments::{ENTRIES, LINE, NAME, TEXT, UNITS, WORKSPACE};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::model::{MilestoneId, Risk, SliceId, Unit};
use crate::store::log::Event;
use crate::store::milestone;
use crate::store::slice::{self, Slice};
use crate::violation::Refusals;

/// A slice as it is planned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlicePlan {
    /// Its id, such as S01.
    pub(super) slice_id: SliceId,
    /// What it is called, in one line.
    #[schemars(length(min = 1, max = LINE))]
    pub(super) title: String,
    /// How likely it is to go wrong.
    #[serde(default)]
    pub(super) risk: Risk,
    /// Slices of the same milestone that have to be closed before it starts.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    pub(super) depends: Vec<SliceId>,
    /// What can be shown once it is complete, in one line.
    #[serde(default)]
    #[schemars(length(max = LINE))]
    pub(super) demo: String,
    /// What it is to achieve.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    pub(super) goal: String,
}

impl SlicePlan {
    pub(super) fn plan(&self) -> slice::Plan {
        slice::Plan {
            title: self.title.clone(),
            risk: self.risk,
            depends: self.depends.clone(),
            demo: self.demo.clone(),
            goal: self.goal.clone(),
        }
    }
}

/// Plan a milestone and its slices, or change the plan of what is open in it. Slices that are not named stay as
/// they are; gsd_reassess_roadmap removes them. Refused while a milestone in `depends_on` is not complete, and for
/// every change to closed work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanMilestone {
    /// The milestone, such as M01.
    milestone_id: MilestoneId,
    /// What it is called, in one line.
    #[schemars(length(min = 1, max = LINE))]
    title: String,
    /// What the world looks like once it is complete.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    vision: String,
    /// Milestones that have to be complete first.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    depends_on: Vec<MilestoneId>,
    /// How its success is judged.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    success_criteria: Vec<String>,
    /// What may go wrong.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    key_risks: Vec<String>,
    /// What has to hold before it is complete.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    definition_of_done: Vec<String>,
    /// Its slices, in any order.
    #[serde(default)]
    #[schemars(length(max = UNITS))]
    slices: Vec<SlicePlan>,
    /// Set it aside, so that nothing in it starts or completes, or take it up again. Left out: as it is.
    parked: Option<bool>,
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
change_tool!(PlanMilestone, "gsd_plan_milestone", "Plan a milestone", Core, IDEMPOTENT, alias "gsd_milestone_plan");

impl PlanMilestone {
    fn plan(&self) -> milestone::Plan {
        milestone::Plan {
            title: self.title.clone(),
            vision: self.vision.clone(),
            depends_on: self.depends_on.clone(),
            success_criteria: self.success_criteria.clone(),
            key_risks: self.key_risks.clone(),
            definition_of_done: self.definition_of_done.clone(),
        }
    }

    fn check_text(&self, refusals: &mut Refusals) {
        refusals.line("title", &self.title, LINE);
        refusals.prose("vision", &self.vision);
        refusals.lines("success_criteria", &self.success_criteria);
        refusals.lines("key_risks", &self.key_risks);
        refusals.lines("definition_of_done", &self.definition_of_done);
        refusals.at_most("depends_on", self.depends_on.len(), ENTRIES, "entries");
        refusals.at_most("slices", self.slices.len(), UNITS, "entries");
        for (index, slice) in self.slices.iter().enumerate().take(UNITS) {
            refusals.slice_plan(&format!("slices[{index}]."), &slice.plan());
        }
    }

    /// No milestone may come to depend on itself.
    fn check_dependencies(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<(), DbError> {
        act.dependencies(Action::PlanMilestone, &self.depends_on, refusals)?;
        let known = milestone::heads(act.db(), act.workspace())?;
        let ids: Vec<&MilestoneId> = known.iter().map(|milestone| &milestone.id).collect();
        refusals.numbers("milestone_id", [&self.milestone_id], &ids);
        let mut graph: BTreeMap<MilestoneId, Vec<MilestoneId>> = known
            .into_iter()
            .map(|milestone| (milestone.id, milestone.depends_on))
            .collect();
        graph.insert(self.milestone_id.clone(), self.depends_on.clone());
        refusals.extend(guard::milestone_graph(&graph));
        Ok(())
    }
}

/// The slices of a milestone after a plan, with the checks that every such plan needs.
pub(super) fn check_slices<'a>(
    milestone: &MilestoneId,
    known: &[Slice],
    planned: impl IntoIterator<Item = (&'a SliceId, slice::Plan)>,
    removed: &[SliceId],
    refusals: &mut Refusals,
) {
    let mut graph: BTreeMap<SliceId, Vec<SliceId>> = known
        .iter()
        .map(|slice| (slice.id.clone(), slice.plan.depends.clone()))
        .collect();
    let mut named = Vec::new();
    for (id, plan) in planned {
        if let Some(there) = known
            .iter()
            .find(|slice| slice.id == *id)
            .filter(|there| there.plan != plan)
        {
            refusals.extend(guard::protected(Unit::slice(milestone, id), there.status, false));
        }
        graph.insert(id.clone(), plan.depends);
        named.push(id);
    }
    for id in removed {
        graph.remove(id);
        if let Some(there) = known.iter().find(|slice| slice.id == *id) {
            refusals.extend(guard::protected(Unit::slice(milestone, id), there.status, true));
        }
    }
    let ids: Vec<&SliceId> = known.iter().map(|slice| &slice.id).collect();
    refusals.numbers("slice_id", named, &ids);
    refusals.extend(guard::slice_graph(milestone, &graph));
}

impl Change for PlanMilestone {
    const CMD: &'static str = "plan-milestone";
    type Facts = ();

    header!();

    fn unit(&self) -> Unit {
        Unit::milestone(&self.milestone_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::PlanMilestone, &act.unit, refusals)?;
        self.check_dependencies(act, refusals)?;
        self.check_text(refusals);
        let known = slice::all(act.db(), act.workspace(), &self.milestone_id)?;
        let planned = self.slices.iter().map(|slice| (&slice.slice_id, slice.plan()));
        check_slices(&self.milestone_id, &known, planned, &[], refusals);
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace, id) = (act.db(), act.workspace(), &self.milestone_id);
        milestone::plan(db, workspace, id, &self.plan(), act.now())?;
        if let Some(parked) = self.parked {
            milestone::set_parked(db, workspace, id, parked)?;
        }
        for planned in &self.slices {
            slice::plan(db, workspace, id, &planned.slice_id, &planned.plan())?;
        }
        milestone::touch(db, workspace, id, event.id)?;
        let now = milestone::get(db, workspace, id)?.ok_or(DbError::Internal)?;
        Ok(Applied {
            status: now.status.to_string(),
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}
