//! The argument blocks that name a call's plan, task, step or node, shared by the tools through
//! `#[serde(flatten)]`.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, ToolError};

use crate::error::Reason;
use crate::limits::MAX_NAME_CHARS;
use crate::model::Workspace;
use crate::record::{Node, Plan, Root, Step, Task};
use crate::scope::{Located, Scope, Selector, expect_target};
use crate::write::Write;

/// The caller that `actor` or its old name `owner` names.
pub(crate) fn one_actor<'a>(
    actor: Option<&'a str>,
    owner: Option<&'a str>,
) -> Result<Option<&'a str>, ToolError> {
    match (actor, owner) {
        (Some(actor), Some(owner)) if actor != owner => {
            let (given, other) = (format!("actor {actor}"), format!("owner {owner}"));
            Err(Reason::TargetMismatch { given, other }.into())
        }
        (actor, owner) => Ok(actor.or(owner)),
    }
}

/// The plan or task that a read is about. Without either, the focus.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Subject {
    workspace: Workspace,
    /// Task or plan id (default: the focus).
    #[schemars(length(max = MAX_NAME_CHARS))]
    task: Option<String>,
    /// Plan id, instead of a task's.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
}

impl Subject {
    /// The workspace of the call.
    pub(crate) const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Opens the workspace and finds the id of the plan or task.
    pub(crate) fn open<'a>(&self, cx: &'a Cx<'a>) -> Result<(Scope<'a>, String), ToolError> {
        let scope = Scope::known(cx, &self.workspace)?;
        let id = scope.root_id(self.task.as_deref(), self.plan.as_deref())?;
        Ok((scope, id))
    }
}

/// The arguments of every write to a target: what the target must be, the caller, and the extent of the reply.
#[derive(Debug, Deserialize, JsonSchema)]
struct Terms {
    /// Revision from the last reply. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Id of the plan, task or step that you mean. Fails with TARGET_MISMATCH if the other arguments or the focus
    /// lead to another.
    #[schemars(length(max = MAX_NAME_CHARS))]
    expected_target_id: Option<String>,
    /// Your name, for the history and leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Include the events in the reply.
    #[serde(default)]
    events: bool,
}

impl Terms {
    /// Begins a write whose caller may be named by `owner`, the old name of `actor`.
    fn begin<'a>(
        &self,
        cx: &'a Cx<'a>,
        tool: &'static str,
        workspace: &Workspace,
        owner: Option<&str>,
    ) -> Result<Write<'a>, ToolError> {
        let actor = one_actor(self.actor.as_deref(), owner)?;
        let mut write = Write::begin(cx, tool, workspace)?.by(actor)?;
        write.shows_events = self.events;
        Ok(write)
    }

    /// Refuses a target other than the expected one.
    fn expect(&self, id: &str) -> Result<(), ToolError> {
        expect_target(self.expected_target_id.as_deref(), id)
    }
}

/// The plan or task that a write is about.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RootTarget {
    workspace: Workspace,
    /// Task id, for example TASK-001. Tools that work on plans also accept a plan id.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task: Option<String>,
    #[serde(flatten)]
    terms: Terms,
}

impl RootTarget {
    /// Begins a write in the workspace.
    pub(crate) fn begin<'a>(&self, cx: &'a Cx<'a>, tool: &'static str) -> Result<Write<'a>, ToolError> {
        self.begin_as(cx, tool, None)
    }

    /// Begins a write whose caller may be named by `owner`, the old name of `actor`.
    pub(crate) fn begin_as<'a>(
        &self,
        cx: &'a Cx<'a>,
        tool: &'static str,
        owner: Option<&str>,
    ) -> Result<Write<'a>, ToolError> {
        self.terms.begin(cx, tool, &self.workspace, owner)
    }

    /// The plan or task, at the expected revision.
    pub(crate) fn root(&self, write: &mut Write<'_>) -> Result<Root, ToolError> {
        write.root(self.task.as_deref(), self.terms.expected_revision)
    }

    /// Like [`root`](RootTarget::root), but requires a task.
    pub(crate) fn task(&self, write: &mut Write<'_>) -> Result<Task, ToolError> {
        write.task(self.task.as_deref(), self.terms.expected_revision)
    }

    /// Refuses a plan or task other than the expected one.
    pub(crate) fn expect(&self, id: &str) -> Result<(), ToolError> {
        self.terms.expect(id)
    }

    /// Selects a part of the plan or task.
    pub(crate) fn selector<'a>(&'a self, path: Option<&'a str>, id: Option<&'a str>) -> Selector<'a> {
        Selector {
            path,
            id,
            expected: self.terms.expected_target_id.as_deref(),
        }
    }
}

