//! Reading tasks and their log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Blocker, Cx, Effect, NextCall, Tier, Timestamp, Tool, ToolError};

use super::{find_task, hold_blocker};
use crate::arguments::{LABEL, PATH, REFERENCE};
use crate::caller::Caller;
use crate::model::TaskId;
use crate::phase::Phase;
use crate::retry::{Turn, holds};
use crate::role::Role;
use crate::store::SHOWN;
use crate::store::approval::{self, Approval};
use crate::store::artifact::{self, Artifact};
use crate::store::attempt::{self, Attempt};
use crate::store::event::{self, Event, Page};
use crate::store::review::{self, Review};
use crate::store::task::{self, Filter, Queue, Queued, Task, TaskHead};

/// Show a task: phase, spec in parts, and its latest attempts, reviews, artifacts and approvals,
/// newest first. `task_events` has everything older.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskGet {
    /// The task.
    task_id: TaskId,
    /// How many of its latest events to add, at most 200. None if left out.
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
    /// Its latest review of either type.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_review: Option<Review>,
    /// Its latest approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_approval: Option<Approval>,
    /// Up to 10 attempts.
    attempts: Vec<Attempt>,
    /// Up to 10 reviews.
    reviews: Vec<Review>,
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
    const TIER: Tier = Tier::Core;
    type Output = Snapshot;

    fn run(self, cx: &Cx<'_>) -> Result<Snapshot, ToolError> {
        let (db, id) = (&cx.db, &self.task_id);
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let events_limit = self.include_events_limit.unwrap_or(0);
        refusals.limit("include_events_limit", events_limit, 0..=200);
        let task = task::get(db, id)?;
        if task.is_none() {
            refusals.unknown_task(id);
        }
        let task = refusals.finish_with(task)?;

        let mut truncated = Vec::new();
        let attempts = shown("attempts", attempt::latest(db, id, SHOWN + 1)?, &mut truncated);
        let reviews = shown("reviews", review::latest(db, id, SHOWN + 1)?, &mut truncated);
        let artifacts = shown("artifacts", artifact::latest(db, id, SHOWN + 1)?, &mut truncated);
        let approvals = shown("approvals", approval::latest(db, id, SHOWN + 1)?, &mut truncated);
        Ok(Snapshot {
            attempts_left: caller.config.retry.left(task.head.attempts_used()),
            task,
            latest_attempt: attempts.first().cloned(),
            latest_review: reviews.first().cloned(),
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

/// Cuts rows to a limit. Says whether there were more.
fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    more
}

/// A task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskLine {
    /// The task's id.
    id: TaskId,
    /// What it is called.
    title: String,
    /// Where it belongs.
    workspace: String,
    /// Where it stands.
    phase: Phase,
    /// Its labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// When anything about it was last recorded.
    updated_at: Timestamp,
}

impl From<TaskHead> for TaskLine {
    fn from(head: TaskHead) -> TaskLine {
        TaskLine {
            id: head.id,
            title: head.title,
            workspace: head.workspace,
            phase: head.phase,
            labels: head.labels,
            updated_at: head.updated_at,
        }
    }
}

/// List tasks, newest first, by phase, workspace or label.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskList {
    /// Only tasks in this phase.
    phase: Option<Phase>,
    /// Only tasks of this workspace.
    #[schemars(length(max = PATH))]
    workspace: Option<String>,
    /// Only tasks with this label.
    #[schemars(length(max = LABEL))]
    label: Option<String>,
    /// At most so many, 1 to 100. 20 if left out.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[schemars(length(max = REFERENCE))]
    cursor: Option<String>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// In which role.
    actor_role: Option<Role>,
}

/// One page of tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// The tasks.
    tasks: Vec<TaskLine>,
    /// What asks for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
}

impl Tool for TaskList {
    const NAME: &'static str = "task_list";
    const TITLE: &'static str = "List tasks";
    const EFFECT: Effect = Effect::Read;
    type Output = Tasks;

