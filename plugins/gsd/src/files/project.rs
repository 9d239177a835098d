//! Updating the files that a change affects. The host writes them after the commit.

use tollgate_sdk::{Db, DbError, ToolError, Workspace};

use super::logs::{self, Log};
use super::unknown::{self, Found, Rows};
use super::{CLAIMS_FILE, Document, STATE_FILE, Touched, documents, open};
use crate::act::Act;
use crate::standing::{Outlook, Tree};
use crate::store::file::{self, Extent};
use crate::store::{milestone, removed, slice};

/// Requests the files that a change affects. Returns a message for each one that cannot be written.
pub(crate) fn project(act: &Act<'_>, touched: &Touched, standing: Option<(&Tree, &Outlook)>) -> Vec<String> {
    let workspace = match open(act.cx, act.workspace()) {
        Ok(Some(workspace)) => workspace,
        Ok(None) => return Vec::new(),
        Err(err) => return vec![err.to_string()],
    };
    let mut problems = Vec::new();
    for log in Log::ALL {
        if let Err(err) = append(act.db(), &workspace, log) {
            problems.push(format!("{}: {}", log.path(), err.message));
        }
    }
    let Some((tree, outlook)) = standing.filter(|_| touched.changed) else {
        return problems;
    };
    match documents_of(act, touched, tree, outlook) {
        Err(err) => problems.push(err.to_string()),
        Ok(documents) => {
            let written = documents.into_iter().map(|document| document.write(&workspace));
            problems.extend(written.filter_map(Result::err).map(|problem| problem.to_string()));
        }
    }
    problems
}

/// The documents that a change affects, by the same rules as for writing all of them.
fn documents_of(
    act: &Act<'_>,
    touched: &Touched,
    tree: &Tree,
    outlook: &Outlook,
) -> Result<Vec<Document>, DbError> {
    let (db, workspace, id) = (act.db(), act.workspace(), &act.unit.milestone);
    let mut documents = vec![Document::new(STATE_FILE, documents::state(tree, outlook))];
    if touched.claims {
        documents.push(Document::new(CLAIMS_FILE, logs::claims(&tree.claims)));
    }
    if let Some(milestone) = milestone::get(db, workspace, id)? {
        documents.push(Document::roadmap(db, workspace, &milestone)?);
    }
    for slice_id in &touched.slices {
        if let Some(slice) = slice::get(db, workspace, id.slice(slice_id))? {
            documents.extend(Document::plan(db, workspace, id, &slice)?);
        }
    }
    for (slice_id, task_id) in &touched.tasks {
        documents.extend(Document::summary(
            db,
            workspace,
            id.slice(slice_id).task(task_id),
        )?);
    }
    for unit in &touched.removed {
        if let Some(removed) = removed::get(db, workspace, unit)? {
            documents.extend(Document::removed(db, workspace, &removed)?);
        }
    }
    Ok(documents)
}

/// Appends new rows to a log's file, or rewrites the file if something else has changed it. A file with lines
/// that are not stored stays as it is.
fn append(db: &Db<'_>, workspace: &Workspace<'_>, log: Log) -> Result<(), ToolError> {
    let (mut extent, mut anew) = match unknown::state(Rows::Call(db), workspace, log)? {
        Found::Intact(extent) => (extent, false),
        Found::Missing => (Extent::default(), true),
        Found::Changed(unknown) if unknown.is_safe() => (Extent::default(), true),
        Found::Changed(unknown) => return Err(unknown.refusal(workspace.name())),
    };
    loop {
        let (lines, last, more) = log.lines(db, workspace.name(), extent.last_id)?;
        if anew {
            workspace.write(log.path(), lines.as_bytes())?;
        } else if !lines.is_empty() {
            workspace.append(log.path(), lines.as_bytes())?;
        }
        anew = false;
        extent.last_id = last;
        extent.size += lines.len() as u64;
        if !more {
            file::put(db, workspace.name(), log.path(), extent)?;
            return Ok(());
        }
    }
}
