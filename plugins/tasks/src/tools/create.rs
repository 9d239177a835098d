//! Creating plans and tasks, one by one or whole.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, NextCall, Tier, Tool, ToolError};

use crate::build::{self, NewMeta, NewStep};
use crate::error::{Reason, Refusals};
use crate::limits::{ENTRIES, ENTRY, NAME, STEPS, TEXT, TITLE};
use crate::model::{Priority, RootKind, Workspace};
use crate::record::Meta;
use crate::reply::Written;
use crate::write::Write;

/// Create a plan, or a task under a plan. A task is made if `plan` is given, unless `kind` says otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    /// The workspace.
    workspace: Workspace,
    /// What to create.
    kind: Option<RootKind>,
    /// The plan that a task belongs to.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// The same as `plan`.
    #[schemars(length(max = NAME))]
    parent: Option<String>,
    /// One line.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// What it is about.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// What somebody has to know to work on it.
    #[schemars(length(max = TEXT))]
    context: Option<String>,
    /// How much it matters; MEDIUM if absent.
    priority: Option<Priority>,
    /// Words to find it by.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    tags: Vec<String>,
    /// Others of its kind that have to be finished first.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    depends_on: Vec<String>,
    /// A task's domain.
    #[schemars(length(max = NAME))]
    domain: Option<String>,
    /// A plan's contract: what it promises.
    #[schemars(length(max = TEXT))]
    contract: Option<String>,
    /// The contract as data.
    contract_data: Option<Map<String, Json>>,
    /// A task's first steps.
    #[serde(default)]
    #[schemars(length(max = STEPS))]
    steps: Vec<NewStep>,
    /// The plan's revision, when a task is made.
    expected_revision: Option<i64>,
}

impl Tool for Create {
    const NAME: &'static str = "tasks_create";
    const TITLE: &'static str = "Create a plan or task";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        let above = one_plan(self.plan.as_deref(), self.parent.as_deref())?;
        let kind = self.kind.unwrap_or(if above.is_some() {
            RootKind::Task
        } else {
            RootKind::Plan
        });
        self.check(kind, above)?;
        let new = NewMeta {
            title: self.title,
            description: self.description,
            context: self.context,
            priority: self.priority,
            tags: self.tags,
            depends_on: self.depends_on,
        };
        let Some(above) = above.filter(|_| kind == RootKind::Task) else {
            let plan = build::plan(&mut write, new, self.contract, self.contract_data)?;
            return Ok(Written::about(&plan.meta.id, write.finish()?));
        };
        let plan = write.plan(above, self.expected_revision)?;
        let task = build::task(&mut write, &plan.meta, new, self.domain)?;
        let steps = match self.steps.as_slice() {
            [] => Vec::new(),
            steps => build::steps(&mut write, &task.meta.id, None, steps)?,
        };
        let mut written = Written::about(&task.meta.id, write.finish()?);
        (written.plan, written.steps) = (Some(plan.meta.id), steps);
        Ok(written)
    }
}

impl Create {
    /// Wants what goes with the kind.
    fn check(&self, kind: RootKind, above: Option<&str>) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let mut only = |present: bool, field: &str, fault: &str| {
            if present {
                refusals.add(Reason::input(field, fault));
            }
        };
        match kind {
            RootKind::Task => {
                only(above.is_none(), "plan", "is missing; a task belongs to a plan");
                only(self.contract.is_some(), "contract", "is for plans");
                only(self.contract_data.is_some(), "contract_data", "is for plans");
            }
            RootKind::Plan => {
                only(above.is_some(), "plan", "is given; a plan belongs to no other");
                only(self.domain.is_some(), "domain", "is for tasks");
                only(
                    !self.steps.is_empty(),
                    "steps",
                    "is for tasks; a plan's checklist is set with tasks_plan",
                );
                only(
                    self.expected_revision.is_some(),
                    "expected_revision",
                    "is for tasks, whose plan has one",
                );
            }
        }
        refusals.finish()
    }
}

/// The plan that `plan` and `parent` name.
pub(crate) fn one_plan<'a>(
    plan: Option<&'a str>,
    parent: Option<&'a str>,
) -> Result<Option<&'a str>, ToolError> {
    match (plan, parent) {
        (Some(plan), Some(parent)) if plan != parent => {
            let (given, other) = (format!("plan {plan}"), format!("parent {parent}"));
            Err(Reason::TargetMismatch { given, other }.into())
        }
        (plan, parent) => Ok(plan.or(parent)),
    }
}

