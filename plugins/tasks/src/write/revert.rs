//! Undo and redo: restoring records from the journal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use tollgate_sdk::{NextCall, ToolError};

use super::{Journal, Receipt, Write};
use crate::error::{Author, Reason, Refusals, refusal};
use crate::model::EventType;
use crate::mutation::BOOKKEEPING_TOOLS;
use crate::store::Kind;
use crate::store::operation::{self, Before, Change, Operation, State};

/// Treatment of other operations on the same plans and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Changes that are undone before and redone after.
    Journal,
    /// Changes that stay, unless they changed the same records.
    Records,
}

impl Write<'_> {
    /// Restores records as they were before or after the operations of a unit. The result has to be a state
    /// that direct calls could have reached. `force` is the reason for overriding leases of others.
    pub(crate) fn revert(
        mut self,
        unit: &[Operation],
        to: State,
        order: Order,
        force: Option<&str>,
    ) -> Result<Receipt, ToolError> {
        let over = self.plan_revert(unit, to, order, force.is_some())?;
        let mut data = told(unit);
        if let (Some(reason), false) = (force, over.is_empty()) {
            data["taken_from"] = json!(over);
            data["reason"] = json!(reason);
        }
        self.tell(unit, to, &data)?;
        let seqs = unit.iter().map(|operation| operation.seq).collect();
        self.apply(Journal::Reverts(seqs, to))
    }

    /// Plans to restore the records, unless that is refused. Leases of others are in the way unless `force` is set.
    /// Returns the owners of such leases.
    pub(super) fn plan_revert(
        &mut self,
        unit: &[Operation],
        to: State,
        order: Order,
        force: bool,
    ) -> Result<BTreeSet<String>, ToolError> {
        if order == Order::Journal {
            self.in_order(unit, to)?;
        }
        let mut refusals = Refusals::default();
        let changes = self.changes_of_unit(unit, to)?;
        let is_about_leases = changes.iter().all(|(_, change)| change.kind == Kind::Lease);
        let (mut over, mut back) = (BTreeSet::new(), BTreeSet::new());
        for (seq, change) in changes {
            let (present, wanted) = match to {
                State::Undone => (&change.after, &change.before),
                _ => (&change.before, &change.after),
            };
            if self.body(change.kind, &change.id)? != *present {
                self.conflict(seq, change.kind, &change.id, to, &mut refusals)?;
                continue;
            }
            match self.foreign_lease(&change, wanted.as_deref(), is_about_leases)? {
                Some(lease) if force => drop(over.insert(lease.owner)),
                Some(lease) => self.refuse_held(lease, &mut refusals)?,
                None => {}
            }
            if to == State::Undone && change.kind == Kind::Step && present.is_none() {
                back.insert(change.id.clone());
            }
            self.restore(change.kind, present.as_deref(), wanted.clone())?;
        }
        // Without all of its records, the state is not the one to judge.
        if refusals.is_empty() {
            self.faults(&mut refusals)?;
            // What is redone came after its evidence, and counted as a change then.
            let own = unit
                .iter()
                .filter(|operation| !BOOKKEEPING_TOOLS.contains(&operation.tool.as_str()));
            let own = i64::try_from(own.count()).unwrap_or(i64::MAX);
            self.unproven(own, &back, &mut refusals)?;
        }
        refusals.finish()?;
        Ok(over)
    }

    /// The changes of all operations together, one for each record, in the order in which they are reverted.
    fn changes_of_unit(&self, unit: &[Operation], to: State) -> Result<Vec<(i64, Change)>, ToolError> {
        let mut changes: Vec<(i64, Change)> = Vec::new();
        let mut places: BTreeMap<(Kind, String), usize> = BTreeMap::new();
        for operation in unit {
            let seq = operation.seq;
            for change in operation::changes(self.scope.db(), &self.scope.workspace, seq)? {
                let key = (change.kind, change.id.clone());
                match places.get(&key).and_then(|&place| changes.get_mut(place)) {
                    Some((latest, known)) => (*latest, known.after) = (seq, change.after),
                    None => {
                        places.insert(key, changes.len());
                        changes.push((seq, change));
                    }
                }
            }
        }
        changes.retain(|(_, change)| change.before != change.after);
        if to == State::Undone {
            changes.reverse();
        }
        Ok(changes)
    }

    /// Plans the events, one for each plan and task.
    fn tell(&mut self, unit: &[Operation], to: State, data: &Json) -> Result<(), ToolError> {
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        let mut roots = BTreeSet::new();
        for operation in unit {
            roots.extend(operation::roots(&db, &workspace, operation.seq)?);
        }
        let event_type = match to {
            State::Undone => EventType::Undone,
            _ => EventType::Redone,
        };
        for root in roots {
            self.event(event_type, &root, None, data.clone());
            self.touch(&root);
        }
        Ok(())
    }

    /// Requires later dependent operations to be undone first, and earlier ones to be redone first.
    fn in_order(&self, unit: &[Operation], to: State) -> Result<(), ToolError> {
        let mut first: Option<(i64, Before)> = None;
        for operation in unit {
            let before = self.before(operation.seq, unit, to)?;
            first = first.or_else(|| before.map(|before| (operation.seq, before)));
        }
        let Some((operation, before)) = first else {
            return Ok(());
        };
        // The other operation may wait for a third one. The call names the one that waits for none.
        let mut ready = before.seq;
        while let Some(next) = self.beyond(ready, ready, to)? {
            ready = next.seq;
        }
        let next_call = self.reverting(to, self.author(ready)?.as_ref());
        let unknown = Author {
            seq: before.seq,
            actor: None,
        };
        let reason = Reason::OutOfOrder {
            operation,
            before: self.author(before.seq)?.unwrap_or(unknown),
            root: before.root,
        };
        Err(refusal(reason, Some(next_call)))
    }

    /// An operation with its caller.
    fn author(&self, seq: i64) -> Result<Option<Author>, ToolError> {
        let operation = operation::get(self.scope.db(), &self.scope.workspace, seq)?;
        Ok(operation.as_ref().map(Author::from))
    }

    /// The call that undoes or redoes an operation of the caller. It shows the journal instead if there is no such
    /// operation, or if somebody else made it: that is not the caller's to take back.
    pub(super) fn reverting(&self, to: State, operation: Option<&Author>) -> NextCall {
        let tool = match to {
            State::Undone => "tasks_undo",
            _ => "tasks_redo",
        };
        let workspace = &self.scope.workspace;
        match operation.filter(|operation| operation.actor.as_deref() == self.actor()) {
            Some(own) => {
                let mut arguments = json!({"workspace": workspace, "operation": own.seq});
                if let Some(actor) = &own.actor {
                    arguments["actor"] = json!(actor);
                }
                NextCall::new(tool, arguments)
            }
            None => NextCall::new("tasks_history", json!({"workspace": workspace})),
        }
    }

    /// The operation outside of the unit that comes before one of the unit.
    fn before(&self, seq: i64, unit: &[Operation], to: State) -> Result<Option<Before>, ToolError> {
        let seqs = unit.iter().map(|operation| operation.seq);
        let bound = match to {
            State::Undone => seqs.max(),
            _ => seqs.min(),
        };
        self.beyond(seq, bound.unwrap_or(seq), to)
    }

    fn beyond(&self, seq: i64, bound: i64, to: State) -> Result<Option<Before>, ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        Ok(match to {
            State::Undone => operation::later(db, workspace, seq, bound)?,
            _ => operation::earlier(db, workspace, seq, bound)?,
        })
    }

    /// Adds a record that another operation changed since, with the call that undoes that operation.
    fn conflict(
        &self,
        seq: i64,
        kind: Kind,
        id: &str,
        to: State,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let latest = operation::latest_of(self.scope.db(), &self.scope.workspace, kind, id)?;
        let since = latest
            .filter(|latest| latest.seq > seq)
            .map(|latest| Author::from(&latest));
        let next_call = self.reverting(State::Undone, since.as_ref().filter(|_| to == State::Undone));
        let reason = Reason::UndoConflict {
            operation: seq,
            kind,
            id: id.to_owned(),
            since,
        };
        refusals.add_with(reason, next_call);
        Ok(())
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

/// Data of the events of an undo or redo.
fn told(unit: &[Operation]) -> Json {
    let Some(first) = unit.first() else {
        return json!({});
    };
    let mut data = json!({"operation": first.seq, "tool": first.tool});
    if unit.len() > 1 {
        let seqs: Vec<i64> = unit.iter().map(|operation| operation.seq).collect();
        data["tool"] = json!("tasks_batch");
        data["operations"] = json!(seqs);
    }
    let words: Vec<&str> = unit
        .iter()
        .filter_map(|operation| operation.summary.as_deref())
        .collect();
    if !words.is_empty() {
        data["summary"] = json!(super::words::joined(words.into_iter().map(str::to_owned)));
    }
    data
}
