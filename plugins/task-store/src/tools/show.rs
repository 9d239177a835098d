//! Showing one task, and reading the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::cut;
use crate::arguments::REFERENCE;
use crate::caller::Caller;
use crate::model::TaskId;
use crate::role::Role;
use crate::store::SHOWN;
use crate::store::approval::{self, Approval};
use crate::store::artifact::{self, Artifact};
use crate::store::attempt::{self, Attempt};
use crate::store::event::{self, Event, Page};
use crate::store::review::{self, Review, ReviewLine};
use crate::store::task::{self, Task};

/// Show a task: phase, spec in parts, and its latest attempts, reviews, artifacts and approvals,
/// newest first. `task_events` has everything older.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskGet {
    /// The task.
    task_id: TaskId,
    /// How many of its latest events to add, at most 200; fewer come if they are large. None if left out.
    #[schemars(range(max = 200))]
    include_events_limit: Option<u32>,
    /// Add the Markdown that the spec was read from.
    #[serde(default)]
    include_spec_markdown: bool,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// In which role.
    actor_role: Option<Role>,
}

/// A task with what was recorded about it, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Snapshot {
    /// The task.
    task: Task,
    /// How many more attempts it may have before its circuit has to be opened.
    attempts_left: u32,
    /// Its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_attempt: Option<Attempt>,
    /// Its latest review of either type, with its findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_review: Option<Review>,
    /// Its latest approval.
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
    /// Which of the lists hold more than is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<&'static str>,
    /// The latest events in the order they happened, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    /// The Markdown that the spec was read from, if asked for.
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
        let attempts = shown("attempts", attempt::latest(db, id, SHOWN + 1)?, &mut truncated);
        let reviews = shown("reviews", review::list(db, id, SHOWN + 1)?, &mut truncated);
        let artifacts = shown("artifacts", artifact::latest(db, id, SHOWN + 1)?, &mut truncated);
        let approvals = shown("approvals", approval::latest(db, id, SHOWN + 1)?, &mut truncated);
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

/// Cuts a list that was read with one row more than is shown, and notes that it was cut.
fn shown<T>(name: &'static str, mut rows: Vec<T>, truncated: &mut Vec<&'static str>) -> Vec<T> {
    if cut(&mut rows, SHOWN) {
        truncated.push(name);
    }
    rows
}

/// Read the append-only log in order: who changed what, when, with the state before and after. Pages end
/// early when events are large; `next_after_id` goes on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskEvents {
    /// Only events of this task.
    task_id: Option<TaskId>,
    /// Only events after this place in the log. From the beginning if left out.
    #[serde(default)]
    #[schemars(range(min = 0))]
    after_id: i64,
    /// At most so many, 1 to 200. 50 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// In which role.
    actor_role: Option<Role>,
}

/// One page of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Events {
    /// The events in the order they happened.
    events: Vec<Event>,
    /// What to give as `after_id` for the next page, if there is one.
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
        refusals.finish()?;
        let (events, more) = event::page(&cx.db, self.task_id.as_ref(), Page::After(self.after_id), limit)?;
        Ok(Events {
            next_after_id: events.last().filter(|_| more).map(|event| event.id),
            events,
        })
    }
}
