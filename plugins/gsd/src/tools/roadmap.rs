//! Planning milestones and their slices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change};
use crate::arguments::{ENTRIES, LINE, TEXT, UNITS};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, header};
use crate::model::{MilestoneId, Risk, SliceId, Unit};
use crate::store::log::Event;
use crate::store::milestone;
use crate::store::slice::{self, Slice};
use crate::violation::Refusals;

/// Plan of a slice.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlicePlan {
    pub(super) slice_id: SliceId,
    /// One-line title of the slice.
    #[schemars(length(min = 1, max = LINE))]
    pub(super) title: String,
    /// Risk that the slice fails or changes (default medium).
    #[serde(default)]
    pub(super) risk: Risk,
    /// Ids of slices in the milestone to close before this one starts.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    pub(super) depends: Vec<SliceId>,
    /// Demonstrable result of the slice, in one line.
    #[serde(default)]
    #[schemars(length(max = LINE))]
    pub(super) demo: String,
    /// Goal of the slice: the intended result.
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

/// Plan a milestone with its slices, or change open ones. Unnamed slices stay; gsd_reassess_roadmap removes
/// them. Fails if a dependency is incomplete or closed work would change. Next: gsd_plan_slice.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanMilestone {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// One-line title of the milestone.
    #[schemars(length(min = 1, max = LINE))]
    title: String,
    /// Intended result of the milestone.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    vision: String,
    /// Ids of milestones to complete first.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    depends_on: Vec<MilestoneId>,
    /// Criteria by which success is judged.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    success_criteria: Vec<String>,
    /// Risks of the milestone as a whole.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    key_risks: Vec<String>,
    /// Conditions for completion.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    definition_of_done: Vec<String>,
    /// Slices of the milestone to plan.
    #[serde(default)]
    #[schemars(length(max = UNITS))]
    slices: Vec<SlicePlan>,
    /// true parks the milestone. Parked work neither starts nor completes. false resumes it. Default:
    /// unchanged.
    parked: Option<bool>,
    #[serde(flatten)]
    header: Header,
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

    /// Refuses milestones that would depend on themselves.
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

/// Checks the slices of a milestone as they would be after a plan.
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
