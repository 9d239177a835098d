//! The journal: what was done, undoing and redoing it.

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

/// Operations that are shown unless the call says otherwise.
const SHOWN: u32 = 20;

/// Show the latest operations of a workspace, or of one plan or task, latest first, and what can be undone or
/// redone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    /// The workspace.
    workspace: Workspace,
    /// Only operations that changed this plan or task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// How many, 1 to 200; 20 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// The journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Journal {
    /// Operations, latest first.
    operations: Vec<Entry>,
    /// The operation that tasks_undo would undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<i64>,
    /// The operation that tasks_redo would redo.
    #[serde(skip_serializing_if = "Option::is_none")]
    redo: Option<i64>,
}

/// One operation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// What it was.
    operation: Operation,
    /// The plans and tasks that it changed.
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

/// Undo the latest operation that can be undone, of the workspace or of one plan or task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// The workspace.
    workspace: Workspace,
    /// Only operations that changed this plan or task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The plan's or task's revision as you know it.
    expected_revision: Option<i64>,
}

impl Tool for Undo {
    const NAME: &'static str = "tasks_undo";
    const TITLE: &'static str = "Undo";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let write = Write::begin(cx, Self::NAME, &self.workspace)?;
        revert(write, self.task.as_deref(), self.expected_revision, State::Undone)
    }
}

/// Redo the operation that was undone last, of the workspace or of one plan or task. A write after the undo
/// takes its place and ends that.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redo {
    /// The workspace.
    workspace: Workspace,
    /// Only operations that changed this plan or task.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The plan's or task's revision as you know it.
    expected_revision: Option<i64>,
}

impl Tool for Redo {
    const NAME: &'static str = "tasks_redo";
    const TITLE: &'static str = "Redo";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Standard;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let write = Write::begin(cx, Self::NAME, &self.workspace)?;
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
        // What a redo brings back is not there yet.
        (Some(task), Some(_)) => write.expect_revision(task, expected_revision)?,
        (None, Some(_)) => {
            return Err(Reason::input("task", "is missing; a revision is one's of a plan or task").into());
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
