//! Showing one task and reading the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::cut;
use crate::arguments::MAX_REFERENCE_CHARS;
use crate::caller::Caller;
use crate::model::TaskId;
use crate::role::Role;
use crate::store::MAX_SHOWN_ROWS;
use crate::store::approval::{self, Approval};
use crate::store::artifact::{self, Artifact};
use crate::store::attempt::{self, Attempt};
use crate::store::event::{self, Event, Page};
use crate::store::review::{self, Review, ReviewLine};
use crate::store::task::{self, Task};

/// Show a task: phase, spec in parts, and its latest attempts, reviews, artifacts and approvals, newest
/// first. For older ones call task_events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct TaskGet {
    /// Task id from task_create.
    task_id: TaskId,
    /// Number of latest events to add, 0 to 200 (default 0). Fewer if they are large.
    #[schemars(range(max = 200))]
    include_events_limit: Option<u32>,
    /// Add the Markdown source of the spec (default false).
    #[serde(default)]
    include_spec_markdown: bool,
    /// Your name, to fill in `actor` of the suggested next calls.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role, to fill in `actor_role` of the suggested next calls.
    actor_role: Option<Role>,
}

fn page() -> Json {
    json!({
        "title": "Task",
        "form": "list",
        "asks": ["task_id"],
        "arguments": {"include_events_limit": 30},
    })
}

/// A task with its records, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Snapshot {
    /// The task with its spec.
    task: Task,
    /// Attempts left before the circuit opens.
    attempts_left: u32,
    /// Latest attempt, open or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_attempt: Option<Attempt>,
    /// Latest review of either type, with its findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_review: Option<Review>,
    /// Latest approval, with its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_approval: Option<Approval>,
    /// Up to 10 attempts.
    attempts: Vec<Attempt>,
    /// Up to 10 reviews, without their findings.
    reviews: Vec<ReviewLine>,
    /// Up to 10 artifacts.
    artifacts: Vec<Artifact>,
    /// Up to 10 approvals.
    approvals: Vec<Approval>,
    /// Names of the lists that are truncated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<&'static str>,
    /// Latest events in log order, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    /// Markdown source of the spec, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec_markdown: Option<String>,
}

impl Tool for TaskGet {
    const NAME: &'static str = "task_get";
    const TITLE: &'static str = "Show a task";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Snapshot;

    fn run(self, cx: &Cx<'_>) -> Result<Snapshot, ToolError> {
        let (db, id) = (&cx.db, &self.task_id);
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let events_limit = self.include_events_limit.unwrap_or(0);
        refusals.within("include_events_limit", events_limit, 0..=200);
        let task = refusals.known(id, task::get(db, id)?);
        let task = refusals.finish_with(task)?;

        let mut truncated = Vec::new();
        let attempts = shown(
            "attempts",
            attempt::latest(db, id, MAX_SHOWN_ROWS + 1)?,
            &mut truncated,
        );
        let reviews = shown(
            "reviews",
            review::list(db, id, MAX_SHOWN_ROWS + 1)?,
            &mut truncated,
        );
        let artifacts = shown(
            "artifacts",
            artifact::latest(db, id, MAX_SHOWN_ROWS + 1)?,
            &mut truncated,
        );
        let approvals = shown(
            "approvals",
            approval::latest(db, id, MAX_SHOWN_ROWS + 1)?,
            &mut truncated,
        );
        Ok(Snapshot {
            attempts_left: caller.config.retry.left(task.head.attempts_used()),
            task,
            latest_attempt: attempts.first().cloned(),
            latest_review: review::latest(db, id)?,
            latest_approval: approvals.first().cloned(),
            attempts,
            reviews,
            artifacts,
            approvals,
            truncated,
            events: match events_limit {
                0 => Vec::new(),
                limit => event::page(db, Some(id), Page::Latest, limit)?.0,
            },
            spec_markdown: match self.include_spec_markdown {
                true => task::spec_markdown(db, id)?,
                false => None,
            },
        })
    }
}

/// Cuts a list that was read with one extra row, and records that it was truncated.
fn shown<T>(name: &'static str, mut rows: Vec<T>, truncated: &mut Vec<&'static str>) -> Vec<T> {
    if cut(&mut rows, MAX_SHOWN_ROWS) {
        truncated.push(name);
    }
    rows
}

/// Read the append-only event log in order, with actor, time and the state before and after. To read on, pass
/// `cursor`. Pages with large events are shorter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Pages follow numbers that calls about several tasks take at the same time.
#[schemars(extend("x-feed" = true))]
pub(crate) struct TaskEvents {
    /// Task id, to read only its events. Default: all tasks.
    task_id: Option<TaskId>,
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(range(min = 0))]
    cursor: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(range(min = 0), extend("deprecated" = true))]
    after: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(range(min = 0), extend("deprecated" = true))]
    after_id: Option<i64>,
    /// Maximum number of events, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// Your name, to fill in `actor` of the suggested next calls.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role, to fill in `actor_role` of the suggested next calls.
    actor_role: Option<Role>,
}

/// Page of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Events {
    /// Events in log order.
    events: Vec<Event>,
    /// True if there are more events.
    has_more: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<i64>,
    /// Earlier name of `next_cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after_id: Option<i64>,
}

impl Tool for TaskEvents {
    const NAME: &'static str = "task_events";
    const TITLE: &'static str = "Read the event log";
    const EFFECT: Effect = Effect::Read;
    type Output = Events;

    fn run(self, cx: &Cx<'_>) -> Result<Events, ToolError> {
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let limit = self.limit.unwrap_or(50);
        refusals.within("limit", limit, 1..=200);
        if let Some(id) = &self.task_id {
            refusals.known(id, task::head(&cx.db, id)?);
        }
        let (field, after) = match (self.cursor, self.after) {
            (Some(cursor), _) => ("cursor", cursor),
            (None, Some(after)) => ("after", after),
            (None, None) => ("after_id", self.after_id.unwrap_or(0)),
        };
        refusals.within(field, after, 0..=i64::MAX);
        refusals.finish()?;
        let (events, has_more) = event::page(&cx.db, self.task_id.as_ref(), Page::After(after), limit)?;
        let next_cursor = events.last().filter(|_| has_more).map(|event| event.id);
        Ok(Events {
            has_more,
            next_cursor,
            next_after_id: next_cursor,
            events,
        })
    }
}
