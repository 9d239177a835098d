//! Looks at the work tree that a call is about, before and after it, off the writer's thread: so edits count that nobody
//! tells of.

use std::sync::Arc;

use serde_json::Value;
use tollgate_components::catalog::{Body, ENVELOPE_ARGUMENT, ToolEntry};
use tollgate_components::packs::Pack;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Charge, State};
use tollgate_core::identity::Identity;
use tollgate_sandbox::work_tree::{self, ChangedInRun};
use tollgate_sandbox::workspaces::{Workspace, Workspaces};
use tollgate_store::storage::{Cause, Database, Session, Sighting, StoreResult, TextOf};

use super::guest::Runtime;
use super::pending_operation::PendingOperation;
use super::seen::{LookedAt, Unseen};
use super::{Generation, core_tools};
use crate::core_tools::EnvelopeChange;

/// Work tree to look at, and the possible effect of the call on it.
#[derive(Clone)]
pub(super) struct Watch {
    generation: Arc<Generation>,
    /// The workspace that the call names. Without one it is the envelope's.
    named: Option<String>,
    /// Place of the workspace's name in a table of the pack, which outweighs the envelope's.
    stored: Option<TextOf>,
    /// The envelope that the call closes. Without it the call's own is meant.
    closes: Option<Closing>,
    /// Possible effect of the call on the work tree.
    pub(super) may: May,
}

/// An envelope that a call closes, and who calls.
#[derive(Clone)]
struct Closing {
    envelope: String,
    identity: Option<Identity>,
}

/// Work trees at most that are looked at when an envelope is closed.
const MAX_AT_CLOSING: usize = 4;
/// Bytes of a reason that are kept.
const MAX_WHY: usize = 200;

/// Possible effect of a call on a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum May {
    /// Opens an envelope.
    Open,
    /// Closes an envelope.
    Close,
    /// Changes nothing itself.
    Nothing,
    /// Records what holds of the work tree: its tool asks for a look.
    Record,
    /// Runs tests, which leave files behind.
    Test,
    /// Changes files.
    Change,
}

impl May {
    /// True if the call may leave the work tree in another state.
    const fn leaves(self) -> bool {
        match self {
            May::Test | May::Change => true,
            May::Open | May::Close | May::Nothing | May::Record => false,
        }
    }
}

impl Watch {
    /// The work tree that a call is about, if it is one whose edits count.
    pub(super) fn of(
        generation: &Arc<Generation>,
        tool: &ToolEntry,
        draft: &PendingOperation,
        arguments: &Value,
    ) -> Option<Watch> {
        let named = registered(&generation.workspaces, tool, arguments);
        let declared = tool.workspace.as_ref().filter(|_| named.is_none());
        let stored = declared.and_then(|workspace| workspace.place(arguments));
        let mut closes = None;
        let may = match &tool.body {
            Body::Core(_) => match core_tools::envelope_change(&tool.spec.name)? {
                EnvelopeChange::Opened(_) => {
                    named.as_ref()?;
                    May::Open
                }
                EnvelopeChange::Closed(_) => {
                    closes = Some(Closing {
                        envelope: arguments.get(ENVELOPE_ARGUMENT)?.as_str()?.to_owned(),
                        identity: draft.operation.identity.clone(),
                    });
                    May::Close
                }
            },
            Body::Guest(pack) => {
                // Tests are compared outside of envelopes as well, where they name their workspace.
                let is_test = draft.charge == Charge::TestRun && named.is_some();
                let own = draft.operation.envelope_id.is_some() || stored.is_some() || is_test;
                let own = own.then(|| in_envelope(tool, draft.charge, pack, named.as_deref()));
                let asks = || {
                    let (looks, named) = (tool.looks.as_ref()?, named.as_ref()?);
                    looks.apply(&pack.config, named).then_some(May::Record)
                };
                own.flatten().or_else(asks)?
            }
        };
        Some(Watch {
            generation: Arc::clone(generation),
            named,
            stored,
            closes,
            may,
        })
    }

