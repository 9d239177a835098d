//! Templates: listing, saving, and making plans and tasks from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tier, Tool, ToolError};

use crate::build::{self, NewMeta, NewStep};
use crate::error::{Reason, Refusals};
use crate::limits::{ENTRIES, ENTRY, NAME, STEPS, TEXT, TITLE};
use crate::model::{EventType, RootKind, Workspace};
use crate::record::{Meta, Template, TemplateStep, TemplateTask};
use crate::reply::Written;
use crate::scope::Scope;
use crate::store;
use crate::templates;
use crate::tools::create::one_plan;
use crate::write::Write;

/// Templates that a workspace may have of its own, as many as a list shows.
const OWN: usize = 100;

/// List the templates that tasks_scaffold takes: the built-in ones and the workspace's own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplatesList {
    /// The workspace.
    workspace: Workspace,
}

/// The templates.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Templates {
    /// By name, the workspace's own first.
    templates: Vec<Listed>,
}

/// One template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// Its name.
    name: String,
    /// What it makes.
    kind: RootKind,
    /// What it is for.
    description: String,
    /// Whether every workspace has it.
    builtin: bool,
    /// The titles of its tasks.
    tasks: Vec<String>,
    /// How many steps it makes.
    steps: usize,
}

impl Tool for TemplatesList {
    const NAME: &'static str = "tasks_templates_list";
    const TITLE: &'static str = "List templates";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Full;
    type Output = Templates;

    fn run(self, cx: &Cx<'_>) -> Result<Templates, ToolError> {
        let scope = Scope::open(cx, &self.workspace)?;
        let own = store::record::all::<Template>(scope.db(), &scope.workspace, OWN)?;
        let own = own.into_iter().map(|template| (template, false));
        let builtin = templates::all().into_iter().map(|template| (template, true));
        let templates = own.chain(builtin).map(|(template, builtin)| Listed {
            steps: template.tasks.iter().map(|task| task.steps.len()).sum(),
            tasks: template.tasks.into_iter().map(|task| task.title).collect(),
            name: template.name,
            kind: template.kind,
            description: template.description,
            builtin,
        });
        Ok(Templates {
            templates: templates.collect(),
        })
    }
}

/// Make a plan with tasks, or a task with steps, from a template. A task template needs `plan` or `plan_title`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scaffold {
    /// The workspace.
    workspace: Workspace,
    /// The template's name; tasks_templates_list lists them.
    #[schemars(length(min = 1, max = NAME))]
    template: String,
    /// The title of the plan, or of the task.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// What it is about.
    #[schemars(length(max = TEXT))]
    description: Option<String>,
    /// The plan that a task goes to.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// The same as `plan`.
    #[schemars(length(max = NAME))]
    parent: Option<String>,
    /// The title of a new plan that a task goes to.
    #[schemars(length(min = 1, max = TITLE))]
    plan_title: Option<String>,
    /// The existing plan's revision.
    expected_revision: Option<i64>,
}

impl Tool for Scaffold {
    const NAME: &'static str = "tasks_scaffold";
    const TITLE: &'static str = "Make from a template";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        let template = self.template(&write.scope)?;
        let plan = self.plan_of(&mut write, template.kind)?;
        let mut made = Vec::new();
        let mut steps = Vec::new();
        for task in &template.tasks {
            let mut new = NewMeta::titled(if template.kind == RootKind::Task {
                &self.title
            } else {
                &task.title
            });
            if template.kind == RootKind::Task {
                new.description.clone_from(&self.description);
            }
            let task_steps: Vec<NewStep> = task.steps.iter().map(NewStep::from).collect();
            let task = build::task(&mut write, &plan, new, None)?;
            steps = build::steps(&mut write, &task.meta.id, None, &task_steps)?;
            made.push(task.meta.id);
        }
        let about = match (template.kind, made.first()) {
            (RootKind::Task, Some(task)) => task.clone(),
            _ => plan.id.clone(),
        };
        let mut written = Written::about(&about, write.finish()?);
        written.plan = Some(plan.id);
        if template.kind == RootKind::Task {
            written.steps = steps;
        }
        let radar = json!({"workspace": self.workspace, "task": about});
        written.next_calls.push(NextCall::new("tasks_radar", radar));
        written.tasks = made;
        Ok(written)
    }
}

impl Scaffold {
    fn template(&self, scope: &Scope<'_>) -> Result<Template, ToolError> {
        let found = match scope.get::<Template>(&self.template)? {
            Some(own) => Some(own),
            None => templates::find(&self.template),
        };
        let list = NextCall::new("tasks_templates_list", json!({"workspace": self.workspace}));
        found.ok_or_else(|| crate::error::refusal(Reason::unknown("template", &self.template), Some(list)))
    }

