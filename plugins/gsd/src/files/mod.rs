//! The files in `.gsd/`: projections of stored data, rendered by pure functions. Only gsd_import reads them:
//! the event and audit logs for their lines, and the others to leave those alone that are up to date.

mod documents;
mod logs;
mod project;
mod render;
mod unknown;

pub(crate) use logs::{Log, Parsed};
pub(crate) use project::project;
pub(crate) use render::{Rendered, Scope, render};
pub(crate) use unknown::{
    DamagedLine, Kind, Rows, Unknown, UnknownLine, damaged, digest, digests, read as unknown_lines,
    refuse_unknown_lines, unknown, visit,
};

use std::collections::BTreeSet;
use std::fmt;

use tollgate_sdk::{Cx, Db, DbError, MAX_WRITE, ToolError, Workspace, WorkspaceError};

use crate::model::{MilestoneId, SliceId, Status, TaskId, TaskPath, Unit};
use crate::store::milestone::Milestone;
use crate::store::removed::{self, Removed};
use crate::store::slice::{self, Slice};
use crate::store::task;

/// Files that a change affects, beside the logs and the state.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Slices whose plans may have changed.
    pub slices: BTreeSet<SliceId>,
    /// Tasks whose summaries may have changed.
    pub tasks: BTreeSet<(SliceId, TaskId)>,
    /// Units that were removed.
    pub removed: Vec<Unit>,
    /// The claims file changed.
    pub claims: bool,
    /// True if anything changed, so that roadmap and state are rendered.
    pub changed: bool,
}

impl Touched {
    /// A milestone changed, and nothing in its slices.
    pub(crate) fn roadmap() -> Touched {
        Touched {
            changed: true,
            ..Touched::default()
        }
    }

    /// Slices of a milestone changed, and none of their tasks.
    pub(crate) fn slices(slices: impl IntoIterator<Item = SliceId>) -> Touched {
        Touched {
            slices: slices.into_iter().collect(),
            ..Touched::roadmap()
        }
    }

    /// Tasks of a slice changed.
    pub(crate) fn tasks(slice: &SliceId, tasks: impl IntoIterator<Item = TaskId>) -> Touched {
        Touched {
            tasks: tasks.into_iter().map(|task| (slice.clone(), task)).collect(),
            ..Touched::slices([slice.clone()])
        }
    }

    /// The claims file changed.
    pub(crate) fn claims() -> Touched {
        Touched {
            claims: true,
            ..Touched::roadmap()
        }
    }
}

/// The file of the event log.
const EVENTS_FILE: &str = ".gsd/event-log.jsonl";
/// The file of the audit log.
const AUDIT_FILE: &str = ".gsd/audit-log.jsonl";
const CLAIMS_FILE: &str = ".gsd/unit-claims.json";
const STATE_FILE: &str = ".gsd/STATE.md";

fn roadmap_path(milestone: &MilestoneId) -> String {
    format!(".gsd/milestones/{milestone}/{milestone}-ROADMAP.md")
}

fn plan_path(milestone: &MilestoneId, slice: &SliceId) -> String {
    format!(".gsd/milestones/{milestone}/slices/{slice}/{slice}-PLAN.md")
}

fn summary_path(milestone: &MilestoneId, slice: &SliceId, task: &TaskId) -> String {
    format!(".gsd/milestones/{milestone}/slices/{slice}/tasks/{task}-SUMMARY.md")
}

/// A workspace that the pack may write its files to. `None` if the name is only a label or the operator has
/// not granted writing.
fn open<'a>(cx: &Cx<'a>, name: &str) -> Result<Option<Workspace<'a>>, WorkspaceError> {
    match cx.workspace(name) {
        Ok(workspace) => Ok(Some(workspace).filter(|workspace| workspace.info().may_write(STATE_FILE))),
        Err(WorkspaceError::Unknown(_)) => Ok(None),
        Err(err) => Err(err),
    }
}

/// The content of a file, or the reason why it cannot be rendered.
#[derive(Debug)]
struct Document {
    path: String,
    content: Result<String, String>,
}

