//! State of a workspace: its tree, next steps and blockers. Pure except for [`load`].

use std::collections::BTreeMap;

use tollgate_kit::Reason as _;
use tollgate_sdk::{Db, DbError, Timestamp};

use crate::config::Config;
use crate::guard::{self, Action};
use crate::model::{MilestoneId, MilestoneStatus, SliceId, Status, Unit};
use crate::store::claim::{self, Claim};
use crate::store::milestone::{self, MilestoneHead};
use crate::store::slice::{self, Slice};
use crate::store::task::{self, TaskHead};
use crate::violation::Violation;

/// Most tasks in one tree, for a workspace or one milestone.
const MAX_TASKS: usize = 300;
/// Most claims that are read.
const MAX_CLAIMS: u32 = 10_000;

/// A workspace with its milestones and claims.
#[derive(Debug)]
pub(crate) struct Tree {
    pub workspace: String,
    pub milestones: Vec<MilestoneNode>,
    /// Claims by unit.
    pub claims: BTreeMap<String, Claim>,
}

/// A milestone with its slices.
#[derive(Debug)]
pub(crate) struct MilestoneNode {
    pub milestone: MilestoneHead,
    pub slices: Vec<SliceNode>,
}

/// A slice with the tasks that are shown.
#[derive(Debug)]
pub(crate) struct SliceNode {
    pub slice: Slice,
    pub total: u32,
    pub closed: u32,
    pub tasks: Vec<TaskHead>,
}

/// Reads a workspace. Tasks are read for open slices of incomplete milestones, or for all slices of the
/// requested milestone.
pub(crate) fn load(
    db: &Db<'_>,
    workspace: &str,
    only: Option<&MilestoneId>,
    now: Timestamp,
) -> Result<Tree, DbError> {
    let claims = claim::list(db, Some(workspace), "", now, ("", ""), MAX_CLAIMS)?;
    let mut tree = Tree {
        workspace: workspace.to_owned(),
        milestones: Vec::new(),
        claims: claims
            .into_iter()
            .map(|claim| (claim.unit.clone(), claim))
            .collect(),
    };
    let mut room = MAX_TASKS;
    for milestone in milestone::heads(db, workspace)? {
        let slices = match only {
            Some(id) if *id == milestone.id => slices(db, workspace, id, true, &mut room)?,
            None if milestone.status != MilestoneStatus::Complete => {
                slices(db, workspace, &milestone.id, false, &mut room)?
            }
            _ => Vec::new(),
        };
        tree.milestones.push(MilestoneNode { milestone, slices });
    }
    Ok(tree)
}

/// The slices of a milestone, with the tasks of open slices or of all, up to the limit.
fn slices(
    db: &Db<'_>,
    workspace: &str,
    milestone: &MilestoneId,
    closed_too: bool,
    room: &mut usize,
) -> Result<Vec<SliceNode>, DbError> {
    let counts = task::counts(db, workspace, milestone)?;
    let mut nodes = Vec::new();
    for slice in slice::all(db, workspace, milestone)? {
        let (total, closed) = counts.get(&slice.id).copied().unwrap_or_default();
        let mut tasks = Vec::new();
        if *room > 0 && (closed_too || !slice.status.is_closed()) {
            tasks = task::heads(db, workspace, milestone.slice(&slice.id))?;
            tasks.truncate(*room);
            *room -= tasks.len();
        }
        nodes.push(SliceNode {
            slice,
            total,
            closed,
            tasks,
        });
    }
    Ok(nodes)
}

/// A step that can be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Unit of the step.
    pub unit: Unit,
    /// Tool for the step.
    pub tool: &'static str,
    /// Description of the step.
    pub what: String,
    /// Actor who works on the task.
    pub by: Option<String>,
}

/// A blocked unit with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub unit: Unit,
    pub code: &'static str,
    pub why: String,
}

/// Next steps, most urgent first, and blocked units.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    pub steps: Vec<Step>,
    pub blocked: Vec<Blocked>,
}

impl Outlook {
    fn step(&mut self, unit: Unit, tool: &'static str, what: String) {
        let by = None;
        self.steps.push(Step { unit, tool, what, by });
    }

    fn block(&mut self, unit: &Unit, violations: Vec<Violation>) -> bool {
        let blocked = !violations.is_empty();
        self.blocked
            .extend(violations.into_iter().map(|violation| Blocked {
                unit: unit.clone(),
                code: violation.code(),
                why: violation.to_string(),
            }));
        blocked
    }
}

