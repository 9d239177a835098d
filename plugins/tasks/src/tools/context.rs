//! Lists of plans and tasks, and slices of a task's tree.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Timestamp, Tool, ToolError};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::error::Refusals;
use crate::limits::{MAX_NAME_CHARS, short};
use crate::model::{Priority, RootKind, Status, Workspace};
use crate::path::Path;
use crate::record::Root;
use crate::scope::{Scope, Selector};
use crate::store::root::{Head, Wanted, page};
use crate::target::Subject;
use crate::view::tree::{self, Branch};

/// List the plans and tasks of a workspace by number. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page_of_entries()))]
pub(crate) struct Context {
    workspace: Workspace,
    /// Kind to list. Default: tasks if `plan` is given, otherwise plans, then tasks.
    kind: Option<RootKind>,
    /// Plan id, to list only its tasks.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Statuses to include. Default: all.
    #[serde(default)]
    status: BTreeSet<Status>,
    /// Cursor: `next_cursor` of the previous page. Needs `kind` or `plan`.
    #[schemars(range(min = 0))]
    cursor: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(range(min = 0), extend("deprecated" = true))]
    after: Option<i64>,
    /// Entries of each kind, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

fn page_of_entries() -> Json {
    json!({
        "title": "Plans and tasks",
        "form": "list",
        "items": [{"list": "entries"}],
        "asks": ["workspace"],
        "arguments": {"limit": 200},
        "opens": {"tool": "tasks_mirror", "arguments": {"workspace": "workspace", "task": "id"}},
    })
}

/// Plans and tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// Id of the plan or task that has the focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// True if there are more entries.
    has_more: bool,
    /// Value of `cursor` for the next page, if one kind is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
    /// Plans and tasks by number.
    entries: Vec<ListEntry>,
}

/// A plan or task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListEntry {
    /// Plan or task id, for example TASK-001.
    id: String,
    /// Number of the plan or task.
    number: i64,
    /// Plan id of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// Status of the plan or task.
    status: Status,
    /// Priority of the plan or task.
    priority: Priority,
    /// Title in one line.
    title: String,
    /// Revision, for `expected_revision` of the next write.
    revision: i64,
    /// Time of the last change.
    touched_at: Timestamp,
}

impl View for Listing {
    const ORDER: &'static [Shrink] = &[Shrink::End("entries"), Shrink::Drop("focus")];

    /// Moves the cursor to the last entry that is left. Without one, the call is repeated as it was.
    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if !budget::is_cut(view, whole, "entries") {
            return;
        }
        view.insert("has_more".to_owned(), json!(true));
        let entries = view.get("entries").and_then(Json::as_array);
        let last = entries.and_then(|entries| entries.last());
        let number = last.and_then(|entry| entry.get("number")).cloned();
        match (number, view.get_mut("next_cursor")) {
            (Some(number), Some(slot)) => *slot = number,
            _ => drop(view.shift_remove("next_cursor")),
        }
    }
}

impl Tool for Context {
    const NAME: &'static str = "tasks_context";
    const TITLE: &'static str = "List plans and tasks";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Listing>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 50, 200)?;
        let scope = Scope::known(cx, &self.workspace)?;
        let kinds = self.kinds()?;
        if let Some(plan) = &self.plan {
            scope.plan_head(plan)?;
        }
        let mut entries = Vec::new();
        let mut has_more = false;
        for &kind in kinds {
            let mut heads = self.heads(&scope, kind, limit.saturating_add(1))?;
            has_more |= heads.len() > limit;
            heads.truncate(limit);
            for head in heads {
                entries.extend(entry(&scope, head)?);
            }
        }
        let last = entries.last().map(|entry| entry.number);
        // A cursor is always given, so that a shortened list still has one.
        let next_cursor = if kinds.len() == 1 {
            last.or(self.cursor).or(self.after)
        } else {
            None
        };
        let focus = scope.counters.focus.clone();
        budget::fit(
            &Listing {
                focus,
                has_more,
                next_cursor,
                entries,
            },
            self.max_chars,
        )
    }
}

