//! The journal of operations, undo and redo.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, NextCall, Tool, ToolError};

use crate::error::{Reason, Refusals, refusal};
use crate::evidence;
use crate::limits::{MAX_ENTRY_CHARS, MAX_NAME_CHARS};
use crate::model::Workspace;
use crate::reply::{Reverted, Written};
use crate::scope::Scope;
use crate::store::operation::{self, Operation, OperationFilter, State};
use crate::write::{Order, Write, settled, words};

/// Default number of operations that are shown.
const DEFAULT_LIMIT: u32 = 20;

/// Show the latest operations of a workspace, plan or task in words, newest first, with their callers, and the
/// ones that tasks_undo and tasks_redo would revert.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    workspace: Workspace,
    /// Plan or task id, to consider only operations that changed it. Default: the workspace.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task: Option<String>,
    /// Maximum number of operations, 1 to 200 (default 20).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// The journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Journal {
    /// Operations, newest first.
    operations: Vec<Entry>,
    /// The operation that tasks_undo would undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<i64>,
    /// The operation that tasks_redo would redo.
    #[serde(skip_serializing_if = "Option::is_none")]
    redo: Option<i64>,
}

/// Journal entry with the plans and tasks that it changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Operation in the journal.
    operation: Operation,
    /// Ids of the plans and tasks that the operation changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<String>,
}

impl Tool for History {
    const NAME: &'static str = "tasks_history";
    const TITLE: &'static str = "Show the journal";
    const EFFECT: Effect = Effect::Read;
    type Output = Journal;

    fn run(self, cx: &Cx<'_>) -> Result<Journal, ToolError> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let mut refusals = Refusals::default();
        refusals.within("limit", limit, 1..=200);
        refusals.finish()?;
        let scope = Scope::known(cx, &self.workspace)?;
        let (db, workspace, task) = (scope.db(), &scope.workspace, self.task.as_deref());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        scope.was_there(task)?;
        let operations = operation::latest(db, workspace, task, limit)?
            .into_iter()
            .map(|mut operation| {
                if operation.summary.is_none() {
                    // Operations of earlier versions have no words.
                    let changes = operation::changes(db, workspace, operation.seq)?;
                    operation.summary = (!changes.is_empty()).then(|| words::of(&changes));
                }
                let tasks = operation::roots(db, workspace, operation.seq)?;
                Ok(Entry {
                    tasks: tasks.into_iter().filter(|id| !id.is_empty()).collect(),
                    operation,
                })
            })
            .collect::<Result<_, ToolError>>()?;
        let filter = OperationFilter {
            root: task,
            actor: None,
        };
        Ok(Journal {
            operations,
            undo: operation::to_undo(db, workspace, &filter)?.map(|operation| operation.seq),
            redo: operation::to_redo(db, workspace, &filter)?.map(|operation| operation.seq),
        })
    }
}

