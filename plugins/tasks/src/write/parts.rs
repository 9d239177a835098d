//! Rules inside a task that hold after every operation: closed steps have only closed parts, finished tasks
//! have only closed and confirmed steps, and every record has the record that it belongs to.

use std::collections::BTreeSet;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use super::Write;
use super::overlay::Changed;
use crate::checkpoint;
use crate::closing;
use crate::error::{Author, Reason, Refusals};
use crate::limits::short;
use crate::model::Status;
use crate::record::{Node, Root, Step, Task, step_status};
use crate::scope::Located;
use crate::store::operation::{self, State};
use crate::store::record::{From, of_root};
use crate::store::{self, Kind};
use crate::work;

/// Most parts that a refusal lists.
const MAX_SHOWN_PARTS: usize = 20;

impl Write<'_> {
    /// Adds every rule inside a task that the planned changes break.
    pub(super) fn part_faults(
        &self,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        for step in self.changes_of::<Step>()? {
            self.step_faults(&step, named, refusals)?;
        }
        for node in self.changes_of::<Node>()? {
            if let Some(after) = node.after.filter(|node| !node.status.is_finished())
                && node.before.is_none_or(|node| node.status.is_finished())
            {
                self.want_open_step(&after.step, named, refusals)?;
            }
        }
        for task in self.changes_of::<Task>()? {
            self.task_faults(&task, refusals)?;
        }
        self.orphans(refusals)
    }

    fn step_faults(
        &self,
        step: &Changed<Step>,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let Some(after) = &step.after else {
            return Ok(());
        };
        let moved = |before: &Step| before.parent != after.parent;
        let was_done = step.before.as_ref().is_some_and(Step::is_done);
        if after.is_done() {
            if !was_done {
                self.open_parts(after, refusals)?;
            }
        } else if step
            .before
            .as_ref()
            .is_none_or(|before| was_done || moved(before))
            && let Some(parent) = &after.parent
        {
            self.want_open_step(parent, named, refusals)?;
        }
        let status = step.before.as_ref().map(Step::status);
        let worse = after.status() != step_status::DONE && status != Some(after.status());
        if worse
            && let Some(task) = self.get::<Task>(&after.task)?
            && self.status_before(&task.meta.id)? == Some(Status::Done)
            && task.meta.status == Status::Done
        {
            self.reopen_first(&Root::Task(task), named, refusals)?;
        }
        Ok(())
    }

    /// Open steps and nodes under a step that this write closes.
    fn open_parts(&self, step: &Step, refusals: &mut Refusals) -> Result<(), ToolError> {
        for (kind, id) in self.hanging(&step.id, MAX_SHOWN_PARTS)? {
            let open = match kind {
                Kind::Step => self
                    .get::<Step>(&id)?
                    .filter(|step| !step.is_done())
                    .map(|step| step.title),
                Kind::Node => self
                    .get::<Node>(&id)?
                    .filter(|node| !node.status.is_finished())
                    .map(|node| node.title),
                _ => None,
            };
            let Some(child) = open else {
                continue;
            };
            let look = match self.scope.get::<Step>(&step.id)? {
                Some(stored) => work::show_step(&self.scope, &stored),
                None => work::show_root(&self.scope, &step.task),
            };
            let reason = Reason::ChildOpen {
                parent: format!("step {}", self.place(&step.id)?),
                child: format!("{kind} {id} {}", short(&child, 80)),
            };
            refusals.add_with(reason, look);
        }
        Ok(())
    }

    /// Requires the parent of an open part to be open.
    fn want_open_step(
        &self,
        parent: &str,
        named: &mut BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let closes_now = self
            .scope
            .get::<Step>(parent)?
            .is_some_and(|step| !step.is_done());
        if let Some(step) = self.get::<Step>(parent)?
            && step.is_done()
            && !closes_now
            && named.insert(step.id.clone())
        {
            let reopen = json!({"workspace": self.scope.workspace, "task": step.task, "step_id": step.id, "completed": false});
            let mut call = NextCall::new("tasks_progress", reopen);
            work::sign(&self.scope, &mut call, self.actor());
            refusals.add_with(Reason::StepClosed(self.place(parent)?), call);
        }
        Ok(())
    }

    /// Steps of a task that becomes DONE although they are open or not confirmed.
    fn task_faults(&self, task: &Changed<Task>, refusals: &mut Refusals) -> Result<(), ToolError> {
        let Some(after) = task
            .after
            .as_ref()
            .filter(|task| task.meta.status == Status::Done)
        else {
            return Ok(());
        };
        if task
            .before
            .as_ref()
            .is_some_and(|task| task.meta.status == Status::Done)
        {
            return Ok(());
        }
        let id = &after.meta.id;
        let mut steps: BTreeSet<(i64, String)> = BTreeSet::new();
        for status in [step_status::OPEN, step_status::BLOCKED, step_status::FORCED] {
            let (db, workspace) = (self.scope.db(), &self.scope.workspace);
            for step in of_root::<Step>(
                db,
                workspace,
                id,
                status,
                From::Oldest,
                MAX_SHOWN_PARTS + self.pending.len(),
            )? {
                steps.insert((step.record.position, step.record.id));
            }
        }
        for step in self.changes_of::<Step>()? {
            steps.extend(step.after.map(|step| (step.position, step.id)));
        }
        for (_, step) in steps {
            if let Some(step) = self.get::<Step>(&step)?.filter(|step| step.task == *id) {
                self.want_closed(after, &step, refusals)?;
            }
        }
        Ok(())
    }

    /// Requires a closed step with confirmed checkpoints. The calls are about the stored step, because the
    /// refused write leaves it as it is.
    fn want_closed(&self, task: &Task, step: &Step, refusals: &mut Refusals) -> Result<(), ToolError> {
        let id = &task.meta.id;
        let stored = self.scope.get::<Step>(&step.id)?;
        if !step.is_done() {
            let child = format!("step {} {}", self.place(&step.id)?, short(&step.title, 80));
            let parent = id.clone();
            let call = match &stored {
                Some(stored) => self.work_on(id, stored)?,
                None => self.journal(),
            };
            refusals.add_with(Reason::ChildOpen { parent, child }, call);
            return Ok(());
        }
        if let Some(stored) = stored.filter(|stored| stored.status() == step.status()) {
            let path = self.scope.step_path(&stored.id)?;
            let located = Located { record: stored, path };
            return closing::unconfirmed(&self.scope, &located, self.actor(), refusals);
        }
        let mut call = Some(self.journal());
        for checkpoint in checkpoint::missing(step, &BTreeSet::new()) {
            let path = self.place(&step.id)?;
            refusals.add_with(Reason::NotConfirmed { path, checkpoint }, call.take());
        }
        Ok(())
    }

    /// The call that works on a stored step if it is the next of its task, otherwise the one that shows it.
    fn work_on(&self, task: &str, step: &Step) -> Result<NextCall, ToolError> {
        let piece = match self.scope.get::<Task>(task)? {
            Some(task) => work::of_task(&self.scope, &task, self.actor())?.piece,
            None => None,
        };
        let at_hand = piece.filter(|piece| piece.step().is_some_and(|at| at.record.id == step.id));
        match at_hand {
            Some(piece) => piece.call(&self.scope, self.actor()),
            None => Ok(work::show_step(&self.scope, step)),
        }
    }

    /// The call that shows the journal.
    fn journal(&self) -> NextCall {
        NextCall::new("tasks_history", json!({"workspace": self.scope.workspace}))
    }

    /// Records that would be left without the record that they belong to.
    fn orphans(&self, refusals: &mut Refusals) -> Result<(), ToolError> {
        for pending in &self.pending {
            let columns = &pending.columns;
            match (&pending.before, &pending.after) {
                (None, Some(_)) => {
                    for parent in BTreeSet::from([&columns.parent, &columns.root]) {
                        if *parent != columns.id && !parent.is_empty() && !self.exists(parent)? {
                            let maker = self.maker(State::Undone, parent)?;
                            let next_call = self.reverting(State::Done, maker.as_ref());
                            refusals.add_with(orphan(pending.kind, &columns.id, parent, None), next_call);
                        }
                    }
                }
                // A lease has the identifier of its step, and nothing hangs on it.
                (Some(_), None) if matches!(pending.kind, Kind::Plan | Kind::Task | Kind::Step) => {
                    for (kind, id) in self.hanging(&columns.id, MAX_SHOWN_PARTS)? {
                        let maker = self.maker(State::Done, &id)?;
                        let next_call = self.reverting(State::Undone, maker.as_ref());
                        refusals.add_with(orphan(kind, &id, &columns.id, maker), next_call);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether a plan, task or step exists after this write.
    fn exists(&self, id: &str) -> Result<bool, ToolError> {
        for kind in [Kind::Task, Kind::Step, Kind::Plan] {
            if self.body(kind, id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The operation in a state that made a record.
    fn maker(&self, state: State, id: &str) -> Result<Option<Author>, ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let made = match operation::maker(db, workspace, id, state)? {
            Some(seq) => operation::get(db, workspace, seq)?,
            None => None,
        };
        Ok(made.as_ref().map(Author::from))
    }

    /// Path of a stored step, otherwise its identifier.
    pub(super) fn place(&self, step: &str) -> Result<String, ToolError> {
        let stored = store::record::place(self.scope.db(), &self.scope.workspace, Kind::Step, step)?;
        Ok(match stored {
            Some(_) => self.scope.step_path(step)?.to_string(),
            None => step.to_owned(),
        })
    }
}

fn orphan(kind: Kind, id: &str, parent: &str, maker: Option<Author>) -> Reason {
    Reason::Orphan {
        kind,
        id: id.to_owned(),
        parent: parent.to_owned(),
        maker,
    }
}
