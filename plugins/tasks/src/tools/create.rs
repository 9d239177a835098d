//! Creating plans and tasks, one by one or whole.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use crate::build::{self, NewMeta, NewStep};
use crate::error::{Reason, Refusals};
use crate::limits::{ENTRIES, ENTRY, NAME, STEPS, TEXT, TITLE};
use crate::model::{Priority, RootKind, Workspace};
use crate::record::Meta;
use crate::reply::Written;
use crate::write::Write;

/// Create a plan, or a task in a plan. Without `kind`, it creates a task if `plan` is given. Next:
/// tasks_decompose adds steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    workspace: Workspace,
    /// Kind to create. Default: task if `plan` is given, otherwise plan.
    kind: Option<RootKind>,
    /// Plan id of the new task, for example PLAN-001.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// Alias of `plan`. Give only one of them.
    #[schemars(length(max = NAME))]
    parent: Option<String>,
    /// Title of the plan or task, in one line.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// Description: the goal and its scope.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// Background needed to work on it, such as links or constraints.
    #[schemars(length(max = TEXT))]
    context: Option<String>,
    /// Priority of the work (default MEDIUM).
    priority: Option<Priority>,
    /// Tags for searching and grouping, for example backend.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    tags: Vec<String>,
    /// Ids of plans (for a plan) or tasks (for a task) to finish first, for example TASK-001.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    depends_on: Vec<String>,
    /// Domain of a task, for example storage. Not for plans.
    #[schemars(length(max = NAME))]
    domain: Option<String>,
    /// Contract of a plan: the promised results, as text.
    #[schemars(length(max = TEXT))]
    contract: Option<String>,
    /// Contract of a plan as a JSON object.
    contract_data: Option<Map<String, Json>>,
    /// First steps of the task, in order. Not for plans.
    #[serde(default)]
    #[schemars(length(max = STEPS))]
    steps: Vec<NewStep>,
    /// Revision of the plan from your last reply. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply (default false).
    #[serde(default)]
    events: bool,
}

impl Tool for Create {
    const NAME: &'static str = "tasks_create";
    const TITLE: &'static str = "Create a plan or task";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        write.shows_events = self.events;
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
    /// Requires arguments that fit the kind.
    fn check(&self, kind: RootKind, above: Option<&str>) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let mut only = |present: bool, field: &str, fault: &str| {
            if present {
                refusals.add(Reason::input(field, fault));
            }
        };
        match kind {
            RootKind::Task => {
                only(above.is_none(), "plan", "is required for a task");
                only(self.contract.is_some(), "contract", "applies only to plans");
                only(
                    self.contract_data.is_some(),
                    "contract_data",
                    "applies only to plans",
                );
            }
            RootKind::Plan => {
                only(above.is_some(), "plan", "must be left out for a plan");
                only(self.domain.is_some(), "domain", "applies only to tasks");
                only(
                    !self.steps.is_empty(),
                    "steps",
                    "applies only to tasks; set a plan's checklist with tasks_plan",
                );
                only(
                    self.expected_revision.is_some(),
                    "expected_revision",
                    "applies only to tasks, as the revision of their plan",
                );
            }
        }
        refusals.finish()
    }
}

/// The plan that `plan` or its alias `parent` names.
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

/// Step of a task that is created with its steps.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyStep {
    /// One-line outcome of the step.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// Criteria for done, at least one.
    #[schemars(length(min = 1, max = ENTRIES))]
    success_criteria: Vec<String>,
    /// Tests that prove it, at least one.
    #[schemars(length(min = 1, max = ENTRIES))]
    tests: Vec<String>,
    /// Known obstacles, as text. They do not block the step; tasks_block does.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    blockers: Vec<String>,
}

/// Create a task with its steps, in an existing plan or in a new one (`plan_title`). Every step needs success
/// criteria and tests, which gate it. Next: tasks_radar.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bootstrap {
    workspace: Workspace,
    /// Id of an existing plan. For example PLAN-001.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// Alias of `plan`. Give only one of them.
    #[schemars(length(max = NAME))]
    parent: Option<String>,
    /// Title of the new plan to create.
    #[schemars(length(min = 1, max = TITLE))]
    plan_title: Option<String>,
    /// Title of the task to bootstrap.
    #[schemars(length(min = 1, max = TITLE))]
    task_title: String,
    /// Goal and scope of the task.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// Steps of the task to bootstrap.
    #[schemars(length(min = 1, max = STEPS))]
    steps: Vec<ReadyStep>,
    /// Revision of the existing plan. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply (default false).
    #[serde(default)]
    events: bool,
}

impl Tool for Bootstrap {
    const NAME: &'static str = "tasks_bootstrap";
    const TITLE: &'static str = "Start a task with its steps";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        write.shows_events = self.events;
        self.check()?;
        let plan = self.plan_of(&mut write)?;
        let mut new = NewMeta::titled(&self.task_title);
        new.description = self.description;
        let task = build::task(&mut write, &plan, new, None)?;
        let steps: Vec<NewStep> = self.steps.into_iter().map(NewStep::from).collect();
        let steps = build::steps(&mut write, &task.meta.id, None, &steps)?;
        let mut written = Written::about(&task.meta.id, write.finish()?);
        (written.plan, written.steps) = (Some(plan.id), steps);
        written.then(cx, &self.workspace, None, None)
    }
}

impl Bootstrap {
    /// Requires one plan, and steps with criteria and tests.
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let existing = self.plan.is_some() || self.parent.is_some();
        match (existing, &self.plan_title) {
            (false, None) => refusals.add(Reason::input("plan", "or plan_title is required")),
            (true, Some(_)) => refusals.add(Reason::input(
                "plan_title",
                "must be left out for an existing plan",
            )),
            (false, Some(title)) => {
                refusals.text("plan_title", title, TITLE);
                if self.expected_revision.is_some() {
                    refusals.add(Reason::input(
                        "expected_revision",
                        "applies only to an existing plan",
                    ));
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
