//! Listing tasks.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, DbError, Effect, Id as _, NextCall, Timestamp, Tool, ToolError};

use super::page::{Page, list_arguments};
use crate::arguments::{MAX_LABEL_CHARS, MAX_PATH_CHARS};
use crate::error::Refusals;
use crate::model::TaskId;
use crate::phase::Phase;
use crate::store::task::{self, Filter, TaskHead};

/// A task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskLine {
    /// Id of the task.
    id: TaskId,
    /// The same id, under the name of the argument for it.
    task_id: TaskId,
    /// Title of the task.
    title: String,
    /// Name of the workspace.
    workspace: String,
    /// Phase of the task.
    phase: Phase,
    /// Labels of the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Time of the last record about the task.
    updated_at: Timestamp,
}

impl From<TaskHead> for TaskLine {
    fn from(head: TaskHead) -> TaskLine {
        TaskLine {
            task_id: head.id.clone(),
            id: head.id,
            title: head.title,
            workspace: head.workspace,
            phase: head.phase,
            labels: head.labels,
            updated_at: head.updated_at,
        }
    }
}

list_arguments! {
    /// List tasks, newest first. All filters are combined with AND. To read on, pass `cursor`. Next: task_recover
    /// for one of them.
    #[schemars(extend("x-views" = page()))]
    pub(crate) struct TaskList {
        /// Phase of the tasks. Default: all.
        phase: Option<Phase>,
        /// Workspace of the tasks. Default: all.
        #[schemars(length(max = MAX_PATH_CHARS))]
        workspace: Option<String>,
        /// Label of the tasks. Default: all.
        #[schemars(length(max = MAX_LABEL_CHARS))]
        label: Option<String>,
    }
    limit: "Maximum number of tasks, 1 to 100 (default 20).",
    cursor: "Cursor: `next_cursor` of the previous page.",
}

fn page() -> Json {
    json!({
        "title": "Tasks",
        "form": "list",
        "items": [{"list": "tasks"}],
        "arguments": {"limit": 100},
        "opens": {"tool": "task_get", "arguments": {"task_id": "task_id"}},
    })
}

/// Page of tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// Tasks of the page.
    tasks: Vec<TaskLine>,
    /// True if there are more tasks.
    has_more: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
}

impl Tool for TaskList {
    const NAME: &'static str = "task_list";
    const TITLE: &'static str = "List tasks";
    const EFFECT: Effect = Effect::Read;
    type Output = Tasks;

    fn run(self, cx: &Cx<'_>) -> Result<Tasks, ToolError> {
        let (_, mut refusals, page) = self.start(cx)?;
        let first = json!({"phase": self.phase, "workspace": self.workspace, "label": self.label});
        check_cursor(cx, &mut refusals, page, first)?;
        refusals.finish()?;
        let filter = Filter {
            phase: self.phase,
            workspace: self.workspace.as_ref(),
            label: self.label.as_ref(),
        };
        let mut tasks = task::list(&cx.db, &filter, page.cursor, page.limit + 1)?;
        let next_cursor = page.cut(&mut tasks, |task| &task.id);
        Ok(Tasks {
            has_more: next_cursor.is_some(),
            next_cursor,
            tasks: tasks.into_iter().map(TaskLine::from).collect(),
        })
    }
}

/// Requires a cursor that is the id of a task.
pub(super) fn check_cursor(
    cx: &Cx<'_>,
    refusals: &mut Refusals,
    page: Page<'_>,
    mut first: Json,
) -> Result<(), DbError> {
    let Some(cursor) = page.cursor else {
        return Ok(());
    };
    let is_known = task::head(&cx.db, &TaskId::from_text(cursor.clone()))?.is_some();
    if let Some(filters) = first.as_object_mut() {
        filters.retain(|_, filter| !filter.is_null());
    }
    refusals.cursor(page, is_known, NextCall::new(page.tool, first));
    Ok(())
}
