//! The path of every write: load, check the revision, decide, then apply records, journal, events and
//! revision together.
//!
//! A tool puts whole records and names events. Nothing reaches storage before [`Write::finish`]. A call that
//! is refused half way has therefore written nothing, alone or in a batch, and undo does not depend on the
//! tool.

mod apply;
mod held;
mod integrity;
mod overlay;
mod parts;
mod proven;
mod ready;
mod revert;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, DbError, NextCall, ToolError};

use crate::error::{Reason, Refusals, refusal};
use crate::limits::{MAX_NAME_CHARS, MAX_RECORD_BYTES};
use crate::model::{EventType, Workspace, short_id};
use crate::record::{Plan, Record, Root, Task};
use crate::reply::Warning;
use crate::scope::Scope;
use crate::store::event::{self, Event};
use crate::store::operation::{self, State};
use crate::store::root::Head;
use crate::store::{self, Columns, Kind};

pub(crate) use ready::settled;
pub(crate) use revert::Order;

/// Most changes that a revision mismatch lists.
const CHANGES_SHOWN: usize = 20;
/// Most records that one operation can order.
const PLACES_PER_OPERATION: i64 = 1024;

/// A write in preparation.
pub(crate) struct Write<'a> {
    pub scope: Scope<'a>,
    /// Warnings to add to the result.
    pub warnings: Vec<Warning>,
    /// True if the reply has the events of the write.
    pub shows_events: bool,
    tool: &'static str,
    /// Name of the caller.
    actor: Option<String>,
    /// The operation in words, if the changed records do not tell it.
    summary: Option<String>,
    pending: Vec<Pending>,
    heads: BTreeMap<String, Head>,
    touched: BTreeSet<String>,
    events: Vec<Planned>,
    bodies: Vec<Body>,
    places: i64,
    /// Changed plans and tasks, by id, as the ledger names them.
    named: BTreeMap<String, String>,
}

/// A record that is about to change.
struct Pending {
    kind: Kind,
    columns: Columns,
    before: Option<String>,
    after: Option<String>,
}

/// An event without its place in the stream.
struct Planned {
    event_type: EventType,
    root: String,
    target: Option<String>,
    data: Map<String, Json>,
}

struct Body {
    root: String,
    evidence: String,
    text: String,
}

/// Treatment of an operation by the journal.
enum Journal {
    Undoable,
    /// The operation has too many changes to record for undo.
    Final,
    /// The operation undoes or redoes others.
    Reverts(Vec<i64>, State),
}

/// Result of an applied write.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub revisions: BTreeMap<String, i64>,
    /// The events, if the call asked for them.
    pub events: Vec<Event>,
    pub warnings: Vec<Warning>,
}

