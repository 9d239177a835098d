//! Applying a write: journal, records, bodies, revisions, events and counters, in this order.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_sdk::{DbError, ToolError};

use super::{Journal, Pending, Receipt, Write};
use crate::model::RootKind;
use crate::mutation;
use crate::named;
use crate::store;
use crate::store::event::{self, Event};
use crate::store::operation::{self, Change, Operation, State};

impl Write<'_> {
    /// Applies the planned changes.
    pub(super) fn apply(mut self, journal: Journal) -> Result<Receipt, ToolError> {
        self.pending.retain(|pending| pending.before != pending.after);
        if self.pending.is_empty() && matches!(journal, Journal::Undoable) {
            return self.unchanged();
        }
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        if !matches!(journal, Journal::Reverts(..)) {
            self.record(&journal)?;
        }
        for pending in &self.pending {
            let Pending {
                kind, columns, after, ..
            } = pending;
            match after {
                Some(body) => store::record::write(&db, &workspace, *kind, columns, body)?,
                None => store::record::remove(&db, &workspace, *kind, &columns.id)?,
            }
        }
        for body in &self.bodies {
            store::body::insert(&db, &workspace, &body.root, &body.evidence, &body.text)?;
        }
        let revisions = self.advance()?;
        let events = self.publish(&revisions)?;
        if let Journal::Reverts(unit, state) = journal {
            for seq in unit {
                operation::set_state(&db, &workspace, seq, state, self.scope.counters.events)?;
            }
        }
        mutation::advance(&mut self.scope, self.tool)?;
        store::workspace::save(&db, &workspace, &self.scope.counters)?;
        named::record(self.scope.cx, self.tool, &self.names())?;
        Ok(Receipt {
            revisions,
            events: if self.shows_events { events } else { Vec::new() },
            warnings: self.warnings,
        })
    }

    /// Changed entities, as the ledger names them: plans and tasks, then their parts.
    fn names(&self) -> BTreeSet<String> {
        let part = |pending: &Pending| {
            let (id, root) = (&pending.columns.id, &pending.columns.root);
            match self.named.get(root) {
                Some(name) if id == root => name.clone(),
                Some(name) => format!("{name}/{id}"),
                None => named::template(id),
            }
        };
        self.named
            .values()
            .cloned()
            .chain(self.pending.iter().map(part))
            .collect()
    }

    /// Receipt of a write without changes. Revisions stay.
    fn unchanged(self) -> Result<Receipt, ToolError> {
        mutation::pass(self.scope.cx)?;
        if let Some(envelope) = self.scope.cx.envelope_id() {
            named::record(
                self.scope.cx,
                self.tool,
                &BTreeSet::from([named::envelope(envelope)]),
            )?;
        }
        let mut revisions = BTreeMap::new();
        for root in self.touched.iter().chain(self.heads.keys()) {
            if let Some(head) = store::root::head(self.scope.db(), &self.scope.workspace, root)? {
                revisions.insert(root.clone(), head.revision);
            }
        }
        Ok(Receipt {
            revisions,
            events: Vec::new(),
            warnings: self.warnings,
        })
    }

    /// Adds the operation to the journal. Undone operations of its roots can no longer be redone.
    fn record(&mut self, journal: &Journal) -> Result<(), DbError> {
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        operation::drop_undone(&db, &workspace, &self.touched)?;
        self.scope.counters.operations += 1;
        let operation = Operation {
            seq: self.scope.counters.operations,
            tool: self.tool.to_owned(),
            state: if matches!(journal, Journal::Final) {
                State::Final
            } else {
                State::Done
            },
            at: self.scope.now(),
            actor: self.actor.clone(),
            summary: Some(self.words()),
            batch: None,
        };
        operation::insert(&db, &workspace, &operation, &self.touched)?;
        if matches!(journal, Journal::Final) {
            return Ok(());
        }
        for (place, pending) in self.pending.iter().enumerate() {
            let change = Change {
                kind: pending.kind,
                id: pending.columns.id.clone(),
                before: pending.before.clone(),
                after: pending.after.clone(),
            };
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            operation::insert_change(&db, &workspace, operation.seq, place, &change)?;
        }
        Ok(())
    }

    /// Advances the revision of every changed root.
    fn advance(&mut self) -> Result<BTreeMap<String, i64>, DbError> {
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        let mut revisions = BTreeMap::new();
        for root in self.touched.iter().filter(|root| RootKind::of(root).is_some()) {
            let head = match self.heads.remove(root) {
                Some(head) => Some(head),
                None => store::root::head(&db, &workspace, root)?,
            };
            let Some(mut head) = head else {
                continue;
            };
            head.touched_at = self.scope.now();
            self.named.insert(root.clone(), named::root(&head));
            revisions.insert(root.clone(), store::root::advance(&db, &workspace, &head)?);
        }
        Ok(revisions)
    }

    fn publish(&mut self, revisions: &BTreeMap<String, i64>) -> Result<Vec<Event>, DbError> {
        let mut events = Vec::new();
        for planned in std::mem::take(&mut self.events) {
            self.scope.counters.events += 1;
            let event = Event {
                seq: self.scope.counters.events,
                event_type: planned.event_type,
                revision: revisions.get(&planned.root).copied().unwrap_or_default(),
                task: planned.root,
                target: planned.target,
                data: planned.data,
                at: self.scope.now(),
                actor: self.actor.clone(),
            };
            event::append(self.scope.db(), &self.scope.workspace, &event)?;
            events.push(event);
        }
        Ok(events)
    }
}
