//! Bringing the files of a workspace up to date: after each change those that show it, or all of them.

use tollgate_sdk::{Cx, Db, DbError, Workspace, WorkspaceError};

use super::logs::{self, Log};
use super::{CLAIMS, STATE, Touched, documents, plan_path, roadmap_path, summary_path};
use crate::act::Act;
use crate::config::Config;
use crate::model::{MilestoneId, Status};
use crate::standing;
use crate::store::file::{self, Extent};
use crate::store::{milestone, slice, task};

/// A file as it should be.
#[derive(Debug)]
struct Document {
    path: String,
    content: String,
}

impl Document {
    fn new(path: impl Into<String>, content: String) -> Document {
        Document {
            path: path.into(),
            content,
        }
    }
}

/// A file that could not be written, and why.
#[derive(Debug)]
pub(crate) struct Problem {
    pub path: String,
    pub why: String,
}

/// A workspace that the pack may write its files to. `None` if the name is only a label, or the
/// operator does not let it.
fn open<'a>(cx: &Cx<'a>, name: &str) -> Result<Option<Workspace<'a>>, WorkspaceError> {
    match cx.workspace(name) {
        Ok(workspace) => Ok(Some(workspace).filter(|workspace| workspace.info().may_write(STATE))),
        Err(WorkspaceError::Unknown(_)) => Ok(None),
        Err(err) => Err(err),
    }
}

