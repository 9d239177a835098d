//! Bounded views: radar, handoff, event stream, and combinations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::resume::decisions_of;
use crate::budget::{self, Bounded, Shrink, View};
use crate::error::Refusals;
use crate::limits::MAX_NAME_CHARS;
use crate::model::Workspace;
use crate::record::Note;
use crate::scope::Scope;
use crate::store::event::{self, Event};
use crate::target::Subject;
use crate::view::handoff::{self, Handoff};
use crate::view::radar;

/// Show the state of a plan or task on one screen: now, why, verify, next, blockers, and complete next calls.
/// Call this first.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct Radar {
    #[serde(flatten)]
    subject: Subject,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

fn page() -> Json {
    json!({"title": "Radar", "form": "list", "asks": ["workspace", "task"], "app": true})
}

impl Tool for Radar {
    const NAME: &'static str = "tasks_radar";
    const TITLE: &'static str = "Show the current state";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Bounded<radar::Radar>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let (scope, id) = self.subject.open(cx)?;
        budget::fit(&radar::of(&scope, &id)?, self.max_chars)
    }
}

/// Write the handoff report of a plan or task: done, remaining, risks, and the radar.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct HandoffTool {
    #[serde(flatten)]
    subject: Subject,
    /// Entries per list, 1 to 50 (default 10).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

impl Tool for HandoffTool {
    const NAME: &'static str = "tasks_handoff";
    const TITLE: &'static str = "Hand over";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Handoff>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 10, 50)?;
        let (scope, id) = self.subject.open(cx)?;
        budget::fit(&handoff::of(&scope, &id, limit)?, self.max_chars)
    }
}

/// Read the events after a cursor, oldest first, of a workspace, plan or task. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delta {
    workspace: Workspace,
    /// Plan or task id, to read only its events. Default: the workspace.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task: Option<String>,
    /// Cursor: `next_cursor` of an earlier reply, the number of the last event you know (default 0).
    #[schemars(range(min = 0))]
    cursor: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(range(min = 0), extend("deprecated" = true))]
    after: Option<i64>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(range(min = 0), extend("deprecated" = true))]
    since: Option<i64>,
    /// Maximum number of events, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// Part of the event stream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stream {
    /// The cursor that was given.
    cursor: i64,
    /// Value of `cursor` for the next call.
    next_cursor: i64,
    /// Earlier name of `next_cursor`.
    next_since: i64,
    /// True if there are more events.
    has_more: bool,
    /// Events, oldest first.
    events: Vec<Event>,
}

impl View for Stream {
    const ORDER: &'static [Shrink] = &[Shrink::End("events")];

    /// Moves the cursor to the last event that is left, so that no event is skipped.
    fn settle(view: &mut Map<String, Json>, _whole: &Map<String, Json>) {
        settle_stream(view);
    }
}

fn settle_stream(stream: &mut Map<String, Json>) {
    let last = stream
        .get("events")
        .and_then(Json::as_array)
        .and_then(|events| events.last())
        .and_then(|event| event.get("seq"))
        .or_else(|| stream.get("cursor"))
        .cloned();
    if let Some(last) = last {
        if stream.get("next_cursor") != Some(&last) {
            stream.insert("has_more".to_owned(), json!(true));
        }
        for name in ["next_cursor", "next_since"] {
            stream.insert(name.to_owned(), last.clone());
        }
    }
}

impl Tool for Delta {
    const NAME: &'static str = "tasks_delta";
    const TITLE: &'static str = "Read what happened";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Stream>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 50, 200)?;
        let (field, cursor) = match (self.cursor, self.after) {
            (Some(cursor), _) => ("cursor", cursor),
            (None, Some(after)) => ("after", after),
            (None, None) => ("since", self.since.unwrap_or(0)),
        };
        let mut refusals = Refusals::default();
        refusals.within(field, cursor, 0..=i64::MAX);
        refusals.finish()?;
        let scope = Scope::known(cx, &self.workspace)?;
        let stream = stream(&scope, self.task.as_deref(), cursor, limit)?;
        budget::fit(&stream, self.max_chars)
    }
}

fn stream(scope: &Scope<'_>, task: Option<&str>, cursor: i64, limit: usize) -> Result<Stream, ToolError> {
    scope.was_there(task)?;
    let mut events = event::after(
        scope.db(),
        &scope.workspace,
        task,
        cursor,
        limit.saturating_add(1),
    )?;
    let has_more = events.len() > limit;
    events.truncate(limit);
    let next_cursor = events.last().map_or(cursor, |event| event.seq);
    Ok(Stream {
        cursor,
        next_cursor,
        next_since: next_cursor,
        has_more,
        events,
    })
}

/// Decisions that tasks_context_pack shows.
const MAX_DECISIONS: usize = 5;

/// Get the radar of a plan or task with its latest decisions and events.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ContextPack {
    #[serde(flatten)]
    subject: Subject,
    /// Number of latest events, 0 to 100 (default 20).
    #[schemars(range(min = 0, max = 100))]
    delta_limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// A radar and the latest events.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pack {
    /// Current state.
    radar: radar::Radar,
    /// Latest decisions, at most 5, oldest first.
    decisions: Vec<Note>,
    /// Latest events, oldest first. The earliest are dropped first if the reply is too large.
    delta: Vec<Event>,
    /// Value of `cursor` for tasks_delta.
    next_cursor: i64,
    /// Earlier name of `next_cursor`.
    next_since: i64,
}

impl View for Pack {
    const ORDER: &'static [Shrink] = &[
        Shrink::Start("delta"),
        Shrink::Start("decisions"),
        Shrink::Within("radar", radar::Radar::ORDER),
    ];
}

impl Tool for ContextPack {
    const NAME: &'static str = "tasks_context_pack";
    const TITLE: &'static str = "Radar with latest events";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Full;
    type Output = Bounded<Pack>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = from_zero("delta_limit", self.delta_limit, 20, 100)?;
        let (scope, id) = self.subject.open(cx)?;
        let pack = Pack {
            radar: radar::of(&scope, &id)?,
            decisions: decisions_of(&scope, &id, MAX_DECISIONS)?,
            delta: event::latest(scope.db(), &scope.workspace, Some(&id), limit)?,
            next_cursor: scope.counters.events,
            next_since: scope.counters.events,
        };
        budget::fit(&pack, self.max_chars)
    }
}

/// A limit from 1.
pub(crate) fn bounded(field: &str, limit: Option<i64>, default: i64, most: i64) -> Result<usize, ToolError> {
    range(field, limit.unwrap_or(default), 1, most)
}

/// A limit that may be 0.
pub(crate) fn from_zero(
    field: &str,
    limit: Option<i64>,
    default: i64,
    most: i64,
) -> Result<usize, ToolError> {
    range(field, limit.unwrap_or(default), 0, most)
}

fn range(field: &str, limit: i64, least: i64, most: i64) -> Result<usize, ToolError> {
    let mut refusals = Refusals::default();
    refusals.within(field, limit, least..=most);
    refusals.finish()?;
    Ok(usize::try_from(limit).unwrap_or_default())
}