    /// The plan that the template makes, or that its task goes to.
    fn plan_of(&self, write: &mut Write<'_>, kind: RootKind) -> Result<Meta, ToolError> {
        let existing = one_plan(self.plan.as_deref(), self.parent.as_deref())?;
        let mut new = NewMeta::titled(&self.title);
        match (kind, existing, &self.plan_title) {
            (RootKind::Task, Some(plan), None) => return Ok(write.plan(plan, self.expected_revision)?.meta),
            (RootKind::Task, None, Some(title)) => new = NewMeta::titled(title),
            (RootKind::Task, None, None) => {
                return Err(Reason::input("plan", "or plan_title is needed").into());
            }
            (RootKind::Task, Some(_), Some(_)) => {
                return Err(Reason::input("plan_title", "is given beside an existing plan").into());
            }
            (RootKind::Plan, None, None) => new.description.clone_from(&self.description),
            (RootKind::Plan, ..) => {
                return Err(Reason::input("plan", "is given, but this template makes a plan").into());
            }
        }
        if self.expected_revision.is_some() {
            return Err(Reason::input("expected_revision", "is for an existing plan").into());
        }
        Ok(build::plan(write, new, None, None)?.meta)
    }
}

/// Save a template of the workspace's own, replacing one of the same name. It comes before a built-in one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateSave {
    /// The workspace.
    workspace: Workspace,
    /// The template's name.
    #[schemars(length(min = 1, max = NAME))]
    name: String,
    /// What it makes.
    kind: RootKind,
    /// What it is for.
    #[schemars(length(min = 1, max = ENTRY))]
    description: String,
    /// Its steps in order.
    #[schemars(length(min = 1, max = STEPS))]
    steps: Vec<SavedStep>,
}

/// A step that a template makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedStep {
    /// The title of its task, in a plan template; steps of the same task follow each other.
    #[schemars(length(min = 1, max = TITLE))]
    task: Option<String>,
    /// One line that says what is done.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// When it counts as done. Not empty.
    #[schemars(length(min = 1, max = ENTRIES))]
    success_criteria: Vec<String>,
    /// What shows it. Not empty.
    #[schemars(length(min = 1, max = ENTRIES))]
    tests: Vec<String>,
}

impl Tool for TemplateSave {
    const NAME: &'static str = "tasks_template_save";
    const TITLE: &'static str = "Save a template";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Full;
    const HINTS: Hints = Hints {
        destructive: true,
        ..Hints::IDEMPOTENT
    };
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?;
        let mut refusals = Refusals::default();
        for (place, step) in self.steps.iter().enumerate() {
            if step.task.is_some() != (self.kind == RootKind::Plan) {
                let field = format!("steps[{place}].task");
                refusals.add(Reason::input(
                    field,
                    "is what a step of a plan template has, and no other",
                ));
            }
        }
        refusals.at_most("steps", self.steps.len(), STEPS, "entries");
        let template = self.into_template();
        refusals.template(&template);
        let own = store::record::all::<Template>(write.scope.db(), &write.scope.workspace, OWN)?;
        if own.len() >= OWN && own.iter().all(|other| other.name != template.name) {
            refusals.add(Reason::input(
                "name",
                format!("is new, but the workspace has {OWN} templates already"),
            ));
        }
        refusals.finish()?;
        write.put(&template)?;
        write.event(
            EventType::TemplateSaved,
            "",
            Some(&template.name),
            json!({"kind": template.kind}),
        );
        let mut written = Written::about("", write.finish()?);
        written.ids.push(template.name);
        Ok(written)
    }
}

impl TemplateSave {
    /// The steps under their tasks.
    fn into_template(self) -> Template {
        let mut tasks: Vec<TemplateTask> = Vec::new();
        for step in self.steps {
            let title = step.task.unwrap_or_else(|| self.name.clone());
            if tasks.last().is_none_or(|task| task.title != title) {
                tasks.push(TemplateTask {
                    title,
                    steps: Vec::new(),
                });
            }
            if let Some(task) = tasks.last_mut() {
                task.steps.push(TemplateStep {
                    title: step.title,
                    success_criteria: step.success_criteria,
                    tests: step.tests,
                });
            }
        }
        Template {
            name: self.name,
            kind: self.kind,
            description: self.description,
            tasks,
        }
    }
}
