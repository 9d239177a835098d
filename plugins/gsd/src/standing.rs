//! Where a workspace stands: its tree, what to do next, and what keeps the rest waiting. Pure but for
//! [`load`].

use std::collections::BTreeMap;

use tollgate_sdk::{Db, DbError, Timestamp};

use crate::config::Config;
use crate::guard::{self, Action};
use crate::model::{MilestoneId, MilestoneStatus, SliceId, Status, Unit, Verdict};
use crate::store::claim::{self, Claim};
use crate::store::milestone::{self, Milestone};
use crate::store::slice::{self, Slice};
use crate::store::task::{self, TaskHead};

/// Tasks that one tree shows at most; a milestone asked for by name shows as many.
const TASKS: usize = 300;
/// Claims that are looked at.
const CLAIMS: u32 = 2_000;

/// A workspace with everything in it.
#[derive(Debug)]
pub(crate) struct Tree {
    pub workspace: String,
    pub milestones: Vec<MilestoneNode>,
    /// Who holds which unit.
    pub claims: BTreeMap<String, Claim>,
}

/// A milestone with its slices.
#[derive(Debug)]
pub(crate) struct MilestoneNode {
    pub milestone: Milestone,
    pub slices: Vec<SliceNode>,
}

/// A slice with its tasks, as far as they are shown.
#[derive(Debug)]
pub(crate) struct SliceNode {
    pub slice: Slice,
    pub total: u32,
    pub closed: u32,
    pub tasks: Vec<TaskHead>,
}

/// Reads a workspace. Tasks are read for open slices of milestones that are not complete, or for all
/// slices of the milestone asked for.
pub(crate) fn load(
    db: &Db<'_>,
    workspace: &str,
    only: Option<&MilestoneId>,
    now: Timestamp,
) -> Result<Tree, DbError> {
    let claims = claim::list(db, Some(workspace), "", now, CLAIMS)?;
    let mut tree = Tree {
        workspace: workspace.to_owned(),
        milestones: Vec::new(),
        claims: claims
            .into_iter()
            .map(|claim| (claim.unit.clone(), claim))
            .collect(),
    };
    let mut shown = 0;
    for milestone in milestone::all(db, workspace)? {
        let named = only == Some(&milestone.id);
        let open = milestone.status != MilestoneStatus::Complete;
        let mut slices = Vec::new();
        if named || (open && only.is_none()) {
            let counts = task::counts(db, workspace, &milestone.id)?;
            for slice in slice::all(db, workspace, &milestone.id)? {
                let (total, closed) = counts.get(&slice.id).copied().unwrap_or_default();
                let mut tasks = Vec::new();
                if shown < TASKS && (named || !slice.status.is_closed()) {
                    tasks = task::heads(db, workspace, &milestone.id, &slice.id)?;
                    tasks.truncate(TASKS - shown);
                    shown += tasks.len();
                }
                slices.push(SliceNode {
                    slice,
                    total,
                    closed,
                    tasks,
                });
            }
        }
        tree.milestones.push(MilestoneNode { milestone, slices });
    }
    Ok(tree)
}

/// Something that can be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// In which milestone, slice, task.
    pub unit: Unit,
    /// By which tool.
    pub tool: &'static str,
    /// As a sentence.
    pub what: String,
}

/// Something that cannot be done yet, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub unit: Unit,
    pub code: &'static str,
    pub why: String,
}

/// What to do next, the most pressing first, and what waits for what.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    pub steps: Vec<Step>,
    pub blocked: Vec<Blocked>,
}

impl Outlook {
    fn step(&mut self, unit: Unit, tool: &'static str, what: String) {
        self.steps.push(Step { unit, tool, what });
    }

    fn block(&mut self, unit: &Unit, violations: Vec<crate::violation::Violation>) -> bool {
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

/// Looks ahead from a tree, or from one milestone of it.
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
                outlook.block(&unit, vec![crate::violation::Violation::Parked(unit.clone())]);
            }
            MilestoneStatus::Active => {
                let on = node.milestone.plan.depends_on.iter();
                let on: Vec<_> = on.map(|id| (id.clone(), statuses.get(id).copied())).collect();
                let unmet = guard::dependencies(config, Action::StartTask, &unit, &on);
                if !outlook.block(&unit, unmet) {
                    milestone_outlook(config, tree, node, &mut outlook);
                }
            }
        }
    }
    // What is under way comes before what could be begun.
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
            (Status::InProgress, Some(by)) => outlook.step(
                unit.clone(),
                "gsd_task_complete",
                format!("finish {unit} “{title}”, started by {by}{held}"),
            ),
            _ => outlook.step(
                unit.clone(),
                "gsd_task_start",
                format!("start {unit} “{title}”{held}"),
            ),
        }
    }
}

