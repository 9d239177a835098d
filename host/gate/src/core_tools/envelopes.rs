//! `envelope_open`, `envelope_close`, `envelope_get`, `envelope_list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_components::packs::Tier;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Limits, Standing, State};
use tollgate_core::identity::Identity;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{Envelope, EnvelopeFilter};

use super::envelope_view::EnvelopeView;
use super::operations::{self, ReportView};
use super::{CoreCx, EnvelopeChange, Tool, storage};

/// Open an envelope: a bounded piece of work. Pass its id as envelope_id with each call that belongs to it. Limits you do
/// not name are the operator's.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    /// The workspace it is about.
    #[schemars(length(max = 128))]
    workspace: Option<String>,
    /// A few words for who reads the ledger.
    #[schemars(length(max = 200))]
    label: Option<String>,
    /// Limits, each at most the operator's ceiling.
    limits: Option<Limits>,
}

impl Tool for Open {
    const NAME: &'static str = "envelope_open";
    const TITLE: &'static str = "Open an envelope";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const ENVELOPE: Option<EnvelopeChange> = Some(EnvelopeChange::Opened("/id"));
    type Output = EnvelopeView;

    fn run(self, cx: &CoreCx<'_>) -> Result<EnvelopeView, ToolError> {
        let asked = self.limits.unwrap_or_default();
        let limits =
            Limits::granted(&asked, &cx.settings.default, &cx.settings.ceiling).map_err(|problems| {
                ToolError::new(
                    "LIMIT_INVALID",
                    "the limits are not ones that an envelope can have here",
                )
                .remediation("Ask for limits from 1 up to the operator's ceiling, or leave them out.")
                .blockers(problems)
            })?;
        let envelope = Envelope {
            id: (cx.new_id)("env"),
            standing: Standing {
                state: State::Open,
                limits,
                mutations: 0,
                test_runs: 0,
                opened_boot_ms: cx.boot_ms,
            },
            git_head: cx.git_head(self.workspace.as_deref()),
            workspace: self.workspace,
            label: self.label,
            note: None,
            opened_at: cx.now.clone(),
            closed_at: None,
            closed_by: None,
            closed_git_head: None,
            last_mutation_fingerprint: None,
            last_failure_fingerprint: None,
            host_id: cx.host_id.to_owned(),
            connection: cx.connection.to_owned(),
            identity: cx.identity.map(|identity| identity.as_str().to_owned()),
        };
        cx.session.open_envelope(&envelope).map_err(storage)?;
        cx.session
            .open_budgets(&envelope.id, &cx.settings.budgets)
            .map_err(storage)?;
        view(cx, envelope)
    }
}

/// How the work ended.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Success,
    Failed,
}

/// Close an envelope for good, and get the report of what happened in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Close {
    /// The envelope.
    envelope_id: String,
    /// How the work ended.
    outcome: Outcome,
    /// A few words for who reads the ledger.
    #[schemars(length(max = 2000))]
    note: Option<String>,
}

/// A closed envelope and its report.
#[derive(Serialize, JsonSchema)]
pub(super) struct Closed {
    /// The envelope.
    envelope: EnvelopeView,
    /// What happened in it.
    report: ReportView,
}

impl Tool for Close {
    const NAME: &'static str = "envelope_close";
    const TITLE: &'static str = "Close an envelope";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const ENVELOPE: Option<EnvelopeChange> = Some(EnvelopeChange::Closed("/envelope/id"));
    type Output = Closed;

    fn run(self, cx: &CoreCx<'_>) -> Result<Closed, ToolError> {
        let envelope = find(cx, &self.envelope_id)?;
        if envelope.standing.state != State::Open {
            return Err(closed(&envelope));
        }
        let state = match self.outcome {
            Outcome::Success => State::ClosedSuccess,
            Outcome::Failed => State::ClosedFailed,
        };
        cx.session
            .close_envelope(&self.envelope_id, state, &cx.now, None, self.note.as_deref())
            .map_err(storage)?;
        if let Some(head) = cx.git_head(envelope.workspace.as_deref()) {
            cx.session
                .note_closing_head(&self.envelope_id, &head)
                .map_err(storage)?;
        }
        let envelope = find(cx, &self.envelope_id)?;
        let report = operations::report(cx.session, envelope.clone(), cx.boot_ms).map_err(storage)?;
        Ok(Closed {
            envelope: EnvelopeView::of(cx.session, envelope, cx.boot_ms)
                .and_then(|view| view.with_flags(cx.session))
                .map_err(storage)?,
            report,
        })
    }

