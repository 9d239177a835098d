//! `ledger_query`, `ledger_report`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_components::tools::Tier;
use tollgate_core::clock;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sdk::{Blocker, Timestamp, ToolError};
use tollgate_store::ledger::report::{
    Changed, Circle, LastTests, NewestRun, Part, Refused, Repeated, Step, Story, Unseen, Untested,
};
use tollgate_store::storage::{Envelope, OperationFilter, Session, StoreResult, StoredOperation};

use super::envelope_view::EnvelopeView;
use super::envelopes::{self, look_at};
use super::{CoreCx, CoreError, Tool, storage};

/// Number of operations that are searched for one page, if no index leads to the requested ones.
const MAX_SEARCHED_ROWS: i64 = 10_000;

/// Fields of a row that a query returns by default.
const DEFAULT_FIELDS: &[&str] = &[
    "seq",
    "op_id",
    "envelope_id",
    "timestamp",
    "tool",
    "success",
    "error_code",
    "actor",
    "client",
    "outcome",
    "failing_tests",
    "failure_fingerprint",
    "notes",
    "artifact_ids",
    "verdicts",
];
/// Name for all fields.
const ALL: &str = "all";

/// Look up past operations, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses_of_query()))]
pub(super) struct Query {
    /// Envelope id, from envelope_open. All filters are combined with AND.
    #[schemars(extend("x-values" = envelopes::values()))]
    envelope_id: Option<String>,
    /// Pack of the tools, for example `convergence`.
    pack: Option<String>,
    /// Tool name, for example `test_run`.
    tool: Option<String>,
    /// Actor as operations show it, for example `claimed:ada`.
    actor: Option<String>,
    /// If true, only calls that succeeded; if false, only others.
    success: Option<bool>,
    /// If true, only test runs that passed; if false, only test runs that did not.
    tests_passed: Option<bool>,
    /// Failure fingerprint of a test run, or at least its first 8 digits.
    #[schemars(length(min = 8, max = 64))]
    failure_fingerprint: Option<String>,
    /// Earliest time: RFC 3339, or a time ago such as `30m`, `24h` or `7d`.
    since: Option<String>,
    /// Latest time, exclusive, written like `since`.
    until: Option<String>,
    /// Maximum number of operations, 1 to 200. Default 50.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u32,
    /// `next_cursor` of the previous page.
    cursor: Option<i64>,
    /// Further fields of each operation, for example `changed_paths`, `diff_stats`, or `all`.
    #[serde(default)]
    #[schemars(length(max = 32))]
    fields: Vec<String>,
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
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Page {
    /// Newest first, with the requested fields.
    #[schemars(with = "Vec<StoredOperation>", transform = without_required)]
    operations: Vec<Map<String, Value>>,
    /// Cursor of the next page. A page can be empty without being the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
}

impl Tool for Query {
    const NAME: &'static str = "ledger_query";
    const TITLE: &'static str = "Look up operations";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Page;

    fn run(self, cx: &CoreCx<'_>) -> Result<Page, CoreError> {
        let limit = self.limit.clamp(1, 200);
        let fields = Fields::checked(self.fields)?;
        let actor = match (cx.looks_at(), self.actor) {
            // An identity sees only its own operations.
            (Some(me), Some(actor)) if actor != me.as_str() => return Ok(Page::default()),
            (Some(me), _) => Some(me.as_str().to_owned()),
            (None, actor) => actor,
        };
        let (since, until) = times(cx, self.since.as_deref(), self.until.as_deref())?;
        let mut filter = OperationFilter {
            envelope_id: self.envelope_id,
            pack: self.pack,
            tool: self.tool,
            actor,
            success: self.success,
            tests_passed: self.tests_passed,
            failure_fingerprint: self.failure_fingerprint.map(checked_fingerprint).transpose()?,
            since,
            until,
            before: self.cursor,
            ..OperationFilter::default()
        };
        let rest = window(cx.session, &mut filter, MAX_SEARCHED_ROWS).map_err(storage)?;
        let mut operations = cx
            .session
            .operations()
            .list(&filter, limit + 1)
            .map_err(storage)?;
        let more = operations.len() > limit as usize;
        operations.truncate(limit as usize);
        let last = operations.last().filter(|_| more).map(|operation| operation.seq);
        Ok(Page {
            next_cursor: last.or(rest),
            operations: operations.iter().map(|operation| fields.of(operation)).collect(),
        })
    }
}

/// Fields that a query returns.
struct Fields {
    further: Vec<String>,
}

impl Fields {
    /// Checks the names of requested fields. The error lists the unknown ones and all known ones.
    fn checked(further: Vec<String>) -> Result<Fields, ToolError> {
        if further.is_empty() {
            return Ok(Fields { further });
        }
        let known = schemars::schema_for!(StoredOperation);
        let known = known.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = known
            .into_iter()
            .flat_map(|known| known.keys().map(String::as_str))
            .collect();
        let unknown = further
            .iter()
            .filter(|name| *name != ALL && !known.contains(&name.as_str()));
        let blockers: Vec<Blocker> = unknown
            .map(|name| {
                Blocker::new(
                    "INVALID_FIELD",
                    format!("operations have no field `{}`", text::clean(name)),
                )
                .field("fields")
            })
            .collect();
        if blockers.is_empty() {
            return Ok(Fields { further });
        }
        let refused = ToolError::new("INVALID_ARGUMENTS", "`fields` contains unknown names").remediation(
            format!("Pass `{ALL}` or names from this list: {}.", known.join(", ")),
        );
        Err(blockers.into_iter().fold(refused, ToolError::blocker))
    }

