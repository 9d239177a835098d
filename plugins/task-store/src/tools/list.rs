//! Listing tasks: all of them, or those ready to start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Blocker, Cx, Effect, NextCall, Tier, Timestamp, Tool, ToolError};

use super::{cut, hold_blocker};
use crate::arguments::{LABEL, PATH, REFERENCE};
use crate::caller::Caller;
use crate::model::TaskId;
use crate::phase::Phase;
use crate::retry::{Turn, holds};
use crate::role::Role;
use crate::store::queue::{self, Queue, Queued, Wanted};
use crate::store::task::{self, Filter, TaskHead};

/// A task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskLine {
    /// Id of the task.
    id: TaskId,
    /// Title of the task.
    title: String,
    /// Name of the workspace.
    workspace: String,
    /// Phase of the task.
    phase: Phase,
    /// Labels of the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Time of the last record about the task.
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

/// List tasks, newest first. All filters are combined with AND. Next: task_recover for one of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskList {
    /// Phase of the tasks. Default: all.
    phase: Option<Phase>,
    /// Workspace of the tasks. Default: all.
    #[schemars(length(max = PATH))]
    workspace: Option<String>,
    /// Label of the tasks. Default: all.
    #[schemars(length(max = LABEL))]
    label: Option<String>,
    /// Maximum number of tasks, 1 to 100 (default 20).
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(length(max = REFERENCE))]
    cursor: Option<String>,
    /// Your name, for next calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role, for next calls.
    actor_role: Option<Role>,
}

/// Page of tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// Tasks of the page.
    tasks: Vec<TaskLine>,
    /// Cursor for the next page, if there is one.
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
        refusals.within("limit", limit, 1..=100);
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

/// List the tasks whose next attempt may start now, oldest first, and waiting tasks in `execution_ready` with
/// the reasons. Next: task_start_attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskListReady {
    /// Workspace of the tasks. Default: all.
    #[schemars(length(max = PATH))]
    workspace: Option<String>,
    /// Maximum number of tasks in each list, 1 to 100 (default 20).
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Cursor: `next_cursor` of the previous page. Later pages omit the waiting tasks.
    #[schemars(length(max = REFERENCE))]
    cursor: Option<String>,
    /// Your name, for next calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role, for next calls.
    actor_role: Option<Role>,
}

/// Tasks whose next attempt may start, and tasks that wait.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Tasks whose next attempt may start now.
    ready: Vec<ReadyTask>,
    /// Cursor for the next page of ready tasks, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
    /// The first waiting tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingTask>,
}

/// A task whose next attempt may start.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadyTask {
    /// Task id from task_create.
    task: TaskLine,
    /// True to use a stronger executor or a person, because earlier attempts failed.
    escalate: bool,
    /// The call that starts the attempt.
    #[schemars(with = "Map<String, Json>")]
    next_call: NextCall,
}

/// A task whose next attempt may not start yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitingTask {
    /// Task id from task_create.
    task: TaskLine,
    /// Reasons why the task waits.
    #[schemars(with = "Vec<Map<String, Json>>")]
    waiting_for: Vec<Blocker>,
}

impl Tool for TaskListReady {
    const NAME: &'static str = "task_list_ready";
    const TITLE: &'static str = "List tasks that are ready";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Ready;

    fn run(self, cx: &Cx<'_>) -> Result<Ready, ToolError> {
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let limit = self.limit.unwrap_or(20);
        refusals.within("limit", limit, 1..=100);
        refusals.finish()?;
        let wanted = Wanted {
            policy: &caller.config.retry,
            now: cx.now(),
            workspace: self.workspace.as_ref(),
        };
        let after = self.cursor.as_ref();
        let mut ready = queue::list(&cx.db, &wanted, Queue::Ready, after, limit + 1)?;
        let waiting = match after {
            None => queue::list(&cx.db, &wanted, Queue::Waiting, None, limit)?,
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
