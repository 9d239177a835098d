//! Creating plans and tasks, one by one or whole.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::ready;
use crate::build::{self, NewMeta, NewStep};
use crate::dependency;
use crate::error::{Reason, Refusals};
use crate::limits::{
    MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_NAME_CHARS, MAX_STEPS, MAX_TEXT_CHARS, MAX_TITLE_CHARS,
};
use crate::model::{Priority, RootKind, Workspace};
use crate::record::{Meta, Root};
use crate::reply::{StepRef, Written};
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
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Alias of `plan`. Give only one of them.
    #[schemars(length(max = MAX_NAME_CHARS))]
    parent: Option<String>,
    /// Title of the plan or task, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Description: the goal and its scope.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    description: Option<String>,
    /// Background needed to work on it, such as links or constraints.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    context: Option<String>,
    /// Priority of the work (default MEDIUM).
    priority: Option<Priority>,
    /// Tags for searching and grouping, for example backend.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    tags: Vec<String>,
    /// Ids of plans (for a plan) or tasks (for a task) to finish first, for example TASK-001.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    depends_on: Vec<String>,
    /// Domain of a task, for example storage. Not for plans.
    #[schemars(length(max = MAX_NAME_CHARS))]
    domain: Option<String>,
    /// Contract of a plan: the promised results, as text.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    contract: Option<String>,
    /// Contract of a plan as a JSON object.
    contract_data: Option<Map<String, Json>>,
    /// First steps of the task, in order. Not for plans.
    #[serde(default)]
    #[schemars(length(max = MAX_STEPS))]
    steps: Vec<NewStep>,
    /// Your name, for the history and leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Revision of the plan from your last reply. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply.
    #[serde(default)]
    events: bool,
}

impl Tool for Create {
    const NAME: &'static str = "tasks_create";
    const TITLE: &'static str = "Create a plan or task";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?.by(self.actor.as_deref())?;
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
            return write.reply(&plan.meta.id, |written| written);
        };
        let plan = write.plan(above, self.expected_revision)?;
        let task = build::task(&mut write, &plan.meta, new, self.domain)?;
        let steps = match self.steps.as_slice() {
            [] => Vec::new(),
            steps => build::steps(&mut write, &task.meta.id, None, steps, None)?,
        };
        write.reply(&task.meta.id, |written| Written {
            plan: Some(plan.meta.id),
            steps,
            ..written
        })
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
                only(above.is_some(), "plan", "must be omitted for a plan");
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
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Criteria to meet, at least one.
    #[schemars(length(min = 1, max = MAX_ENTRIES))]
    success_criteria: Vec<String>,
    /// Tests to pass, at least one.
    #[schemars(length(min = 1, max = MAX_ENTRIES))]
    tests: Vec<String>,
    /// Known obstacles, as text. They do not block the step; tasks_block does.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    blockers: Vec<String>,
}

/// Task that is created with its steps.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyTask {
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    priority: Option<Priority>,
    /// Ids of existing tasks, or titles of tasks in the same call.
    #[serde(default)]
    depends_on: Vec<String>,
    steps: Vec<ReadyStep>,
}

/// Create a task with its steps, or several `tasks`, in an existing or a new plan (`plan_title`). Each step needs
/// criteria and tests. Confirm both to close a step. Next: tasks_radar.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bootstrap {
    workspace: Workspace,
    /// Id of an existing plan. For example PLAN-001.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Alias of `plan`. Give only one of them.
    #[schemars(length(max = MAX_NAME_CHARS))]
    parent: Option<String>,
    /// Title of the new plan to create.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    plan_title: Option<String>,
    /// Title of the task to bootstrap.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    task_title: Option<String>,
    /// Goal and scope of the task.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    description: Option<String>,
    /// Steps of the task to bootstrap.
    #[serde(default)]
    #[schemars(length(max = MAX_STEPS))]
    steps: Vec<ReadyStep>,
    /// Instead of task_title and steps: {title, steps, description, priority, depends_on: titles or ids}.
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Json>>", length(max = MAX_ENTRIES))]
    tasks: Vec<ready::Unread>,
    /// Your name, for the history and leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Revision of the existing plan. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply.
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
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?.by(self.actor.as_deref())?;
        write.shows_events = self.events;
        let tasks = self.all_tasks(self.check()?);
        let plan = self.plan_of(&mut write)?;
        let (made, steps) = make(&mut write, &plan, &tasks)?;
        let first = made.first().cloned().unwrap_or_default();
        let actor = write.actor().map(str::to_owned);
        let mut written = Written::about(&first, write.finish()?);
        let about = match made.len() {
            1 => first,
            _ => plan.id.clone(),
        };
        written.plan = Some(plan.id);
        match made.len() {
            1 => written.steps = steps,
            _ => written.tasks = made,
        }
        written.then_at(cx, &self.workspace, &about, None, actor.as_deref())
    }
}

