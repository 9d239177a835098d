//! The state of all milestones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_kit::text::clip;
use tollgate_sdk::{Cx, DbError, Effect, NextCall, Tier, Tool, ToolError};

use crate::arguments::MAX_WORKSPACE_CHARS;
use crate::config::Config;
use crate::draw;
use crate::files::{self, Unknown};
use crate::model::{MilestoneId, MilestoneStatus, Risk, SliceId, Status, TaskId, Unit, Verdict};
use crate::next::{self, Next};
use crate::standing::{self, MilestoneNode, Outlook, SliceNode, Step, Tree};
use crate::store::task::TaskHead;
use crate::store::{self, Reopen};
use crate::violation::Violation;

/// Most steps and blockers in one reply.
const MAX_SHOWN: usize = 20;
/// Most workspaces that one reply shows in full.
const MAX_WORKSPACES: usize = 10;

/// Show the tree of milestones, slices and tasks, the next steps, and what blocks the rest. Call this first.
/// `milestone_id` adds the tasks of closed slices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct ShowStatus {
    /// Workspace name. Default: all with milestones.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    workspace: Option<String>,
    /// Milestone id, to show only that one in full.
    milestone_id: Option<MilestoneId>,
}

fn page() -> Json {
    json!({
        "title": "Milestones",
        "form": "tree",
        "items": [
            {"list": "milestones", "key": "milestone_id"},
            {"list": "slices", "key": "unit"},
            {"list": "tasks", "key": "unit"},
        ],
        "group": "workspace",
        "opens": {"tool": "gsd_show", "arguments": {"workspace": "workspace", "unit": "key"}},
    })
}

/// The state of all milestones, level by level.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Standing {
    /// Milestones by workspace and number.
    milestones: Vec<MilestoneView>,
    /// Slices of incomplete milestones, or of the requested one.
    slices: Vec<SliceView>,
    /// Tasks of open slices, or of the requested milestone.
    tasks: Vec<TaskView>,
    /// Steps that can be done now, most urgent first.
    next: Vec<NextStep>,
    /// Blocked units with reasons.
    blockers: Vec<BlockedUnit>,
    /// Workspaces that are not shown. Request them by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_workspaces: Vec<String>,
    /// The tree as text.
    #[serde(skip)]
    text: String,
}

/// A milestone.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MilestoneView {
    /// Name of the workspace.
    workspace: String,
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// Title of the unit.
    title: String,
    /// Status of the unit.
    status: MilestoneStatus,
    /// Ids of milestones to complete first.
    depends_on: Vec<MilestoneId>,
    /// Verdict of the last validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Verdict>,
    /// True if a change has outdated the validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_stale: Option<bool>,
    /// Reopening of the unit, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// A slice.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SliceView {
    /// Name of the workspace.
    workspace: String,
    /// Key of the slice, for example M01/S01.
    unit: String,
    /// Slice id, for example S01.
    slice_id: SliceId,
    /// Title of the unit.
    title: String,
    /// Status of the unit.
    status: Status,
    /// Risk of the slice.
    risk: Risk,
    /// Ids of slices to close first.
    depends: Vec<SliceId>,
    /// Number of tasks.
    tasks_total: u32,
    /// Number of closed tasks.
    tasks_closed: u32,
    /// Owner of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Reopening of the unit, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskView {
    /// Name of the workspace.
    workspace: String,
    /// Key of the task, for example M01/S01/T01.
    unit: String,
    /// Task id, for example T01.
    task_id: TaskId,
    /// Title of the unit.
    title: String,
    /// Status of the unit.
    status: Status,
    /// Owner of the claim on the task or its slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Actor who started the task last.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<String>,
    /// Reopening of the unit, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopen>,
}

/// A step that can be done now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NextStep {
    /// Name of the workspace.
    workspace: String,
    /// Key of the unit, empty for the whole workspace.
    unit: String,
    /// Description of the step.
    action: String,
    /// Tool for the step.
    tool: String,
    /// The complete call, if it needs no further input.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// A blocked unit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockedUnit {
    /// Name of the workspace.
    workspace: String,
    /// Key of the unit, empty for the whole workspace.
    unit: String,
    /// Code of the blocker.
    code: String,
    /// Message of the blocker.
    message: String,
}

impl Tool for ShowStatus {
    const NAME: &'static str = "gsd_status";
    const TITLE: &'static str = "Show status and next steps";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Standing;