impl Context {
    fn kinds(&self) -> Result<&'static [RootKind], ToolError> {
        let mut refusals = Refusals::default();
        let kinds: &[RootKind] = match (self.kind, &self.plan) {
            (Some(RootKind::Plan), _) => &[RootKind::Plan],
            (Some(RootKind::Task), _) | (None, Some(_)) => &[RootKind::Task],
            (None, None) => &[RootKind::Plan, RootKind::Task],
        };
        let field = if self.cursor.is_some() { "cursor" } else { "after" };
        if self.cursor.or(self.after).is_some() && kinds.len() > 1 {
            refusals.add(crate::error::Reason::input(
                field,
                "works for one kind only; pass kind as well",
            ));
        }
        if self.plan.is_some() && self.kind == Some(RootKind::Plan) {
            refusals.add(crate::error::Reason::input("plan", "applies only to tasks"));
        }
        refusals.finish()?;
        Ok(kinds)
    }

    fn heads(&self, scope: &Scope<'_>, kind: RootKind, limit: usize) -> Result<Vec<Head>, ToolError> {
        let chosen: Vec<Status> = self.status.iter().copied().collect();
        let statuses = if chosen.is_empty() { Status::ALL } else { &chosen };
        let after = self.cursor.or(self.after).unwrap_or(0);
        let wanted = Wanted {
            kind,
            plan: self.plan.as_deref(),
            statuses,
            after,
            limit,
        };
        Ok(page(scope.db(), &scope.workspace, &wanted)?)
    }
}

fn entry(scope: &Scope<'_>, head: Head) -> Result<Option<ListEntry>, ToolError> {
    let root = scope.root(&head.id)?;
    let meta = root.meta();
    Ok(Some(ListEntry {
        number: head.number,
        plan: head.plan,
        status: meta.status,
        priority: meta.priority,
        title: short(&meta.title, 200),
        revision: head.revision,
        touched_at: head.touched_at,
        id: head.id,
    }))
}

/// Export part of a plan or task for other programs, flat and in order: the tasks of a plan, or the steps and
/// nodes of a task or below one step.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-views" = page_of_steps()))]
pub(crate) struct Mirror {
    #[serde(flatten)]
    subject: Subject,
    /// Step to start from, for example s:0. Default: the whole task.
    #[schemars(length(max = MAX_NAME_CHARS))]
    path: Option<String>,
    /// Maximum number of entries, 1 to 500 (default 100).
    #[schemars(range(min = 1, max = 500))]
    limit: Option<i64>,
}

fn page_of_steps() -> Json {
    json!({
        "title": "Steps",
        "form": "tree",
        "items": [{"list": "steps", "key": "path"}],
        "asks": ["workspace", "task"],
        "arguments": {"limit": 500},
    })
}

/// Exported part of a plan or task.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Slice {
    /// Id of the plan or task.
    task: String,
    /// Revision of the plan or task.
    revision: i64,
    /// Status of the plan or task.
    status: String,
    /// Title in one line.
    title: String,
    /// True if there are more entries.
    has_more: bool,
    /// A plan's tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<ListEntry>,
    /// A task's steps and nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Branch>,
}

impl View for Slice {
    const ORDER: &'static [Shrink] = &[Shrink::End("tasks"), Shrink::End("steps")];

    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if ["tasks", "steps"]
            .iter()
            .any(|list| budget::is_cut(view, whole, list))
        {
            view.insert("has_more".to_owned(), json!(true));
        }
    }
}

impl Tool for Mirror {
    const NAME: &'static str = "tasks_mirror";
    const TITLE: &'static str = "Export a slice";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Slice>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 100, 500)?;
        let (scope, id) = self.subject.open(cx)?;
        let root = scope.root(&id)?;
        let mut slice = Slice {
            revision: scope.head(&id)?.revision,
            status: root.meta().status.to_string(),
            title: short(&root.meta().title, 200),
            task: id,
            ..Slice::default()
        };
        match root {
            Root::Task(_) => self.steps(&scope, &mut slice, limit)?,
            Root::Plan(_) => {
                let wanted = Wanted {
                    kind: RootKind::Task,
                    plan: Some(&slice.task),
                    statuses: Status::ALL,
                    after: 0,
                    limit: limit.saturating_add(1),
                };
                let mut heads = page(scope.db(), &scope.workspace, &wanted)?;
                slice.has_more = heads.len() > limit;
                heads.truncate(limit);
                for head in heads {
                    slice.tasks.extend(entry(&scope, head)?);
                }
            }
        }
        budget::fit(&slice, None)
    }
}

impl Mirror {
    fn steps(&self, scope: &Scope<'_>, slice: &mut Slice, limit: usize) -> Result<(), ToolError> {
        let (mut parent, mut above) = (
            slice.task.clone(),
            Path {
                steps: Vec::new(),
                node: None,
            },
        );
        if self.path.is_some() {
            let selector = Selector {
                path: self.path.as_deref(),
                id: None,
                expected: None,
            };
            let step = scope.step(&slice.task, &selector)?;
            slice.steps.push(tree::branch(&step.record, &step.path));
            (parent, above) = (step.record.id, step.path);
        }
        let (below, more) = tree::below(scope, &parent, &above, limit.saturating_sub(slice.steps.len()))?;
        slice.steps.extend(below);
        slice.has_more = more;
        Ok(())
    }
}
