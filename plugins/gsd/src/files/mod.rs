//! The files in `.gsd/`: projections of stored data, rendered by pure functions and never read back.

mod documents;
mod logs;
mod project;
mod render;

pub(crate) use project::project;
pub(crate) use render::{Rendered, render};

use std::fmt;

use tollgate_sdk::{Cx, Db, DbError, MAX_WRITE, Workspace, WorkspaceError};

use crate::model::{MilestoneId, SliceId, TaskId};
use crate::store::milestone::Milestone;
use crate::store::slice::{self, Slice};
use crate::store::task;

/// Files that a change affects, beside the logs and the state.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Roadmap of the milestone.
    pub roadmap: bool,
    /// Plans of slices.
    pub slices: Vec<SliceId>,
    /// Summaries of tasks.
    pub summaries: Vec<(SliceId, TaskId)>,
    /// The claims file changed.
    pub claims: bool,
    /// True if anything changed, so that the state file is rendered.
    pub changed: bool,
}

impl Touched {
    /// A milestone or its list of slices changed.
    pub(crate) fn roadmap() -> Touched {
        Touched {
            roadmap: true,
            changed: true,
            ..Touched::default()
        }
    }

    /// A part of a slice changed.
    pub(crate) fn slice(slice: &SliceId) -> Touched {
        Touched {
            slices: vec![slice.clone()],
            ..Touched::roadmap()
        }
    }

    /// The claims file changed.
    pub(crate) fn claims() -> Touched {
        Touched {
            claims: true,
            changed: true,
            ..Touched::default()
        }
    }
}

/// The file of the event log.
const EVENTS: &str = ".gsd/event-log.jsonl";
/// The file of the audit log.
const AUDIT: &str = ".gsd/audit-log.jsonl";
const CLAIMS: &str = ".gsd/unit-claims.json";
const STATE: &str = ".gsd/STATE.md";

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
        Ok(workspace) => Ok(Some(workspace).filter(|workspace| workspace.info().may_write(STATE))),
        Err(WorkspaceError::Unknown(_)) => Ok(None),
        Err(err) => Err(err),
    }
}

/// The content of a file, or the reason why it cannot be rendered.
#[derive(Debug)]
struct Document {
    path: String,
    content: Result<String, WorkspaceError>,
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

    /// A slice's plan. A plan above the size limit of files is not rendered, because it might exceed memory.
    fn plan(db: &Db<'_>, name: &str, milestone: &MilestoneId, slice: &Slice) -> Result<Document, DbError> {
        let path = plan_path(milestone, &slice.id);
        if task::bulk(db, name, milestone, &slice.id)? > MAX_WRITE {
            let why = WorkspaceError::TooLarge(format!("a plan of more than {MAX_WRITE} characters"));
            let content = Err(why);
            return Ok(Document { path, content });
        }
        let tasks = task::planned(db, name, milestone, &slice.id)?;
        Ok(Document::new(path, documents::plan(milestone, slice, &tasks)))
    }

    fn summary(
        db: &Db<'_>,
        name: &str,
        milestone: &MilestoneId,
        slice: &SliceId,
        task: &TaskId,
    ) -> Result<Option<Document>, DbError> {
        let task = task::get(db, name, milestone, slice, task)?;
        Ok(task.map(|task| {
            let path = summary_path(milestone, slice, &task.head.id);
            Document::new(path, documents::summary(milestone, &task))
        }))
    }

    fn write(self, workspace: &Workspace<'_>) -> Result<(), Problem> {
        let Document { path, content } = self;
        content
            .and_then(|content| workspace.write(&path, content.as_bytes()))
            .map_err(|why| Problem { path, why })
    }
}

/// A file that could not be written, with the reason.
#[derive(Debug)]
pub(crate) struct Problem {
    pub path: String,
    pub why: WorkspaceError,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}