    fn run(self, cx: &Cx<'_>) -> Result<Standing, ToolError> {
        let config: Config = cx.config()?;
        let mut names = match &self.workspace {
            Some(workspace) => {
                require_known(cx, workspace)?;
                vec![workspace.clone()]
            }
            None => store::workspaces(&cx.db)?,
        };
        let mut standing = Standing {
            other_workspaces: names.split_off(names.len().min(MAX_WORKSPACES)),
            ..Standing::default()
        };
        for name in &names {
            let mut tree = standing::load(&cx.db, name, self.milestone_id.as_ref(), cx.now())?;
            let mut outlook = standing::outlook(&config, &tree, self.milestone_id.as_ref());
            // Every change is refused until the logs are imported.
            if files::unknown_in(cx, name)?.is_some() {
                outlook.steps.clear();
            }
            if let Some(id) = &self.milestone_id {
                tree.milestones.retain(|node| node.milestone.id == *id);
                if tree.milestones.is_empty() {
                    continue;
                }
            }
            standing.add(&tree, outlook);
        }
        if let Some(id) = self.milestone_id.filter(|_| standing.milestones.is_empty()) {
            let refusal: ToolError = Violation::NotFound(Unit::milestone(&id)).into();
            return Err(refusal.next_call(next::status(None)));
        }
        let registered = cx.workspaces().into_iter();
        names.extend(registered.filter(|name| self.workspace.is_none() && !standing.shows(name)));
        for name in names.iter().take(MAX_WORKSPACES) {
            if let Some(unknown) = files::unknown_in(cx, name)? {
                standing.add_import(name, &unknown);
            }
        }
        if standing.text.is_empty() {
            standing.text = "Nothing is planned. Start with gsd_plan_milestone.\n".to_owned();
        }
        Ok(standing)
    }

    fn text(standing: &Standing) -> Option<String> {
        Some(standing.text.clone())
    }
}

/// Returns whether a workspace is registered or has events. While nothing is known at all, any name may be the
/// first.
pub(crate) fn is_known(cx: &Cx<'_>, workspace: &str) -> Result<bool, DbError> {
    Ok(store::is_known(&cx.db, workspace)?
        || cx.workspace(workspace).is_ok()
        || (store::workspaces(&cx.db)?.is_empty() && cx.workspaces().is_empty()))
}

/// Refuses to read a workspace that is neither registered nor has events, because its name may be mistyped.
pub(crate) fn require_known(cx: &Cx<'_>, workspace: &str) -> Result<(), ToolError> {
    if is_known(cx, workspace)? {
        return Ok(());
    }
    let mut known = store::workspaces(&cx.db)?;
    known.extend(cx.workspaces());
    known.sort();
    known.dedup();
    known.truncate(MAX_WORKSPACES);
    let message = format!(
        "workspace `{}` is not registered and has no milestones; known are {}",
        clip(workspace).escape_debug(),
        known.join(", ")
    );
    Err(ToolError::new("WORKSPACE_UNKNOWN", message)
        .remediation("Use a known name, or plan the first milestone of a new one with gsd_plan_milestone.")
        .context("workspaces", known)
        .next_call(next::status(None)))
}

impl Standing {
    fn shows(&self, workspace: &str) -> bool {
        self.milestones
            .iter()
            .any(|milestone| milestone.workspace == workspace)
    }

    /// Puts the import of logs with unknown lines before every other step.
    fn add_import(&mut self, workspace: &str, unknown: &Unknown) {
        let refusal = unknown.refusal(workspace);
        let call = refusal.next_call.filter(|call| call.tool == "gsd_import");
        if let Some(call) = call {
            let action = "import the logs in .gsd/";
            self.text
                .push_str(&format!("next: {action} of workspace {workspace} (gsd_import)\n"));
            self.next.insert(
                0,
                NextStep {
                    workspace: workspace.to_owned(),
                    unit: String::new(),
                    action: action.to_owned(),
                    tool: call.tool.clone(),
                    next_call: Some(call),
                },
            );
        }
        self.text
            .push_str(&format!("blocked: {} ({})\n", refusal.message, refusal.code));
        self.blockers.insert(
            0,
            BlockedUnit {
                workspace: workspace.to_owned(),
                unit: String::new(),
                code: refusal.code,
                message: refusal.message,
            },
        );
    }

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
        let steps = outlook.steps.iter().take(MAX_SHOWN);
        self.next.extend(steps.map(|step| next_step(tree, step)));
        let blocked = outlook.blocked.into_iter().take(MAX_SHOWN);
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
    let is_free = next::is_free(step, None, tree);
    let call = match next::of_step(&tree.workspace, None, step) {
        Next::Call(call) if is_free => Some(call),
        _ => None,
    };
    NextStep {
        workspace: tree.workspace.clone(),
        unit: step.unit.to_string(),
        action: step.what.clone(),
        tool: step.tool.to_owned(),
        next_call: call,
    }
}
