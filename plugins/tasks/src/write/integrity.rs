//! Rules between plans and tasks that hold after every operation: direct writes, batches, undo and redo.
//!
//! A finished plan has only finished tasks. Dependencies exist and form no cycle. A plan or task that is DONE
//! has only finished dependencies, and none becomes ACTIVE before its dependencies are finished. A fault that
//! was there before the operation does not refuse it, so that old data can be mended bit by bit.

use std::collections::BTreeSet;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use super::Write;
use super::overlay::Changed;
use crate::dependency;
use crate::error::{Reason, Refusals};
use crate::model::{RootKind, Status};
use crate::record::{Meta, Plan, Root, Task};
use crate::work;

/// Most open tasks of a plan that a refusal lists.
const MAX_SHOWN_TASKS: usize = 20;

impl Write<'_> {
    /// Adds every rule that the planned changes break.
    pub(crate) fn faults(&self, refusals: &mut Refusals) -> Result<(), ToolError> {
        let mut named = BTreeSet::new();
        self.part_faults(&mut named, refusals)?;
        self.root_faults(&mut named, refusals)
    }

    /// Adds every rule between plans and tasks that the planned changes break.
    /// `named` has what the refusal says already.
    pub(super) fn root_faults(
        &self,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let changed = self.changed_roots()?;
        for root in &changed {
            self.plan_faults(root, named, refusals)?;
        }
        for root in &changed {
            self.dependency_faults(root, refusals)?;
        }
        self.circles(&changed, refusals)?;
        named.extend(changed.iter().map(|root| root.id.clone()));
        for root in &changed {
            self.dependent_faults(root, named, refusals)?;
        }
        Ok(())
    }

    /// A finished plan over an unfinished task.
    fn plan_faults(
        &self,
        root: &Changed<Root>,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let before = root.before.as_ref();
        match &root.after {
            Some(Root::Plan(plan)) if finishes(before, &plan.meta) => {
                for task in self.open_tasks(&plan.meta.id, MAX_SHOWN_TASKS)? {
                    let reason = Reason::ChildOpen {
                        parent: plan.meta.id.clone(),
                        child: format!("{} is {}", task.meta.id, task.meta.status),
                    };
                    refusals.add_with(reason, self.about("tasks_radar", &task.meta.id));
                }
            }
            Some(Root::Task(task)) if opens(before, &task.meta) => {
                self.want_open_plan(task, named, refusals)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// An unfinished task under a plan that this write does not change and that is finished.
    fn want_open_plan(
        &self,
        task: &Task,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let Some(plan) = self.get::<Plan>(&task.plan)? else {
            return Ok(());
        };
        let finishes_now = self
            .status_before(&task.plan)?
            .is_some_and(|status| !status.is_finished());
        match plan.meta.status.is_finished() && !finishes_now {
            true => self.reopen_first(&Root::Plan(plan), named, refusals),
            false => Ok(()),
        }
    }

    /// Adds a finished plan or task that has to be reopened first, after everything that has to be reopened
    /// before it.
    pub(super) fn reopen_first(
        &self,
        root: &Root,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let meta = root.meta();
        if !meta.status.is_finished() || !named.insert(meta.id.clone()) {
            return Ok(());
        }
        if let Root::Task(task) = root
            && let Some(plan) = self.get::<Plan>(&task.plan)?
        {
            self.reopen_first(&Root::Plan(plan), named, refusals)?;
        }
        self.done_dependents(&meta.id, named, refusals)?;
        let reason = Reason::NotOpen {
            id: meta.id.clone(),
            status: meta.status,
        };
        // Somebody finished it. Whether it is reopened is for the caller to decide.
        refusals.add_with(reason, work::show_root(&self.scope, &meta.id));
        Ok(())
    }

    /// Dependencies of a changed plan or task that do not exist or are not finished.
    fn dependency_faults(&self, root: &Changed<Root>, refusals: &mut Refusals) -> Result<(), ToolError> {
        let Some(after) = root.after.as_ref().map(Root::meta) else {
            return Ok(());
        };
        let before = root.before.as_ref().map(Root::meta);
        for id in &after.depends_on {
            let had = before.is_some_and(|before| before.depends_on.contains(id));
            let was_done = had && before.is_some_and(|before| before.status == Status::Done);
            let (then, now) = (self.status_before(id)?, self.status_after(id)?);
            let stood_open = was_done && !then.is_some_and(Status::is_finished);
            let begins = before.map(|before| before.status) != Some(after.status);
            let wants = match after.status {
                Status::Done => !stood_open,
                Status::Active => begins,
                Status::Todo | Status::Parked | Status::Canceled => false,
            };
            match now {
                None if !had || then.is_some() => {
                    let reason = Reason::DependencyGone {
                        id: after.id.clone(),
                        dependency: id.clone(),
                    };
                    refusals.add_with(reason, self.depending(after, id)?);
                }
                now if wants && !now.is_some_and(Status::is_finished) => {
                    refusals.dependency_open(&self.scope, after, id, now);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Cycles through a dependency that this write adds.
    fn circles(&self, changed: &[Changed<Root>], refusals: &mut Refusals) -> Result<(), ToolError> {
        let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for root in changed {
            let Some(after) = root.after.as_ref().map(Root::meta) else {
                continue;
            };
            let before = root.before.as_ref().map(Root::meta);
            let had = |id: &String| before.is_some_and(|before| before.depends_on.contains(id));
            let new: Vec<String> = after.depends_on.iter().filter(|id| !had(id)).cloned().collect();
            let circle = dependency::find_circle(&after.id, &new, &mut |id| -> Result<_, ToolError> {
                let root = self.root_after(id)?;
                Ok(root.map_or_else(Vec::new, |root| root.meta().depends_on.clone()))
            })?;
            let Some(circle) = circle else {
                continue;
            };
            if found.insert(circle.iter().cloned().collect()) {
                let next_call = self.in_circle(&circle)?;
                refusals.add_with(Reason::DependencyCycle(circle), next_call);
            }
        }
        Ok(())
    }

    /// The call that shows a plan or task of a cycle whose dependency is there already.
    fn in_circle(&self, circle: &[String]) -> Result<Option<NextCall>, ToolError> {
        for pair in circle.windows(2) {
            let [id, dependency] = pair else {
                continue;
            };
            let stored = match RootKind::of(id) {
                Some(RootKind::Plan) => self.scope.get::<Plan>(id)?.map(|plan| plan.meta),
                _ => self.scope.get::<Task>(id)?.map(|task| task.meta),
            };
            if let Some(meta) = stored.filter(|meta| meta.depends_on.contains(dependency)) {
                return Ok(Some(work::show_root(&self.scope, &meta.id)));
            }
        }
        Ok(None)
    }

    /// Plans and tasks that depend on a changed one, which is reopened or gone.
    fn dependent_faults(
        &self,
        root: &Changed<Root>,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let was_finished = root
            .before
            .as_ref()
            .is_some_and(|root| root.meta().status.is_finished());
        match &root.after {
            None if root.before.is_some() => {
                for dependent in self.dependents(&root.id)? {
                    let meta = dependent.meta();
                    if !named.contains(&meta.id) {
                        let reason = Reason::DependencyGone {
                            id: meta.id.clone(),
                            dependency: root.id.clone(),
                        };
                        refusals.add_with(reason, work::show_root(&self.scope, &meta.id));
                    }
                }
                Ok(())
            }
            Some(after) if was_finished && !after.meta().status.is_finished() => {
                self.done_dependents(&root.id, named, refusals)
            }
            _ => Ok(()),
        }
    }

    /// Dependents that are DONE, in the order in which they can be reopened.
    fn done_dependents(
        &self,
        id: &str,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        for dependent in self.dependents(id)? {
            let meta = dependent.meta();
            if meta.status != Status::Done || !named.insert(meta.id.clone()) {
                continue;
            }
            if let Root::Task(task) = &dependent
                && let Some(plan) = self.get::<Plan>(&task.plan)?
            {
                self.reopen_first(&Root::Plan(plan), named, refusals)?;
            }
            self.done_dependents(&meta.id, named, refusals)?;
            let reason = Reason::DependentDone {
                id: meta.id.clone(),
                dependency: id.to_owned(),
            };
            refusals.add_with(reason, work::show_root(&self.scope, &meta.id));
        }
        Ok(())
    }

    /// The call that shows what has a dependency, or the journal if the dependency is not there yet.
    fn depending(&self, after: &Meta, dependency: &str) -> Result<NextCall, ToolError> {
        let stored = match RootKind::of(&after.id) {
            Some(RootKind::Plan) => self.scope.get::<Plan>(&after.id)?.map(|plan| plan.meta),
            _ => self.scope.get::<Task>(&after.id)?.map(|task| task.meta),
        };
        Ok(
            match stored.filter(|meta| meta.depends_on.iter().any(|id| id == dependency)) {
                Some(meta) => work::show_root(&self.scope, &meta.id),
                None => NextCall::new("tasks_history", json!({"workspace": self.scope.workspace})),
            },
        )
    }

    /// A call that reads about a plan or task.
    fn about(&self, tool: &str, id: &str) -> NextCall {
        NextCall::new(tool, json!({"workspace": self.scope.workspace, "task": id}))
    }
}

/// Returns whether a plan or task becomes finished.
fn finishes(before: Option<&Root>, after: &Meta) -> bool {
    after.status.is_finished() && before.is_none_or(|before| !before.meta().status.is_finished())
}

/// Returns whether a plan or task becomes unfinished or comes to be.
fn opens(before: Option<&Root>, after: &Meta) -> bool {
    !after.status.is_finished() && before.is_none_or(|before| before.meta().status.is_finished())
}
