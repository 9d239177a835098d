//! `envelope_open`, `envelope_close`, `envelope_get`, `envelope_list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Limits, Refusal, Standing, State};
use tollgate_core::identity::Identity;
use tollgate_sdk::{Blocker, NextCall, ToolError};
use tollgate_store::ledger::report::{Story, Unseen};
use tollgate_store::storage::{Ending, Envelope, EnvelopeFilter, MAX_DEPTH, WORK_TREES, opened};

use super::envelope_view::EnvelopeView;
use super::operations::{self, ReportView};
use super::{CoreCx, CoreError, EnvelopeChange, Tool, storage};
use crate::elsewhere::wrong_host;
use crate::envelope_refusal::{refused, unknown};
use crate::seen::LookedAt;

/// Open an envelope: a bounded piece of work. Pass its id as envelope_id with each call that belongs to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    /// Registered workspace of the work, or any label.
    #[schemars(length(max = 128))]
    workspace: Option<String>,
    /// Short label for reports, for example `fix the total`.
    #[schemars(length(max = 200))]
    label: Option<String>,
    /// Limits, each at most the operator's ceiling. Default: the operator's limits.
    limits: Option<Limits>,
    /// Id of the open parent envelope, whose limits all its child envelopes share.
    parent: Option<String>,
    /// If true, the envelope outlives its connection. Needs max_duration_sec.
    #[serde(default)]
    detached: bool,
    /// Your name, for the ledger. Default: the identity that the transport proved.
    #[schemars(length(max = 128), extend("x-unlisted" = true))]
    #[expect(dead_code, reason = "the gate reads it")]
    actor: Option<String>,
}

impl Tool for Open {
    const NAME: &'static str = "envelope_open";
    const TITLE: &'static str = "Open an envelope";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const ENVELOPE: Option<EnvelopeChange> = Some(EnvelopeChange::Opened("/id"));
    type Output = EnvelopeView;

    fn run(self, cx: &CoreCx<'_>) -> Result<EnvelopeView, CoreError> {
        let asked = self.limits.unwrap_or_default();
        let limits =
            Limits::granted(&asked, &cx.settings.default, &cx.settings.ceiling).map_err(|problems| {
                ToolError::new("LIMIT_INVALID", "the limits are outside the allowed range")
                    .remediation("Pass limits from 1 up to the operator's ceiling, or omit them.")
                    .blockers(problems)
            })?;
        if let Some(parent) = &self.parent {
            check_parent(cx, parent)?;
        }
        let detached_until_ms = self.detached.then(|| detached_until(cx, &limits)).transpose()?;
        let mut envelope = Envelope {
            id: (cx.new_id)("env"),
            standing: Standing::opened(limits, cx.boot_ms),
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
            parent: self.parent,
            closed_actor: None,
            detached_until_ms,
            index_version: None,
            restart_moved: None,
            over_boot_ms: None,
        };
        cx.session.envelopes().open(&envelope).map_err(storage)?;
        cx.session
            .budgets()
            .open(&envelope.id, &cx.settings.budgets)
            .map_err(storage)?;
        if let Some(seen) = cx.seen {
            envelope.index_version = cx
                .session
                .work_trees()
                .note_baseline(&envelope.id, seen, cx.op_id, &cx.now)
                .map_err(storage)?;
        }
        cx.tell(&envelope.id, opened(&envelope, &cx.settings.budgets));
        view(cx, envelope)
    }
}

/// Checks that an envelope can enclose a new one.
fn check_parent(cx: &CoreCx<'_>, parent: &str) -> Result<(), CoreError> {
    find(cx, parent)?;
    if let Some((envelope, refusal)) = cx
        .session
        .envelopes()
        .refusal_to_read(parent, cx.boot_ms)
        .map_err(storage)?
    {
        return Err(refused(&envelope, refusal, cx.boot_ms).into());
    }
    let around = cx.session.envelopes().depth_of(parent).map_err(storage)?;
    if around < MAX_DEPTH {
        return Ok(());
    }
    let error = ToolError::new(
        "LIMIT_INVALID",
        format!("envelope {parent} is nested {around} levels deep; at most {MAX_DEPTH} are allowed"),
    );
    Err(error
        .remediation("Pass a less deeply nested envelope as the parent.")
        .into())
}

/// End of a detached envelope by the wall clock, which survives restarts.
fn detached_until(cx: &CoreCx<'_>, limits: &Limits) -> Result<i64, ToolError> {
    let Some(seconds) = limits.max_duration_sec else {
        let message = "a detached envelope outlives its connection, so it needs max_duration_sec";
        return Err(ToolError::new("LIMIT_INVALID", message)
            .remediation("Pass limits.max_duration_sec, for example 7200.")
            .blocker(Blocker::new("LIMIT_INVALID", message).field("limits.max_duration_sec")));
    };
    Ok(cx.now_ms.saturating_add(seconds.saturating_mul(1_000)))
}

