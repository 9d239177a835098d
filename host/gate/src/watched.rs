//! The work tree that a call is about, if edits of it count, and the changes that the call may make to it.

use std::sync::Arc;

use serde_json::Value;
use tollgate_components::catalog::{Body, ENVELOPE_ARGUMENT, ToolEntry};
use tollgate_components::packs::Pack;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Charge, State};
use tollgate_core::identity::Identity;
use tollgate_sandbox::work_tree;
use tollgate_sandbox::workspaces::Workspace;
use tollgate_store::storage::{Database, Operation, Session, Sighting, StoreResult, TextOf};

use crate::core_tools::{self, EnvelopeChange};
use crate::generation::Generation;
use crate::runtime::Runtime;
use crate::seen::Unseen;
use crate::workspace_name;

/// Work tree to scan, and the possible effect of the call on it.
#[derive(Clone)]
pub(super) struct Watch {
    generation: Arc<Generation>,
    /// Workspace that the call names. Default: the envelope's.
    named: Option<String>,
    /// Location of the workspace's name in a table of the pack, which takes precedence over the envelope's.
    stored: Option<TextOf>,
    /// Envelope that the call closes. Default: the call's own envelope.
    pub(super) closes: Option<Closing>,
    /// Possible effect of the call on the work tree.
    pub(super) may: May,
}

/// An envelope that a call closes, and the caller.
#[derive(Clone)]
pub(super) struct Closing {
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
    /// Records the state of the work tree: its tool requests a scan.
    Record,
    /// Runs tests, which leave files.
    Test,
    /// Changes files.
    Change,
}

impl May {
    /// True if the call may change the state of the work tree.
    pub(super) const fn leaves(self) -> bool {
        match self {
            May::Test | May::Change => true,
            May::Open | May::Close | May::Nothing | May::Record => false,
        }
    }
}

impl Watch {
    /// Work tree that a call is about, if edits of it count.
    pub(super) fn of(
        generation: &Arc<Generation>,
        tool: &ToolEntry,
        (operation, charge): (&Operation, Charge),
        arguments: &Value,
    ) -> Option<Watch> {
        let named = workspace_name::registered(&generation.workspaces, tool, arguments);
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
                        identity: operation.identity.clone(),
                    });
                    May::Close
                }
            },
            Body::Guest(pack) => {
                // Test runs that name their workspace are compared outside envelopes as well.
                let is_test = charge == Charge::TestRun && named.is_some();
                let own = operation.envelope_id.is_some() || stored.is_some() || is_test;
                let own = own.then(|| in_envelope(tool, charge, pack, named.as_deref()));
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

    /// Workspaces to scan before an envelope is closed, with the newest known state of each.
    pub(super) fn known_at_closing(
        &self,
        database: &Database,
        closing: &Closing,
    ) -> anyhow::Result<Vec<(String, Option<Sighting>)>> {
        let session = database.read_session()?;
        let mut known = Vec::new();
        for name in self.at_closing(&session, closing)? {
            let newest = session.work_trees().newest_sighting(&closing.envelope, &name)?;
            known.push((name, newest));
        }
        Ok(known)
    }

    /// Workspaces to scan before an envelope is closed: its own, then the others that its calls scanned, most
    /// recently scanned first.
    fn at_closing(&self, session: &Session, closing: &Closing) -> StoreResult<Vec<String>> {
        let Some(envelope) = session.envelopes().get(&closing.envelope)? else {
            return Ok(Vec::new());
        };
        // A call that will be refused scans nothing.
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

    pub(super) fn workspace(
        &self,
        database: &Database,
        envelope: Option<&str>,
    ) -> Result<Arc<Workspace>, String> {
        let stored = || {
            let stored = self.stored.as_ref()?;
            let text = database
                .read_session()
                .ok()?
                .components()
                .text_at(stored)
                .ok()?
                .text()?;
            let name = workspace_name::in_row(&text);
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

    pub(super) fn registered(&self, name: &str) -> Result<Arc<Workspace>, String> {
        let found = self.generation.workspaces.get(name).cloned();
        found.ok_or_else(|| {
            let name = tollgate_core::text::clean(tollgate_core::text::cut(name, 100));
            format!("workspace {name} is not registered")
        })
    }

    /// Reason for which the scan failed.
    pub(super) fn unseen(&self, why: String, database: &Database, envelope: Option<&str>) -> Unseen {
        let workspace = self.workspace(database, envelope);
        Unseen {
            why,
            has_git: workspace.is_ok_and(|workspace| workspace.info.git.is_some()),
        }
    }

    /// Scans the work tree, on this thread.
    pub(super) fn look(
        &self,
        runtime: &Runtime,
        database: &Database,
        envelope: Option<&str>,
    ) -> Result<Sighting, String> {
        let workspace = self.workspace(database, envelope)?;
        look_at(&workspace, runtime)
    }
}

/// Scans a work tree, on this thread.
pub(super) fn look_at(workspace: &Workspace, runtime: &Runtime) -> Result<Sighting, String> {
    let services = &runtime.services;
    work_tree::look(workspace, &services.launcher, &*services.clock)
}

/// Possible effect of a call in an envelope, if that requires a scan.
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
        // Only files that the call writes matter.
        (Effect::Write, Charge::Mutations(_)) if writes && info.is_some() => Some(May::Change),
        _ => None,
    }
}
