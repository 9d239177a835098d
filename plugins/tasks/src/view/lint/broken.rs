//! States that no call leads to any more, but that data of earlier versions can have.

use std::collections::BTreeSet;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use super::{Linter, MAX_STEPS_PER_TASK, Severity};
use crate::closing;
use crate::dependency::{self, Dependency};
use crate::model::{Checkpoint, Status};
use crate::record::{Evidence, Meta, Node, Plan, Root, Step, Task, step_status};
use crate::scope::Located;
use crate::store::record::{From, of_root};
use crate::store::root::Head;

/// Most pieces of evidence of one task that are examined.
const MAX_EVIDENCE: usize = 200;

impl Linter<'_> {
    /// A finished plan with unfinished tasks.
    pub(super) fn finished_over_open(&mut self, plan: &Meta, tasks: &[Head]) -> Result<(), ToolError> {
        let mut open = tasks
            .iter()
            .filter(|task| task.status.is_some_and(|status| !status.is_finished()));
        if plan.status.is_finished()
            && let Some(first) = open.next()
        {
            let status = first.status.map_or("unknown", Status::as_str);
            let more = match open.count() {
                0 => String::new(),
                more => format!(", and {more} more tasks are unfinished"),
            };
            let message = format!(
                "{} is {}, but {} is {status}{more}",
                plan.id, plan.status, first.id
            );
            let root = self.scope.root(&plan.id)?;
            let patch = self.reopen(&root)?;
            self.add(
                "FINISHED_PLAN_OPEN_TASKS",
                Severity::Error,
                &plan.id,
                message,
                patch,
            );
        }
        Ok(())
    }

    /// An unfinished task in a finished plan, for a task that is examined alone.
    pub(super) fn open_in_finished_plan(&mut self, task: &Task) -> Result<(), ToolError> {
        if task.meta.status.is_finished() {
            return Ok(());
        }
        match self.scope.get::<Plan>(&task.plan)? {
            Some(plan) => {
                let head = self.scope.head(&task.meta.id)?;
                self.finished_over_open(&plan.meta, &[head])
            }
            None => Ok(()),
        }
    }

    /// A plan or task that is DONE or ACTIVE although a dependency is open.
    pub(super) fn over_open_dependencies(&mut self, root: &Root) -> Result<(), ToolError> {
        let meta = root.meta();
        if !matches!(meta.status, Status::Done | Status::Active) {
            return Ok(());
        }
        for dependency in dependency::of(self.scope, meta)?
            .iter()
            .filter(|dependency| dependency.is_open())
        {
            // A deleted dependency is an issue of its own.
            let Some(status) = dependency.status else {
                continue;
            };
            let message = format!(
                "{} is {}, but depends on {}, which is {status}",
                meta.id, meta.status, dependency.id
            );
            if meta.status == Status::Done {
                let patch = self.reopen_or_detach(root, dependency)?;
                self.add(
                    "DONE_OVER_OPEN_DEPENDENCY",
                    Severity::Error,
                    &meta.id,
                    message,
                    patch,
                );
            } else {
                let patch = self.call("tasks_complete", json!({"task": meta.id, "status": "TODO"}));
                self.add(
                    "ACTIVE_OVER_OPEN_DEPENDENCY",
                    Severity::Warning,
                    &meta.id,
                    message,
                    patch,
                );
            }
        }
        Ok(())
    }

    /// A task that is DONE with open steps.
    pub(super) fn done_with_open_steps(&mut self, task: &Task) -> Result<(), ToolError> {
        let id = &task.meta.id;
        let patch = self.reopen(&Root::Task(task.clone()))?;
        let message = format!("{id} is DONE, but has open steps");
        self.add("DONE_WITH_OPEN_STEPS", Severity::Error, id, message, patch);
        Ok(())
    }

    /// Closed steps with an open step or node directly below.
    pub(super) fn open_below_closed(&mut self, task: &Task) -> Result<(), ToolError> {
        let (scope, id) = (self.scope, &task.meta.id);
        let mut parents = BTreeSet::new();
        for status in [step_status::OPEN, step_status::BLOCKED] {
            let (db, workspace) = (scope.db(), &scope.workspace);
            for step in of_root::<Step>(db, workspace, id, status, From::Oldest, MAX_STEPS_PER_TASK)? {
                parents.extend(step.record.parent);
            }
        }
        let open = of_root::<Node>(
            scope.db(),
            &scope.workspace,
            id,
            step_status::OPEN,
            From::Oldest,
            MAX_STEPS_PER_TASK,
        )?;
        parents.extend(open.into_iter().map(|node| node.record.step));
        for parent in parents {
            let Some(step) = scope.get::<Step>(&parent)?.filter(Step::is_done) else {
                continue;
            };
            let path = scope.step_path(&parent)?;
            // Reopening a step of a DONE task reopens the task, which its plan may not allow yet.
            let patch = match task.meta.status {
                Status::Done => self.reopen(&Root::Task(task.clone()))?,
                _ => self.call(
                    "tasks_progress",
                    json!({"task": step.task, "step_id": step.id, "completed": false}),
                ),
            };
            let message = format!("step {path} is closed, but a step or node below it is open");
            self.add("CLOSED_OVER_OPEN", Severity::Error, &step.id, message, patch);
        }
        Ok(())
    }

    /// Closed steps with evidence for a checkpoint that nobody confirmed.
    pub(super) fn unconfirmed_evidence(&mut self, task: &Task) -> Result<(), ToolError> {
        let (scope, id) = (self.scope, &task.meta.id);
        let all = of_root::<Evidence>(scope.db(), &scope.workspace, id, "", From::Oldest, MAX_EVIDENCE)?;
        let mut seen = BTreeSet::new();
        for evidence in all {
            let (Some(step), Some(checkpoint)) = (evidence.record.step, evidence.record.checkpoint) else {
                continue;
            };
            let gated = matches!(checkpoint, Checkpoint::Criteria | Checkpoint::Tests);
            if gated || !seen.insert((step.clone(), checkpoint)) {
                continue;
            }
            let Some(step) = scope.get::<Step>(&step)?.filter(Step::is_done) else {
                continue;
            };
            // A required checkpoint without confirmation is an issue of its own.
            if step.confirmed.contains_key(&checkpoint) || step.required.contains(&checkpoint) {
                continue;
            }
            let path = scope.step_path(&step.id)?;
            let message = format!("step {path} has evidence for {checkpoint}, which is not confirmed");
            let located = Located { record: step, path };
            let patch = closing::confirm_or_show(scope, &located, &[checkpoint])?;
            let id = &located.record.id;
            self.add("UNCONFIRMED_EVIDENCE", Severity::Error, id, message, patch);
        }
        Ok(())
    }

    /// The call that reopens a finished plan or task, or what has to be reopened before it.
    fn reopen(&self, root: &Root) -> Result<NextCall, ToolError> {
        let mut seen = BTreeSet::new();
        let first = self
            .reopened_first(root.clone(), &mut seen)?
            .unwrap_or_else(|| root.clone());
        let meta = first.meta();
        let waits = dependency::of(self.scope, meta)?.iter().any(Dependency::is_open);
        let status = if waits { Status::Todo } else { Status::Active };
        Ok(self.call("tasks_complete", json!({"task": meta.id, "status": status})))
    }

    /// The call that reopens a plan or task that is DONE over an open dependency. In a cycle, nothing can be
    /// reopened first, so the dependency is removed.
    fn reopen_or_detach(&self, root: &Root, dependency: &Dependency) -> Result<NextCall, ToolError> {
        let mut seen = BTreeSet::new();
        Ok(match self.reopened_first(root.clone(), &mut seen)? {
            Some(first) => self.call(
                "tasks_complete",
                json!({"task": first.meta().id, "status": "TODO"}),
            ),
            None => dependency::without(self.scope, root.meta(), &dependency.id),
        })
    }

    /// The finished plan or task that waits for no other one to be reopened. `None` in a cycle.
    fn reopened_first(&self, root: Root, seen: &mut BTreeSet<String>) -> Result<Option<Root>, ToolError> {
        if !seen.insert(root.meta().id.clone()) {
            return Ok(None);
        }
        if let Root::Task(task) = &root
            && let Some(plan) = self.scope.get::<Plan>(&task.plan)?
            && plan.meta.status.is_finished()
        {
            return self.reopened_first(Root::Plan(plan), seen);
        }
        let dependents = dependency::dependents(self.scope, &root.meta().id)?;
        match dependents
            .into_iter()
            .find(|root| root.meta().status == Status::Done)
        {
            Some(dependent) => self.reopened_first(dependent, seen),
            None => Ok(Some(root)),
        }
    }
}
