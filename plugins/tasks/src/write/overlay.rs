//! Records as a write leaves them: the stored ones, overlaid with the planned changes.

use std::collections::BTreeSet;

use tollgate_sdk::{DbError, ToolError};

use super::{Pending, Write, parse};
use crate::dependency;
use crate::model::{RootKind, Status};
use crate::record::{Plan, Record, Root, Task};
use crate::store::root::{Wanted, page};
use crate::store::{self, Kind};

impl Write<'_> {
    /// The planned change of a record.
    fn planned(&self, kind: Kind, id: &str) -> Option<&Pending> {
        self.pending
            .iter()
            .find(|pending| pending.kind == kind && pending.columns.id == id)
    }

    /// A record as this write leaves it.
    pub(crate) fn get<T: Record>(&self, id: &str) -> Result<Option<T>, ToolError> {
        match self.planned(T::KIND, id) {
            None => Ok(self.scope.get(id)?),
            Some(pending) => Ok(pending.after.as_deref().map(parse).transpose()?),
        }
    }

    /// The JSON of a record as this write leaves it.
    pub(super) fn body(&self, kind: Kind, id: &str) -> Result<Option<String>, DbError> {
        match self.planned(kind, id) {
            None => store::record::body(self.scope.db(), &self.scope.workspace, kind, id),
            Some(pending) => Ok(pending.after.clone()),
        }
    }

    /// A plan or task as this write leaves it.
    pub(crate) fn root_after(&self, id: &str) -> Result<Option<Root>, ToolError> {
        Ok(match RootKind::of(id) {
            Some(RootKind::Plan) => self.get::<Plan>(id)?.map(Root::Plan),
            Some(RootKind::Task) => self.get::<Task>(id)?.map(Root::Task),
            None => None,
        })
    }

    /// Status of a plan or task as this write leaves it, `None` if there is no such plan or task.
    pub(crate) fn status_after(&self, id: &str) -> Result<Option<Status>, ToolError> {
        Ok(self.root_after(id)?.map(|root| root.meta().status))
    }

    /// Status of a plan or task before this write.
    pub(super) fn status_before(&self, id: &str) -> Result<Option<Status>, ToolError> {
        Ok(match RootKind::of(id) {
            Some(RootKind::Plan) => self.scope.get::<Plan>(id)?.map(|plan| plan.meta.status),
            Some(RootKind::Task) => self.scope.get::<Task>(id)?.map(|task| task.meta.status),
            None => None,
        })
    }

    /// Planned changes of one kind of record: identifier, before and after.
    pub(super) fn changes_of<T: Record>(&self) -> Result<Vec<Changed<T>>, ToolError> {
        self.pending
            .iter()
            .filter(|pending| pending.kind == T::KIND && pending.before != pending.after)
            .map(|pending| {
                Ok(Changed {
                    id: pending.columns.id.clone(),
                    before: pending.before.as_deref().map(parse).transpose()?,
                    after: pending.after.as_deref().map(parse).transpose()?,
                })
            })
            .collect()
    }

    /// Planned changes of plans and tasks.
    pub(super) fn changed_roots(&self) -> Result<Vec<Changed<Root>>, ToolError> {
        let plans = self.changes_of::<Plan>()?.into_iter();
        let tasks = self.changes_of::<Task>()?.into_iter();
        let plans = plans.map(|plan| plan.map(Root::Plan));
        Ok(plans.chain(tasks.map(|task| task.map(Root::Task))).collect())
    }

    /// The plans or tasks that depend on one, as this write leaves them.
    pub(super) fn dependents(&self, id: &str) -> Result<Vec<Root>, ToolError> {
        let changed = self.changed_roots()?;
        let touched: BTreeSet<&str> = changed.iter().map(|root| root.id.as_str()).collect();
        let mut roots: Vec<Root> = dependency::dependents(&self.scope, id)?
            .into_iter()
            .filter(|root| !touched.contains(root.meta().id.as_str()))
            .collect();
        roots.extend(changed.into_iter().filter_map(|root| root.after));
        roots.retain(|root| root.meta().depends_on.iter().any(|other| other == id));
        Ok(roots)
    }

    /// The unfinished tasks of a plan, as this write leaves them.
    pub(crate) fn open_tasks(&self, plan: &str, limit: usize) -> Result<Vec<Task>, ToolError> {
        let wanted = Wanted {
            kind: RootKind::Task,
            plan: Some(plan),
            statuses: &[Status::Todo, Status::Active, Status::Parked],
            after: 0,
            limit: limit.saturating_add(self.pending.len()),
        };
        let mut ids: BTreeSet<(i64, String)> = page(self.scope.db(), &self.scope.workspace, &wanted)?
            .into_iter()
            .map(|head| (head.number, head.id))
            .collect();
        for changed in self.changes_of::<Task>()? {
            if let Some(task) = changed.after {
                ids.insert((task.meta.number, task.meta.id));
            }
        }
        let mut tasks = Vec::new();
        for (_, id) in ids {
            let open = self
                .get::<Task>(&id)?
                .filter(|task| task.plan == plan && !task.meta.status.is_finished());
            tasks.extend(open);
        }
        tasks.truncate(limit);
        Ok(tasks)
    }

    /// The records that hang under another one, as this write leaves them.
    pub(super) fn hanging(&self, parent: &str, limit: usize) -> Result<Vec<(Kind, String)>, ToolError> {
        let limit = limit.saturating_add(self.pending.len());
        let mut found = store::record::hanging(self.scope.db(), &self.scope.workspace, parent, limit)?;
        found.retain(|(kind, id)| self.planned(*kind, id).is_none());
        found.extend(
            self.pending
                .iter()
                .filter(|pending| pending.after.is_some() && pending.columns.parent == parent)
                .map(|pending| (pending.kind, pending.columns.id.clone())),
        );
        Ok(found)
    }
}

/// A record before and after a write.
#[derive(Debug, Clone)]
pub(super) struct Changed<T> {
    pub id: String,
    pub before: Option<T>,
    pub after: Option<T>,
}

impl<T> Changed<T> {
    fn map<U>(self, make: impl Fn(T) -> U) -> Changed<U> {
        Changed {
            id: self.id,
            before: self.before.map(&make),
            after: self.after.map(&make),
        }
    }
}