impl<'a> Write<'a> {
    /// Begins a write in a workspace that has been written to.
    pub(crate) fn begin(
        cx: &'a Cx<'a>,
        tool: &'static str,
        workspace: &Workspace,
    ) -> Result<Write<'a>, ToolError> {
        Ok(Write::over(Scope::known(cx, workspace)?, tool))
    }

    /// Begins a write that may be the first of its workspace.
    pub(crate) fn begin_anywhere(
        cx: &'a Cx<'a>,
        tool: &'static str,
        workspace: &Workspace,
    ) -> Result<Write<'a>, ToolError> {
        Ok(Write::over(Scope::open(cx, workspace)?, tool))
    }

    fn over(scope: Scope<'a>, tool: &'static str) -> Write<'a> {
        Write {
            actor: scope.cx.identity().map(str::to_owned),
            scope,
            warnings: Vec::new(),
            shows_events: false,
            tool,
            summary: None,
            pending: Vec::new(),
            heads: BTreeMap::new(),
            touched: BTreeSet::new(),
            events: Vec::new(),
            bodies: Vec::new(),
            places: 0,
            named: BTreeMap::new(),
        }
    }

    /// Names the caller. Without a name it is the identity that the transport proved.
    pub(crate) fn by(mut self, actor: Option<&str>) -> Result<Write<'a>, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("actor", actor, MAX_NAME_CHARS);
        refusals.finish()?;
        if let Some(actor) = actor {
            self.actor = Some(actor.to_owned());
        }
        Ok(self)
    }

    /// Name of the caller, if known.
    pub(crate) fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    /// Tells the operation in words.
    pub(crate) fn say(&mut self, summary: String) {
        self.summary = Some(summary);
    }

    /// The plan or task that a write is about, at the expected revision. Without `task`, the focus, if the
    /// configuration allows it.
    pub(crate) fn root(
        &mut self,
        task: Option<&str>,
        expected_revision: Option<i64>,
    ) -> Result<Root, ToolError> {
        let id = match task {
            Some(id) => id.to_owned(),
            None if self.scope.config.focus_writes => self.scope.focus("task")?,
            None => {
                return Err(Reason::input("task", "is required, because writes name their target").into());
            }
        };
        self.expect_revision(&id, expected_revision)?;
        self.scope.root(&id)
    }

    /// Like [`root`](Write::root), but requires a task.
    pub(crate) fn task(
        &mut self,
        task: Option<&str>,
        expected_revision: Option<i64>,
    ) -> Result<Task, ToolError> {
        match self.root(task, expected_revision)? {
            Root::Task(task) => Ok(task),
            Root::Plan(plan) => {
                let fault = format!("is the plan {}, but must be a task", plan.meta.id);
                Err(Reason::input("task", fault).into())
            }
        }
    }

    /// Like [`root`](Write::root), but requires a plan.
    pub(crate) fn plan(&mut self, plan: &str, expected_revision: Option<i64>) -> Result<Plan, ToolError> {
        match self.root(Some(plan), expected_revision)? {
            Root::Plan(plan) => Ok(plan),
            Root::Task(task) => {
                let fault = format!("is the task {}, but must be a plan", task.meta.id);
                Err(Reason::input("plan", fault).into())
            }
        }
    }

    /// Requires a root to be at a revision. `REVISION_MISMATCH` lists the changes since.
    pub(crate) fn expect_revision(&mut self, id: &str, expected: Option<i64>) -> Result<(), ToolError> {
        let head = self.scope.head(id)?;
        let actual = head.revision;
        self.heads.insert(id.to_owned(), head);
        let Some(expected) = expected.filter(|&expected| expected != actual) else {
            return Ok(());
        };
        let since = event::since_revision(
            self.scope.db(),
            &self.scope.workspace,
            id,
            expected,
            CHANGES_SHOWN + 1,
        )?;
        let changed = since
            .iter()
            .take(CHANGES_SHOWN)
            .map(|event| match &event.target {
                Some(target) => format!("{} {target}", event.event_type),
                None => event.event_type.to_string(),
            })
            .collect();
        let look = NextCall::new(
            "tasks_resume",
            json!({"workspace": self.scope.workspace, "task": id}),
        );
        let reason = Reason::RevisionMismatch {
            id: id.to_owned(),
            expected,
            actual,
            changed,
            more: since.len() > CHANGES_SHOWN,
        };
        Err(refusal(reason, Some(look)))
    }

    /// An identifier that no record of the kind has.
    pub(crate) fn fresh_id(&self, kind: Kind, prefix: &'static str) -> Result<String, DbError> {
        loop {
            let id = short_id(self.scope.cx, prefix);
            let planned = self.pending.iter().any(|pending| pending.columns.id == id);
            if !planned && store::record::body(self.scope.db(), &self.scope.workspace, kind, &id)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Position of a new record, after all earlier siblings.
    pub(crate) fn position(&mut self) -> i64 {
        let place = self.places;
        self.places += 1;
        self.scope
            .counters
            .operations
            .saturating_add(1)
            .saturating_mul(PLACES_PER_OPERATION)
            .saturating_add(place)
    }

    /// Adds or replaces a record.
    pub(crate) fn put<T: Record>(&mut self, record: &T) -> Result<(), ToolError> {
        let columns = record.columns();
        let body = serde_json::to_string(record).map_err(|_| DbError::Internal)?;
        if body.len() > MAX_RECORD_BYTES {
            let fault = format!(
                "is too large: {} {} has {} bytes; at most {MAX_RECORD_BYTES} are allowed",
                T::KIND,
                columns.id,
                body.len()
            );
            return Err(Reason::input(T::KIND.as_str(), fault).into());
        }
        self.change(T::KIND, columns, Some(body))?;
        Ok(())
    }

    /// Adds or replaces a plan or task and its index entry.
    pub(crate) fn put_root(&mut self, root: &Root) -> Result<(), ToolError> {
        self.follow(root)?;
        match root {
            Root::Plan(plan) => self.put(plan),
            Root::Task(task) => self.put(task),
        }
    }

    /// Removes a record.
    pub(crate) fn remove<T: Record>(&mut self, record: &T) -> Result<(), ToolError> {
        self.change(T::KIND, record.columns(), None)?;
        Ok(())
    }

    /// Advances a root's revision although its own record does not change.
    pub(crate) fn touch(&mut self, root: &str) {
        self.touched.insert(root.to_owned());
    }

    /// Stores the body of a piece of evidence.
    pub(crate) fn keep_body(&mut self, root: &str, evidence: &str, text: String) {
        self.bodies.push(Body {
            root: root.to_owned(),
            evidence: evidence.to_owned(),
            text,
        });
    }

    /// Plans an event about a root or a part of it.
    pub(crate) fn event(&mut self, event_type: EventType, root: &str, target: Option<&str>, data: Json) {
        let data = match data {
            Json::Object(data) => data,
            _ => Map::new(),
        };
        self.events.push(Planned {
            event_type,
            root: root.to_owned(),
            target: target.map(str::to_owned),
            data,
        });
    }

    /// Planned changes, as JSON before and after.
    pub(crate) fn preview(&self) -> impl Iterator<Item = (Kind, &str, Option<&str>, Option<&str>)> {
        self.pending
            .iter()
            .filter(|pending| pending.before != pending.after)
            .map(|pending| {
                let (before, after) = (pending.before.as_deref(), pending.after.as_deref());
                (pending.kind, pending.columns.id.as_str(), before, after)
            })
    }

    /// Applies the write, unless it leads to a state that breaks a rule.
    pub(crate) fn finish(self) -> Result<Receipt, ToolError> {
        let mut refusals = Refusals::default();
        self.faults(&mut refusals)?;
        self.unproven(0, &BTreeSet::new(), &mut refusals)?;
        refusals.finish()?;
        self.apply(Journal::Undoable)
    }

    /// Applies a write that deletes roots with everything below them. The write cannot be undone.
    pub(crate) fn finish_deleting(mut self, roots: &[Root]) -> Result<Receipt, ToolError> {
        let (db, workspace) = (*self.scope.db(), self.scope.workspace.clone());
        for root in roots {
            let id = &root.meta().id;
            self.follow(root)?;
            if let Some(head) = self.heads.get_mut(id) {
                head.status = None;
            }
            match root {
                Root::Plan(plan) => self.remove(plan)?,
                Root::Task(task) => self.remove(task)?,
            }
        }
        let mut refusals = Refusals::default();
        self.root_faults(&mut BTreeSet::new(), &mut refusals)?;
        refusals.finish()?;
        for root in roots {
            let id = &root.meta().id;
            store::record::remove_content(&db, &workspace, id)?;
            store::body::remove_of_root(&db, &workspace, id)?;
            operation::seal(&db, &workspace, id)?;
            if self.scope.counters.focus.as_ref() == Some(id) {
                self.scope.counters.focus = None;
            }
        }
        self.apply(Journal::Final)
    }

    /// Updates the index entry of a plan or task.
    fn follow(&mut self, root: &Root) -> Result<(), ToolError> {
        let meta = root.meta();
        let plan = match root {
            Root::Plan(_) => None,
            Root::Task(task) => Some(task.plan.clone()),
        };
        let head = Head {
            id: meta.id.clone(),
            kind: root.kind(),
            plan,
            number: meta.number,
            status: Some(meta.status),
            revision: 0,
            touched_at: self.scope.now(),
            title: meta.title.clone(),
            priority: meta.priority,
        };
        self.heads.insert(meta.id.clone(), head);
        Ok(())
    }

    fn change(&mut self, kind: Kind, columns: Columns, after: Option<String>) -> Result<(), DbError> {
        self.touched.insert(columns.root.clone());
        let known = self
            .pending
            .iter_mut()
            .find(|pending| pending.kind == kind && pending.columns.id == columns.id);
        if let Some(pending) = known {
            pending.columns = columns;
            pending.after = after;
            return Ok(());
        }
        let before = store::record::body(self.scope.db(), &self.scope.workspace, kind, &columns.id)?;
        self.pending.push(Pending {
            kind,
            columns,
            before,
            after,
        });
        Ok(())
    }
}

fn parse<T: Record>(body: &str) -> Result<T, DbError> {
    serde_json::from_str(body).map_err(|_| DbError::Internal)
}
