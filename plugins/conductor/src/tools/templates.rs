//! Tools that list, apply and save templates.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, DbError, Effect, Hints, Tool, ToolError};

use super::steps::{Chain, number};
use super::{editable, find_job, save};
use crate::arguments::{MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_TITLE_CHARS};
use crate::checkpoint::is_inserted;
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::state::{Event, Status};
use crate::store::step;
use crate::store::template::{self as saved, Saved};
use crate::template::{BUILTIN, Body, builtin, filled, generalised, is_name, variables};

/// List built-in and saved templates with their variables. Apply one with template_apply.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateList {
    /// Show only this template, with the titles of its steps. Default: all templates.
    name: Option<String>,
}

/// A template in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TemplateLine {
    /// Name of the template.
    name: String,
    /// Purpose of the template.
    summary: String,
    /// `built-in`, or the job it was saved from.
    source: String,
    /// Variables that need values in template_apply.
    variables: Vec<String>,
    /// Titles of its steps.
    steps: Vec<String>,
}

impl TemplateLine {
    fn new(name: &str, summary: &str, source: &str, body: &Body) -> TemplateLine {
        TemplateLine {
            name: name.to_owned(),
            summary: summary.to_owned(),
            source: source.to_owned(),
            variables: variables(body),
            steps: body.steps.iter().map(|step| step.title.clone()).collect(),
        }
    }
}

/// Available templates.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Templates {
    /// Templates, built-in ones first.
    templates: Vec<TemplateLine>,
}

impl Tool for TemplateList {
    const NAME: &'static str = "template_list";
    const TITLE: &'static str = "List templates";
    const EFFECT: Effect = Effect::Read;
    type Output = Templates;

    fn run(self, cx: &Cx<'_>) -> Result<Templates, ToolError> {
        let mut templates: Vec<TemplateLine> = BUILTIN
            .iter()
            .map(|template| TemplateLine::new(template.name, template.summary, "built-in", &template.body()))
            .collect();
        saved::each(&cx.db, |saved| {
            templates.push(TemplateLine::new(
                &saved.name,
                &saved.summary,
                &saved.source_job_id,
                &saved.body,
            ));
        })?;
        if let Some(name) = self.name {
            templates.retain(|template| template.name == name);
            if templates.is_empty() {
                return Err(Reason::not_found("template", &name).into());
            }
        }
        Ok(Templates { templates })
    }
}

/// Finds a built-in or saved template.
fn find(db: &Db<'_>, name: &str) -> Result<Option<Body>, DbError> {
    match builtin(name) {
        Some(template) => Ok(Some(template.body())),
        None => Ok(saved::get(db, name)?.map(|saved| saved.body)),
    }
}

/// Fill a job's plan from a template. The template's steps replace the job's, or follow them with append; its
/// invariants, definition of done and policies apply only where the job has none. Fails if a variable has no value. Moves a READY job
/// back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TemplateApply {
    job_id: JobId,
    /// Name of the template, as listed by template_list.
    name: String,
    /// Value of each variable, for example {"feature": "CSV export"}.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Add the steps after the job's own, as for a checklist. Default false: replace them.
    #[serde(default)]
    append: bool,
}

impl Tool for TemplateApply {
    const NAME: &'static str = "template_apply";
    const TITLE: &'static str = "Apply a template";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Chain;

    fn run(self, cx: &Cx<'_>) -> Result<Chain, ToolError> {
        let found = find(&cx.db, &self.name)?;
        let body = found.ok_or_else(|| Reason::not_found("template", &self.name))?;
        let wanted = variables(&body);
        let mut refusals = Refusals::default();
        for name in &wanted {
            match self.variables.get(name) {
                Some(value) => refusals.text(&format!("variables.{name}"), value, MAX_ENTRY_CHARS),
                None => refusals.add(Reason::VariableMissing(name.clone())),
            }
        }
        for name in self.variables.keys().filter(|name| !wanted.contains(name)) {
            let fault = format!("is not a variable of {}", self.name);
            refusals.add(Reason::argument(format!("variables.{name}"), fault));
        }
        refusals.finish()?;
        let body = filled(&body, &self.variables);
        let (mut job, seen) = editable(&cx.db, &self.job_id, Event::EditPlan)?;
        job.policies = body.policies.merged(job.policies);
        let plan = &mut job.plan;
        plan.invariants.get_or_insert(body.invariants);
        plan.definition_of_done.get_or_insert(body.definition_of_done);
        let mut refusals = Refusals::default();
        job.plan.check("", &mut refusals);
        job.plan.check_size(&mut refusals);
        for (place, step) in body.steps.iter().enumerate() {
            step.check(&format!("steps[{place}]"), &mut refusals);
        }
        refusals.finish()?;
        let before = step::all(&cx.db, &job.id)?;
        let mut specs = match self.append {
            true => before
                .iter()
                .map(|step| step.spec.clone())
                .filter(|spec| !is_inserted(spec))
                .collect(),
            false => Vec::new(),
        };
        specs.extend(body.steps);
        let steps = number(cx, specs, &job)?;
        super::steps::taken(cx, &cx.db, &job, &crate::freeze::taken(&before, &steps))?;
        step::replace(&cx.db, &job.id, &steps)?;
        save(cx, &cx.db, seen, &mut job)?;
        Ok(Chain::new(job.id, seen, job.status, &steps))
    }
}