/// The plan that a write is about.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PlanTarget {
    workspace: Workspace,
    /// Plan id, for example PLAN-001.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: String,
    #[serde(flatten)]
    terms: Terms,
}

impl PlanTarget {
    /// Begins a write in the workspace and finds the plan, at the expected revision.
    pub(crate) fn begin<'a>(
        &self,
        cx: &'a Cx<'a>,
        tool: &'static str,
    ) -> Result<(Write<'a>, Plan), ToolError> {
        let mut write = self.terms.begin(cx, tool, &self.workspace, None)?;
        let plan = write.plan(&self.plan, self.terms.expected_revision)?;
        self.terms.expect(&plan.meta.id)?;
        Ok((write, plan))
    }
}

/// The step that a write is about, or the plan or task itself where a tool takes those.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StepTarget {
    #[serde(flatten)]
    pub root: RootTarget,
    /// Step by path, for example s:0.s:1; indexes start at 0.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub path: Option<String>,
    /// Step by id, for example STEP-8QZ3M0T4. Ids stay the same when paths move.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub step_id: Option<String>,
}

impl StepTarget {
    /// Begins a write in the workspace.
    pub(crate) fn begin<'a>(&self, cx: &'a Cx<'a>, tool: &'static str) -> Result<Write<'a>, ToolError> {
        self.root.begin(cx, tool)
    }

    /// The step's task, at the expected revision.
    pub(crate) fn task(&self, write: &mut Write<'_>) -> Result<Task, ToolError> {
        self.root.task(write)
    }

    /// The step with its task.
    pub(crate) fn step(&self, write: &mut Write<'_>) -> Result<(Task, Located<Step>), ToolError> {
        let task = self.task(write)?;
        let step = write.scope.step(&task.meta.id, &self.selector())?;
        Ok((task, step))
    }

    /// The plan or task, and the step below it if one is named.
    pub(crate) fn root_or_step(
        &self,
        write: &mut Write<'_>,
    ) -> Result<(Root, Option<Located<Step>>), ToolError> {
        let root = self.root.root(write)?;
        let step = self.selector().step_of(&write.scope, &root.meta().id)?;
        Ok((root, step))
    }

    /// Selects the step.
    pub(crate) fn selector(&self) -> Selector<'_> {
        self.root.selector(self.path.as_deref(), self.step_id.as_deref())
    }
}

/// The node that a write is about.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NodeTarget {
    #[serde(flatten)]
    root: RootTarget,
    /// Node by path, for example s:0.t:1; indexes start at 0.
    #[schemars(length(max = MAX_NAME_CHARS))]
    path: Option<String>,
    /// Node by id, for example NODE-8QZ3M0T4. Ids stay the same when paths move.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task_node_id: Option<String>,
}

impl NodeTarget {
    /// Begins a write in the workspace and finds the node with its task.
    pub(crate) fn begin<'a>(
        &self,
        cx: &'a Cx<'a>,
        tool: &'static str,
    ) -> Result<(Write<'a>, Task, Located<Node>), ToolError> {
        let mut write = self.root.begin(cx, tool)?;
        let task = self.root.task(&mut write)?;
        let selector = self
            .root
            .selector(self.path.as_deref(), self.task_node_id.as_deref());
        let node = write.scope.node(&task.meta.id, &selector)?;
        Ok((write, task, node))
    }
}
