//! Nodes: the tasks inside a step's own plan.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::build::Texts;
use crate::error::Refusals;
use crate::limits::{MAX_ENTRIES, MAX_NAME_CHARS, MAX_TITLE_CHARS, short};
use crate::model::{EventType, Priority, Status};
use crate::patch::redefine_node;
use crate::record::Node;
use crate::reply::{NodeRef, Written};
use crate::store::Kind;
use crate::target::{NodeTarget, RootTarget};

/// Add a task node to a step. The step cannot be closed before its nodes are finished.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TaskAdd {
    #[serde(flatten)]
    target: RootTarget,
    /// Step by id or path, for example STEP-8QZ3M0T4 or s:0.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    parent_step: String,
    /// Title of the node, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    #[serde(flatten)]
    texts: Texts,
    /// Priority of the work (default MEDIUM).
    priority: Option<Priority>,
    /// Tags for searching and grouping, for example backend.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    tags: Vec<String>,
}

impl Tool for TaskAdd {
    const NAME: &'static str = "tasks_task_add";
    const TITLE: &'static str = "Add a node";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let task = self.target.task(&mut write)?;
        let parent = Some(self.parent_step.as_str());
        let (path, id) = if self.parent_step.starts_with("s:") {
            (parent, None)
        } else {
            (None, parent)
        };
        let step = write.scope.step(&task.meta.id, &self.target.selector(path, id))?;
        let node = Node {
            id: write.fresh_id(Kind::Node, "NODE")?,
            task: task.meta.id.clone(),
            step: step.record.id.clone(),
            position: write.position(),
            title: self.title,
            description: self.texts.description,
            context: self.texts.context,
            status: Status::Todo,
            priority: self.priority.unwrap_or(Priority::Medium),
            tags: self.tags,
            created_at: write.scope.now(),
        };
        let mut refusals = Refusals::default();
        refusals.unfinished(&write.scope, &task.meta);
        refusals.step_open(&write.scope, &step);
        refusals.node(&node);
        refusals.finish()?;
        write.put(&node)?;
        let data = json!({"step": step.path.to_string(), "title": short(&node.title, 120)});
        write.event(EventType::NodeAdded, &task.meta.id, Some(&node.id), data);
        let workspace = write.scope.workspace.clone();
        let mut written = write.reply(&task.meta.id, |written| written.step(&step.record.id, &step.path))?;
        let scope = crate::scope::Scope::known(cx, &workspace)?;
        written.node = Some(NodeRef::new(&node.id, &scope.node_path(&node)?));
        Ok(written)
    }
}

/// Change fields of a task node. Given fields replace the old values; others stay.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TaskDefine {
    #[serde(flatten)]
    target: NodeTarget,
    /// Title of the node, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: Option<String>,
    #[serde(flatten)]
    texts: Texts,
    /// New status of the node, for example DONE.
    status: Option<Status>,
    /// New priority of the node.
    priority: Option<Priority>,
    /// Tags for searching and grouping, for example backend.
    #[schemars(length(max = MAX_ENTRIES))]
    tags: Option<Vec<String>>,
}

impl Tool for TaskDefine {
    const NAME: &'static str = "tasks_task_define";
    const TITLE: &'static str = "Redefine a node";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let (mut write, task, located) = self.target.begin(cx, Self::NAME)?;
        let old = located.record.clone();
        let node = Node {
            title: self.title.unwrap_or(old.title),
            description: self.texts.description.or(old.description),
            context: self.texts.context.or(old.context),
            status: self.status.unwrap_or(old.status),
            priority: self.priority.unwrap_or(old.priority),
            tags: self.tags.unwrap_or(old.tags),
            ..old
        };
        redefine_node(&mut write, &located, &node)?;
        let workspace = write.scope.workspace.clone();
        let actor = write.actor().map(str::to_owned);
        let mut written = Written::about(&task.meta.id, write.finish()?);
        written.node = Some(NodeRef::new(&located.record.id, &located.path));
        written.then(cx, &workspace, Some(&located.record.step), actor.as_deref())
    }
}

/// Delete a task node from a step. tasks_undo restores it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TaskDelete {
    #[serde(flatten)]
    target: NodeTarget,
}

impl Tool for TaskDelete {
    const NAME: &'static str = "tasks_task_delete";
    const TITLE: &'static str = "Delete a node";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let (mut write, task, node) = self.target.begin(cx, Self::NAME)?;
        let mut refusals = Refusals::default();
        refusals.unfinished(&write.scope, &task.meta);
        refusals.finish()?;
        write.remove(&node.record)?;
        let data = json!({"path": node.path.to_string(), "title": short(&node.record.title, 120)});
        write.event(EventType::NodeDeleted, &task.meta.id, Some(&node.record.id), data);
        write.reply(&task.meta.id, |written| Written {
            node: Some(NodeRef::new(&node.record.id, &node.path)),
            ..written
        })
    }
}
