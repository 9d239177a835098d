//! Where everything stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, NextCall, Tier, Tool, ToolError};

use crate::arguments::WORKSPACE;
use crate::config::Config;
use crate::draw;
use crate::model::{MilestoneId, MilestoneStatus, Risk, SliceId, Status, TaskId, Unit, Verdict};
use crate::standing::{self, MilestoneNode, Outlook, SliceNode, Step, Tree};
use crate::store::task::TaskHead;
use crate::store::{self, Reopen};
use crate::violation::{Refusals, Violation};

/// Steps and blockers that one reply shows.
const SHOWN: usize = 20;
/// Workspaces that one reply shows in full.
const WORKSPACES: usize = 10;

/// Show where everything stands: the tree of milestones, slices and tasks, what to do next, and what waits for
/// what. Tasks of closed slices are shown when `milestone_id` names their milestone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowStatus {
    /// Only this workspace. Left out: all that have milestones.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: Option<String>,
    /// Only this milestone, in full.
    milestone_id: Option<MilestoneId>,
}

/// Where everything stands, level by level.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Standing {
    /// The milestones, by workspace and number.
    milestones: Vec<MilestoneView>,
    /// The slices of milestones that are not complete, or of the one asked for.
    slices: Vec<SliceView>,
    /// The tasks of slices that are open, or of the milestone asked for.
    tasks: Vec<TaskView>,
    /// What can be done now, the most pressing first.
    next: Vec<NextStep>,
    /// What cannot be done yet, and why.
    blockers: Vec<BlockedUnit>,
    /// Workspaces that are not shown; ask for them by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_workspaces: Vec<String>,
    /// The tree as text.
    #[serde(skip)]
    text: String,
}

/// A milestone.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MilestoneView {
    /// Where it belongs.
    workspace: String,
    /// Its id.
    milestone_id: MilestoneId,
    /// What it is called.
    title: String,
    /// How far it is.
    status: MilestoneStatus,
    /// Milestones that have to be complete first.
    depends_on: Vec<MilestoneId>,
    /// What its last validation found.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Verdict>,
    /// Something changed since that validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_stale: Option<bool>,
    /// Why it was reopened.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// A slice.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SliceView {
    /// Where it belongs.
    workspace: String,
    /// Its key, such as M01/S01.
    unit: String,
    /// Its id.
    slice_id: SliceId,
    /// What it is called.
    title: String,
    /// How far it is.
    status: Status,
    /// How likely it is to go wrong.
    risk: Risk,
    /// Slices that have to be closed first.
    depends: Vec<SliceId>,
    /// How many tasks it has.
    tasks_total: u32,
    /// How many of them are closed.
    tasks_closed: u32,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Why it was reopened.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskView {
    /// Where it belongs.
    workspace: String,
    /// Its key, such as M01/S01/T01.
    unit: String,
    /// Its id.
    task_id: TaskId,
    /// What it is called.
    title: String,
    /// How far it is.
    status: Status,
    /// Who holds it, by a claim on it or on its slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Who started it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<String>,
    /// Why it was reopened.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// Something that can be done now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NextStep {
    /// Where.
    workspace: String,
    /// The unit.
    unit: String,
    /// What to do, as a sentence.
    action: String,
    /// By which tool.
    tool: String,
    /// The call, if it needs nothing that only the caller knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// Something that cannot be done yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockedUnit {
    /// Where.
    workspace: String,
    /// The unit.
    unit: String,
    /// Why, as a code.
    code: String,
    /// Why, as a sentence.
    message: String,
}

impl Tool for ShowStatus {
    const NAME: &'static str = "gsd_status";
    const TITLE: &'static str = "Show where everything stands";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Standing;