    fn of(&self, operation: &StoredOperation) -> Map<String, Value> {
        let mut row = match serde_json::to_value(operation) {
            Ok(Value::Object(row)) => row,
            _ => Map::new(),
        };
        if !self.further.iter().any(|name| name == ALL) {
            row.retain(|name, _| DEFAULT_FIELDS.contains(&name.as_str()) || self.further.contains(name));
        }
        row
    }
}

/// Removes the required fields from the schema of each row, because a query need not return them.
fn without_required(schema: &mut schemars::Schema) {
    if let Some(row) = schema.get_mut("items").and_then(Value::as_object_mut) {
        row.remove("required");
    }
}

/// Validated fingerprint, or the beginning of one.
fn checked_fingerprint(text: String) -> Result<String, ToolError> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if (8..=64).contains(&text.len()) && text.bytes().all(is_hex) {
        return Ok(text);
    }
    let message = "failure_fingerprint is not 8 to 64 hex digits in lower case";
    Err(ToolError::new("INVALID_ARGUMENTS", message)
        .remediation("Pass failure_fingerprint from a reply or a report, or at least its first 8 digits.")
        .blocker(Blocker::new("INVALID_FIELD", message).field("failure_fingerprint")))
}

/// Both times in the ledger's format. An invalid time is an error, because an empty result would mislead.
pub(super) fn times(
    cx: &CoreCx<'_>,
    since: Option<&str>,
    until: Option<&str>,
) -> Result<(Option<String>, Option<String>), ToolError> {
    let now_ms = Timestamp::parse(&cx.now).map_or(0, Timestamp::as_ms);
    let mut blockers = Vec::new();
    let mut read = |field: &str, text: Option<&str>| {
        let text = text?;
        let time = clock::since(text, now_ms);
        if time.is_none() {
            blockers.push(Blocker::new("INVALID_FIELD", format!("{field} is not a time")).field(field));
        }
        time
    };
    let times = (read("since", since), read("until", until));
    if blockers.is_empty() {
        return Ok(times);
    }
    let refused = ToolError::new("INVALID_ARGUMENTS", "a time cannot be parsed")
        .remediation("Write RFC 3339 such as 2026-11-21T06:00:00Z, or an age: 30m, 24h, 7d, 2w.");
    Err(blockers.into_iter().fold(refused, ToolError::blocker))
}

/// Restricts a query without an index to a window of the ledger, so that the response time does not depend on the
/// ledger's age. Returns the start of the next window, if there is one.
fn window(session: &Session, filter: &mut OperationFilter, size: i64) -> StoreResult<Option<i64>> {
    let is_narrow = filter.pack.is_some() || filter.tool.is_some() || filter.actor.is_some();
    let has_index = filter.envelope_id.is_some()
        || filter.failure_fingerprint.is_some()
        || (filter.success == Some(false) && !is_narrow);
    if has_index {
        return Ok(None);
    }
    let head = session.ledger().head()?.seq;
    let before = filter.before.unwrap_or(i64::MAX).min(head.saturating_add(1));
    let start = before.saturating_sub(size);
    filter.after = Some(start.saturating_sub(1));
    filter.newest_first = true;
    let oldest = session.operations().oldest()?;
    Ok(oldest.filter(|&oldest| oldest < start).map(|_| start))
}

/// Report what happened in an envelope: the order, limits and effects of its calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses_of_report()))]
#[schemars(extend("x-views" = page_of_report()))]
pub(super) struct Report {
    /// Envelope id, from envelope_open or envelope_list.
    #[schemars(extend("x-values" = envelopes::values()))]
    envelope_id: String,
}

fn addresses_of_report() -> Value {
    json!([
        {
            "path": "envelopes/{envelope_id}/report.txt",
            "name": "envelope_report",
            "title": "Report on an envelope",
            "description": "Steps, refusals and changes of an envelope, as text for people.",
            "mime_type": "text/plain",
            "listed": true,
        },
        {
            "path": "envelopes/{envelope_id}/report.json",
            "name": "envelope_report_json",
            "title": "Report on an envelope, for programs",
            "description": "Steps, refusals, changes and counters of an envelope.",
            "mime_type": "application/json",
        },
    ])
}

