//! Editing plans and tasks, and patching any record.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::limits::{ENTRIES, NAME, OPERATIONS, TEXT, TITLE};
use crate::model::Priority;
use crate::patch::{self, PatchKind, PatchOp, Patched};
use crate::record::Root;
use crate::reply::{NodeRef, Written};
use crate::target::RootTarget;

/// Edit what a plan or task says about itself. What is given replaces what was there; one event.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Edit {
    #[serde(flatten)]
    target: RootTarget,
    /// One line.
    #[schemars(length(min = 1, max = TITLE))]
    title: Option<String>,
    /// What it is about.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// What somebody has to know to work on it.
    #[schemars(length(max = TEXT))]
    context: Option<String>,
    /// How much it matters.
    priority: Option<Priority>,
    /// A task's domain.
    #[schemars(length(max = NAME))]
    new_domain: Option<String>,
    /// Words to find it by.
    #[schemars(length(max = ENTRIES))]
    tags: Option<Vec<String>>,
    /// Others of its kind that have to be finished first.
    #[schemars(length(max = ENTRIES))]
    depends_on: Option<Vec<String>>,
    /// A plan's contract.
    #[schemars(length(max = TEXT))]
    contract: Option<String>,
    /// A plan's contract as data.
    contract_data: Option<Map<String, Json>>,
}

impl Tool for Edit {
    const NAME: &'static str = "tasks_edit";
    const TITLE: &'static str = "Edit a plan or task";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints {
        destructive: true,
        ..Hints::IDEMPOTENT
    };
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let old = self.target.root(&mut write)?;
        self.target.expect(&old.meta().id)?;
        let new = self.edited(old.clone())?;
        patch::replace_root(&mut write, &old, &new)?;
        Ok(Written::about(&new.meta().id, write.finish()?))
    }
}

impl Edit {
    fn edited(self, mut root: Root) -> Result<Root, ToolError> {
        let mut refusals = Refusals::default();
        let meta = root.meta_mut();
        meta.title = self.title.unwrap_or_else(|| meta.title.clone());
        meta.description = self.description.or(meta.description.take());
        meta.context = self.context.or(meta.context.take());
        meta.priority = self.priority.unwrap_or(meta.priority);
        meta.tags = self.tags.unwrap_or_else(|| meta.tags.clone());
        meta.depends_on = self.depends_on.unwrap_or_else(|| meta.depends_on.clone());
        match &mut root {
            Root::Task(task) => {
                task.domain = self.new_domain.or(task.domain.take());
                if self.contract.is_some() || self.contract_data.is_some() {
                    refusals.add(Reason::input("contract", "is for plans"));
                }
            }
            Root::Plan(plan) => {
                plan.contract = self.contract.or(plan.contract.take());
                plan.contract_data = self.contract_data.or(plan.contract_data.take());
                if self.new_domain.is_some() {
                    refusals.add(Reason::input("new_domain", "is for tasks"));
                }
            }
        }
        refusals.finish()?;
        Ok(root)
    }
}

/// Change single fields of a plan or task (`kind` task_detail), a step (step) or a node (task) with set, unset,
/// append and remove. New criteria or tests have to be confirmed anew.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PatchTool {
    #[serde(flatten)]
    target: RootTarget,
    /// What is patched.
    kind: PatchKind,
    /// A step such as s:0 or a node such as s:0.t:1, by path.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// A step by id.
    #[schemars(length(max = NAME))]
    step_id: Option<String>,
    /// A node by id.
    #[schemars(length(max = NAME))]
    task_node_id: Option<String>,
    /// What to change, in order.
    #[schemars(length(min = 1, max = OPERATIONS))]
    ops: Vec<PatchOp>,
}

impl Tool for PatchTool {
    const NAME: &'static str = "tasks_patch";
    const TITLE: &'static str = "Patch fields";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let root = self.target.root(&mut write)?;
        let id = root.meta().id.clone();
        let part = match (self.kind, &self.step_id, &self.task_node_id) {
            (PatchKind::Task, None, node) => node.as_deref(),
            (PatchKind::Step, step, None) => step.as_deref(),
            (PatchKind::TaskDetail, None, None) => None,
            _ => {
                return Err(Reason::input(
                    "kind",
                    format!("is {}, which the given id does not name", self.kind),
                )
                .into());
            }
        };
        let selector = self.target.selector(self.path.as_deref(), part);
        let patched = patch::apply(&mut write, &id, self.kind, &selector, &self.ops)?;
        let mut written = Written::about(&id, write.finish()?);
        match patched {
            Patched::Root => {}
            Patched::Step(step) => written = written.step(&step.record.id, &step.path),
            Patched::Node(node) => written.node = Some(NodeRef::new(&node.record.id, &node.path)),
        }
        Ok(written)
    }
}
