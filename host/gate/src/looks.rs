//! Looks at the work tree that a call is about, before and after it, off the writer's thread: so edits count that nobody
//! tells of.

use std::sync::Arc;

use serde_json::Value;
use tollgate_components::packs::{Body, ENVELOPE_ARGUMENT, Pack, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Charge, State};
use tollgate_core::identity::Identity;
use tollgate_sandbox::work_tree::{self, ChangedInRun};
use tollgate_sandbox::workspaces::{Workspace, Workspaces};
use tollgate_store::storage::{Cause, Database, Operation, Session, Sighting, TextOf};

use super::guest::Runtime;
use super::pending_operation::{PendingOperation, Unseen};
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

    /// The envelope that the look is for.
    fn envelope_of<'a>(&'a self, operation: &'a Operation) -> Option<&'a str> {
        let closes = self.closes.as_ref().map(|closing| closing.envelope.as_str());
        closes.or(operation.envelope_id.as_deref())
    }

    /// The workspace that an envelope is about. Of one that is closed, the workspace that a call looked at last.
    fn of_envelope(&self, session: &Session, id: &str) -> Option<String> {
        let envelope = session.envelope(id).ok()??;
        let Some(closing) = &self.closes else {
            return envelope.workspace;
        };
        // A call that is refused looks at nothing.
        let is_open = envelope.standing.state == State::Open;
        if !is_open || !envelope.is_visible(closing.identity.as_ref()) {
            return None;
        }
        let seen = session.newest_seen_workspace(id).ok()?;
        seen.or(envelope.workspace)
    }

    fn workspace(&self, database: &Database, envelope: Option<&str>) -> Result<Arc<Workspace>, String> {
        let stored = || {
            let stored = self.stored.as_ref()?;
            let text = database.read_session().ok()?.text_at(stored).ok()??;
            let name = workspace_in(&text);
            let is_known = self.generation.workspaces.get(name).is_some();
            is_known.then(|| name.to_owned())
        };
        let of_envelope = || {
            let session = database.read_session().ok()?;
            self.of_envelope(&session, envelope?)
        };
        let name = self.named.clone().or_else(stored).or_else(of_envelope);
        let Some(name) = name else {
            return Err("neither the call nor its envelope names a workspace".to_owned());
        };
        let found = self.generation.workspaces.get(&name).cloned();
        found.ok_or_else(|| {
            let name = tollgate_core::text::clean(tollgate_core::text::cut(&name, 100));
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
        let equipment = &runtime.equipment;
        work_tree::look(&workspace, &equipment.launcher, &*equipment.clock)
    }
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
    text.split('/').next().unwrap_or_default()
}

/// The workspace that a call names, or that its tool takes without a name.
pub(super) fn named<'a>(tool: &'a ToolEntry, arguments: &'a Value) -> Option<&'a str> {
    let given = arguments.get("workspace");
    let default = || {
        tool.spec
            .input_schema
            .get("properties")?
            .get("workspace")?
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
        let own = self.operation.clone();
        let envelope = watch.envelope_of(&own);
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
            let before = database
                .read_session()
                .ok()
                .and_then(|session| session.newest_sighting(envelope, &seen.workspace).ok().flatten());
            if let Some(before) = before {
                self.tell_change(runtime, database, &before, seen);
            }
        }
        self.seen = Some(seen.map(Arc::new));
    }

    /// Tells what changed between two looks: in the row, and in a diff that is kept.
    fn tell_change(&mut self, runtime: &Runtime, database: &Database, before: &Sighting, now: &Sighting) {
        let Some(watch) = self.watch.as_ref().filter(|_| before.state != now.state) else {
            return;
        };
        let workspace = watch.workspace(database, watch.envelope_of(&self.operation));
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
        if let Some(before) = self.sighting().cloned() {
            self.tell_change(runtime, database, &before, &after.seen);
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
                session.each_state_back(envelope, &workspace.info.name, |cause, differs| {
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

    /// Returns whether the call only records what holds of the work tree.
    pub(super) fn records(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.may == May::Record)
    }

    /// State of the work tree before the call, if the look succeeded.
    pub(super) fn sighting(&self) -> Option<&Sighting> {
        self.seen.as_ref()?.as_ref().ok().map(|seen| &**seen)
    }
}