/// A step of a task that is made whole.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyStep {
    /// One line that says what is done.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// When it counts as done. Not empty.
    #[schemars(length(min = 1, max = ENTRIES))]
    success_criteria: Vec<String>,
    /// What shows it. Not empty.
    #[schemars(length(min = 1, max = ENTRIES))]
    tests: Vec<String>,
    /// What stands in the way, in words.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    blockers: Vec<String>,
}

/// Start work in one call: a task with its steps, in an existing plan or, with `plan_title`, in a new one.
/// Every step needs success criteria and tests, so that its checkpoints can gate it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bootstrap {
    /// The workspace.
    workspace: Workspace,
    /// An existing plan.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// The same as `plan`.
    #[schemars(length(max = NAME))]
    parent: Option<String>,
    /// The title of a new plan.
    #[schemars(length(min = 1, max = TITLE))]
    plan_title: Option<String>,
    /// The task's title.
    #[schemars(length(min = 1, max = TITLE))]
    task_title: String,
    /// What the task is about.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// The steps in order.
    #[schemars(length(min = 1, max = STEPS))]
    steps: Vec<ReadyStep>,
    /// The existing plan's revision.
    expected_revision: Option<i64>,
}

impl Tool for Bootstrap {
    const NAME: &'static str = "tasks_bootstrap";
    const TITLE: &'static str = "Start a task with its steps";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        self.check()?;
        let plan = self.plan_of(&mut write)?;
        let mut new = NewMeta::titled(&self.task_title);
        new.description = self.description;
        let task = build::task(&mut write, &plan, new, None)?;
        let steps: Vec<NewStep> = self.steps.into_iter().map(NewStep::from).collect();
        let steps = build::steps(&mut write, &task.meta.id, None, &steps)?;
        let mut written = Written::about(&task.meta.id, write.finish()?);
        (written.plan, written.steps) = (Some(plan.id), steps);
        let radar = json!({"workspace": self.workspace, "task": task.meta.id});
        written.next_calls.push(NextCall::new("tasks_radar", radar));
        Ok(written)
    }
}

impl Bootstrap {
    /// Wants one plan, and steps that can be gated.
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let existing = self.plan.is_some() || self.parent.is_some();
        match (existing, &self.plan_title) {
            (false, None) => refusals.add(Reason::input("plan", "or plan_title is needed")),
            (true, Some(_)) => refusals.add(Reason::input("plan_title", "is given beside an existing plan")),
            (false, Some(title)) => {
                refusals.text("plan_title", title, TITLE);
                if self.expected_revision.is_some() {
                    refusals.add(Reason::input("expected_revision", "is for an existing plan"));
                }
            }
            (true, None) => {}
        }
        refusals.text("task_title", &self.task_title, TITLE);
        for (place, step) in self.steps.iter().take(STEPS).enumerate() {
            refusals.filled(
                &format!("steps[{place}].success_criteria"),
                &step.success_criteria,
            );
            refusals.filled(&format!("steps[{place}].tests"), &step.tests);
            refusals.texts(
                &format!("steps[{place}].blockers"),
                &step.blockers,
                ENTRIES,
                ENTRY,
            );
            refusals.text(&format!("steps[{place}].title"), &step.title, TITLE);
        }
        refusals.at_most("steps", self.steps.len(), STEPS, "entries");
        refusals.finish()
    }

    fn plan_of(&self, write: &mut Write<'_>) -> Result<Meta, ToolError> {
        match (
            one_plan(self.plan.as_deref(), self.parent.as_deref())?,
            &self.plan_title,
        ) {
            (Some(plan), _) => Ok(write.plan(plan, self.expected_revision)?.meta),
            (None, title) => {
                let new = NewMeta::titled(title.as_deref().unwrap_or_default());
                Ok(build::plan(write, new, None, None)?.meta)
            }
        }
    }
}

impl From<ReadyStep> for NewStep {
    fn from(step: ReadyStep) -> NewStep {
        NewStep {
            title: step.title,
            success_criteria: step.success_criteria,
            tests: step.tests,
            blockers: step.blockers,
            checkpoints: std::collections::BTreeSet::new(),
        }
    }
}
