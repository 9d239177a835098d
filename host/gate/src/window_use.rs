//! Use of time windows by a call: the workspaces that it counts for, and whether it opens an envelope.

use std::collections::BTreeMap;

use serde_json::Value;
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::storage::{Session, TextFound, TextOf};

use crate::batch::{self, Member};
use crate::core_tools::{self, EnvelopeChange};
use crate::workspace_name;

/// Subject for callers and clients without a name, and for calls that name no registered workspace.
pub(super) const UNNAMED: &str = "(unnamed)";

/// Use of time windows by a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Use {
    /// Workspace from its arguments, or from its tool's default.
    workspace: Option<String>,
    /// Location of the workspace's name in a table of the pack, for a call that names none.
    stored: Option<TextOf>,
    /// Registered workspaces.
    known: Workspaces,
    /// Members of the call that write, by the workspace that they name.
    members: BTreeMap<String, i64>,
    /// True if the call opens an envelope.
    pub(super) opens_envelope: bool,
}

impl Use {
    /// Use of a call with these arguments, in which members have complete arguments.
    pub(super) fn of(tool: &ToolEntry, arguments: &Value, members: &[Member], known: &Workspaces) -> Use {
        let workspace = workspace_name::given(tool, arguments).map(str::to_owned);
        let declared = tool.workspace.as_ref().filter(|_| workspace.is_none());
        let listed = tool.spec.members.as_ref().and_then(|name| arguments.get(name));
        let entries = listed.and_then(Value::as_array).into_iter().flatten();
        let mut named = BTreeMap::new();
        for (member, entry) in members.iter().zip(entries) {
            let writes = member.tool.spec.effect != Effect::Read;
            let given = entry.get(batch::ARGUMENTS).unwrap_or(&Value::Null);
            if let Some(workspace) = workspace_name::given(&member.tool, given).filter(|_| writes) {
                *named.entry(workspace.to_owned()).or_default() += 1;
            }
        }
        Use {
            stored: declared.and_then(|workspace| workspace.place(arguments)),
            known: known.clone(),
            workspace,
            members: named,
            opens_envelope: matches!(&tool.body, Body::Core(_))
                && matches!(
                    core_tools::envelope_change(&tool.spec.name),
                    Some(EnvelopeChange::Opened(_))
                ),
        }
    }

    /// Text for the workspace in a row of the pack. Nothing if the pack declares a table that it does not have.
    fn found(&self, session: &Session) -> Option<TextFound> {
        let found = session.components().text_at(self.stored.as_ref()?);
        // A transaction that must wait for others begins again, and the lookup is repeated.
        let failed = found.as_ref().err().filter(|_| !session.must_begin_anew());
        if let Some(err) = failed {
            tracing::warn!(%err, "reading the workspace of a call failed");
        }
        found.ok()
    }

    /// Subject for the name of a workspace. All unregistered names share one subject, so that respelling a name does
    /// not bypass a limit.
    fn subject<'a>(&self, name: &'a str) -> &'a str {
        match self.known.get(name) {
            Some(_) => name,
            None => UNNAMED,
        }
    }

    /// Subject for the workspace that a row of the pack names. All calls without a known row share one subject, so
    /// that respelling an id does not bypass a limit.
    fn stored(&self, session: &Session) -> Option<String> {
        match self.found(session)? {
            TextFound::Text(text) => Some(self.subject(workspace_name::in_row(&text)).to_owned()),
            TextFound::NoRow => Some(UNNAMED.to_owned()),
            TextFound::Nothing => None,
        }
    }

    /// Subjects of a call in windows by workspace, with the number of its units for each. `around` is the workspace
    /// that its envelope names.
    pub(super) fn workspaces(
        &self,
        session: &Session,
        around: Option<String>,
        units: i64,
    ) -> BTreeMap<String, i64> {
        let mut all: BTreeMap<String, i64> = BTreeMap::new();
        for (name, count) in &self.members {
            *all.entry(self.subject(name).to_owned()).or_default() += count;
        }
        // The subject of the call itself counts the whole cost.
        let named = self
            .workspace
            .as_deref()
            .map(|name| self.subject(name).to_owned());
        let around = around.filter(|name| self.known.get(name).is_some());
        all.extend(
            named
                .into_iter()
                .chain(self.stored(session))
                .chain(around)
                .map(|name| (name, units)),
        );
        if all.is_empty() {
            all.insert(UNNAMED.to_owned(), units);
        }
        all
    }

    /// Registered workspace that a row of the pack names.
    pub(super) fn registered(&self, session: &Session) -> Option<String> {
        let text = self.found(session)?.text()?;
        let name = workspace_name::in_row(&text);
        self.known.get(name).map(|_| name.to_owned())
    }
}
