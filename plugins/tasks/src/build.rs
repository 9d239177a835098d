//! Making records: plans, tasks and steps as calls and templates describe them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::ToolError;

use crate::dependency;
use crate::error::{Reason, Refusals};
use crate::limits::{MAX_ENTRIES, MAX_STEPS, MAX_TEXT_CHARS, MAX_TITLE_CHARS, short};
use crate::model::{Checkpoint, EventType, Priority, Status};
use crate::path::{MAX_DEPTH, Path};
use crate::record::{Meta, Plan, Root, Step, Task, TemplateStep};
use crate::reply::StepRef;
use crate::scope::Located;
use crate::store;
use crate::write::Write;

/// Step to create.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStep {
    /// Outcome of the step, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    pub title: String,
    /// Criteria that must hold before the step counts as done.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    pub success_criteria: Vec<String>,
    /// Commands or checks that prove the step is done.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    pub tests: Vec<String>,
    /// Known obstacles, as text. They do not block the step; tasks_block does.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    pub blockers: Vec<String>,
    /// Checkpoints to confirm in addition to criteria and tests.
    #[serde(default)]
    pub checkpoints: BTreeSet<Checkpoint>,
}

impl From<&TemplateStep> for NewStep {
    fn from(step: &TemplateStep) -> NewStep {
        NewStep {
            title: step.title.clone(),
            success_criteria: step.success_criteria.clone(),
            tests: step.tests.clone(),
            blockers: Vec::new(),
            checkpoints: BTreeSet::new(),
        }
    }
}

/// The texts that explain a plan, task or node.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Texts {
    /// Description: the goal and its scope.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub description: Option<String>,
    /// Background needed to work on it, such as links or constraints.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub context: Option<String>,
}

/// Fields of a new plan or task.
#[derive(Debug, Default)]
pub(crate) struct NewMeta {
    pub title: String,
    pub description: Option<String>,
    pub context: Option<String>,
    pub priority: Option<Priority>,
    pub tags: Vec<String>,
    pub depends_on: Vec<String>,
}

impl NewMeta {
    pub(crate) fn titled(title: &str) -> NewMeta {
        NewMeta {
            title: title.to_owned(),
            ..NewMeta::default()
        }
    }

    fn into_meta(self, write: &Write<'_>, id: String, number: i64) -> Meta {
        Meta {
            id,
            number,
            title: self.title,
            description: self.description,
            context: self.context,
            status: Status::Todo,
            priority: self.priority.unwrap_or(Priority::Medium),
            tags: self.tags,
            depends_on: self.depends_on,
            created_at: write.scope.now(),
            done_at: None,
            status_reason: None,
        }
    }
}

/// Makes a plan.
pub(crate) fn plan(
    write: &mut Write<'_>,
    new: NewMeta,
    contract: Option<String>,
    contract_data: Option<Map<String, Json>>,
) -> Result<Plan, ToolError> {
    write.scope.counters.plans += 1;
    let number = write.scope.counters.plans;
    let plan = Plan {
        meta: new.into_meta(write, format!("PLAN-{number:03}"), number),
        contract,
        contract_data,
        doc: None,
        steps: Vec::new(),
        current: 0,
    };
    let root = Root::Plan(plan.clone());
    add_root(
        write,
        &root,
        EventType::PlanCreated,
        json!({"title": short(&plan.meta.title, 120)}),
    )?;
    Ok(plan)
}

/// Makes a task under a plan and advances the plan's revision.
pub(crate) fn task(
    write: &mut Write<'_>,
    plan: &Meta,
    new: NewMeta,
    domain: Option<String>,
) -> Result<Task, ToolError> {
    let mut refusals = Refusals::default();
    refusals.unfinished(&write.scope, plan);
    refusals.finish()?;
    write.scope.counters.tasks += 1;
    let number = write.scope.counters.tasks;
    let task = Task {
        meta: new.into_meta(write, format!("TASK-{number:03}"), number),
        plan: plan.id.clone(),
        domain,
    };
    let root = Root::Task(task.clone());
    let data = json!({"title": short(&task.meta.title, 120), "plan": task.plan});
    add_root(write, &root, EventType::TaskCreated, data)?;
    write.touch(&task.plan);
    Ok(task)
}

fn add_root(write: &mut Write<'_>, root: &Root, event: EventType, data: Json) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    refusals.root(root);
    dependency::check(write, &[], root, &mut refusals)?;
    refusals.finish()?;
    write.put_root(root)?;
    write.event(event, &root.meta().id, None, data);
    Ok(())
}

