//! Templates: listing and saving them, and creating plans and tasks from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tier, Tool, ToolError};

use crate::build::{self, NewMeta, NewStep};
use crate::error::{Reason, Refusals};
use crate::limits::{
    MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_NAME_CHARS, MAX_STEPS, MAX_TEXT_CHARS, MAX_TITLE_CHARS,
};
use crate::model::{EventType, RootKind, Workspace};
use crate::record::{Meta, Template, TemplateStep, TemplateTask};
use crate::reply::Written;
use crate::scope::Scope;
use crate::store;
use crate::templates;
use crate::tools::create::one_plan;
use crate::write::Write;

/// Most templates of one workspace. A list shows all of them.
const MAX_TEMPLATES: usize = 100;

/// List the templates for tasks_scaffold: the workspace's own and the built-in ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplatesList {
    workspace: Workspace,
}

/// List of templates.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Templates {
    /// Templates by name, the workspace's own first.
    templates: Vec<Listed>,
}

/// Template in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// Name of the template, for tasks_scaffold.
    name: String,
    /// Kind that the template creates: plan or task.
    kind: RootKind,
    /// Purpose of the template, as tasks_templates_list shows it.
    description: String,
    /// True if the template is built in.
    builtin: bool,
    /// Titles of the template's tasks.
    tasks: Vec<String>,
    /// Number of steps that the template creates.
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
        let own = store::record::all::<Template>(scope.db(), &scope.workspace, MAX_TEMPLATES)?;
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

/// Create a plan with tasks, or a task with steps, from a template. A task template needs `plan` or
/// `plan_title`. Next: tasks_radar.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scaffold {
    workspace: Workspace,
    /// Name of a template from tasks_templates_list, for example bug-fix.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    template: String,
    /// Title of the new plan or task.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Description: the goal and its scope.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    description: Option<String>,
    /// Id of an existing plan for a task template, for example PLAN-001.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Alias of `plan`. Give only one of them.
    #[schemars(length(max = MAX_NAME_CHARS))]
    parent: Option<String>,
    /// Title of a new plan for a task template.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    plan_title: Option<String>,
    /// Your name, for the history and leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Revision of the existing plan. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply.
    #[serde(default)]
    events: bool,
}

impl Tool for Scaffold {
    const NAME: &'static str = "tasks_scaffold";
    const TITLE: &'static str = "Create from a template";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?.by(self.actor.as_deref())?;
        write.shows_events = self.events;
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
            steps = build::steps(&mut write, &task.meta.id, None, &task_steps, None)?;
            made.push(task.meta.id);
        }
        let about = match (template.kind, made.first()) {
            (RootKind::Task, Some(task)) => task.clone(),
            _ => plan.id.clone(),
        };
        let actor = write.actor().map(str::to_owned);
        let mut written = Written::about(&about, write.finish()?);
        written.plan = Some(plan.id);
        if template.kind == RootKind::Task {
            written.steps = steps;
        }
        written.tasks = made;
        written.then(cx, &self.workspace, None, actor.as_deref())
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

    /// The plan that the template makes, or the plan of its task.
    fn plan_of(&self, write: &mut Write<'_>, kind: RootKind) -> Result<Meta, ToolError> {
        let existing = one_plan(self.plan.as_deref(), self.parent.as_deref())?;
        let mut new = NewMeta::titled(&self.title);
        match (kind, existing, &self.plan_title) {
            (RootKind::Task, Some(plan), None) => return Ok(write.plan(plan, self.expected_revision)?.meta),
            (RootKind::Task, None, Some(title)) => new = NewMeta::titled(title),
            (RootKind::Task, None, None) => {
                return Err(Reason::input("plan", "or plan_title is required").into());
            }
            (RootKind::Task, Some(_), Some(_)) => {
                return Err(Reason::input("plan_title", "must be omitted for an existing plan").into());
            }
            (RootKind::Plan, None, None) => new.description.clone_from(&self.description),
            (RootKind::Plan, ..) => {
                return Err(
                    Reason::input("plan", "must be omitted, because this template creates a plan").into(),
                );
            }
        }
        if self.expected_revision.is_some() {
            return Err(Reason::input("expected_revision", "applies only to an existing plan").into());
        }
        Ok(build::plan(write, new, None, None)?.meta)
    }
}

/// Save a template in the workspace, replacing one of the same name. It overrides a built-in template of that
/// name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateSave {
    workspace: Workspace,
    /// Your name, for the history and leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Name of the template, for tasks_scaffold.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    name: String,
    /// Kind that the template creates: plan or task.
    kind: RootKind,
    /// Purpose of the template, as tasks_templates_list shows it.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    description: String,
    /// Steps of the template, in order.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<SavedStep>,
    /// Include the events in the reply.
    #[serde(default)]
    events: bool,
}

/// A step that a template creates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedStep {
    /// Title of the task that the step belongs to. Only for plan templates. List the steps of one task one after the
    /// other.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    task: Option<String>,
    /// Outcome of the step, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Criteria that must hold before the step counts as done, at least one.
    #[schemars(length(min = 1, max = MAX_ENTRIES))]
    success_criteria: Vec<String>,
    /// Commands or checks that prove the step is done, at least one.
    #[schemars(length(min = 1, max = MAX_ENTRIES))]
    tests: Vec<String>,
}

impl Tool for TemplateSave {
    const NAME: &'static str = "tasks_template_save";
    const TITLE: &'static str = "Save a template";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Full;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin_anywhere(cx, Self::NAME, &self.workspace)?.by(self.actor.as_deref())?;
        write.shows_events = self.events;
        let mut refusals = Refusals::default();
        for (place, step) in self.steps.iter().enumerate() {
            if step.task.is_some() != (self.kind == RootKind::Plan) {
                let field = format!("steps[{place}].task");
                refusals.add(Reason::input(
                    field,
                    "is required in a plan template and not allowed in a task template",
                ));
            }
        }
        refusals.at_most("steps", self.steps.len(), MAX_STEPS, "entries");
        let template = self.into_template();
        refusals.template(&template);
        let own = store::record::all::<Template>(write.scope.db(), &write.scope.workspace, MAX_TEMPLATES)?;
        if own.len() >= MAX_TEMPLATES && own.iter().all(|other| other.name != template.name) {
            refusals.add(Reason::input(
                "name",
                format!("is new, but the workspace already has {MAX_TEMPLATES} templates"),
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
