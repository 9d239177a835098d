//! Editing plans and tasks, and patching any record.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::build::Texts;
use crate::error::{Reason, Refusals};
use crate::limits::{MAX_ENTRIES, MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_TITLE_CHARS};
use crate::model::Priority;
use crate::patch::{self, Patch, PatchKind, Patched};
use crate::record::Root;
use crate::reply::{NodeRef, Written};
use crate::target::RootTarget;

/// Edit fields of a plan or task. Given fields replace the old values; others stay.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Edit {
    #[serde(flatten)]
    target: RootTarget,
    /// New title of the plan or task, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: Option<String>,
    #[serde(flatten)]
    texts: Texts,
    /// New priority of the plan or task.
    priority: Option<Priority>,
    /// Domain of a task, for example storage. Not for plans.
    #[schemars(length(max = MAX_NAME_CHARS))]
    new_domain: Option<String>,
    /// Tags for searching and grouping, for example backend.
    #[schemars(length(max = MAX_ENTRIES))]
    tags: Option<Vec<String>>,
    /// Ids of plans (for a plan) or tasks (for a task) to finish first, for example TASK-001.
    #[schemars(length(max = MAX_ENTRIES))]
    depends_on: Option<Vec<String>>,
    /// New contract text of a plan.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    contract: Option<String>,
    /// New contract of a plan as a JSON object.
    contract_data: Option<Map<String, Json>>,
}

impl Tool for Edit {
    const NAME: &'static str = "tasks_edit";
    const TITLE: &'static str = "Edit a plan or task";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let old = self.target.root(&mut write)?;
        self.target.expect(&old.meta().id)?;
        let new = self.edited(old.clone())?;
        patch::replace_root(&mut write, &old, &new)?;
        write.reply(&new.meta().id, |written| written)
    }
}

impl Edit {
    fn edited(self, mut root: Root) -> Result<Root, ToolError> {
        let mut refusals = Refusals::default();
        let meta = root.meta_mut();
        meta.title = self.title.unwrap_or_else(|| meta.title.clone());
        meta.description = self.texts.description.or(meta.description.take());
        meta.context = self.texts.context.or(meta.context.take());
        meta.priority = self.priority.unwrap_or(meta.priority);
        meta.tags = self.tags.unwrap_or_else(|| meta.tags.clone());
        meta.depends_on = self.depends_on.unwrap_or_else(|| meta.depends_on.clone());
        match &mut root {
            Root::Task(task) => {
                task.domain = self.new_domain.or(task.domain.take());
                if self.contract.is_some() || self.contract_data.is_some() {
                    refusals.add(Reason::input("contract", "applies only to plans"));
                }
            }
            Root::Plan(plan) => {
                plan.contract = self.contract.or(plan.contract.take());
                plan.contract_data = self.contract_data.or(plan.contract_data.take());
                if self.new_domain.is_some() {
                    refusals.add(Reason::input("new_domain", "applies only to tasks"));
                }
            }
        }
        refusals.finish()?;
        Ok(root)
    }
}

/// Change single fields of a plan or task (`kind` task_detail), a step (step) or a node (task), with set, unset, append
/// and remove. Changed criteria or tests must be confirmed again.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PatchTool {
    #[serde(flatten)]
    target: RootTarget,
    #[serde(flatten)]
    patch: Patch,
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
        let patch = &self.patch;
        let part = match (patch.kind, &patch.step_id, &patch.task_node_id) {
            (PatchKind::Task, None, node) => node.as_deref(),
            (PatchKind::Step, step, None) => step.as_deref(),
            (PatchKind::TaskDetail, None, None) => None,
            _ => {
                return Err(Reason::input(
                    "kind",
                    format!("is {}, which does not match the given id", patch.kind),
                )
                .into());
            }
        };
        let selector = self.target.selector(patch.path.as_deref(), part);
        let patched = patch::apply(&mut write, &id, patch.kind, &selector, &patch.ops)?;
        write.reply(&id, |written| match patched {
            Patched::Root => written,
            Patched::Step(step) => written.step(&step.record.id, &step.path),
            Patched::Node(node) => Written {
                node: Some(NodeRef::new(&node.record.id, &node.path)),
                ..written
            },
        })
    }
}
