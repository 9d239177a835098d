//! `ledger_query`, `ledger_report`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_sdk::ToolError;

use super::envelope_view::EnvelopeView;
use super::envelopes::{self, find};
use super::{CoreCx, Tool, storage};
use crate::ledger::report::{Changed, Refused, Repeated, Step, Story};
use crate::packs::{Effect, Tier};
use crate::storage::{Envelope, OperationFilter, Session, StoredOperation};

/// Look up past operations, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses_of_query()))]
pub(super) struct Query {
    /// Only of this envelope.
    #[schemars(extend("x-values" = envelopes::values()))]
    envelope_id: Option<String>,
    /// Only of this pack.
    pack: Option<String>,
    /// Only of this tool.
    tool: Option<String>,
    /// Only by this actor.
    actor: Option<String>,
    /// Only those that succeeded, or that did not.
    success: Option<bool>,
    /// Only those that failed in this way.
    failure_fingerprint: Option<String>,
    /// Only at or after this time, RFC 3339.
    since: Option<String>,
    /// Only before this time, RFC 3339.
    until: Option<String>,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u32,
    /// Where the last page ended.
    cursor: Option<i64>,
}

fn default_limit() -> u32 {
    50
}

fn addresses_of_query() -> Value {
    json!([{
        "path": "operations.json{?envelope_id,pack,tool,actor,cursor,limit}",
        "name": "operations",
        "title": "Operations",
        "description": "Rows of the ledger, newest first.",
        "mime_type": "application/json",
        "listed": true,
    }])
}

/// A page of operations.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page {
    /// Newest first.
    operations: Vec<StoredOperation>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
}

impl Tool for Query {
    const NAME: &'static str = "ledger_query";
    const TITLE: &'static str = "Look up operations";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Page;

    fn run(self, cx: &CoreCx<'_>) -> Result<Page, ToolError> {
        let limit = self.limit.clamp(1, 200);
        let filter = OperationFilter {
            envelope_id: self.envelope_id,
            pack: self.pack,
            tool: self.tool,
            actor: self.actor,
            success: self.success,
            failure_fingerprint: self.failure_fingerprint,
            since: self.since,
            until: self.until,
            before: self.cursor,
            after: None,
        };
        let mut operations = cx.session.operations(&filter, limit + 1).map_err(storage)?;
        let more = operations.len() > limit as usize;
        operations.truncate(limit as usize);
        Ok(Page {
            next_cursor: operations.last().filter(|_| more).map(|operation| operation.seq),
            operations,
        })
    }
}

/// Tell what happened in an envelope: in what order, under what limits, with what effects.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses_of_report()))]
pub(super) struct Report {
    /// The envelope.
    #[schemars(extend("x-values" = envelopes::values()))]
    envelope_id: String,
}

fn addresses_of_report() -> Value {
    json!([
        {
            "path": "envelopes/{envelope_id}/report.txt",
            "name": "envelope_report",
            "title": "Report on an envelope",
            "description": "What happened in an envelope, as a person would tell it.",
            "mime_type": "text/plain",
            "listed": true,
        },
        {
            "path": "envelopes/{envelope_id}/report.json",
            "name": "envelope_report_json",
            "title": "Report on an envelope, for programs",
            "description": "What happened in an envelope: steps, refusals, changes, counters.",
            "mime_type": "application/json",
        },
    ])
}

/// What happened in an envelope.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReportView {
    /// The envelope.
    envelope: EnvelopeView,
    /// How many operations it has.
    operations: i64,
    /// How many of them were refused or failed.
    failed: i64,
    /// How many have an outcome that nobody can know.
    unknown: i64,
    /// How long the calls took together, in milliseconds.
    busy_ms: f64,
    /// The first steps, oldest first; equal ones that follow each other are one.
    steps: Vec<Step>,
    /// What was refused or failed, by code.
    refusals: Vec<Refused>,
    /// Failures that came more than once.
    repeated_failures: Vec<Repeated>,
    /// Changes that were made more than once.
    repeated_changes: Vec<Repeated>,
    /// What was changed.
    changes: Vec<Changed>,
    /// The same as a person would tell it.
    pub text: String,
}

impl Tool for Report {
    const NAME: &'static str = "ledger_report";
    const TITLE: &'static str = "Report on an envelope";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = ReportView;

    fn run(self, cx: &CoreCx<'_>) -> Result<ReportView, ToolError> {
        let envelope = find(cx, &self.envelope_id)?;
        report(cx.session, envelope, cx.boot_ms).map_err(storage)
    }

    fn text(output: &ReportView) -> Option<String> {
        Some(output.text.clone())
    }
}

/// The report of an envelope.
pub fn report(session: &Session, envelope: Envelope, boot_ms: i64) -> rusqlite::Result<ReportView> {
    let story = Story::of(session, &envelope.id)?;
    let text = story.text(&envelope, boot_ms);
    Ok(ReportView {
        envelope: EnvelopeView::of(session, envelope, boot_ms)?.with_flags(session)?,
        operations: story.operations,
        failed: story.failed,
        unknown: story.unknown,
        busy_ms: story.busy_ms,
        steps: story.steps,
        refusals: story.refusals,
        repeated_failures: story.repeated_failures,
        repeated_changes: story.repeated_changes,
        changes: story.changes,
        text,
    })
}
