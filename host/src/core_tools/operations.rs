//! `ledger_query`, `ledger_report`

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::ToolError;

use super::envelopes::{EnvelopeView, find};
use super::{CoreCx, Tool, storage};
use crate::packs::{Effect, Tier};
use crate::storage::{Envelope, OperationFilter, StoredOperation};

/// Operations of a report that are told one by one.
const TOLD: u32 = 200;

/// Look up past operations, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    /// Only of this envelope.
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
pub(super) struct Report {
    /// The envelope.
    envelope_id: String,
}

/// What happened in an envelope.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ReportView {
    /// The envelope.
    envelope: EnvelopeView,
    /// How many operations it has.
    operations: i64,
    /// How many of them were refused or failed.
    failed: i64,
    /// The first of them, oldest first.
    timeline: Vec<StoredOperation>,
    /// The same as a person would tell it.
    pub(super) text: String,
}

impl Tool for Report {
    const NAME: &'static str = "ledger_report";
    const TITLE: &'static str = "Report on an envelope";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = ReportView;

    fn run(self, cx: &CoreCx<'_>) -> Result<ReportView, ToolError> {
        let envelope = find(cx, &self.envelope_id)?;
        report(cx, &envelope)
    }

    fn text(output: &ReportView) -> Option<String> {
        Some(output.text.clone())
    }
}

/// The report of an envelope.
pub(super) fn report(cx: &CoreCx<'_>, envelope: &Envelope) -> Result<ReportView, ToolError> {
    let (operations, failed) = cx.session.count_operations(&envelope.id).map_err(storage)?;
    let filter = OperationFilter {
        envelope_id: Some(envelope.id.clone()),
        after: Some(0),
        ..OperationFilter::default()
    };
    let timeline = cx.session.operations(&filter, TOLD).map_err(storage)?;
    let envelope = EnvelopeView::of(envelope.clone(), cx.boot_ms);
    let text = tell(&envelope, operations, failed, &timeline);
    Ok(ReportView {
        envelope,
        operations,
        failed,
        timeline,
        text,
    })
}

/// The report as a person would write it.
fn tell(envelope: &EnvelopeView, operations: i64, failed: i64, timeline: &[StoredOperation]) -> String {
    let mut text = format!("Envelope {}", envelope.id);
    if let Some(label) = &envelope.label {
        let _ = write!(text, " \"{label}\"");
    }
    let _ = write!(text, "\nOpened {}", envelope.opened_at);
    match (&envelope.closed_at, &envelope.closed_by) {
        (Some(at), Some(by)) => {
            let _ = write!(text, ", closed {at} as {} by {by}", envelope.state.as_str());
        }
        (Some(at), None) => {
            let _ = write!(text, ", closed {at} by its owner as {}", envelope.state.as_str());
        }
        (None, _) => text.push_str(", still open"),
    }
    text.push_str(".\n");
    let of =
        |limit: Option<i64>| limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit}"));
    let _ = writeln!(
        text,
        "Used {} mutations ({}), {} test runs ({}); time: {} s.",
        envelope.counters.mutation_count,
        of(envelope.limits.max_mutations),
        envelope.counters.test_run_count,
        of(envelope.limits.max_test_runs),
        of(envelope.limits.max_duration_sec),
    );
    text.push_str(&tell_heads(envelope));
    if let Some(note) = &envelope.note {
        let _ = writeln!(text, "Its owner's last words: {note}");
    }
    let _ = writeln!(
        text,
        "{operations} operations, {failed} of them refused or failed."
    );
    for operation in timeline {
        let _ = writeln!(text, "{}", tell_one(operation));
    }
    if operations > i64::from(TOLD) {
        let _ = writeln!(text, "… and {} more.", operations - i64::from(TOLD));
    }
    text.trim_end().to_owned()
}

/// Where the repository was and where it went.
fn tell_heads(envelope: &EnvelopeView) -> String {
    let snapshot = &envelope.repo_snapshot;
    match (&snapshot.git_head, &snapshot.closed_git_head) {
        (Some(from), Some(to)) if from == to => format!("The repository stayed at {from}.\n"),
        (Some(from), Some(to)) => format!("The repository moved from {from} to {to}.\n"),
        (Some(from), None) => format!("The repository was at {from} when it was opened.\n"),
        (None, Some(to)) => format!("The repository came to {to}.\n"),
        (None, None) => String::new(),
    }
}

fn tell_one(operation: &StoredOperation) -> String {
    let outcome = match (operation.success, &operation.error_code) {
        (Some(true), _) => "done".to_owned(),
        (Some(false), Some(code)) => code.clone(),
        (Some(false), None) => "failed".to_owned(),
        (None, _) => "outcome unknown".to_owned(),
    };
    let who = operation
        .actor
        .as_ref()
        .map(|actor| format!(" by {actor}"))
        .unwrap_or_default();
    let limit = operation
        .limit_triggered
        .as_ref()
        .map(|_| "  <- limit")
        .unwrap_or_default();
    format!(
        "  {:>5}  {}  {}{who}: {outcome}{limit}",
        operation.seq, operation.timestamp, operation.tool
    )
}