fn page_of_report() -> Value {
    json!({"title": "Report", "form": "list", "items": [{"list": "steps"}], "asks": ["envelope_id"], "app": true})
}

/// Report on an envelope.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReportView {
    /// State and limits of the envelope.
    envelope: EnvelopeView,
    /// Number of operations.
    operations: i64,
    /// Number of operations that were refused or failed.
    failed: i64,
    /// Number of operations that ended with a policy's question to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<i64>,
    /// Number of operations whose outcome is unknown.
    unknown: i64,
    /// Total time of all calls, in milliseconds.
    busy_ms: f64,
    /// First steps, oldest first. Equal consecutive steps are merged.
    steps: Vec<Step>,
    /// Refused and failed calls, by code.
    refusals: Vec<Refused>,
    /// Failures that occurred more than once.
    repeated_failures: Vec<Repeated>,
    /// Changes that were made more than once.
    repeated_changes: Vec<Repeated>,
    /// Changes in order, oldest first.
    changes: Vec<Changed>,
    /// The newest test run.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_tests: Option<LastTests>,
    /// Newest run of each test command in each workspace, child envelopes included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<NewestRun>,
    /// Edits that no test run followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untested: Vec<Untested>,
    /// Work trees that could not be read when the envelope was closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<Unseen>,
    /// Workspaces whose edits returned to earlier states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    circles: Vec<Circle>,
    /// Child envelopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    /// The report as prose.
    pub text: String,
}

impl Tool for Report {
    const NAME: &'static str = "ledger_report";
    const TITLE: &'static str = "Report on an envelope";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = ReportView;

    fn run(self, cx: &CoreCx<'_>) -> Result<ReportView, CoreError> {
        let envelope = look_at(cx, &self.envelope_id)?;
        report(cx.session, envelope, cx.boot_ms).map_err(storage)
    }

    fn text(output: &ReportView) -> Option<String> {
        Some(output.text.clone())
    }
}

/// Creates the report on an envelope.
pub fn report(session: &Session, envelope: Envelope, boot_ms: i64) -> StoreResult<ReportView> {
    let envelope = session.envelopes().as_at(envelope, boot_ms)?;
    let story = Story::of(session, &envelope.id, boot_ms)?;
    report_of(session, story, envelope, boot_ms)
}

/// Creates the report on an envelope from its story.
pub(super) fn report_of(
    session: &Session,
    story: Story,
    envelope: Envelope,
    boot_ms: i64,
) -> StoreResult<ReportView> {
    let text = story.text(&envelope, boot_ms);
    Ok(ReportView {
        envelope: EnvelopeView::of(session, envelope, boot_ms)?.with_flags(session)?,
        operations: story.operations,
        failed: story.failed,
        asked: Some(story.asked).filter(|asked| *asked > 0),
        unknown: story.unknown,
        busy_ms: story.busy_ms,
        steps: story.steps,
        refusals: story.refusals,
        repeated_failures: story.repeated_failures,
        repeated_changes: story.repeated_changes,
        changes: story.changes,
        last_tests: story.last_tests,
        tests: story.tests,
        untested: story.untested,
        unseen: story.unseen,
        circles: story.circles,
        parts: story.parts,
        text,
    })
}

#[cfg(test)]
mod tests {
    use tollgate_store::storage::{Operation, scratch};

    use super::*;

    /// Number of matching rows on each page.
    fn pages(session: &Session, filter: &OperationFilter, size: i64) -> Vec<usize> {
        let (mut pages, mut before) = (Vec::new(), None);
        loop {
            let mut filter = OperationFilter {
                before,
                ..filter.clone()
            };
            before = window(session, &mut filter, size).unwrap();
            pages.push(session.operations().list(&filter, 100).unwrap().len());
            if before.is_none() {
                return pages;
            }
        }
    }

    #[test]
    fn a_question_without_an_index_looks_at_a_stretch_of_the_ledger_and_says_where_it_stopped() {
        let session = scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        for number in 0..25 {
            let operation = Operation::for_tests(number, None, "2026-03-01T00:00:00.000Z");
            session.ledger().record(&operation).unwrap();
        }
        session.commit().unwrap();
        let by_tool = |tool: &str| OperationFilter {
            tool: Some(tool.to_owned()),
            ..OperationFilter::default()
        };
        let tool = session.operations().list(&OperationFilter::default(), 1).unwrap()[0]
            .tool
            .clone();
        assert_eq!(pages(&session, &by_tool(&tool), 10), [10, 10, 5]);
        assert_eq!(pages(&session, &by_tool("nothing"), 10), [0, 0, 0]);
        assert_eq!(pages(&session, &by_tool("nothing"), 25), [0]);
        let of_envelope = OperationFilter {
            envelope_id: Some("env_none".to_owned()),
            ..by_tool(&tool)
        };
        assert_eq!(pages(&session, &of_envelope, 10), [0], "an index leads to those");
    }
}
