//! Lists of plans and tasks, and slices of a task's tree.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Timestamp, Tool, ToolError};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::error::Refusals;
use crate::limits::{NAME, short};
use crate::model::{Priority, RootKind, Status, Workspace};
use crate::path::Path;
use crate::record::Root;
use crate::scope::{Scope, Selector};
use crate::store::root::{Head, Wanted, page};
use crate::target::Subject;
use crate::view::tree::{self, Branch};

/// List the plans and tasks of a workspace by number. Pass `next_after` as `after` to go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    workspace: Workspace,
    /// Only plans or only tasks; tasks if `plan` is given, else plans, then tasks.
    kind: Option<RootKind>,
    /// Only tasks of this plan.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// Only these statuses.
    #[serde(default)]
    status: BTreeSet<Status>,
    /// Only numbers after this one; needs `kind` or `plan`.
    #[schemars(range(min = 0))]
    after: Option<i64>,
    /// Entries of each kind, 1 to 200; 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
    /// Most bytes of the reply without `budget`, at least 2.
    max_chars: Option<i64>,
}

/// Plans and tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// What has the focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// There are more entries.
    has_more: bool,
    /// The cursor for the next call, if there are more of the one kind that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
    /// Plans and tasks by number.
    entries: Vec<ListEntry>,
}

/// A plan or task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListEntry {
    /// Its identifier.
    id: String,
    /// Its number.
    number: i64,
    /// The plan of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// How far it is.
    status: Status,
    /// How much it matters.
    priority: Priority,
    /// One line.
    title: String,
    /// Its revision, for `expected_revision`.
    revision: i64,
    /// When it changed last.
    touched_at: Timestamp,
}

impl View for Listing {
    const ORDER: &'static [Shrink] = &[Shrink::End("entries"), Shrink::Drop("focus")];

    /// The cursor follows what is left.
    fn settle(view: &mut Map<String, Json>) {
        let last = view
            .get("entries")
            .and_then(Json::as_array)
            .and_then(|entries| entries.last());
        let number = last.and_then(|entry| entry.get("number")).cloned();
        if let (Some(number), Some(slot)) = (number, view.get_mut("next_after")) {
            *slot = number;
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
        let next_after = if kinds.len() == 1 {
            last.or(self.after)
        } else {
            None
        };
        let focus = scope.counters.focus.clone();
        budget::fit(
            &Listing {
                focus,
                has_more,
                next_after,
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
        if self.after.is_some() && kinds.len() > 1 {
            refusals.add(crate::error::Reason::input(
                "after",
                "is one kind's; pass kind as well",
            ));
        }
        if self.plan.is_some() && self.kind == Some(RootKind::Plan) {
            refusals.add(crate::error::Reason::input("plan", "is for tasks"));
        }
        refusals.finish()?;
        Ok(kinds)
    }

    fn heads(&self, scope: &Scope<'_>, kind: RootKind, limit: usize) -> Result<Vec<Head>, ToolError> {
        let chosen: Vec<Status> = self.status.iter().copied().collect();
        let statuses = if chosen.is_empty() { Status::ALL } else { &chosen };
        let after = self.after.unwrap_or(0);
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

/// Export a compact slice for other programs: the tasks of a plan, or the steps and nodes of a task or below
/// one step, flat and in order.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Mirror {
    #[serde(flatten)]
    subject: Subject,
    /// The step to start from, such as s:0.
    #[schemars(length(max = NAME))]
    path: Option<String>,
    /// Entries, 1 to 500; 100 if absent.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<i64>,
}

/// A slice of a plan or task.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Slice {
    /// The plan or task.
    task: String,
    /// Its revision.
    revision: i64,
    /// How far it is.
    status: String,
    /// One line.
    title: String,
    /// There is more.
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

    fn settle(view: &mut Map<String, Json>) {
        view.insert("has_more".to_owned(), json!(true));
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
