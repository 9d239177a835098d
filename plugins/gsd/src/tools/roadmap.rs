//! Planning milestones and their slices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change};
use crate::arguments::{MAX_ENTRIES, MAX_LINE_CHARS, MAX_TEXT_CHARS, MAX_UNITS};
use crate::edit::{self, Edit};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, header};
use crate::model::{MilestoneId, Risk, SliceId, Unit};
use crate::store::log::Event;
use crate::store::milestone;
use crate::store::slice::{self, Slice};
use crate::violation::Refusals;

/// Plan of a slice. Absent fields of a known slice stay.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlicePlan {
    pub(super) slice_id: SliceId,
    /// One-line title. Required for a new slice.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    pub(super) title: Option<String>,
    /// Risk that the slice fails or changes (default medium).
    pub(super) risk: Option<Risk>,
    /// Ids of slices in the milestone to close before this one starts.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) depends: Option<Vec<SliceId>>,
    /// Demonstrable result of the slice, in one line.
    #[schemars(length(max = MAX_LINE_CHARS))]
    pub(super) demo: Option<String>,
    /// Goal of the slice: the intended result.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub(super) goal: Option<String>,
    /// Names of fields to empty, such as depends.
    #[schemars(length(max = MAX_ENTRIES))]
    pub(super) clear: Option<Vec<String>>,
}

impl SlicePlan {
    /// The plan after this edit of a known slice, or of a new one.
    pub(super) fn on(
        &self,
        at: &str,
        unit: &Unit,
        known: Option<&Slice>,
        refusals: &mut Refusals,
    ) -> (slice::Plan, Vec<String>) {
        let default = slice::Plan::default();
        let old = known.map_or(&default, |known| &known.plan);
        let mut edit = Edit::new(at, unit, self.clear.as_deref());
        let plan = slice::Plan {
            title: edit::title(
                at,
                self.title.as_ref(),
                known.map(|known| known.plan.title.as_str()),
                refusals,
            ),
            risk: self.risk.unwrap_or(old.risk),
            depends: edit.list("depends", self.depends.as_ref(), &old.depends),
            demo: edit.text("demo", self.demo.as_ref(), &old.demo),
            goal: edit.text("goal", self.goal.as_ref(), &old.goal),
        };
        (plan, edit.finish(refusals))
    }
}

/// Slices as a call plans them, by id.
pub(super) type PlannedSlices = Vec<(SliceId, slice::Plan)>;

/// The plans of slices after a call's edits, and warnings about them.
pub(super) fn edited<'a>(
    field: &str,
    milestone: &MilestoneId,
    edits: impl IntoIterator<Item = &'a SlicePlan>,
    known: &[Slice],
    refusals: &mut Refusals,
) -> (PlannedSlices, Vec<String>) {
    let mut warnings = Vec::new();
    let mut planned = Vec::new();
    for (index, edit) in edits.into_iter().enumerate().take(MAX_UNITS) {
        let at = format!("{field}[{index}].");
        let there = known.iter().find(|slice| slice.id == edit.slice_id);
        let unit = Unit::slice(milestone, &edit.slice_id);
        let (plan, told) = edit.on(&at, &unit, there, refusals);
        refusals.slice_plan(&at, &plan);
        warnings.extend(told);
        planned.push((edit.slice_id.clone(), plan));
    }
    (planned, warnings)
}

/// Plan a milestone with its slices, or change open ones. Absent fields and unnamed slices stay;
/// gsd_reassess_roadmap removes slices. Fails if a dependency is incomplete or closed work would change. Next:
/// gsd_plan_slice.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanMilestone {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// One-line title. Required for a new milestone.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    title: Option<String>,
    /// Intended result of the milestone.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    vision: Option<String>,
    /// Ids of milestones to complete first.
    #[schemars(length(max = MAX_ENTRIES))]
    depends_on: Option<Vec<MilestoneId>>,
    /// Criteria by which success is judged.
    #[schemars(length(max = MAX_ENTRIES))]
    success_criteria: Option<Vec<String>>,
    /// Risks of the milestone as a whole.
    #[schemars(length(max = MAX_ENTRIES))]
    key_risks: Option<Vec<String>>,
    /// Conditions for completion.
    #[schemars(length(max = MAX_ENTRIES))]
    definition_of_done: Option<Vec<String>>,
    /// Names of fields to empty, such as vision.
    #[schemars(length(max = MAX_ENTRIES))]
    clear: Option<Vec<String>>,
    /// Slices of the milestone to plan.
    #[serde(default)]
    #[schemars(length(max = MAX_UNITS))]
    slices: Vec<SlicePlan>,
    /// true parks the milestone. Parked work neither starts nor completes. false resumes it. Default:
    /// unchanged.
    parked: Option<bool>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(PlanMilestone, "gsd_plan_milestone", "Plan a milestone", Core, IDEMPOTENT, alias "gsd_milestone_plan");