    fn text(output: &Closed) -> Option<String> {
        Some(output.report.text.clone())
    }
}

/// Show an envelope: its state, what is used and left, its last fingerprints.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The envelope.
    envelope_id: String,
}

impl Tool for Get {
    const NAME: &'static str = "envelope_get";
    const TITLE: &'static str = "Show an envelope";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = EnvelopeView;

    fn run(self, cx: &CoreCx<'_>) -> Result<EnvelopeView, ToolError> {
        view(cx, look_at(cx, &self.envelope_id)?)?
            .with_flags(cx.session)
            .map_err(storage)
    }
}

/// List envelopes, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses_of_list()))]
pub(super) struct List {
    /// Only those in this state.
    state: Option<State>,
    /// Only those about this workspace.
    workspace: Option<String>,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Where the last page ended.
    cursor: Option<String>,
}

fn default_limit() -> u32 {
    20
}

fn addresses_of_list() -> Value {
    json!([{
        "path": "envelopes.json{?state,workspace,cursor,limit}",
        "name": "envelopes",
        "title": "Envelopes",
        "description": "Envelopes with what is used and left of their limits, newest first.",
        "mime_type": "application/json",
        "listed": true,
    }])
}

/// A page of envelopes.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// Newest first.
    envelopes: Vec<EnvelopeView>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    const NAME: &'static str = "envelope_list";
    const TITLE: &'static str = "List envelopes";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    const LISTS_VALUES: bool = true;
    type Output = Page;

    fn run(self, cx: &CoreCx<'_>) -> Result<Page, ToolError> {
        let before = match &self.cursor {
            None => None,
            Some(id) => {
                let last = look_at(cx, id)?;
                Some((last.opened_at, last.id))
            }
        };
        let filter = EnvelopeFilter {
            state: self.state,
            workspace: self.workspace,
            identity: cx.looks_at().cloned(),
            before,
        };
        let limit = self.limit.clamp(1, 100);
        let mut envelopes = cx.session.envelopes(&filter, limit + 1).map_err(storage)?;
        let more = envelopes.len() > limit as usize;
        envelopes.truncate(limit as usize);
        Ok(Page {
            next_cursor: envelopes
                .last()
                .filter(|_| more)
                .map(|envelope| envelope.id.clone()),
            envelopes: envelopes
                .into_iter()
                .map(|envelope| view(cx, envelope))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// What lists envelopes, for arguments that name one.
pub(super) fn values() -> Value {
    json!({"tool": List::NAME, "arguments": {"limit": 100}, "items": "envelopes", "value": "id"})
}

fn view(cx: &CoreCx<'_>, envelope: Envelope) -> Result<EnvelopeView, ToolError> {
    EnvelopeView::of(cx.session, envelope, cx.boot_ms).map_err(storage)
}

/// An envelope of the caller's by its id, or a refusal that says how to find it.
fn find(cx: &CoreCx<'_>, id: &str) -> Result<Envelope, ToolError> {
    visible(cx, id, cx.identity)
}

/// The same of one that the caller may look at, though it may be somebody else's.
pub(super) fn look_at(cx: &CoreCx<'_>, id: &str) -> Result<Envelope, ToolError> {
    visible(cx, id, cx.looks_at())
}

fn visible(cx: &CoreCx<'_>, id: &str, to: Option<&Identity>) -> Result<Envelope, ToolError> {
    cx.session
        .envelope(id)
        .map_err(storage)?
        .filter(|envelope| envelope.is_visible(to))
        .ok_or_else(|| unknown(id))
}

/// There is no envelope of this id.
pub(crate) fn unknown(id: &str) -> ToolError {
    let id = tollgate_core::text::clean(tollgate_core::text::cut(id, 64));
    ToolError::new("UNKNOWN_ENVELOPE", format!("there is no envelope {id}"))
        .remediation("List envelopes, or open one.")
        .next_call(NextCall::new("envelope_open", json!({})))
}

fn closed(envelope: &Envelope) -> ToolError {
    ToolError::new(
        "ENVELOPE_CLOSED",
        format!("envelope {} is {}", envelope.id, envelope.standing.state.as_str()),
    )
    .remediation("A closed envelope stays closed; open another for more work.")
    .context("envelope_id", envelope.id.as_str())
    .context("state", envelope.standing.state.as_str())
    .next_call(NextCall::new("envelope_open", json!({})))
}
