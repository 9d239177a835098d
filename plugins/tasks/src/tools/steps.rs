//! The tree of steps: adding, redefining, deleting.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::build::{self, NewStep, declared};
use crate::closing;
use crate::error::{Reason, Refusals};
use crate::evidence;
use crate::lease;
use crate::limits::{MAX_ENTRIES, MAX_NAME_CHARS, MAX_STEPS, MAX_TITLE_CHARS, short};
use crate::model::{Checkpoint, EventType, RootKind, Status};
use crate::record::{Evidence, Lease, Node, Note, Root, Step, Task};
use crate::reply::Written;
use crate::scope::{Located, Selector};
use crate::store;
use crate::store::record::{From, children, of_root};
use crate::target::StepTarget;
use crate::write::Write;

/// Add steps to a task, or below the step that `step_id`, `parent_step` or `path` names: at the end, or before the step
/// at `position`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Decompose {
    #[serde(flatten)]
    target: StepTarget,
    /// Step by id or path, instead of `step_id` or `path`.
    #[schemars(length(max = MAX_NAME_CHARS))]
    parent_step: Option<String>,
    /// Index of the first new step among its siblings, from 0, for example 1 (default: the end).
    position: Option<usize>,
    /// Steps to add, in order, each with title, success criteria and tests.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<NewStep>,
}

impl Tool for Decompose {
    const NAME: &'static str = "tasks_decompose";
    const TITLE: &'static str = "Add steps";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let task = self.target.task(&mut write)?;
        let parent = self.parent(&write, &task)?;
        let mut refusals = Refusals::default();
        refusals.unfinished(&write.scope, &task.meta);
        if let Some(parent) = &parent {
            refusals.step_open(&write.scope, parent);
        }
        refusals.finish()?;
        let steps = build::steps(
            &mut write,
            &task.meta.id,
            parent.as_ref(),
            &self.steps,
            self.position,
        )?;
        write.reply(&task.meta.id, |written| Written { steps, ..written })
    }
}

impl Decompose {
    fn parent(&self, write: &Write<'_>, task: &Task) -> Result<Option<Located<Step>>, ToolError> {
        let given = self.parent_step.as_deref();
        let (path, id) = match given {
            Some(parent) if parent.starts_with("s:") => (given, None),
            _ => (None, given),
        };
        let own = self.target.selector();
        for (name, one, other) in [("step_id", own.id, id), ("path", own.path, path)] {
            if let (Some(one), Some(other)) = (one, other)
                && one != other
            {
                let (given, other) = (format!("{name} {one}"), format!("parent_step {other}"));
                return Err(Reason::TargetMismatch { given, other }.into());
            }
        }
        let selector = Selector {
            path: own.path.or(path),
            id: own.id.or(id),
            ..own
        };
        selector.step_of(&write.scope, &task.meta.id)
    }
}

/// Change fields of a step. Given fields replace the old values; others stay. Changed criteria or tests must
/// be confirmed again.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Define {
    #[serde(flatten)]
    target: StepTarget,
    /// Outcome of the step, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: Option<String>,
    /// Criteria that must hold before the step counts as done.
    #[schemars(length(max = MAX_ENTRIES))]
    success_criteria: Option<Vec<String>>,
    /// Commands or checks that prove the step is done.
    #[schemars(length(max = MAX_ENTRIES))]
    tests: Option<Vec<String>>,
    /// Known obstacles, as text. They do not block the step; tasks_block does.
    #[schemars(length(max = MAX_ENTRIES))]
    blockers: Option<Vec<String>>,
    /// Checkpoints to confirm in addition to criteria and tests.
    checkpoints: Option<BTreeSet<Checkpoint>>,
}

impl Tool for Define {
    const NAME: &'static str = "tasks_define";
    const TITLE: &'static str = "Redefine a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (task, located) = self.target.step(&mut write)?;
        let mut step = located.record.clone();
        step.title = self.title.unwrap_or(step.title);
        step.success_criteria = self.success_criteria.unwrap_or(step.success_criteria);
        step.tests = self.tests.unwrap_or(step.tests);
        step.blockers = self.blockers.unwrap_or(step.blockers);
        if let Some(checkpoints) = &self.checkpoints {
            step.required = declared(checkpoints);
        }
        redefine(&mut write, &located, step)?;
        write.reply(&task.meta.id, |written| {
            written.step(&located.record.id, &located.path)
        })
    }
}

/// Replaces a step of an unfinished task. The gate of a closed step cannot change. New criteria or tests lose their
/// confirmation.
pub(crate) fn redefine(write: &mut Write<'_>, old: &Located<Step>, mut new: Step) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    if new != old.record
        && let Some(task) = write.get::<Task>(&new.task)?
    {
        refusals.unfinished(&write.scope, &task.meta);
    }
    let criteria = new.success_criteria != old.record.success_criteria;
    let tests = new.tests != old.record.tests;
    if criteria || tests || new.required != old.record.required {
        refusals.step_open(&write.scope, old);
    }
    refusals.step("", &new);
    refusals.finish()?;
    let mut revoked = Vec::new();
    for (changed, checkpoint) in [(criteria, Checkpoint::Criteria), (tests, Checkpoint::Tests)] {
        if changed && new.confirmed.remove(&checkpoint).is_some() {
            revoked.push(checkpoint);
        }
    }
    if new != old.record {
        write.put(&new)?;
        let mut data = json!({"path": old.path.to_string(), "title": short(&new.title, 120)});
        if !revoked.is_empty() {
            data["confirmed_before"] = json!(closing::notes(&old.record, &revoked));
        }
        write.event(EventType::StepDefined, &new.task, Some(&new.id), data);
    }
    Ok(())
}

