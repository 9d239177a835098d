//! The journal of operations, undo and redo.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::limits::NAME;
use crate::model::Workspace;
use crate::reply::Written;
use crate::scope::Scope;
use crate::store::operation::{self, Operation, State};
use crate::write::Write;

/// Default number of operations that are shown.
const SHOWN: u32 = 20;

/// Show the latest operations of a workspace, plan or task, newest first, and the ones that tasks_undo and
/// tasks_redo would revert.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    workspace: Workspace,
    /// Plan or task id, to consider only operations that changed it. Default: the workspace.
    #[schemars(length(max = NAME))]
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
    /// The operation.
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
        let limit = self.limit.unwrap_or(SHOWN);
        let mut refusals = Refusals::default();
        refusals.within("limit", limit, 1..=200);
        refusals.finish()?;
        let scope = Scope::known(cx, &self.workspace)?;
        let (db, workspace, task) = (scope.db(), &scope.workspace, self.task.as_deref());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        scope.was_there(task)?;
        let operations = operation::latest(db, workspace, task, limit)?
            .into_iter()
            .map(|operation| {
                let tasks = operation::roots(db, workspace, operation.seq)?;
                Ok(Entry {
                    tasks: tasks.into_iter().filter(|id| !id.is_empty()).collect(),
                    operation,
                })
            })
            .collect::<Result<_, ToolError>>()?;
        Ok(Journal {
            operations,
            undo: operation::to_undo(db, workspace, task)?.map(|operation| operation.seq),
            redo: operation::to_redo(db, workspace, task)?.map(|operation| operation.seq),
        })
    }
}

/// Undo the latest operation of the workspace, plan or task that can be undone. Call tasks_history to see it
/// first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    workspace: Workspace,
    /// Plan or task id, to consider only operations that changed it. Default: the workspace.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// Revision of `task` from your last reply. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply (default false).
    #[serde(default)]
    events: bool,
}

impl Tool for Undo {
    const NAME: &'static str = "tasks_undo";
    const TITLE: &'static str = "Undo";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        write.shows_events = self.events;
        revert(write, self.task.as_deref(), self.expected_revision, State::Undone)
    }
}

/// Redo the operation of the workspace, plan or task that was undone last. Fails if another write followed
/// the undo.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redo {
    workspace: Workspace,
    /// Plan or task id, to consider only operations that changed it. Default: the workspace.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// Revision of `task` from your last reply. Fails with REVISION_MISMATCH if there is a newer one.
    expected_revision: Option<i64>,
    /// Include the events in the reply (default false).
    #[serde(default)]
    events: bool,
}

impl Tool for Redo {
    const NAME: &'static str = "tasks_redo";
    const TITLE: &'static str = "Redo";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Standard;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?;
        write.shows_events = self.events;
        revert(write, self.task.as_deref(), self.expected_revision, State::Done)
    }
}

fn revert(
    mut write: Write<'_>,
    task: Option<&str>,
    expected_revision: Option<i64>,
    to: State,
) -> Result<Written, ToolError> {
    let (db, workspace) = (*write.scope.db(), write.scope.workspace.clone());
    match (task, expected_revision) {
        // A redo may restore a plan or task that does not exist yet.
        (Some(task), Some(_)) => write.expect_revision(task, expected_revision)?,
        (None, Some(_)) => {
            return Err(Reason::input("task", "is required with expected_revision").into());
        }
        (_, None) => {}
    }
    write.scope.was_there(task)?;
    let operation = match to {
        State::Undone => operation::to_undo(&db, &workspace, task)?.ok_or(Reason::NothingToUndo)?,
        _ => operation::to_redo(&db, &workspace, task)?.ok_or(Reason::NothingToRedo)?,
    };
    let roots = operation::roots(&db, &workspace, operation.seq)?;
    let receipt = write.revert(&operation, to)?;
    let about = task
        .map(str::to_owned)
        .or_else(|| roots.last().cloned())
        .unwrap_or_default();
    Ok(Written::about(&about, receipt))
}