/// Declares a tool that reverts an operation. Undo and redo take the same arguments, and describe two of them each in
/// its own words.
macro_rules! revert {
    (
        $(#[$doc:meta])* $tool:ident, $name:literal, $title:literal, $to:expr,
        $(#[$actor_doc:meta])* actor,
        $(#[$operation_doc:meta])* operation $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(extend("x-looks" = evidence::looks()))]
        pub(crate) struct $tool {
            workspace: Workspace,
            /// Plan or task id, to consider only operations that changed it. Default: the workspace.
            #[schemars(length(max = MAX_NAME_CHARS))]
            task: Option<String>,
            $(#[$actor_doc])*
            #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
            actor: Option<String>,
            $(#[$operation_doc])*
            operation: Option<i64>,
            /// Revision of `task` from your last reply. Fails with REVISION_MISMATCH if there is a newer one.
            expected_revision: Option<i64>,
            /// Override other actors' leases (default false), only if those actors are gone.
            #[serde(default)]
            force: bool,
            /// Reason for overriding leases, kept in the events. Required with `force`.
            #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
            reason: Option<String>,
            /// Include the events in the reply.
            #[serde(default)]
            events: bool,
        }

        impl Tool for $tool {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const EFFECT: Effect = Effect::Write;
            type Output = Written;

            fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
                let mut write = Write::begin(cx, Self::NAME, &self.workspace)?.by(self.actor.as_deref())?;
                write.shows_events = self.events;
                Revert {
                    task: self.task,
                    actor: self.actor,
                    operation: self.operation,
                    force: forced(self.force, self.reason)?,
                    to: $to,
                }
                .run(write, self.expected_revision)
            }
        }
    };
}

revert! {
    /// Undo the latest operation that can be undone, of the workspace, a plan or a task. A batch is undone as a
    /// whole. Fails with every reason if other operations built on it, the result would break a rule, or another actor
    /// holds a lease that would change. Call tasks_history to see it first.
    Undo, "tasks_undo", "Undo", State::Undone,
    /// Your name, to undo your own latest operation although others wrote after it. Fails if they changed the
    /// same records.
    actor,
    /// Sequence number of the operation to undo, from tasks_history, instead of the latest one.
    operation,
}
revert! {
    /// Redo the operation that was undone last, of the workspace, a plan or a task. A batch is redone as a whole.
    /// Fails if another write to the same plans and tasks followed the undo, or if the result would break a rule.
    Redo, "tasks_redo", "Redo", State::Done,
    /// Your name, to redo your own operation that was undone last.
    actor,
    /// Sequence number of the operation to redo, from tasks_history, instead of the one undone last.
    operation,
}

impl From<&Operation> for Reverted {
    fn from(operation: &Operation) -> Reverted {
        Reverted {
            operation: operation.seq,
            tool: operation.tool.clone(),
            actor: operation.actor.clone(),
            summary: operation.summary.clone(),
        }
    }
}

/// Choice of an operation to undo or redo.
struct Revert {
    task: Option<String>,
    actor: Option<String>,
    operation: Option<i64>,
    /// Reason for overriding leases of others.
    force: Option<String>,
    to: State,
}

/// Reason for overriding leases, which `force` requires.
fn forced(force: bool, reason: Option<String>) -> Result<Option<String>, ToolError> {
    let mut refusals = Refusals::default();
    refusals.optional_text("reason", reason.as_deref(), MAX_ENTRY_CHARS);
    if force && reason.is_none() {
        refusals.add(Reason::input("reason", "is required with force=true"));
    }
    refusals.finish()?;
    Ok(reason.filter(|_| force))
}

impl Revert {
    fn run(self, mut write: Write<'_>, expected_revision: Option<i64>) -> Result<Written, ToolError> {
        let (db, workspace) = (*write.scope.db(), write.scope.workspace.clone());
        match (self.task.as_deref(), expected_revision) {
            // A redo may restore a plan or task that does not exist yet.
            (Some(task), Some(_)) => write.expect_revision(task, expected_revision)?,
            (None, Some(_)) => {
                return Err(Reason::input("task", "is required with expected_revision").into());
            }
            (_, None) => {}
        }
        write.scope.was_there(self.task.as_deref())?;
        let chosen = self.choose(&write.scope)?;
        let unit = operation::unit(&db, &workspace, chosen)?;
        let mut roots = Vec::new();
        for operation in &unit {
            roots.extend(operation::roots(&db, &workspace, operation.seq)?);
        }
        // Somebody who names the operation or its author leaves the others as they are.
        let order = match self.actor.is_some() || self.operation.is_some() {
            true => Order::Records,
            false => Order::Journal,
        };
        let cx = write.scope.cx;
        let actor = write.actor().map(str::to_owned);
        let receipt = match write.revert(&unit, self.to, order, self.force.as_deref()) {
            Ok(receipt) => receipt,
            Err(err) => return Err(settled(cx, &workspace, actor.as_deref(), err)?),
        };
        let about = self.task.or_else(|| roots.last().cloned()).unwrap_or_default();
        let mut written = Written::about(&about, receipt);
        written.reverted = unit.iter().map(Reverted::from).collect();
        written.then(cx, &workspace, None, actor.as_deref())
    }

    fn choose(&self, scope: &Scope<'_>) -> Result<Operation, ToolError> {
        let (db, workspace) = (scope.db(), &scope.workspace);
        let Some(seq) = self.operation else {
            let filter = OperationFilter {
                root: self.task.as_deref(),
                actor: self.actor.as_deref(),
            };
            let chosen = match self.to {
                State::Undone => operation::to_undo(db, workspace, &filter)?.ok_or(Reason::NothingToUndo)?,
                _ => operation::to_redo(db, workspace, &filter)?.ok_or(Reason::NothingToRedo)?,
            };
            return Ok(chosen);
        };
        let history = NextCall::new("tasks_history", json!({"workspace": workspace}));
        let Some(operation) = operation::get(db, workspace, seq)? else {
            let reason = Reason::unknown("operation", &seq.to_string());
            return Err(refusal(reason, Some(history)));
        };
        let (from, wanted) = match self.to {
            State::Undone => (State::Done, "undone"),
            _ => (State::Undone, "redone"),
        };
        if operation.state != from {
            let state = operation.state;
            return Err(refusal(
                Reason::OperationState { seq, state, wanted },
                Some(history),
            ));
        }
        if let Some(task) = &self.task
            && !operation::roots(db, workspace, seq)?.contains(task)
        {
            let (given, other) = (task.clone(), format!("operation {seq}"));
            return Err(Reason::TargetMismatch { given, other }.into());
        }
        Ok(operation)
    }
}