/// Outcome of the work.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkOutcome {
    Success,
    Failed,
}

/// Close an envelope for good.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Close {
    /// Envelope id, from envelope_open.
    envelope_id: String,
    /// Outcome of the work: success or failed.
    outcome: WorkOutcome,
    /// Result or reason, for reports.
    #[schemars(length(max = 2000))]
    note: Option<String>,
    /// If true, the reply contains the report of ledger_report.
    #[serde(default)]
    report: bool,
    /// Your name, for the ledger. Default: the identity that the transport proved.
    #[schemars(length(max = 128), extend("x-unlisted" = true))]
    #[expect(dead_code, reason = "the gate reads it")]
    actor: Option<String>,
}

/// A closed envelope.
#[derive(Serialize, JsonSchema)]
pub(super) struct Closed {
    /// Final state of the envelope.
    envelope: EnvelopeView,
    /// Number of operations before this one.
    operations: i64,
    /// Number of operations that were refused or failed.
    failed: i64,
    /// Tools of its calls that are still running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    running: Vec<String>,
    /// Summary in a few lines.
    summary: String,
    /// Report on the envelope, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReportView>,
}

impl Tool for Close {
    const NAME: &'static str = "envelope_close";
    const TITLE: &'static str = "Close an envelope";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const ENVELOPE: Option<EnvelopeChange> = Some(EnvelopeChange::Closed("/envelope/id"));
    type Output = Closed;

    fn run(self, cx: &CoreCx<'_>) -> Result<Closed, CoreError> {
        let envelope = find(cx, &self.envelope_id)?;
        if envelope.standing.state != State::Open {
            let state = envelope.standing.state;
            return Err(refused(&envelope, Refusal::Closed(state), cx.boot_ms).into());
        }
        if matches!(self.outcome, WorkOutcome::Success)
            && let Some(refusal) = elsewhere_at_closing(cx, &envelope)
        {
            return Err(refusal.into());
        }
        let mut within_limit = true;
        for seen in cx.closing.iter().filter_map(|looked| looked.seen.as_ref().ok()) {
            within_limit &= cx
                .session
                .work_trees()
                .see_at_closing(&envelope.id, seen, cx.op_id, &cx.now)
                .map_err(storage)?;
        }
        // An envelope whose time is up ended by that, whatever its owner reports.
        let over = (!within_limit).then_some("EDIT_BUDGET_EXHAUSTED");
        // A caller without a name is identified by its client.
        let client = || cx.client.map(|client| format!("client {client}"));
        let actor = cx.actor.map(str::to_owned).or_else(client);
        let ending = Ending {
            state: match self.outcome {
                WorkOutcome::Success if over.is_none() => State::ClosedSuccess,
                WorkOutcome::Success | WorkOutcome::Failed => State::ClosedFailed,
            },
            closed_by: over,
            note: self.note.as_deref(),
            actor: actor.as_deref(),
            now: &cx.now,
            boot_ms: cx.boot_ms,
        };
        let ended = cx
            .session
            .envelopes()
            .close(&self.envelope_id, ending)
            .map_err(storage)?;
        if let Some(mut event) = ended {
            if !cx.closing.is_empty() {
                event[WORK_TREES] = cx.closing.iter().map(LookedAt::as_json).collect();
            }
            cx.tell(&self.envelope_id, event);
        }
        let envelope = find(cx, &self.envelope_id)?;
        let mut story = Story::of(cx.session, &envelope.id, cx.boot_ms).map_err(storage)?;
        story.unseen = unseen(cx.closing);
        let wanted = self.report.then(|| envelope.clone());
        Ok(Closed {
            operations: story.operations,
            failed: story.failed,
            running: story.running.clone(),
            summary: story.summary(&envelope, cx.boot_ms),
            report: wanted
                .map(|envelope| {
                    operations::report_of(cx.session, story.clone(), envelope, cx.boot_ms).map_err(storage)
                })
                .transpose()?,
            envelope: EnvelopeView::of(cx.session, envelope, cx.boot_ms)
                .and_then(|view| view.with_flags(cx.session))
                .map_err(storage)?,
        })
    }

    fn text(output: &Closed) -> Option<String> {
        let text = output
            .report
            .as_ref()
            .map_or(&output.summary, |report| &report.text);
        Some(text.clone())
    }
}

