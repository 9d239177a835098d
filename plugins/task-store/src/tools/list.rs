//! Listing tasks, all of them or those to work on.

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