impl PlanMilestone {
    /// The plan after this edit of a known milestone, or of a new one.
    fn on(&self, known: Option<&milestone::Plan>, refusals: &mut Refusals) -> (milestone::Plan, Vec<String>) {
        let (default, unit) = (milestone::Plan::default(), Unit::milestone(&self.milestone_id));
        let old = known.unwrap_or(&default);
        let mut edit = Edit::new("", &unit, self.clear.as_deref());
        let plan = milestone::Plan {
            title: edit::title(
                "",
                self.title.as_ref(),
                known.map(|known| known.title.as_str()),
                refusals,
            ),
            vision: edit.text("vision", self.vision.as_ref(), &old.vision),
            depends_on: edit.list("depends_on", self.depends_on.as_ref(), &old.depends_on),
            success_criteria: edit.list(
                "success_criteria",
                self.success_criteria.as_ref(),
                &old.success_criteria,
            ),
            key_risks: edit.list("key_risks", self.key_risks.as_ref(), &old.key_risks),
            definition_of_done: edit.list(
                "definition_of_done",
                self.definition_of_done.as_ref(),
                &old.definition_of_done,
            ),
        };
        (plan, edit.finish(refusals))
    }

    /// Refuses milestones that would depend on themselves. Dependencies that stay are checked only when slices
    /// are planned.
    fn check_dependencies(
        &self,
        act: &Act<'_>,
        plan: &milestone::Plan,
        known: Option<&milestone::Plan>,
        refusals: &mut Refusals,
    ) -> Result<(), DbError> {
        let is_new = |id: &&MilestoneId| known.is_none_or(|known| !known.depends_on.contains(id));
        let on: Vec<MilestoneId> = match self.slices.is_empty() {
            true => plan.depends_on.iter().filter(is_new).cloned().collect(),
            false => plan.depends_on.clone(),
        };
        act.dependencies(Action::PlanMilestone, &on, refusals)?;
        let known = milestone::heads(act.db(), act.workspace())?;
        let ids: Vec<&MilestoneId> = known.iter().map(|milestone| &milestone.id).collect();
        refusals.numbers("milestone_id", [&self.milestone_id], &ids);
        let mut graph: BTreeMap<MilestoneId, Vec<MilestoneId>> = known
            .into_iter()
            .map(|milestone| (milestone.id, milestone.depends_on))
            .collect();
        graph.insert(self.milestone_id.clone(), plan.depends_on.clone());
        refusals.extend(guard::milestone_graph(&graph));
        Ok(())
    }
}

/// Checks the slices of a milestone as they would be after a plan.
pub(super) fn check_slices<'a>(
    milestone: &MilestoneId,
    known: &[Slice],
    planned: impl IntoIterator<Item = &'a (SliceId, slice::Plan)>,
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
            .filter(|there| there.plan != *plan)
        {
            refusals.extend(guard::protected(Unit::slice(milestone, id), there.status, false));
        }
        graph.insert(id.clone(), plan.depends.clone());
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
    type Facts = Planned;

    header!();

    fn unit(&self) -> Unit {
        Unit::milestone(&self.milestone_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Planned>, DbError> {
        let found = act.scene(Action::PlanMilestone, &act.unit, refusals)?;
        let before = found.milestone.as_ref().map(|milestone| &milestone.plan);
        let (plan, mut warnings) = self.on(before, refusals);
        self.check_dependencies(act, &plan, before, refusals)?;
        refusals.milestone_plan(&plan);
        refusals.at_most("slices", self.slices.len(), MAX_UNITS, "entries");
        let known = slice::all(act.db(), act.workspace(), &self.milestone_id)?;
        let (slices, told) = edited("slices", &self.milestone_id, &self.slices, &known, refusals);
        check_slices(&self.milestone_id, &known, &slices, &[], refusals);
        warnings.extend(told);
        Ok(Some(Planned {
            plan,
            slices,
            warnings,
        }))
    }

    fn apply(&self, act: &Act<'_>, planned: Planned, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace, id) = (act.db(), act.workspace(), &self.milestone_id);
        milestone::plan(db, workspace, id, &planned.plan, act.now())?;
        if let Some(parked) = self.parked {
            milestone::set_parked(db, workspace, id, parked)?;
        }
        for (slice_id, plan) in &planned.slices {
            slice::plan(db, workspace, id.slice(slice_id), plan)?;
        }
        milestone::touch(db, workspace, id, event.id)?;
        let now = milestone::get(db, workspace, id)?.ok_or(DbError::Internal)?;
        Ok(Applied {
            status: now.status.to_string(),
            warnings: planned.warnings,
            touched: Touched::slices(planned.slices.into_iter().map(|(id, _)| id)),
            ..Applied::default()
        })
    }
}

/// Plans of a milestone and of its slices after a call.
pub(crate) struct Planned {
    plan: milestone::Plan,
    slices: PlannedSlices,
    warnings: Vec<String>,
}