impl Document {
    fn new(path: impl Into<String>, content: String) -> Document {
        Document {
            path: path.into(),
            content: Ok(content),
        }
    }

    fn roadmap(db: &Db<'_>, name: &str, milestone: &Milestone) -> Result<Document, DbError> {
        let slices = slice::all(db, name, &milestone.id)?;
        let content = documents::roadmap(milestone, &slices);
        Ok(Document::new(roadmap_path(&milestone.id), content))
    }

    /// The plan of a started or planned slice. A plan above the size limit of files is not rendered, because it
    /// might exceed memory.
    fn plan(
        db: &Db<'_>,
        name: &str,
        milestone: &MilestoneId,
        slice: &Slice,
    ) -> Result<Option<Document>, DbError> {
        let has_tasks = task::counts(db, name, milestone)?.contains_key(&slice.id);
        // A slice that was removed and planned again has a file already.
        let had_file = || removed::get(db, name, &Unit::slice(milestone, &slice.id));
        if !has_tasks && slice.status == Status::Pending && had_file()?.is_none() {
            return Ok(None);
        }
        let path = plan_path(milestone, &slice.id);
        if task::bulk(db, name, milestone.slice(&slice.id))? > MAX_WRITE {
            let content = Err(format!("too large: a plan of more than {MAX_WRITE} characters"));
            return Ok(Some(Document { path, content }));
        }
        let tasks = task::planned(db, name, milestone.slice(&slice.id))?;
        let content = documents::plan(milestone, slice, &tasks);
        Ok(Some(Document::new(path, content)))
    }

    /// The summary of a task that is or was complete.
    fn summary(db: &Db<'_>, name: &str, at: TaskPath<'_>) -> Result<Option<Document>, DbError> {
        let Some(task) = task::get(db, name, at)? else {
            return Ok(None);
        };
        let TaskPath { milestone, slice, .. } = at;
        let has_summary = task.head.status == Status::Complete || task.head.reopened > 0;
        let unit = Unit::task(milestone, slice, &task.head.id);
        let task = (has_summary || removed::get(db, name, &unit)?.is_some()).then_some(task);
        Ok(task.map(|task| {
            let path = summary_path(milestone, slice, &task.head.id);
            Document::new(path, documents::summary(milestone, &task))
        }))
    }

    /// The file of a unit that was removed, unless a unit with the same key exists again.
    fn removed(db: &Db<'_>, name: &str, removed: &Removed) -> Result<Option<Document>, DbError> {
        let unit = Unit::parse(&removed.unit);
        let Some((milestone, slice, task)) =
            unit.and_then(|unit| Some((unit.milestone, unit.slice?, unit.task)))
        else {
            return Ok(None);
        };
        let (exists, path) = match &task {
            Some(task) => (
                task::get(db, name, milestone.slice(&slice).task(task))?.is_some(),
                summary_path(&milestone, &slice, task),
            ),
            None => (
                slice::get(db, name, milestone.slice(&slice))?.is_some(),
                plan_path(&milestone, &slice),
            ),
        };
        Ok((!exists).then(|| Document::new(path, documents::removed(removed))))
    }

    fn write(self, workspace: &Workspace<'_>) -> Result<(), Problem> {
        let Document { path, content } = self;
        content
            .and_then(|content| {
                let written = workspace.write(&path, content.as_bytes());
                written.map_err(|err| err.to_string())
            })
            .map_err(|why| Problem { path, why })
    }
}

/// The logs' part of a refusal: what a log in the workspace has that is not stored.
pub(crate) fn unknown_in(cx: &Cx<'_>, name: &str) -> Result<Option<Unknown>, ToolError> {
    match open(cx, name) {
        Ok(Some(workspace)) => unknown(&cx.db, &workspace),
        // A workspace that cannot be opened makes the reply of a change stale, as any file does.
        Ok(None) | Err(_) => Ok(None),
    }
}

/// A file that could not be written, with the reason.
#[derive(Debug)]
pub(crate) struct Problem {
    pub path: String,
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}
