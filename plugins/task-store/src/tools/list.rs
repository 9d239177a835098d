//! Listing tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, DbError, Effect, Id as _, NextCall, Timestamp, Tool, ToolError};

use super::{Cursor, cut};
use crate::arguments::{LABEL, PAGE, PATH, REFERENCE};
use crate::caller::Caller;
use crate::error::Refusals;
use crate::model::TaskId;
use crate::phase::Phase;
use crate::role::Role;
use crate::store::task::{self, Filter, TaskHead};

/// A task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskLine {
    /// Id of the task.
    id: TaskId,
    /// The same id, under the name of the argument.
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

/// List tasks, newest first. All filters are combined with AND. To read on, pass `cursor`. Next: task_recover
/// for one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct TaskList {
    /// Phase of the tasks. Default: all.
    phase: Option<Phase>,
    /// Workspace of the tasks. Default: all.
    #[schemars(length(max = PATH))]
    workspace: Option<String>,
    /// Label of the tasks. Default: all.
    #[schemars(length(max = LABEL))]
    label: Option<String>,
    /// Maximum number of tasks, 1 to 100 (default 20).
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(length(max = REFERENCE))]
    cursor: Option<String>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(length(max = REFERENCE), extend("deprecated" = true))]
    after: Option<String>,
    /// Your name, for next calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role, for next calls.
    actor_role: Option<Role>,
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
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let limit = self.limit.unwrap_or(20);
        refusals.within("limit", limit, 1..=PAGE);
        let cursor = Cursor::of(Self::NAME, self.cursor.as_ref(), self.after.as_ref());
        let first = json!({"phase": self.phase, "workspace": self.workspace, "label": self.label});
        check_cursor(cx, &mut refusals, &cursor, first)?;
        refusals.finish()?;
        let filter = Filter {
            phase: self.phase,
            workspace: self.workspace.as_ref(),
            label: self.label.as_ref(),
        };
        let mut tasks = task::list(&cx.db, &filter, cursor.text, limit + 1)?;
        let has_more = cut(&mut tasks, limit);
        Ok(Tasks {
            has_more,
            next_cursor: tasks.last().filter(|_| has_more).map(|task| task.id.clone()),
            tasks: tasks.into_iter().map(TaskLine::from).collect(),
        })
    }
}

/// Requires a cursor that is the id of a task.
pub(super) fn check_cursor(
    cx: &Cx<'_>,
    refusals: &mut Refusals,
    cursor: &Cursor<'_>,
    mut first: Json,
) -> Result<(), DbError> {
    let Some(text) = cursor.text else {
        return Ok(());
    };
    let is_known = task::head(&cx.db, &TaskId::from_text(text.clone()))?.is_some();
    if let Some(filters) = first.as_object_mut() {
        filters.retain(|_, filter| !filter.is_null());
    }
    refusals.cursor(cursor, is_known, NextCall::new(cursor.tool, first));
    Ok(())
}
