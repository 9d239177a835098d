//! Replies of writes, and the parts that other replies share.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tollgate_sdk::{Cx, NextCall, ToolError};

use crate::model::{RootKind, Workspace};
use crate::path::Path;
use crate::scope::Scope;
use crate::store;
use crate::store::event::Event;
use crate::work;
use crate::write::{Receipt, Write};

/// Warning beside a successful result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Warning {
    /// Stable code in UPPER_SNAKE_CASE.
    pub code: &'static str,
    /// Message in one sentence.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Warning {
        Warning {
            code,
            message: message.into(),
        }
    }

    /// Warning about redacted secrets, if there were any.
    pub(crate) fn redacted(found: usize) -> Option<Warning> {
        (found > 0).then(|| {
            Warning::new(
                "SECRETS_REDACTED",
                format!("{found} likely secrets were redacted and not stored"),
            )
        })
    }
}

/// Reference to a step by id and current path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct StepRef {
    /// Id, which never changes.
    pub step_id: String,
    /// Current path, which moves when siblings are deleted.
    pub path: String,
}

impl StepRef {
    pub(crate) fn new(id: &str, path: &Path) -> StepRef {
        StepRef {
            step_id: id.to_owned(),
            path: path.to_string(),
        }
    }
}

/// Reference to a node by id and current path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeRef {
    /// Id, which never changes.
    pub task_node_id: String,
    /// Current path, which moves when siblings are deleted.
    pub path: String,
}

impl NodeRef {
    pub(crate) fn new(id: &str, path: &Path) -> NodeRef {
        NodeRef {
            task_node_id: id.to_owned(),
            path: path.to_string(),
        }
    }
}

/// Result of a write.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Written {
    /// Id of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Id of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// New revision, for `expected_revision` of the next write.
    pub revision: i64,
    /// Step that the write is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// The node that the write changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRef>,
    /// Created or moved steps, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRef>,
    /// Created or canceled tasks, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Operations that were undone or redone, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<Reverted>,
    /// Ids of other records that were created, such as notes or evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Ids of artifacts that hold bodies too large for the pack, in the order of the bodies. Read them with
    /// artifact_get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// Events of the write, in order, if the call asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Next step, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Warnings. The call succeeded nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Suggested next calls with complete arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_calls: Vec<NextCall>,
}

/// An operation that was undone or redone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Reverted {
    /// Sequence number of the operation.
    pub operation: i64,
    /// Name of the tool.
    pub tool: String,
    /// Name of the caller of the operation, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Changes of the operation in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl Write<'_> {
    /// Applies the write and replies about a plan or task, with what comes next: at the step that the reply names, or
    /// else of the whole.
    pub(crate) fn reply(self, id: &str, with: impl FnOnce(Written) -> Written) -> Result<Written, ToolError> {
        let (cx, workspace) = (self.scope.cx, self.scope.workspace.clone());
        let actor = self.actor().map(str::to_owned);
        let written = with(Written::about(id, self.finish()?));
        let step = written.step.as_ref().map(|step| step.step_id.clone());
        written.then_at(cx, &workspace, id, step.as_deref(), actor.as_deref())
    }
}

impl Written {
    /// The reply of a write about a plan or task.
    pub(crate) fn about(id: &str, receipt: Receipt) -> Written {
        let mut written = Written {
            revision: receipt.revisions.get(id).copied().unwrap_or_default(),
            events: receipt.events,
            warnings: receipt.warnings,
            ..Written::default()
        };
        match RootKind::of(id) {
            Some(RootKind::Plan) => written.plan = Some(id.to_owned()),
            Some(RootKind::Task) => written.task = Some(id.to_owned()),
            None => {}
        }
        written
    }

    /// Adds what comes next, at a step if one is named.
    pub(crate) fn then(
        self,
        cx: &Cx<'_>,
        workspace: &Workspace,
        step: Option<&str>,
        actor: Option<&str>,
    ) -> Result<Written, ToolError> {
        match self.task.clone().or_else(|| self.plan.clone()) {
            Some(id) => self.then_at(cx, workspace, &id, step, actor),
            None => Ok(self),
        }
    }

    /// Like [`then`](Written::then), but about a plan or task other than that of the reply.
    pub(crate) fn then_at(
        mut self,
        cx: &Cx<'_>,
        workspace: &Workspace,
        id: &str,
        step: Option<&str>,
        actor: Option<&str>,
    ) -> Result<Written, ToolError> {
        let scope = Scope::known(cx, workspace)?;
        // An undo can take the plan or task away.
        let head = store::root::head(scope.db(), workspace, id)?;
        if head.is_none_or(|head| head.status.is_none()) {
            return Ok(self);
        }
        let upcoming = work::upcoming(&scope, &scope.root(id)?, step, actor)?;
        self.next = upcoming.line;
        self.next_calls.extend(upcoming.call);
        Ok(self)
    }

    /// Shows a plan or task that was just opened instead of completing it. Why it was opened is for the caller to know.
    pub(crate) fn keep_open(&mut self, scope: &Scope<'_>, id: &str) {
        let is_completion =
            |call: &NextCall| call.tool == "tasks_complete" && call.arguments.get("task") == Some(&json!(id));
        if self.next_calls.iter().any(is_completion) {
            self.next = Some(format!(
                "Check {id}, or add the remaining work. Everything below it is closed."
            ));
            self.next_calls = vec![work::show_root(scope, id)];
        }
    }

    pub(crate) fn step(mut self, id: &str, path: &Path) -> Written {
        self.step = Some(StepRef::new(id, path));
        self
    }
}