/// Save the steps of a finished job as a template for template_apply. Texts that differ from job to job become
/// variables.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct TemplateSave {
    /// Id of a job that is COMPLETE, or was before it was archived, for example JOB-7F2A.
    job_id: JobId,
    /// Name of the new template: lower-case letters, digits and `_`.
    #[schemars(length(min = 1, max = 40))]
    name: String,
    /// Purpose of the template, in one sentence.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    summary: String,
    /// Variables, each with the text that it replaces, for example {"feature": "CSV export"}.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Replace a saved template of the same name. Default false.
    #[serde(default)]
    replace: bool,
}

impl Tool for TemplateSave {
    const NAME: &'static str = "template_save";
    const TITLE: &'static str = "Save a template";
    const EFFECT: Effect = Effect::Write;
    type Output = TemplateLine;

    fn run(self, cx: &Cx<'_>) -> Result<TemplateLine, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let steps = step::all(&cx.db, &job.id)?;
        self.check(&cx.db, job.status, &steps)?;
        let body = Body {
            invariants: job.plan.invariants.unwrap_or_default(),
            definition_of_done: job.plan.definition_of_done.unwrap_or_default(),
            policies: job.policies,
            // Checkpoints are inserted again where the template is applied.
            steps: steps
                .into_iter()
                .map(|step| crate::step::StepSpec {
                    context_refs: Vec::new(),
                    ..step.spec
                })
                .filter(|spec| !is_inserted(spec))
                .collect(),
        };
        let kept = Saved {
            body: generalised(&body, &self.variables),
            name: self.name,
            summary: self.summary,
            source_job_id: job.id.to_string(),
        };
        let body_size = serde_json::to_string(&kept.body).map_or(usize::MAX, |text| text.len());
        let mut refusals = Refusals::default();
        refusals.at_most("job_id", body_size, 512 << 10, "bytes of steps");
        let found = variables(&kept.body);
        for name in self.variables.keys().filter(|name| !found.contains(name)) {
            refusals.add(Reason::argument(
                format!("variables.{name}"),
                "has a text that does not occur in the plan of the job",
            ));
        }
        refusals.finish()?;
        saved::save(&cx.db, &kept, cx.now())?;
        Ok(TemplateLine::new(
            &kept.name,
            &kept.summary,
            &kept.source_job_id,
            &kept.body,
        ))
    }
}

impl TemplateSave {
    fn check(&self, db: &Db<'_>, status: Status, steps: &[step::Step]) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        if !is_name(&self.name) {
            refusals.add(Reason::argument(
                "name",
                "must consist of lower-case letters, digits and `_`",
            ));
        }
        refusals.text("summary", &self.summary, MAX_TITLE_CHARS);
        refusals.at_most("variables", self.variables.len(), MAX_ENTRIES, "variables");
        for (name, text) in &self.variables {
            if !is_name(name) {
                refusals.add(Reason::argument(
                    format!("variables.{name}"),
                    "is not a valid name of a variable",
                ));
            }
            refusals.text(&format!("variables.{name}"), text, MAX_ENTRY_CHARS);
        }
        let done = steps
            .iter()
            .all(|step| step.status == crate::model::StepStatus::Done);
        if steps.is_empty() || !done || !matches!(status, Status::Complete | Status::Archived) {
            refusals.add(Reason::argument(
                "job_id",
                format!("must be a finished job, but its status is {status}"),
            ));
        }
        if builtin(&self.name).is_some() {
            refusals.add(Reason::TemplateBuiltin(self.name.clone()));
        } else if !self.replace && saved::get(db, &self.name)?.is_some() {
            refusals.add(Reason::TemplateExists(self.name.clone()));
        }
        refusals.finish()
    }
}