/// Delete a plan with its tasks, a task with its steps, or, with `path` or `step_id`, a step with everything
/// below it. tasks_undo restores a step, but not a plan or task. Fails for steps of finished tasks and for steps that
/// other actors have leased.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Delete {
    #[serde(flatten)]
    target: StepTarget,
}

impl Tool for Delete {
    const NAME: &'static str = "tasks_delete";
    const TITLE: &'static str = "Delete a plan, task or step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = self.target.begin(cx, Self::NAME)?;
        let (root, step) = self.target.root_or_step(&mut write)?;
        let id = root.meta().id.clone();
        if let Some(step) = step {
            let mut refusals = Refusals::default();
            if let Root::Task(task) = &root {
                // A finished task keeps the steps that prove it.
                refusals.unfinished(&write.scope, &task.meta);
            }
            want_free(&write, &step, &mut refusals)?;
            refusals.finish()?;
            remove_step(&mut write, &step.record)?;
            let data = json!({"path": step.path.to_string(), "title": short(&step.record.title, 120)});
            write.event(EventType::StepDeleted, &id, Some(&step.record.id), data);
            return write.reply(&id, |written| written.step(&step.record.id, &step.path));
        }
        let roots = with_tasks(&write, root)?;
        let mut refusals = Refusals::default();
        for root in &roots {
            want_free_steps(&write, &root.meta().id, &mut refusals)?;
        }
        refusals.finish()?;
        for root in roots.iter().rev() {
            let event = match root.kind() {
                RootKind::Plan => EventType::PlanDeleted,
                RootKind::Task => EventType::TaskDeleted,
            };
            write.event(
                event,
                &root.meta().id,
                None,
                json!({"title": short(&root.meta().title, 120)}),
            );
            if let Root::Task(task) = root {
                write.touch(&task.plan);
            }
        }
        Ok(Written::about(&id, write.finish_deleting(&roots)?))
    }
}

/// Requires a step and everything below it to be free of leases of others.
fn want_free(write: &Write<'_>, step: &Located<Step>, refusals: &mut Refusals) -> Result<(), ToolError> {
    lease::guard(&write.scope, step, write.actor(), refusals)?;
    for child in children::<Step>(
        write.scope.db(),
        &write.scope.workspace,
        &step.record.id,
        usize::MAX,
    )? {
        let path = step.path.child(child.ordinal);
        let record = child.record;
        want_free(write, &Located { record, path }, refusals)?;
    }
    Ok(())
}

/// Requires all steps of a task to be free of leases of others.
fn want_free_steps(write: &Write<'_>, task: &str, refusals: &mut Refusals) -> Result<(), ToolError> {
    let (db, workspace) = (write.scope.db(), &write.scope.workspace);
    for lease in of_root::<Lease>(db, workspace, task, "", From::Oldest, usize::MAX)? {
        let selector = Selector {
            id: Some(&lease.record.step),
            ..Selector::default()
        };
        lease::guard(
            &write.scope,
            &write.scope.step(task, &selector)?,
            write.actor(),
            refusals,
        )?;
    }
    Ok(())
}

/// A plan and all its tasks, or just the task.
fn with_tasks(write: &Write<'_>, root: Root) -> Result<Vec<Root>, ToolError> {
    let mut roots = Vec::new();
    if let Root::Plan(plan) = &root {
        let wanted = store::root::Wanted {
            kind: RootKind::Task,
            plan: Some(&plan.meta.id),
            statuses: Status::ALL,
            after: 0,
            limit: usize::MAX,
        };
        for head in store::root::page(write.scope.db(), &write.scope.workspace, &wanted)? {
            roots.push(write.scope.root(&head.id)?);
        }
    }
    roots.push(root);
    Ok(roots)
}

/// Removes a step with everything below it.
fn remove_step(write: &mut Write<'_>, step: &Step) -> Result<(), ToolError> {
    let (db, workspace) = (*write.scope.db(), write.scope.workspace.clone());
    for child in children::<Step>(&db, &workspace, &step.id, usize::MAX)? {
        remove_step(write, &child.record)?;
    }
    for node in children::<Node>(&db, &workspace, &step.id, usize::MAX)? {
        write.remove(&node.record)?;
    }
    for evidence in children::<Evidence>(&db, &workspace, &step.id, usize::MAX)? {
        write.remove(&evidence.record)?;
    }
    for note in children::<Note>(&db, &workspace, &step.id, usize::MAX)? {
        write.remove(&note.record)?;
    }
    if let Some(lease) = write.scope.get::<Lease>(&step.id)? {
        write.remove(&lease)?;
    }
    write.remove(step)
}