/// Makes tasks with their steps. Dependencies follow when all tasks are there.
fn make(
    write: &mut Write<'_>,
    plan: &Meta,
    tasks: &[ReadyTask],
) -> Result<(Vec<String>, Vec<StepRef>), ToolError> {
    let (mut made, mut steps) = (Vec::new(), Vec::new());
    for ready in tasks {
        let mut new = NewMeta::titled(&ready.title);
        new.description.clone_from(&ready.description);
        new.priority = ready.priority;
        let task = build::task(write, plan, new, None)?;
        let new_steps: Vec<NewStep> = ready.steps.iter().cloned().map(NewStep::from).collect();
        steps.extend(build::steps(write, &task.meta.id, None, &new_steps, None)?);
        made.push(task);
    }
    let ids: Vec<String> = made.iter().map(|task| task.meta.id.clone()).collect();
    let mut refusals = Refusals::default();
    for (place, (ready, mut task)) in tasks.iter().zip(made).enumerate() {
        for name in &ready.depends_on {
            let named = tasks.iter().position(|other| other.title == *name);
            let id = named.and_then(|place| ids.get(place)).unwrap_or(name);
            task.meta.depends_on.push(id.clone());
        }
        if task.meta.depends_on.is_empty() {
            continue;
        }
        let root = Root::Task(task);
        refusals.root(&root);
        dependency::check(write, &[], &root, &mut refusals)?;
        if refusals.is_empty() {
            write.put_root(&root)?;
        } else {
            refusals.fact("task", place);
        }
    }
    refusals.finish()?;
    Ok((ids, steps))
}

impl Bootstrap {
    /// Requires one plan, and steps with criteria and tests. Returns the entries of `tasks`.
    fn check(&self) -> Result<Vec<ReadyTask>, ToolError> {
        let mut refusals = Refusals::default();
        let existing = self.plan.is_some() || self.parent.is_some();
        match (existing, &self.plan_title) {
            (false, None) => refusals.add(Reason::input("plan", "or plan_title is required")),
            (true, Some(_)) => refusals.add(Reason::input(
                "plan_title",
                "must be omitted for an existing plan",
            )),
            (false, Some(title)) => {
                refusals.text("plan_title", title, MAX_TITLE_CHARS);
                if self.expected_revision.is_some() {
                    refusals.add(Reason::input(
                        "expected_revision",
                        "applies only to an existing plan",
                    ));
                }
            }
            (true, None) => {}
        }
        let tasks = ready::read(&self.tasks, &mut refusals);
        self.check_tasks(&tasks, &mut refusals);
        refusals.finish()?;
        Ok(tasks)
    }

    /// Requires one task or several, with steps that have criteria and tests.
    fn check_tasks(&self, tasks: &[ReadyTask], refusals: &mut Refusals) {
        let single = self.task_title.is_some() || !self.steps.is_empty() || self.description.is_some();
        match (single, self.tasks.is_empty()) {
            (true, false) => refusals.add(Reason::input(
                "tasks",
                "cannot be combined with task_title, description and steps",
            )),
            (false, true) => refusals.add(Reason::input("task_title", "or tasks is required")),
            (true, true) => {
                refusals.text(
                    "task_title",
                    self.task_title.as_deref().unwrap_or_default(),
                    MAX_TITLE_CHARS,
                );
                ready_steps("", &self.steps, refusals);
            }
            (false, false) => {}
        }
        refusals.at_most("tasks", self.tasks.len(), MAX_ENTRIES, "entries");
        let steps = tasks.iter().map(|task| task.steps.len()).sum();
        refusals.at_most("tasks", steps, MAX_STEPS, "steps");
        for (place, task) in tasks.iter().take(MAX_ENTRIES).enumerate() {
            let at = format!("tasks[{place}].");
            refusals.text(&format!("{at}title"), &task.title, MAX_TITLE_CHARS);
            let twice = tasks.iter().take(place).any(|other| other.title == task.title);
            if twice {
                refusals.add(Reason::input(
                    format!("{at}title"),
                    "is the title of another task of the call",
                ));
            }
            ready_steps(&at, &task.steps, refusals);
        }
    }

    /// The tasks to make: the entries of `tasks`, or the single one.
    fn all_tasks(&self, tasks: Vec<ReadyTask>) -> Vec<ReadyTask> {
        match &self.task_title {
            None => tasks,
            Some(title) => vec![ReadyTask {
                title: title.clone(),
                description: self.description.clone(),
                priority: None,
                depends_on: Vec::new(),
                steps: self.steps.clone(),
            }],
        }
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

/// Checks steps that have to be complete.
fn ready_steps(at: &str, steps: &[ReadyStep], refusals: &mut Refusals) {
    if steps.is_empty() {
        refusals.add(Reason::input(format!("{at}steps"), "is empty"));
    }
    for (place, step) in steps.iter().take(MAX_STEPS).enumerate() {
        let at = format!("{at}steps[{place}]");
        refusals.filled(&format!("{at}.success_criteria"), &step.success_criteria);
        refusals.filled(&format!("{at}.tests"), &step.tests);
        refusals.texts(
            &format!("{at}.blockers"),
            &step.blockers,
            MAX_ENTRIES,
            MAX_ENTRY_CHARS,
        );
        refusals.text(&format!("{at}.title"), &step.title, MAX_TITLE_CHARS);
    }
    refusals.at_most(&format!("{at}steps"), steps.len(), MAX_STEPS, "entries");
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