/// Steps under a parent, in order.
pub(crate) fn siblings(write: &Write<'_>, parent: &str) -> Result<Vec<Step>, ToolError> {
    let found = store::record::children(write.scope.db(), &write.scope.workspace, parent, usize::MAX)?;
    Ok(found.into_iter().map(|placed| placed.record).collect())
}

/// The steps behind an index, at most as many as one operation can order anew.
pub(crate) fn tail(siblings: &[Step], at: usize) -> Result<&[Step], ToolError> {
    let count = siblings.len();
    match siblings.get(at..) {
        Some(tail) if tail.len() <= MAX_STEPS => Ok(tail),
        Some(tail) => {
            let fault = format!(
                "is {at}, which is before {} steps; at most {MAX_STEPS} are allowed",
                tail.len()
            );
            Err(Reason::input("position", fault).into())
        }
        None => Err(Reason::input("position", format!("is {at}, but there are {count} other steps")).into()),
    }
}

/// Places steps behind everything that this write placed before.
pub(crate) fn behind(write: &mut Write<'_>, steps: &[Step]) -> Result<(), ToolError> {
    for step in steps {
        let mut step = step.clone();
        step.position = write.position();
        write.put(&step)?;
    }
    Ok(())
}

/// Adds steps to a task or to one of its steps, at the end or at an index.
pub(crate) fn steps(
    write: &mut Write<'_>,
    task: &str,
    parent: Option<&Located<Step>>,
    new: &[NewStep],
    at: Option<usize>,
) -> Result<Vec<StepRef>, ToolError> {
    let mut refusals = Refusals::default();
    refusals.at_most("steps", new.len(), MAX_STEPS, "entries");
    if new.is_empty() {
        refusals.add(Reason::input("steps", "is empty"));
    }
    if parent.is_some_and(|parent| parent.path.steps.len() >= MAX_DEPTH) {
        refusals.add(Reason::input(
            "parent_step",
            format!("is at depth {MAX_DEPTH}; at most {MAX_DEPTH} levels are allowed"),
        ));
    }
    let above = parent.map_or(task, |parent| parent.record.id.as_str());
    let siblings = match at {
        Some(_) => siblings(write, above)?,
        None => Vec::new(),
    };
    let behind_new = match at {
        Some(at) => tail(&siblings, at)?,
        None => &[],
    };
    let mut ordinal = match at {
        Some(at) => u32::try_from(at).unwrap_or(u32::MAX),
        None => store::record::count_children(write.scope.db(), &write.scope.workspace, above)?,
    };
    let mut made = Vec::new();
    for (place, new) in new.iter().take(MAX_STEPS).enumerate() {
        let step = step(write, task, parent, new)?;
        refusals.step(&format!("steps[{place}]."), &step);
        let mut path = parent.map_or(
            Path {
                steps: Vec::new(),
                node: None,
            },
            |parent| parent.path.clone(),
        );
        path.steps.push(ordinal);
        ordinal = ordinal.saturating_add(1);
        made.push(StepRef::new(&step.id, &path));
        if refusals.is_empty() {
            write.put(&step)?;
        }
    }
    refusals.finish()?;
    behind(write, behind_new)?;
    let first = made.first().map(|step| step.path.clone());
    let data = json!({"count": made.len(), "first": first});
    write.event(
        EventType::StepsAdded,
        task,
        parent.map(|parent| parent.record.id.as_str()),
        data,
    );
    Ok(made)
}

fn step(
    write: &mut Write<'_>,
    task: &str,
    parent: Option<&Located<Step>>,
    new: &NewStep,
) -> Result<Step, ToolError> {
    Ok(Step {
        id: write.fresh_id(store::Kind::Step, "STEP")?,
        task: task.to_owned(),
        parent: parent.map(|parent| parent.record.id.clone()),
        position: write.position(),
        title: new.title.clone(),
        success_criteria: new.success_criteria.clone(),
        tests: new.tests.clone(),
        blockers: new.blockers.clone(),
        required: declared(&new.checkpoints),
        confirmed: BTreeMap::new(),
        blocked: false,
        block_reason: None,
        created_at: write.scope.now(),
        completed_at: None,
        forced: None,
        reopen_reason: None,
    })
}

/// Checkpoints that have to be declared. Criteria and tests follow from the step's lists.
pub(crate) fn declared(checkpoints: &BTreeSet<Checkpoint>) -> BTreeSet<Checkpoint> {
    checkpoints
        .iter()
        .copied()
        .filter(|checkpoint| !matches!(checkpoint, Checkpoint::Criteria | Checkpoint::Tests))
        .collect()
}