    /// Workspaces to look at before an envelope is closed: its own, then the others that its calls looked at, the one of
    /// the newest look first.
    fn at_closing(&self, session: &Session, closing: &Closing) -> StoreResult<Vec<String>> {
        let Some(envelope) = session.envelopes().get(&closing.envelope)? else {
            return Ok(Vec::new());
        };
        // A call that is refused looks at nothing.
        let is_open = envelope.standing.state == State::Open;
        if !is_open || !envelope.is_visible(closing.identity.as_ref()) {
            return Ok(Vec::new());
        }
        let seen = session.work_trees().last_seen_workspaces(&closing.envelope)?;
        let can_be_seen = |name: &String| {
            let found = self.generation.workspaces.get(name);
            seen.contains(name) || found.is_some_and(|workspace| workspace.info.git.is_some())
        };
        let mut all: Vec<String> = envelope.workspace.into_iter().filter(can_be_seen).collect();
        all.extend(
            seen.into_iter()
                .filter(|name| Some(name) != all.first())
                .collect::<Vec<_>>(),
        );
        Ok(all)
    }

    fn workspace(&self, database: &Database, envelope: Option<&str>) -> Result<Arc<Workspace>, String> {
        let stored = || {
            let stored = self.stored.as_ref()?;
            let text = database
                .read_session()
                .ok()?
                .components()
                .text_at(stored)
                .ok()?
                .text()?;
            let name = workspace_in(&text);
            let is_known = self.generation.workspaces.get(name).is_some();
            is_known.then(|| name.to_owned())
        };
        let of_envelope = || {
            let session = database.read_session().ok()?;
            session.envelopes().get(envelope?).ok()??.workspace
        };
        let name = self.named.clone().or_else(stored).or_else(of_envelope);
        let Some(name) = name else {
            return Err("neither the call nor its envelope names a workspace".to_owned());
        };
        self.registered(&name)
    }

    fn registered(&self, name: &str) -> Result<Arc<Workspace>, String> {
        let found = self.generation.workspaces.get(name).cloned();
        found.ok_or_else(|| {
            let name = tollgate_core::text::clean(tollgate_core::text::cut(name, 100));
            format!("workspace {name} is not registered")
        })
    }

    /// Why nothing was to be seen.
    fn unseen(&self, why: String, database: &Database, envelope: Option<&str>) -> Unseen {
        let workspace = self.workspace(database, envelope);
        Unseen {
            why,
            has_git: workspace.is_ok_and(|workspace| workspace.info.git.is_some()),
        }
    }

    /// Looks at the work tree, on this thread.
    fn look(
        &self,
        runtime: &Runtime,
        database: &Database,
        envelope: Option<&str>,
    ) -> Result<Sighting, String> {
        let workspace = self.workspace(database, envelope)?;
        look_at(&workspace, runtime)
    }
}

/// Looks at a work tree, on this thread.
fn look_at(workspace: &Workspace, runtime: &Runtime) -> Result<Sighting, String> {
    let equipment = &runtime.equipment;
    work_tree::look(workspace, &equipment.launcher, &*equipment.clock)
}

/// Workspaces to look at before an envelope is closed, with the newest state of each that is known there.
fn known_at_closing(
    database: &Database,
    watch: &Watch,
    closing: &Closing,
) -> anyhow::Result<Vec<(String, Option<Sighting>)>> {
    let session = database.read_session()?;
    let mut known = Vec::new();
    for name in watch.at_closing(&session, closing)? {
        let newest = session.work_trees().newest_sighting(&closing.envelope, &name)?;
        known.push((name, newest));
    }
    Ok(known)
}

/// Possible effect of a call in an envelope, if that is one to look for.
fn in_envelope(tool: &ToolEntry, charge: Charge, pack: &Pack, named: Option<&str>) -> Option<May> {
    let reach = named.and_then(|name| pack.access.workspace(name).ok());
    let info = reach.map(|reach| &reach.info);
    let writes = info.is_none_or(|info| !info.write_prefixes.is_empty());
    let changes = writes
        || !pack.access.programs().is_empty()
        || info.is_none_or(|info| info.git == Some(tollgate_sdk::GitAccess::Write));
    match (tool.spec.effect, charge) {
        (Effect::Run, Charge::TestRun) => Some(May::Test),
        (Effect::Run, Charge::Mutations(_)) if changes => Some(May::Change),
        (Effect::Run, Charge::Mutations(_)) | (Effect::Write, Charge::TestRun) => Some(May::Nothing),
        // Only files that the call writes are of interest.
        (Effect::Write, Charge::Mutations(_)) if writes && info.is_some() => Some(May::Change),
        _ => None,
    }
}