/// Refuses to close an envelope as a success on a host without its work tree, because its last edits could not be
/// observed. An envelope that worked in trees of several machines can be closed on each of them, unless its edits are
/// limited.
fn elsewhere_at_closing(cx: &CoreCx<'_>, envelope: &Envelope) -> Option<ToolError> {
    let is_here = |looked: &&LookedAt| cx.workspaces.get(&looked.workspace).is_some();
    if cx.closing.iter().any(|looked| is_here(&looked)) && envelope.standing.limits.max_edits.is_none() {
        return None;
    }
    let away = cx.closing.iter().filter(|looked| !is_here(looked));
    let mut elsewhere = away.map(|looked| {
        let name = looked.workspace.as_str();
        (name, cx.host.hosts_with_workspace(name))
    });
    let (name, hosts) = elsewhere.find(|(_, hosts)| !hosts.is_empty())?;
    Some(wrong_host(name, &hosts).remediation(
        "Close the envelope at the host that has the workspace, which checks the last edits. Here it can only be closed as failed.",
    ))
}

/// Work trees that could not be scanned, for the report.
fn unseen(looks: &[LookedAt]) -> Vec<Unseen> {
    let unseen = looks.iter().filter_map(|looked| {
        let why = looked.seen.as_ref().err()?;
        Some(Unseen {
            workspace: looked.workspace.clone(),
            why: why.clone(),
        })
    });
    unseen.collect()
}

/// Show an envelope: state, used and remaining limits, latest fingerprints.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// Envelope id, from envelope_open.
    envelope_id: String,
}

impl Tool for Get {
    const NAME: &'static str = "envelope_get";
    const TITLE: &'static str = "Show an envelope";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = EnvelopeView;

    fn run(self, cx: &CoreCx<'_>) -> Result<EnvelopeView, CoreError> {
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
    /// State of the envelopes to list. Default: all states.
    state: Option<State>,
    /// Workspace of the envelopes to list. Default: all workspaces.
    workspace: Option<String>,
    /// Maximum number of envelopes, 1 to 100. Default 20.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// `next_cursor` of the previous page.
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
        "description": "Envelopes with the used and the remaining part of their limits, newest first.",
        "mime_type": "application/json",
        "listed": true,
    }])
}

/// A page of envelopes.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// Newest first.
    envelopes: Vec<EnvelopeView>,
    /// Cursor of the next page.
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

    fn run(self, cx: &CoreCx<'_>) -> Result<Page, CoreError> {
        let before = match &self.cursor {
            None => None,
            Some(id) => {
                let last = look_at(cx, id).map_err(|err| match err {
                    CoreError::Tool(_) => CoreError::Tool(no_page()),
                    other => other,
                })?;
                Some((last.opened_at, last.id))
            }
        };
        let filter = EnvelopeFilter {
            state: self.state,
            workspace: self.workspace,
            identity: cx.looks_at().cloned(),
            boot_ms: cx.boot_ms,
            before,
        };
        let limit = self.limit.clamp(1, 100);
        let mut envelopes = cx.session.envelopes().list(&filter, limit + 1).map_err(storage)?;
        let more = envelopes.len() > limit as usize;
        envelopes.truncate(limit as usize);
        Ok(Page {
            next_cursor: envelopes
                .last()
                .filter(|_| more)
                .map(|envelope| envelope.id.clone()),
            envelopes: envelopes
                .into_iter()
                .map(|envelope| view(cx, envelope)?.with_flags(cx.session).map_err(storage))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Source of values for arguments that name an envelope.
pub(super) fn values() -> Value {
    json!({"tool": List::NAME, "arguments": {"limit": 100}, "items": "envelopes", "value": "id"})
}

fn view(cx: &CoreCx<'_>, envelope: Envelope) -> Result<EnvelopeView, CoreError> {
    EnvelopeView::of(cx.session, envelope, cx.boot_ms).map_err(storage)
}

/// An envelope of the caller by its id, as stored. The refusal says how to find it.
fn find(cx: &CoreCx<'_>, id: &str) -> Result<Envelope, CoreError> {
    visible(cx, id, cx.identity)
}

/// Envelope that the caller may read, even if it belongs to another caller, in its current state.
pub(super) fn look_at(cx: &CoreCx<'_>, id: &str) -> Result<Envelope, CoreError> {
    let envelope = visible(cx, id, cx.looks_at())?;
    cx.session
        .envelopes()
        .as_at(envelope, cx.boot_ms)
        .map_err(storage)
}

fn visible(cx: &CoreCx<'_>, id: &str, to: Option<&Identity>) -> Result<Envelope, CoreError> {
    cx.session
        .envelopes()
        .get(id)
        .map_err(storage)?
        .filter(|envelope| envelope.is_visible(to))
        .ok_or_else(|| unknown(id).into())
}

/// Refusal because there is no page after this cursor.
fn no_page() -> ToolError {
    ToolError::new("INVALID_ARGUMENTS", "cursor was not returned by envelope_list")
        .remediation("Start without a cursor.")
        .next_call(NextCall::new("envelope_list", json!({})))
}