/// Derives the next steps and blockers of a tree, or of one milestone.
pub(crate) fn outlook(config: &Config, tree: &Tree, only: Option<&MilestoneId>) -> Outlook {
    let mut outlook = Outlook::default();
    let statuses: BTreeMap<&MilestoneId, MilestoneStatus> = tree
        .milestones
        .iter()
        .map(|node| (&node.milestone.id, node.milestone.status))
        .collect();
    let wanted = |node: &&MilestoneNode| only.is_none_or(|id| *id == node.milestone.id);
    for node in tree.milestones.iter().filter(wanted) {
        let unit = Unit::milestone(&node.milestone.id);
        match node.milestone.status {
            MilestoneStatus::Complete => {}
            MilestoneStatus::Parked => {
                outlook.block(&unit, vec![Violation::Parked(unit.clone())]);
            }
            MilestoneStatus::Active => {
                let on = node.milestone.depends_on.iter();
                let on: Vec<_> = on.map(|id| (id.clone(), statuses.get(id).copied())).collect();
                let unmet = guard::dependencies(config, Action::StartTask, &unit, &on);
                if !outlook.block(&unit, unmet) {
                    milestone_outlook(config, tree, node, &mut outlook);
                }
            }
        }
    }
    // Tasks in progress come before tasks that can start.
    outlook.steps.sort_by_key(|step| step.tool != "gsd_task_complete");
    outlook
}

fn milestone_outlook(config: &Config, tree: &Tree, node: &MilestoneNode, outlook: &mut Outlook) {
    let id = &node.milestone.id;
    let unit = Unit::milestone(id);
    if node.slices.is_empty() {
        return outlook.step(unit, "gsd_plan_milestone", format!("plan the slices of {id}"));
    }
    let statuses: BTreeMap<&SliceId, Status> = node
        .slices
        .iter()
        .map(|node| (&node.slice.id, node.slice.status))
        .collect();
    for slice in node.slices.iter().filter(|node| !node.slice.status.is_closed()) {
        let on = slice.slice.plan.depends.iter();
        let on: Vec<_> = on.map(|id| (id.clone(), statuses.get(id).copied())).collect();
        let unit = Unit::slice(id, &slice.slice.id);
        let unmet = guard::slice_dependencies(&unit, &on);
        if !outlook.block(&unit, unmet) {
            slice_outlook(tree, slice, &unit, outlook);
        }
    }
    if node.slices.iter().all(|node| node.slice.status.is_closed()) {
        let unvalidated = guard::validated(config, &unit, &node.milestone.validation, true);
        match unvalidated.first() {
            None => outlook.step(unit, "gsd_milestone_complete", format!("complete milestone {id}")),
            Some(why) => outlook.step(
                unit,
                "gsd_validate_milestone",
                format!("validate milestone {id}: {}", lower(&why.to_string())),
            ),
        }
    }
}

fn slice_outlook(tree: &Tree, node: &SliceNode, unit: &Unit, outlook: &mut Outlook) {
    if node.total == 0 {
        return outlook.step(
            unit.clone(),
            "gsd_plan_slice",
            format!("plan the tasks of {unit}"),
        );
    }
    if node.total == node.closed {
        return outlook.step(
            unit.clone(),
            "gsd_slice_complete",
            format!("complete slice {unit}"),
        );
    }
    for task in node.tasks.iter().filter(|task| !task.status.is_closed()) {
        let unit = Unit::task(&unit.milestone, &node.slice.id, &task.id);
        let held = holder(tree, &unit).map_or_else(String::new, |owner| format!(", held by {owner}"));
        let title = &task.title;
        match (task.status, &task.started_by) {
            (Status::InProgress, Some(by)) => outlook.steps.push(Step {
                what: format!("finish {unit} “{title}”, started by {by}{held}"),
                unit,
                tool: "gsd_task_complete",
                by: Some(by.clone()),
            }),
            _ => outlook.step(
                unit.clone(),
                "gsd_task_start",
                format!("start {unit} “{title}”{held}"),
            ),
        }
    }
}

/// Owner of a unit, by its own claim or its slice's.
pub(crate) fn holder<'a>(tree: &'a Tree, unit: &Unit) -> Option<&'a str> {
    let own = tree.claims.get(&unit.to_string());
    let claim = own.or_else(|| tree.claims.get(&unit.parent_slice()?.to_string()))?;
    Some(&claim.owner)
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
