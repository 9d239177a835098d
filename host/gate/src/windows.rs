//! Budgets of time windows, which hold over envelopes: so many mutations, test runs, edits or new envelopes within an
//! hour, for each workspace, caller or client. Without them an agent whose envelope is used up opens the next.
//!
//! A call takes a slot for each unit in its own commit, as calls do for policies (see `permits`), so that the counts are
//! exact over all hosts of the data directory.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_core::client_name;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::Charge;
use tollgate_core::text;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{Session, Slots, StoreResult, TextFound, TextOf};

use super::batch::{self, Member};
use super::looks;
use super::pending_operation::PendingOperation;
use crate::core_tools::{self, EnvelopeChange};
use crate::envelope_settings::{By, Window};

/// Owner of the slots. Components' names have none of these characters alone, and policies' a prefix.
const OWNER: &str = "core";
/// Longest name that is counted by, in bytes.
const MAX_SUBJECT: usize = 200;
/// Subject of callers and clients that have no name, and of calls that name no registered workspace.
const UNNAMED: &str = "(unnamed)";

/// Use of windows by a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Use {
    /// The workspace that its arguments name, or that its tool takes without a name.
    workspace: Option<String>,
    /// Place of the workspace's name in a table of the pack, for a call that names none.
    stored: Option<TextOf>,
    /// The registered ones.
    known: Workspaces,
    /// Calls inside of the call that write, by the workspace that they name.
    members: BTreeMap<String, i64>,
    /// True if the call opens an envelope.
    opens_envelope: bool,
}