/// Who holds a unit, by its own claim or its slice's.
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

/// The tree as a person reads it, with what to do next below.
pub(crate) fn draw(tree: &Tree, outlook: &Outlook) -> String {
    let mut lines = vec![format!("workspace {}", tree.workspace)];
    if tree.milestones.is_empty() {
        lines.push("nothing is planned".to_owned());
    }
    for node in &tree.milestones {
        draw_milestone(tree, node, &mut lines);
    }
    let next = outlook.steps.iter().take(3);
    lines.extend(next.map(|step| format!("next: {} ({})", step.what, step.tool)));
    let blocked = outlook.blocked.iter().take(10);
    lines.extend(blocked.map(|blocked| format!("blocked: {} ({})", blocked.why, blocked.code)));
    lines.join("\n") + "\n"
}

fn draw_milestone(tree: &Tree, node: &MilestoneNode, lines: &mut Vec<String>) {
    let Milestone {
        id,
        plan,
        status,
        reopen,
        validation,
        ..
    } = &node.milestone;
    let closed = node
        .slices
        .iter()
        .filter(|node| node.slice.status.is_closed())
        .count();
    let progress = match node.slices.len() {
        0 => status.to_string(),
        all => format!("{status}, {closed} of {all} slices closed"),
    };
    let validated = match validation.verdict {
        Some((Verdict::Pass, at)) if at >= validation.changed => ", validated",
        _ => "",
    };
    lines.push(format!("{id} {} ({progress}{validated})", plan.title));
    if let Some(reopen) = reopen {
        lines.push(format!(
            "│  reopened by {}: {}",
            reopen.by,
            one_line(&reopen.reason)
        ));
    }
    for (index, slice) in node.slices.iter().enumerate() {
        let last = index + 1 == node.slices.len();
        draw_slice(tree, id, slice, last, lines);
    }
}

fn draw_slice(tree: &Tree, milestone: &MilestoneId, node: &SliceNode, last: bool, lines: &mut Vec<String>) {
    let Slice {
        id,
        status,
        plan,
        reopen,
        ..
    } = &node.slice;
    let (branch, below) = if last {
        ("└─", "   ")
    } else {
        ("├─", "│  ")
    };
    lines.push(format!(
        "{branch} {} {id} {} ({status}, {} of {} tasks closed){}",
        mark(*status),
        plan.title,
        node.closed,
        node.total,
        held(tree, &Unit::slice(milestone, id))
    ));
    if let Some(reopen) = reopen {
        lines.push(format!(
            "{below}   reopened by {}: {}",
            reopen.by,
            one_line(&reopen.reason)
        ));
    }
    for (index, task) in node.tasks.iter().enumerate() {
        let branch = if index + 1 == node.tasks.len() {
            "└─"
        } else {
            "├─"
        };
        let held = held(tree, &Unit::task(milestone, id, &task.id));
        let by = task
            .started_by
            .as_ref()
            .filter(|_| task.status == Status::InProgress);
        let by = by.map_or_else(String::new, |by| format!(", started by {by}"));
        lines.push(format!(
            "{below}{branch} {} {} {} ({}{by}){held}",
            mark(task.status),
            task.id,
            task.title,
            task.status
        ));
        if let Some(reopen) = &task.reopen {
            lines.push(format!(
                "{below}      reopened by {}: {}",
                reopen.by,
                one_line(&reopen.reason)
            ));
        }
    }
}

/// ` held by …`, for a unit that is claimed itself.
fn held(tree: &Tree, unit: &Unit) -> String {
    let claim = tree.claims.get(&unit.to_string());
    claim.map_or_else(String::new, |claim| format!(" held by {}", claim.owner))
}

const fn mark(status: Status) -> &'static str {
    match status {
        Status::Pending => "[ ]",
        Status::InProgress => "[~]",
        Status::Complete => "[x]",
        Status::Skipped => "[-]",
    }
}

/// Prose on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
