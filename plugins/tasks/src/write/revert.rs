//! Undo and redo: restoring records from the journal, in its order.

use std::collections::BTreeSet;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use super::{Journal, Receipt, Write, parse};
use crate::error::{Reason, Refusals, refusal};
use crate::model::EventType;
use crate::record::{Plan, Task};
use crate::store::operation::{self, Operation, State};
use crate::store::{self, Kind};

impl Write<'_> {
    /// Restores records as they were before or after an operation.
    pub(crate) fn revert(mut self, operation: &Operation, to: State) -> Result<Receipt, ToolError> {
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        self.in_order(operation.seq, to)?;
        let mut changes = operation::changes(&db, &workspace, operation.seq)?;
        if to == State::Undone {
            changes.reverse();
        }
        let mut reopened = Vec::new();
        for change in changes {
            let (present, wanted) = match to {
                State::Undone => (change.after, change.before),
                _ => (change.before, change.after),
            };
            if store::record::body(&db, &workspace, change.kind, &change.id)? != present {
                let reason = Reason::UndoConflict {
                    operation: operation.seq,
                    kind: change.kind,
                    id: change.id,
                };
                return Err(reason.into());
            }
            reopened.extend(task_reopened(change.kind, present.as_deref(), wanted.as_deref())?);
            self.restore(change.kind, present.as_deref(), wanted)?;
        }
        self.want_open_plans(&reopened)?;
        for root in operation::roots(&db, &workspace, operation.seq)? {
            let event_type = if to == State::Undone {
                EventType::Undone
            } else {
                EventType::Redone
            };
            let data = json!({"operation": operation.seq, "tool": operation.tool});
            self.event(event_type, &root, None, data);
            self.touch(&root);
        }
        self.apply(Journal::Reverts(operation.seq, to))
    }

    /// Requires later dependent operations to be undone first, and earlier ones to be redone first. Comparing
    /// records is not enough, because an operation may depend on a plan that it does not change.
    fn in_order(&self, operation: i64, to: State) -> Result<(), ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let (before, tool) = match to {
            State::Undone => (operation::later(db, workspace, operation)?, "tasks_undo"),
            _ => (operation::earlier(db, workspace, operation)?, "tasks_redo"),
        };
        let Some(before) = before else {
            return Ok(());
        };
        let reason = Reason::OutOfOrder {
            operation,
            before: before.seq,
            root: before.root.clone(),
        };
        let first = json!({"workspace": workspace, "task": before.root});
        let first = (!before.root.is_empty()).then(|| NextCall::new(tool, first));
        Err(refusal(reason, first))
    }

    /// Requires the plans of reopened tasks to be open.
    fn want_open_plans(&self, tasks: &[Task]) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let plans: BTreeSet<&str> = tasks.iter().map(|task| task.plan.as_str()).collect();
        for plan in plans {
            if let Some(plan) = self.get::<Plan>(plan)? {
                refusals.unfinished(&self.scope, &plan.meta);
            }
        }
        refusals.finish()
    }

    /// Plans to restore a record from the journal.
    fn restore(
        &mut self,
        kind: Kind,
        present: Option<&str>,
        wanted: Option<String>,
    ) -> Result<(), ToolError> {
        let Some(text) = wanted.as_deref().or(present) else {
            return Ok(());
        };
        let columns = crate::record::columns(kind, text)?;
        let root = crate::record::root(kind, text)?;
        if let Some(root) = root {
            self.follow(&root)?;
            if wanted.is_none()
                && let Some(head) = self.heads.get_mut(&root.meta().id)
            {
                head.status = None;
            }
        }
        self.change(kind, columns, wanted)?;
        Ok(())
    }
}

/// The task that an undo or redo reopens, if any.
fn task_reopened(kind: Kind, present: Option<&str>, wanted: Option<&str>) -> Result<Option<Task>, ToolError> {
    let (Kind::Task, Some(present), Some(wanted)) = (kind, present, wanted) else {
        return Ok(None);
    };
    let (before, after): (Task, Task) = (parse(present)?, parse(wanted)?);
    let reopened = before.meta.status.is_finished() && !after.meta.status.is_finished();
    Ok(reopened.then_some(after))
}