/// The registered workspace that a call names, or that its tool takes without a name.
pub(super) fn registered(workspaces: &Workspaces, tool: &ToolEntry, arguments: &Value) -> Option<String> {
    let name = named(tool, arguments)?;
    workspaces.get(name).map(|_| name.to_owned())
}

/// Name of a workspace in a row of a pack. Packs keep paths in workspaces as well.
pub(super) fn workspace_in(text: &str) -> &str {
    text.trim().split('/').next().unwrap_or_default()
}

/// The workspace that a call names, or that its tool takes without a name.
pub(super) fn named<'a>(tool: &'a ToolEntry, arguments: &'a Value) -> Option<&'a str> {
    given(tool, arguments, "workspace")
}

/// Text of an argument, or the default that its tool takes without it.
pub(super) fn given<'a>(tool: &'a ToolEntry, arguments: &'a Value, name: &str) -> Option<&'a str> {
    let given = arguments.get(name);
    let default = || {
        tool.spec
            .input_schema
            .get("properties")?
            .get(name)?
            .get("default")
    };
    given.filter(|given| !given.is_null()).or_else(default)?.as_str()
}

/// A look at the work tree after a call.
#[derive(Debug)]
pub(super) struct After {
    seen: Sighting,
    /// True if somebody edited a file during the call, which ran tests.
    is_edited: bool,
}

impl PendingOperation {
    /// Looks at the work tree before the call, on this thread.
    pub(super) fn look_before(&mut self, runtime: &Runtime, database: &Database) {
        let Some(watch) = self.watch.clone() else {
            return;
        };
        if let Some(closing) = &watch.closes {
            self.look_at_closing(runtime, database, &watch, closing);
            return;
        }
        let own = self.operation.envelope_id.clone();
        let envelope = own.as_deref();
        let seen = watch
            .look(runtime, database, envelope)
            .map_err(|why| watch.unseen(why, database, envelope));
        if self.operation.workspace.is_none() {
            let workspace = watch.workspace(database, envelope).ok();
            self.operation.workspace = workspace.map(|workspace| workspace.info.name.clone());
        }
        if let Ok(seen) = &seen {
            self.operation.repo_before_hash = Some(seen.state.clone());
            if !watch.may.leaves() {
                self.operation.repo_after_hash = Some(seen.state.clone());
            }
        }
        if let (Ok(seen), Some(envelope)) = (&seen, envelope) {
            let before = database.read_session().ok().and_then(|session| {
                session
                    .work_trees()
                    .newest_sighting(envelope, &seen.workspace)
                    .ok()
                    .flatten()
            });
            if let Some(before) = before {
                self.tell_change(runtime, watch.workspace(database, Some(envelope)), &before, seen);
            }
        }
        self.seen = Some(seen.map(Arc::new));
    }

    /// Looks at the work trees of the envelope that the call closes, on this thread. The row is about the first of them.
    fn look_at_closing(&mut self, runtime: &Runtime, database: &Database, watch: &Watch, closing: &Closing) {
        let known = known_at_closing(database, watch, closing).unwrap_or_else(|err| {
            tracing::warn!(
                op_id = self.operation.op_id,
                "nothing is looked at before a closing: {err:#}"
            );
            Vec::new()
        });
        for (place, (name, before)) in known.into_iter().enumerate() {
            let workspace = watch.registered(&name);
            let seen = match &workspace {
                _ if place >= MAX_AT_CLOSING => Err(format!(
                    "at most {MAX_AT_CLOSING} work trees are looked at when an envelope is closed"
                )),
                Ok(workspace) => look_at(workspace, runtime).map(Arc::new),
                Err(why) => Err(why.clone()),
            };
            if let (Ok(seen), Some(before)) = (&seen, before) {
                self.tell_change(runtime, workspace, &before, seen);
            }
            if place == 0 {
                self.operation.workspace = watch.registered(&name).is_ok().then(|| name.clone());
                let state = seen.as_ref().ok().map(|seen| seen.state.clone());
                self.operation.repo_before_hash.clone_from(&state);
                self.operation.repo_after_hash = state;
            }
            self.closing.push(LookedAt {
                workspace: name,
                seen: seen.map_err(|why| tollgate_core::text::clean(tollgate_core::text::cut(&why, MAX_WHY))),
            });
        }
    }