/// Writes the files that show a change. The host carries it out after the commit. The error is a
/// sentence about the files that cannot be written.
pub(crate) fn project(act: &Act<'_>, touched: &Touched) -> Result<(), String> {
    let workspace = match open(act.cx, act.workspace()) {
        Ok(Some(workspace)) => workspace,
        Ok(None) => return Ok(()),
        Err(err) => return Err(err.to_string()),
    };
    let mut problems = Vec::new();
    for log in Log::ALL {
        if let Err(why) = append(act.db(), &workspace, log) {
            problems.push(format!("{}: {why}", log.path()));
        }
    }
    match documents_of(act, touched) {
        Err(err) => problems.push(err.to_string()),
        Ok(documents) => {
            for Document { path, content } in documents {
                if let Err(err) = workspace.write(&path, content.as_bytes()) {
                    problems.push(format!("{path}: {err}"));
                }
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("; "))
    }
}

/// The documents that show a change.
fn documents_of(act: &Act<'_>, touched: &Touched) -> Result<Vec<Document>, DbError> {
    let (db, workspace, id) = (act.db(), act.workspace(), &act.unit.milestone);
    let mut documents = Vec::new();
    if !touched.changed {
        return Ok(documents);
    }
    let tree = standing::load(db, workspace, None, act.now())?;
    let outlook = standing::outlook(&act.config, &tree, None);
    documents.push(Document::new(STATE, documents::state(&tree, &outlook)));
    if touched.claims {
        documents.push(Document::new(CLAIMS, logs::claims(&tree.claims)));
    }
    if let Some(milestone) = milestone::get(db, workspace, id)?.filter(|_| touched.roadmap) {
        let slices = slice::all(db, workspace, id)?;
        documents.push(Document::new(
            roadmap_path(id),
            documents::roadmap(&milestone, &slices),
        ));
    }
    for slice_id in &touched.slices {
        if let Some(slice) = slice::get(db, workspace, id, slice_id)? {
            let tasks = task::all(db, workspace, id, slice_id)?;
            let content = documents::plan(id, &slice, &tasks);
            documents.push(Document::new(plan_path(id, slice_id), content));
        }
    }
    for (slice_id, task_id) in &touched.summaries {
        if let Some(task) = task::get(db, workspace, id, slice_id, task_id)? {
            let content = documents::summary(id, &task);
            documents.push(Document::new(summary_path(id, slice_id, task_id), content));
        }
    }
    Ok(documents)
}

/// Appends what is new to a log's file, or writes it anew if it is not as it was left.
fn append(db: &Db<'_>, workspace: &Workspace<'_>, log: Log) -> Result<(), String> {
    let known = file::get(db, workspace.name(), log.path()).map_err(|err| err.to_string())?;
    let there = workspace.find(log.path()).map_err(|err| err.to_string())?;
    let intact = known.filter(|known| there.is_some_and(|there| there.size == known.size));
    let mut extent = intact.unwrap_or_default();
    let mut anew = intact.is_none();
    loop {
        let (lines, last, more) = log
            .lines(db, workspace.name(), extent.last_id)
            .map_err(|err| err.to_string())?;
        if anew {
            workspace
                .write(log.path(), lines.as_bytes())
                .map_err(|err| err.to_string())?;
        } else if !lines.is_empty() {
            workspace
                .append(log.path(), lines.as_bytes())
                .map_err(|err| err.to_string())?;
        }
        anew = false;
        extent.last_id = last;
        extent.size += lines.len() as u64;
        if !more {
            return file::put(db, workspace.name(), log.path(), extent).map_err(|err| err.to_string());
        }
    }
}

/// Everything that the files of a workspace show, at one moment.
struct Rendering {
    documents: Vec<Document>,
    logs: Vec<(Log, Vec<String>, Extent)>,
    /// The last change it shows.
    seen: i64,
}

/// Writes every file anew, or those of one milestone and what all share. Returns the paths that were
/// written and the problems with the others. For a `Run` tool.
pub(crate) fn render(
    cx: &Cx<'_>,
    name: &str,
    only: Option<&MilestoneId>,
) -> Result<(Vec<String>, Vec<Problem>), RenderError> {
    /// How often files are written again because something changed meanwhile.
    const ROUNDS: usize = 3;
    let workspace = open(cx, name)?.ok_or_else(|| match cx.workspace(name) {
        Ok(_) => WorkspaceError::Denied(format!("`.gsd/` of workspace `{name}` may not be written")),
        Err(err) => err,
    })?;
    let config: Config = cx.config().map_err(|err| RenderError::Config(Box::new(err)))?;
    let mut round = 0;
    loop {
        let rendering = cx.transaction(|db| rendering(&db, &config, name, only, cx.now()))?;
        let (written, problems) = put(&workspace, &rendering);
        let seen = rendering.seen;
        let now = cx.transaction(|db| {
            for (log, _, extent) in &rendering.logs {
                if written.iter().any(|path| path == log.path()) {
                    file::put(&db, name, log.path(), *extent)?;
                }
            }
            crate::store::log::last_event(&db, name)
        })?;
        round += 1;
        if now == seen || round == ROUNDS {
            return Ok((written, problems));
        }
    }
}

/// Why nothing was rendered.
#[derive(Debug)]
pub(crate) enum RenderError {
    Config(Box<tollgate_sdk::ToolError>),
    Db(DbError),
    Workspace(WorkspaceError),
}

impl From<DbError> for RenderError {
    fn from(err: DbError) -> RenderError {
        RenderError::Db(err)
    }
}

impl From<WorkspaceError> for RenderError {
    fn from(err: WorkspaceError) -> RenderError {
        RenderError::Workspace(err)
    }
}

impl From<RenderError> for tollgate_sdk::ToolError {
    fn from(err: RenderError) -> tollgate_sdk::ToolError {
        match err {
            RenderError::Config(err) => *err,
            RenderError::Db(err) => err.into(),
            RenderError::Workspace(err) => err.into(),
        }
    }
}

fn rendering(
    db: &Db<'_>,
    config: &Config,
    name: &str,
    only: Option<&MilestoneId>,
    now: tollgate_sdk::Timestamp,
) -> Result<Rendering, DbError> {
    let tree = standing::load(db, name, None, now)?;
    let outlook = standing::outlook(config, &tree, None);
    let mut documents = vec![
        Document::new(STATE, documents::state(&tree, &outlook)),
        Document::new(CLAIMS, logs::claims(&tree.claims)),
    ];
    for node in &tree.milestones {
        let milestone = &node.milestone;
        if only.is_none_or(|id| *id == milestone.id) {
            milestone_documents(db, name, milestone, &mut documents)?;
        }
    }
    let mut all = Vec::new();
    for log in Log::ALL {
        let (mut pieces, mut extent) = (Vec::new(), Extent::default());
        loop {
            let (lines, last, more) = log.lines(db, name, extent.last_id)?;
            extent.last_id = last;
            extent.size += lines.len() as u64;
            pieces.push(lines);
            if !more {
                break;
            }
        }
        all.push((log, pieces, extent));
    }
    Ok(Rendering {
        documents,
        logs: all,
        seen: crate::store::log::last_event(db, name)?,
    })
}

fn milestone_documents(
    db: &Db<'_>,
    name: &str,
    milestone: &milestone::Milestone,
    documents: &mut Vec<Document>,
) -> Result<(), DbError> {
    let id = &milestone.id;
    let slices = slice::all(db, name, id)?;
    documents.push(Document::new(
        roadmap_path(id),
        documents::roadmap(milestone, &slices),
    ));
    for slice in &slices {
        let tasks = task::all(db, name, id, &slice.id)?;
        if tasks.is_empty() && slice.status == Status::Pending {
            continue;
        }
        let content = documents::plan(id, slice, &tasks);
        documents.push(Document::new(plan_path(id, &slice.id), content));
        for task in tasks
            .iter()
            .filter(|task| task.summary.is_some() || task.head.reopened > 0)
        {
            let content = documents::summary(id, task);
            documents.push(Document::new(summary_path(id, &slice.id, &task.head.id), content));
        }
    }
    Ok(())
}

/// Writes a rendering.
fn put(workspace: &Workspace<'_>, rendering: &Rendering) -> (Vec<String>, Vec<Problem>) {
    let mut written = Vec::new();
    let mut problems = Vec::new();
    let mut done = |path: &str, result: Result<(), WorkspaceError>| match result {
        Ok(()) => written.push(path.to_owned()),
        Err(err) => problems.push(Problem {
            path: path.to_owned(),
            why: err.to_string(),
        }),
    };
    for Document { path, content } in &rendering.documents {
        done(path, workspace.write(path, content.as_bytes()));
    }
    for (log, pieces, _) in &rendering.logs {
        let mut pieces = pieces.iter();
        let first = pieces.next().map_or("", String::as_str);
        let result = workspace
            .write(log.path(), first.as_bytes())
            .and_then(|()| pieces.try_for_each(|piece| workspace.append(log.path(), piece.as_bytes())));
        done(log.path(), result);
    }
    (written, problems)
}
