//! Rewriting every file of a workspace, a few at a time, because all of them may not fit into memory.

use tollgate_sdk::workspace::MAX_READ;
use tollgate_sdk::{Cx, DbError, NextCall, Timestamp, ToolError, Workspace, WorkspaceError};

use super::logs::{self, Log};
use super::unknown::{self, Found, Rows};
use super::{CLAIMS_FILE, Document, Problem, STATE_FILE, documents, open};
use crate::config::Config;
use crate::model::{MilestoneId, SliceId};
use crate::standing;
use crate::store::file::{self, Extent};
use crate::store::{log, milestone, removed, slice, task};

/// Most passes over the files when changes happen during the rewrite.
const MAX_ROUNDS: usize = 3;

/// Files to rewrite. The default is all.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    /// Milestone whose files are written, beside the shared ones.
    pub only: Option<&'a MilestoneId>,
    /// Milestone up to which files are left out, because an earlier call wrote these.
    pub after: Option<&'a MilestoneId>,
    /// Time at which no further milestone begins. One milestone is always written.
    pub until: Option<Timestamp>,
    /// Leaves files alone that have their content already.
    pub only_changed: bool,
    /// Logs whose damaged lines are in another file, so that a rewrite may drop these.
    pub drops_damaged: &'a [Log],
}

/// Written paths, and problems with other files.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub written: Vec<String>,
    pub problems: Vec<Problem>,
    /// The last milestone that was written before the time was over.
    pub stopped_after: Option<MilestoneId>,
    /// The call that comes first, if the event log has lines that are not stored.
    pub next_call: Option<NextCall>,
}

/// Rewrites files. For a `Run` tool.
pub(crate) fn render(cx: &Cx<'_>, name: &str, scope: &Scope<'_>) -> Result<Rendered, ToolError> {
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
        round_of.write_all(scope)?;
        let is_stopped = round_of.rendered.stopped_after.is_some();
        if is_stopped || last_event()? == seen || round == MAX_ROUNDS {
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
    fn write_all(&mut self, scope: &Scope<'_>) -> Result<(), ToolError> {
        if self.is_ahead(scope)? {
            return Ok(());
        }
        let (cx, name) = (self.cx, self.workspace.name());
        let config: Config = cx.config()?;
        let (shared, milestones) = cx.transaction(|db| {
            let tree = standing::load(&db, name, None, cx.now())?;
            let outlook = standing::outlook(&config, &tree, None);
            let shared = vec![
                Document::new(STATE_FILE, documents::state(&tree, &outlook)),
                Document::new(CLAIMS_FILE, logs::claims(&tree.claims)),
            ];
            let ids = tree.milestones.into_iter().map(|node| node.milestone.id);
            Ok::<_, DbError>((shared, ids.collect::<Vec<_>>()))
        })?;
        self.put(shared, scope);
        let mut last: Option<&MilestoneId> = None;
        for id in milestones.iter().filter(|id| {
            let is_left = scope.after.is_none_or(|after| id.ordinal() > after.ordinal());
            is_left && scope.only.is_none_or(|only| only == *id)
        }) {
            if scope.until.is_some_and(|until| cx.now() >= until) && last.is_some() {
                self.rendered.stopped_after = last.cloned();
                return Ok(());
            }
            self.write_milestone(id, scope)?;
            last = Some(id);
        }
        Log::ALL
            .into_iter()
            .try_for_each(|log| self.write_log(log, scope))
    }

    /// Checks whether the event log has lines that are not stored. Files would show less than such a log says.
    fn is_ahead(&mut self, scope: &Scope<'_>) -> Result<bool, ToolError> {
        let state = unknown::state(Rows::Pieces(self.cx), self.workspace, Log::Events);
        let Ok(Found::Changed(unknown)) = state else {
            return Ok(false);
        };
        let is_dropped = scope.drops_damaged.contains(&Log::Events) && unknown.events == 0;
        if unknown.is_safe() || is_dropped {
            return Ok(false);
        }
        let refusal = unknown.refusal(self.workspace.name());
        self.rendered.problems = vec![
            Problem {
                path: Log::Events.path().to_owned(),
                why: refusal.message,
            },
            Problem {
                path: ".gsd/".to_owned(),
                why: "no file was written, because the event log has lines that are not stored".to_owned(),
            },
        ];
        self.rendered.next_call = refusal.next_call;
        Ok(true)
    }

    fn write_milestone(&mut self, id: &MilestoneId, scope: &Scope<'_>) -> Result<(), DbError> {
        let name = self.workspace.name();
        let (roadmap, slices) = self.cx.transaction(|db| {
            let milestone = milestone::get(&db, name, id)?.ok_or(DbError::Internal)?;
            let slices = slice::all(&db, name, id)?;
            let ids: Vec<SliceId> = slices.into_iter().map(|slice| slice.id).collect();
            Ok::<_, DbError>((Document::roadmap(&db, name, &milestone)?, ids))
        })?;
        self.put(vec![roadmap], scope);
        let gone = self.cx.transaction(|db| {
            let removed = removed::in_milestone(&db, name, id)?;
            let documents = removed
                .iter()
                .map(|removed| Document::removed(&db, name, removed));
            documents.collect::<Result<Vec<_>, DbError>>()
        })?;
        self.put(gone.into_iter().flatten().collect(), scope);
        for slice_id in &slices {
            let documents = self
                .cx
                .transaction(|db| slice_documents(&db, name, id, slice_id))?;
            self.put(documents, scope);
        }
        Ok(())
    }

    /// Rewrites a log, unless its file has lines that are not stored.
    fn write_log(&mut self, log: Log, scope: &Scope<'_>) -> Result<(), ToolError> {
        let name = self.workspace.name();
        let drops_damaged = scope.drops_damaged.contains(&log);
        let why = match unknown::state(Rows::Pieces(self.cx), self.workspace, log) {
            Ok(Found::Changed(unknown)) if drops_damaged && unknown.events == 0 && unknown.entries == 0 => {
                None
            }
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

    fn put(&mut self, documents: Vec<Document>, scope: &Scope<'_>) {
        for document in documents {
            if scope.only_changed && self.has(&document) {
                continue;
            }
            let path = document.path.clone();
            match document.write(self.workspace) {
                Ok(()) => self.rendered.written.push(path),
                Err(problem) => self.rendered.problems.push(problem),
            }
        }
    }
}

impl Round<'_> {
    /// Checks whether a document's file has its content.
    fn has(&self, document: &Document) -> bool {
        let Ok(content) = &document.content else {
            return false;
        };
        let there = self.workspace.find(&document.path).ok().flatten();
        let is_as_long = there.is_some_and(|there| there.size == content.len() as u64);
        let length = u32::try_from(content.len())
            .ok()
            .filter(|length| *length <= MAX_READ);
        let read = |length| self.workspace.read_at(&document.path, 0, length);
        is_as_long && length.is_some_and(|length| read(length).is_ok_and(|read| read == content.as_bytes()))
    }
}

/// The plan of a slice, and the summaries of its tasks.
fn slice_documents(
    db: &tollgate_sdk::Db<'_>,
    name: &str,
    milestone: &MilestoneId,
    id: &SliceId,
) -> Result<Vec<Document>, DbError> {
    let Some(slice) = slice::get(db, name, milestone.slice(id))? else {
        return Ok(Vec::new());
    };
    let mut documents: Vec<Document> = Document::plan(db, name, milestone, &slice)?.into_iter().collect();
    for task in task::heads(db, name, milestone.slice(id))? {
        documents.extend(Document::summary(db, name, milestone.slice(id).task(&task.id))?);
    }
    Ok(documents)
}