    /// Tells what changed between two looks: in the row, and in a diff that is kept.
    fn tell_change(
        &mut self,
        runtime: &Runtime,
        workspace: Result<Arc<Workspace>, String>,
        before: &Sighting,
        now: &Sighting,
    ) {
        if before.state == now.state {
            return;
        }
        let told = workspace
            .and_then(|workspace| work_tree::change(&workspace, &runtime.equipment.launcher, before, now));
        match told {
            Ok(change) => {
                self.recording.keep_diff(&change);
                self.changes.push(change);
            }
            Err(why) => {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    why,
                    "a change of the work tree is not told"
                );
            }
        }
    }

    /// Looks at the work tree after the call, on this thread, if there was something to see before. Tells the change.
    pub(super) fn look_after(&mut self, runtime: &Runtime, database: &Database) -> Option<After> {
        let after = self.look_after_row(runtime, database)?;
        if let (Some(before), Some(watch)) = (self.sighting().cloned(), self.watch.clone()) {
            let workspace = watch.workspace(database, self.operation.envelope_id.as_deref());
            self.tell_change(runtime, workspace, &before, &after.seen);
        }
        Some(after)
    }

    /// The same for a call whose row is written already, and can tell nothing more.
    pub(super) fn look_after_row(&self, runtime: &Runtime, database: &Database) -> Option<After> {
        let (Some(watch), Some(Ok(_))) = (&self.watch, &self.seen) else {
            return None;
        };
        // What changes during a call that changes nothing is for the next look.
        if !watch.may.leaves() {
            return None;
        }
        let seen = watch
            .look(runtime, database, self.operation.envelope_id.as_deref())
            .inspect_err(|why| {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    why,
                    "the work tree was not seen after a call"
                );
            })
            .ok()?;
        Some(After {
            is_edited: self.is_edited_in_run(database, &seen),
            seen,
        })
    }

    /// True if a file that Git does not track, and that somebody edited in this envelope before, changed while tests ran.
    fn is_edited_in_run(&self, database: &Database, after: &Sighting) -> bool {
        let (Some(watch), Some(before), Some(envelope)) =
            (&self.watch, self.sighting(), &self.operation.envelope_id)
        else {
            return false;
        };
        if watch.may != May::Test || before.state == after.state {
            return false;
        }
        let Ok(workspace) = watch.workspace(database, Some(envelope)) else {
            return false;
        };
        let mut changed = ChangedInRun::of(&workspace, before, after);
        if changed.can_be_edits() {
            let told = database.read_session().map(|session| {
                session
                    .work_trees()
                    .each_state_back(envelope, &workspace.info.name, |cause, differs| {
                        changed.hear(cause, differs)
                    })
            });
            if !matches!(told, Ok(Ok(()))) {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    "earlier states of the work tree cannot be read; changes in a test run do not count as edits"
                );
                return false;
            }
        }
        changed.decide(&workspace)
    }

    /// Notes how the call left the work tree. What it cannot have done is left to the next look, as an edit.
    pub(super) fn leave_behind(&mut self, after: Option<After>) {
        let (
            Some(After {
                seen: after,
                is_edited,
            }),
            Some(Ok(before)),
            Some(watch),
        ) = (after, &self.seen, &self.watch)
        else {
            return;
        };
        self.operation.repo_after_hash = Some(after.state.clone());
        let cause = match watch.may {
            May::Change => Cause::Call,
            // Tests leave files that nobody tracks. Who changes others edits.
            May::Test if after.tracked == before.tracked && !is_edited => Cause::TestRun,
            May::Test | May::Nothing | May::Record | May::Open | May::Close => return,
        };
        self.operation.left_behind = Some((after, cause));
    }

    /// Returns whether the call closes an envelope, which is refused for nothing that a look finds.
    pub(super) fn closes_envelope(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.may == May::Close)
    }

    /// State of the work tree before the call, if the look succeeded.
    pub(super) fn sighting(&self) -> Option<&Sighting> {
        self.seen.as_ref()?.as_ref().ok().map(|seen| &**seen)
    }

    /// The same, unless the call only records what holds of the work tree.
    pub(super) fn edited_sighting(&self) -> Option<&Sighting> {
        let records = self.watch.as_ref().is_some_and(|watch| watch.may == May::Record);
        self.sighting().filter(|_| !records)
    }
}
