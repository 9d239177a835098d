//! Updating the files that a change affects. The host writes them after the commit.

use tollgate_sdk::{Db, DbError, ToolError, Workspace};

use super::logs::{self, Log};
use super::{CLAIMS, Document, STATE, Touched, documents, open};
use crate::act::Act;
use crate::standing;
use crate::store::file;
use crate::store::{milestone, slice};

/// Requests the files that a change affects. Returns a message for each one that cannot be written.
pub(crate) fn project(act: &Act<'_>, touched: &Touched) -> Vec<String> {
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
    match documents_of(act, touched) {
        Err(err) => problems.push(err.to_string()),
        Ok(documents) => {
            let written = documents.into_iter().map(|document| document.write(&workspace));
            problems.extend(written.filter_map(Result::err).map(|problem| problem.to_string()));
        }
    }
    problems
}

/// The documents that a change affects.
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
        documents.push(Document::roadmap(db, workspace, &milestone)?);
    }
    for slice_id in &touched.slices {
        if let Some(slice) = slice::get(db, workspace, id, slice_id)? {
            documents.push(Document::plan(db, workspace, id, &slice)?);
        }
    }
    for (slice_id, task_id) in &touched.summaries {
        documents.extend(Document::summary(db, workspace, id, slice_id, task_id)?);
    }
    Ok(documents)
}

/// Appends new rows to a log's file, or rewrites the file if its size has changed.
fn append(db: &Db<'_>, workspace: &Workspace<'_>, log: Log) -> Result<(), ToolError> {
    let known = file::get(db, workspace.name(), log.path())?;
    let there = workspace.find(log.path())?;
    let intact = known.filter(|known| there.is_some_and(|there| there.size == known.size));
    let mut extent = intact.unwrap_or_default();
    let mut anew = intact.is_none();
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