    fn run(self, cx: &Cx<'_>) -> Result<Tasks, ToolError> {
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let limit = self.limit.unwrap_or(20);
        refusals.limit("limit", limit, 1..=100);
        refusals.finish()?;
        let filter = Filter {
            phase: self.phase,
            workspace: self.workspace.as_ref(),
            label: self.label.as_ref(),
        };
        let mut tasks = task::list(&cx.db, &filter, self.cursor.as_ref(), limit + 1)?;
        let more = cut(&mut tasks, limit);
        Ok(Tasks {
            next_cursor: tasks.last().filter(|_| more).map(|task| task.id.clone()),
            tasks: tasks.into_iter().map(TaskLine::from).collect(),
        })
    }
}

/// List the tasks whose next attempt may start now, oldest first, and those in `execution_ready` that
/// wait for something, with what that is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskListReady {
    /// Only tasks of this workspace.
    #[schemars(length(max = PATH))]
    workspace: Option<String>,
    /// At most so many of each, 1 to 100. 20 if left out.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// The `next_cursor` of the page before. Later pages leave out the waiting tasks.
    #[schemars(length(max = REFERENCE))]
    cursor: Option<String>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// In which role.
    actor_role: Option<Role>,
}

/// Tasks whose next attempt may start, and tasks that wait.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Tasks whose next attempt may start now.
    ready: Vec<ReadyTask>,
    /// What asks for the next page of those, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
    /// The first tasks that wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingTask>,
}

/// A task whose next attempt may start.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadyTask {
    /// The task.
    task: TaskLine,
    /// Earlier attempts failed: use a stronger executor or a person.
    escalate: bool,
    /// The call that starts the attempt.
    #[schemars(with = "Map<String, Json>")]
    next_call: NextCall,
}

/// A task whose next attempt may not start yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitingTask {
    /// The task.
    task: TaskLine,
    /// What for.
    #[schemars(with = "Vec<Map<String, Json>>")]
    waiting_for: Vec<Blocker>,
}

impl Tool for TaskListReady {
    const NAME: &'static str = "task_list_ready";
    const TITLE: &'static str = "List tasks that are ready";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Ready;

    fn run(self, cx: &Cx<'_>) -> Result<Ready, ToolError> {
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let limit = self.limit.unwrap_or(20);
        refusals.limit("limit", limit, 1..=100);
        refusals.finish()?;
        let queue = |which, after, limit| {
            let policy = &caller.config.retry;
            task::queue(
                &cx.db,
                which,
                policy,
                cx.now(),
                self.workspace.as_ref(),
                after,
                limit,
            )
        };
        let mut ready = queue(Queue::Ready, self.cursor.as_ref(), limit + 1)?;
        let waiting = match self.cursor {
            None => queue(Queue::Waiting, None, limit)?,
            Some(_) => Vec::new(),
        };
        let more = cut(&mut ready, limit);
        Ok(Ready {
            next_cursor: ready.last().filter(|_| more).map(|queued| queued.task.id.clone()),
            ready: ready
                .into_iter()
                .map(|queued| ReadyTask::new(&caller, queued.task))
                .collect(),
            waiting: waiting
                .into_iter()
                .map(|queued| WaitingTask::new(&caller, queued, cx.now()))
                .collect(),
        })
    }
}

impl ReadyTask {
    fn new(caller: &Caller, task: TaskHead) -> ReadyTask {
        ReadyTask {
            escalate: caller.config.retry.turn(task.attempts_used()) == Turn::Escalate,
            next_call: caller.start_attempt(&task.id),
            task: task.into(),
        }
    }
}

impl WaitingTask {
    fn new(caller: &Caller, queued: Queued, now: Timestamp) -> WaitingTask {
        let Queued { task, running } = queued;
        let holds = holds(&caller.config.retry, &task.candidate(running.as_ref()), now);
        WaitingTask {
            waiting_for: holds
                .into_iter()
                .map(|hold| hold_blocker(caller, &task, hold))
                .collect(),
            task: task.into(),
        }
    }
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
        refusals.limit("limit", limit, 1..=200);
        if let Some(id) = &self.task_id {
            find_task(cx, &mut refusals, id)?;
        }
        refusals.finish()?;
        let (events, more) = event::page(&cx.db, self.task_id.as_ref(), Page::After(self.after_id), limit)?;
        Ok(Events {
            next_after_id: events.last().filter(|_| more).map(|event| event.id),
            events,
        })
    }
}