impl Use {
    /// Use of a call with these arguments, in which members have theirs as they run.
    pub(super) fn of(tool: &ToolEntry, arguments: &Value, members: &[Member], known: &Workspaces) -> Use {
        let workspace = looks::named(tool, arguments).map(str::to_owned);
        let declared = tool.workspace.as_ref().filter(|_| workspace.is_none());
        let listed = tool.spec.members.as_ref().and_then(|name| arguments.get(name));
        let entries = listed.and_then(Value::as_array).into_iter().flatten();
        let mut named = BTreeMap::new();
        for (member, entry) in members.iter().zip(entries) {
            let writes = member.tool.spec.effect != Effect::Read;
            let given = entry.get(batch::ARGUMENTS).unwrap_or(&Value::Null);
            if let Some(workspace) = looks::named(&member.tool, given).filter(|_| writes) {
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

    /// Text that a row of the pack has for the workspace. A pack that declares a table which it does not have has none.
    fn found(&self, session: &Session) -> Option<TextFound> {
        let found = session.components().text_at(self.stored.as_ref()?);
        let found = found.inspect_err(|err| tracing::warn!(%err, "the workspace of a call was not read"));
        found.ok()
    }

    /// Subject for the name of a workspace. Names that nobody registered are one, so that no spelling of a name is a way
    /// around a limit.
    fn subject<'a>(&self, name: &'a str) -> &'a str {
        match self.known.get(name) {
            Some(_) => name,
            None => UNNAMED,
        }
    }

    /// Subject for the workspace that a row of the pack names. Calls that name no row that the host knows count together,
    /// so that no spelling of an id is a way around a limit.
    fn stored(&self, session: &Session) -> Option<String> {
        match self.found(session)? {
            TextFound::Text(text) => Some(self.subject(looks::workspace_in(&text)).to_owned()),
            TextFound::NoRow => Some(UNNAMED.to_owned()),
            TextFound::Nothing => None,
        }
    }

    /// Subjects of a call in windows by workspace, with how many of its units each has. `around` is the workspace that its
    /// envelope names.
    fn workspaces(&self, session: &Session, around: Option<String>, units: i64) -> BTreeMap<String, i64> {
        let mut all: BTreeMap<String, i64> = BTreeMap::new();
        for (name, count) in &self.members {
            *all.entry(self.subject(name).to_owned()).or_default() += count;
        }
        // What the call itself is about counts with all that it costs.
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

    /// The registered workspace that a row of the pack names.
    pub(super) fn registered(&self, session: &Session) -> Option<String> {
        let text = self.found(session)?.text()?;
        let name = looks::workspace_in(&text);
        self.known.get(name).map(|_| name.to_owned())
    }
}

/// A unit that is counted, and how many of it a call uses.
struct Units {
    what: &'static str,
    count: i64,
}

const EDITS: &str = "edits";

impl Units {
    /// All that a call uses: what it costs, and an edit that it found.
    fn of(session: &Session, draft: &PendingOperation) -> StoreResult<Vec<Units>> {
        let cost = match draft.charge {
            Charge::Mutations(count) => Some(("mutations", count)),
            Charge::TestRun => Some(("test runs", 1)),
            Charge::Nothing if draft.window_use.opens_envelope => Some(("envelopes", 1)),
            Charge::Nothing => None,
        };
        let edits = match draft.sighting().filter(|_| !draft.closes_envelope()) {
            Some(seen) => session.work_trees().edits_over_envelopes(seen)?,
            None => 0,
        };
        let all = cost.into_iter().chain((edits > 0).then_some((EDITS, edits)));
        Ok(all.map(|(what, count)| Units { what, count }).collect())
    }

    fn limit(&self, window: &Window) -> Option<u32> {
        match self.what {
            "mutations" => window.max_mutations,
            "test runs" => window.max_test_runs,
            EDITS => window.max_edits,
            _ => window.max_envelopes,
        }
    }
}

/// Takes what a call uses of the windows, or says which one has nothing left. Wants a write transaction; what was taken
/// before a refusal is undone with the operation's other permits.
pub(super) fn take(
    session: &Session,
    windows: &[Window],
    draft: &PendingOperation,
    now_ms: i64,
) -> StoreResult<Result<(), ToolError>> {
    if windows.is_empty() {
        return Ok(Ok(()));
    }
    let all = Units::of(session, draft)?;
    for (place, window) in windows.iter().enumerate() {
        for units in &all {
            if let Err(refusal) = take_units(session, (place, window), units, draft, now_ms)? {
                undo(session, windows, draft)?;
                return Ok(Err(refusal));
            }
        }
    }
    Ok(Ok(()))
}

fn take_units(
    session: &Session,
    (place, window): (usize, &Window),
    units: &Units,
    draft: &PendingOperation,
    now_ms: i64,
) -> StoreResult<Result<(), ToolError>> {
    let Some(limit) = units.limit(window) else {
        return Ok(Ok(()));
    };
    let holder = format!("{}:{place}", draft.operation.op_id);
    for (subject, count) in subjects(session, window.by, units, draft)? {
        let key = format!("{} {} {} {subject}", window.by.as_str(), window.per, units.what);
        let slots = Slots {
            policy: OWNER,
            key: &key,
            slots: limit,
            held_ms: window.per_ms,
        };
        for number in 0..count {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let taken = session
                .permits()
                .take_slot(slots, (&holder, number), true, now_ms)?;
            if let Err(wait_ms) = taken {
                let refusal = refused(window, units, &subject, limit, wait_ms);
                return Ok(Err(refusal.next_call(look_back(draft))));
            }
        }
    }
    Ok(Ok(()))
}

/// Gives back what a call took that was not admitted.
pub(super) fn undo(session: &Session, windows: &[Window], draft: &PendingOperation) -> StoreResult<()> {
    for place in 0..windows.len() {
        session
            .permits()
            .undo(&format!("{}:{place}", draft.operation.op_id))?;
    }
    Ok(())
}

/// Subjects whose windows a call counts in, with how many units of each.
fn subjects(
    session: &Session,
    by: By,
    units: &Units,
    draft: &PendingOperation,
) -> StoreResult<BTreeMap<String, i64>> {
    let operation = &draft.operation;
    let named = |name: &str| text::clean(text::cut(name, MAX_SUBJECT));
    let one = |name: &str| BTreeMap::from([(named(name), units.count)]);
    Ok(match by {
        // An edit is one of the work tree in which it was found.
        By::Workspace if units.what == EDITS => {
            let seen = draft.sighting().map(|seen| one(&seen.workspace));
            seen.unwrap_or_default()
        }
        By::Workspace => {
            let envelope = match &operation.envelope_id {
                Some(id) => session.envelopes().get(id)?,
                None => None,
            };
            let of_envelope = envelope.and_then(|envelope| envelope.workspace);
            draft.window_use.workspaces(session, of_envelope, units.count)
        }
        By::Actor => {
            let identity = operation.identity.as_ref().map(|identity| identity.as_str());
            one(identity.unwrap_or(UNNAMED))
        }
        By::Client => {
            let client = operation.client.as_deref().unwrap_or(UNNAMED);
            one(client_name::name_in(client))
        }
        By::Everyone => one(""),
    })
}

/// The call that shows what used a window up.
fn look_back(draft: &PendingOperation) -> NextCall {
    match &draft.operation.envelope_id {
        Some(envelope) => NextCall::new("ledger_report", json!({ "envelope_id": envelope })),
        None => NextCall::new("ledger_query", json!({ "limit": 20 })),
    }
}

fn refused(window: &Window, units: &Units, subject: &str, limit: u32, wait_ms: i64) -> ToolError {
    let is_unnamed = window.by == By::Workspace && subject == UNNAMED;
    let whose = match window.by {
        By::Everyone => "all calls together".to_owned(),
        By::Workspace if is_unnamed => "all calls that name no registered workspace".to_owned(),
        by => format!("{} {subject}", by.as_str()),
    };
    let wait_sec = wait_ms.max(1).saturating_add(999) / 1_000;
    let another = match is_unnamed {
        true => " If the call is about a registered workspace, name it as workspace_list shows it.",
        false => "",
    };
    ToolError::new(
        "WINDOW_EXHAUSTED",
        format!(
            "{whose} may have {limit} {} within {}, and no more of them are left; nothing was run",
            units.what, window.per
        ),
    )
    .remediation(format!(
        "Stop, and report to your owner what was reached. The operator's limit leaves room again in {wait_sec} s; a new \
         envelope does not change it.{another}"
    ))
    .context("by", window.by.as_str())
    .context("per", window.per.as_str())
    .context("what", units.what)
    .context("limit", limit)
    .context("retry_after_sec", wait_sec)
}
