//! Rewriting every file of a workspace, a few at a time, because all of them may not fit into memory.

use tollgate_sdk::{Cx, DbError, ToolError, Workspace, WorkspaceError};

use super::logs::{self, Log};
use super::unknown::{self, Found};
use super::{CLAIMS, Document, Problem, STATE, documents, open};
use crate::config::Config;
use crate::model::{MilestoneId, SliceId};
use crate::standing;
use crate::store::file::{self, Extent};
use crate::store::{log, milestone, removed, slice, task};

/// Most passes over the files when changes happen during the rewrite.
const ROUNDS: usize = 3;

/// Written paths, and problems with other files.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub written: Vec<String>,
    pub problems: Vec<Problem>,
}

/// Rewrites every file, or those of one milestone and the shared ones. For a `Run` tool.
pub(crate) fn render(cx: &Cx<'_>, name: &str, only: Option<&MilestoneId>) -> Result<Rendered, ToolError> {
    let workspace = open(cx, name)?.ok_or_else(|| match cx.workspace(name) {
        Ok(_) => WorkspaceError::Denied(format!("`.gsd/` of workspace `{name}` may not be written")),
        Err(err) => err,
    })?;
    let last_event = || cx.transaction(|db| log::last_event(&db, name));
    let mut round = 1;
    loop {
        let seen = last_event()?;
        let mut round_of = Round {
            cx,
            workspace: &workspace,
            rendered: Rendered::default(),
        };
        round_of.write_all(only)?;
        if last_event()? == seen || round == ROUNDS {
            return Ok(round_of.rendered);
        }
        round += 1;
    }
}

/// A pass over the files.
struct Round<'a> {
    cx: &'a Cx<'a>,
    workspace: &'a Workspace<'a>,
    rendered: Rendered,
}

impl Round<'_> {
    fn write_all(&mut self, only: Option<&MilestoneId>) -> Result<(), ToolError> {
        let (cx, name) = (self.cx, self.workspace.name());
        let config: Config = cx.config()?;
        let (shared, milestones) = cx.transaction(|db| {
            let tree = standing::load(&db, name, None, cx.now())?;
            let outlook = standing::outlook(&config, &tree, None);
            let shared = vec![
                Document::new(STATE, documents::state(&tree, &outlook)),
                Document::new(CLAIMS, logs::claims(&tree.claims)),
            ];
            let ids = tree.milestones.into_iter().map(|node| node.milestone.id);
            Ok::<_, DbError>((shared, ids.collect::<Vec<_>>()))
        })?;
        self.put(shared);
        for id in milestones.iter().filter(|id| only.is_none_or(|only| only == *id)) {
            self.write_milestone(id)?;
        }
        Log::ALL.into_iter().try_for_each(|log| self.write_log(log))
    }

    fn write_milestone(&mut self, id: &MilestoneId) -> Result<(), DbError> {
        let name = self.workspace.name();
        let (roadmap, slices) = self.cx.transaction(|db| {
            let milestone = milestone::get(&db, name, id)?.ok_or(DbError::Internal)?;
            let slices = slice::all(&db, name, id)?;
            let ids: Vec<SliceId> = slices.into_iter().map(|slice| slice.id).collect();
            Ok::<_, DbError>((Document::roadmap(&db, name, &milestone)?, ids))
        })?;
        self.put(vec![roadmap]);
        let gone = self.cx.transaction(|db| {
            let removed = removed::in_milestone(&db, name, id)?;
            let documents = removed
                .iter()
                .map(|removed| Document::removed(&db, name, removed));
            documents.collect::<Result<Vec<_>, DbError>>()
        })?;
        self.put(gone.into_iter().flatten().collect());
        for slice_id in &slices {
            let documents = self
                .cx
                .transaction(|db| slice_documents(&db, name, id, slice_id))?;
            self.put(documents);
        }
        Ok(())
    }

    /// Rewrites a log, unless its file has lines that are not stored.
    fn write_log(&mut self, log: Log) -> Result<(), ToolError> {
        let name = self.workspace.name();
        let state = self.cx.transaction(|db| unknown::state(&db, self.workspace, log));
        let why = match state {
            Ok(Found::Changed(unknown)) if !unknown.is_safe() => Some(unknown.refusal(name).message),
            Ok(_) => None,
            Err(err) => Some(err.message),
        };
        if let Some(why) = why {
            let path = log.path().to_owned();
            self.rendered.problems.push(Problem { path, why });
            return Ok(());
        }
        let mut extent = Extent::default();
        loop {
            let is_first = extent == Extent::default();
            let (lines, last, more) = self.cx.transaction(|db| log.lines(&db, name, extent.last_id))?;
            let result = if is_first {
                self.workspace.write(log.path(), lines.as_bytes())
            } else {
                self.workspace.append(log.path(), lines.as_bytes())
            };
            if let Err(err) = result {
                let (path, why) = (log.path().to_owned(), err.to_string());
                self.rendered.problems.push(Problem { path, why });
                return Ok(());
            }
            extent.last_id = last;
            extent.size += lines.len() as u64;
            if !more {
                break;
            }
        }
        self.cx
            .transaction(|db| file::put(&db, name, log.path(), extent))?;
        self.rendered.written.push(log.path().to_owned());
        Ok(())
    }

    fn put(&mut self, documents: Vec<Document>) {
        for document in documents {
            let path = document.path.clone();
            match document.write(self.workspace) {
                Ok(()) => self.rendered.written.push(path),
                Err(problem) => self.rendered.problems.push(problem),
            }
        }
    }
}

/// The plan of a slice, and the summaries of its tasks.
fn slice_documents(
    db: &tollgate_sdk::Db<'_>,
    name: &str,
    milestone: &MilestoneId,
    id: &SliceId,
) -> Result<Vec<Document>, DbError> {
    let Some(slice) = slice::get(db, name, milestone, id)? else {
        return Ok(Vec::new());
    };
    let mut documents: Vec<Document> = Document::plan(db, name, milestone, &slice)?.into_iter().collect();
    for task in task::heads(db, name, milestone, id)? {
        documents.extend(Document::summary(db, name, milestone, id, &task.id)?);
    }
    Ok(documents)
}