    fn run(self, cx: &Cx<'_>) -> Result<Standing, ToolError> {
        let config: Config = cx.config()?;
        let mut names = match &self.workspace {
            Some(workspace) => vec![workspace.clone()],
            None => store::workspaces(&cx.db)?,
        };
        let mut standing = Standing {
            other_workspaces: names.split_off(names.len().min(WORKSPACES)),
            ..Standing::default()
        };
        for name in &names {
            let mut tree = standing::load(&cx.db, name, self.milestone_id.as_ref(), cx.now())?;
            let outlook = standing::outlook(&config, &tree, self.milestone_id.as_ref());
            if let Some(id) = &self.milestone_id {
                tree.milestones.retain(|node| node.milestone.id == *id);
                if tree.milestones.is_empty() {
                    continue;
                }
            }
            standing.add(&tree, outlook);
        }
        if let Some(id) = self.milestone_id.filter(|_| standing.milestones.is_empty()) {
            let mut refusals = Refusals::default();
            refusals.add(Violation::NotFound(Unit::milestone(&id)));
            refusals.finish_in(self.workspace.as_deref())?;
        }
        if standing.text.is_empty() {
            standing.text = "nothing is planned; begin with gsd_plan_milestone\n".to_owned();
        }
        Ok(standing)
    }

    fn text(standing: &Standing) -> Option<String> {
        Some(standing.text.clone())
    }
}

impl Standing {
    /// Adds a workspace.
    fn add(&mut self, tree: &Tree, outlook: Outlook) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&draw::draw(tree, &outlook));
        for node in &tree.milestones {
            self.milestones.push(milestone_view(tree, node));
            for slice in &node.slices {
                self.slices.push(slice_view(tree, &node.milestone.id, slice));
                let tasks = slice.tasks.iter();
                self.tasks
                    .extend(tasks.map(|task| task_view(tree, &node.milestone.id, task)));
            }
        }
        let steps = outlook.steps.iter().take(SHOWN);
        self.next.extend(steps.map(|step| next_step(tree, step)));
        let blocked = outlook.blocked.into_iter().take(SHOWN);
        self.blockers.extend(blocked.map(|blocked| BlockedUnit {
            workspace: tree.workspace.clone(),
            unit: blocked.unit.to_string(),
            code: blocked.code.to_owned(),
            message: blocked.why,
        }));
    }
}

fn milestone_view(tree: &Tree, node: &MilestoneNode) -> MilestoneView {
    let milestone = &node.milestone;
    let validation = milestone.validation;
    MilestoneView {
        workspace: tree.workspace.clone(),
        milestone_id: milestone.id.clone(),
        title: milestone.title.clone(),
        status: milestone.status,
        depends_on: milestone.depends_on.clone(),
        validation: validation.verdict.map(|(verdict, _)| verdict),
        validation_stale: validation.verdict.map(|(_, at)| at < validation.changed),
        reopened: milestone.reopen.as_ref().map(Reopen::in_short),
    }
}

fn slice_view(tree: &Tree, milestone: &MilestoneId, node: &SliceNode) -> SliceView {
    let slice = &node.slice;
    let unit = Unit::slice(milestone, &slice.id);
    SliceView {
        workspace: tree.workspace.clone(),
        unit: unit.to_string(),
        slice_id: slice.id.clone(),
        title: slice.plan.title.clone(),
        status: slice.status,
        risk: slice.plan.risk,
        depends: slice.plan.depends.clone(),
        tasks_total: node.total,
        tasks_closed: node.closed,
        owner: standing::holder(tree, &unit).map(str::to_owned),
        reopened: slice.reopen.as_ref().map(Reopen::in_short),
    }
}

fn task_view(tree: &Tree, milestone: &MilestoneId, task: &TaskHead) -> TaskView {
    let unit = Unit::task(milestone, &task.slice, &task.id);
    TaskView {
        workspace: tree.workspace.clone(),
        owner: standing::holder(tree, &unit).map(str::to_owned),
        unit: unit.to_string(),
        task_id: task.id.clone(),
        title: task.title.clone(),
        status: task.status,
        started_by: task.started_by.clone(),
        reopened: task.reopen.as_ref().map(Reopen::in_short),
    }
}

fn next_step(tree: &Tree, step: &Step) -> NextStep {
    let Unit {
        milestone,
        slice,
        task,
    } = &step.unit;
    let ready = step.tool == "gsd_task_start" && standing::holder(tree, &step.unit).is_none();
    NextStep {
        workspace: tree.workspace.clone(),
        unit: step.unit.to_string(),
        action: step.what.clone(),
        tool: step.tool.to_owned(),
        next_call: ready.then(|| {
            NextCall::new(
                step.tool,
                json!({"workspace": tree.workspace, "milestone_id": milestone, "slice_id": slice, "task_id": task}),
            )
        }),
    }
}
