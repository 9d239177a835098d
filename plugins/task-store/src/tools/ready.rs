//! Listing the tasks that wait for a next call.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tollgate_kit::Reason as _;
use tollgate_sdk::{Blocker, Cx, DbError, Effect, NextCall, Tier, Tool, ToolError};

use super::list::{TaskLine, check_cursor};
use super::page::list_arguments;
use super::start_blockers;
use crate::arguments::MAX_PATH_CHARS;
use crate::caller::Caller;
use crate::error::look_call;
use crate::model::{ApprovalId, ApprovalStatus, TaskId};
use crate::phase::Phase;
use crate::retry::Turn;
use crate::store::approval;
use crate::store::queue::{self, Queue, Wanted};
use crate::store::standing::Standing;
use crate::store::task::TaskHead;

list_arguments! {
    /// List the tasks whose next attempt may start now, oldest first, tasks whose approval was answered, and waiting
    /// tasks in `execution_ready` with the reasons. Each comes with its next call, if there is one.
    pub(crate) struct TaskListReady {
        /// Workspace of the tasks. Default: all.
        #[schemars(length(max = MAX_PATH_CHARS))]
        workspace: Option<String>,
    }
    limit: "Maximum number of tasks in each list, 1 to 100 (default 20).",
    cursor: "Cursor: `next_cursor` of the previous page. Later pages have ready tasks only.",
}

/// Tasks whose next attempt may start, and tasks that wait.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Tasks whose next attempt may start now.
    ready: Vec<ReadyTask>,
    /// True if there are more ready tasks.
    has_more: bool,
    /// Value of `cursor` for the next page of ready tasks, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<TaskId>,
    /// First tasks whose approval was answered and that have not moved since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answered: Vec<AnsweredTask>,
    /// First waiting tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingTask>,
}

/// A task whose next attempt may start.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadyTask {
    /// The task whose next attempt may start.
    task: TaskLine,
    /// True to use a stronger executor or a person, because earlier attempts failed.
    escalate: bool,
    /// The call that starts the attempt. Absent if you cannot call that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Json>")]
    next_call: Option<NextCall>,
}

/// A task whose approval was answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnsweredTask {
    /// The task, which has not moved since the answer.
    task: TaskLine,
    /// Id of the latest denied approval of the current attempt. If none was denied, id of the latest approval.
    approval_id: ApprovalId,
    /// Answer to that approval.
    status: ApprovalStatus,
    /// The call that continues the task. Absent if you cannot call that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Json>")]
    next_call: Option<NextCall>,
}

/// A task whose next attempt may not start yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitingTask {
    /// The task that waits.
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
        let (caller, mut refusals, page) = self.start(cx)?;
        check_cursor(cx, &mut refusals, page, json!({"workspace": self.workspace}))?;
        refusals.finish()?;
        let wanted = Wanted {
            policy: &caller.config.retry,
            now: cx.now(),
            workspace: self.workspace.as_ref(),
        };
        let mut ready = queue::list(&cx.db, &wanted, Queue::Ready, page.cursor, page.limit + 1)?;
        let next_cursor = page.cut(&mut ready, |found| &found.task.id);
        let on_first_page = |queue| match page.cursor {
            None => queue::list(&cx.db, &wanted, queue, None, page.limit),
            Some(_) => Ok(Vec::new()),
        };
        Ok(Ready {
            has_more: next_cursor.is_some(),
            next_cursor,
            answered: on_first_page(Queue::Answered)?
                .into_iter()
                .map(|found| AnsweredTask::read(cx, &caller, found))
                .collect::<Result<_, DbError>>()?,
            waiting: on_first_page(Queue::Waiting)?
                .into_iter()
                .map(|found| WaitingTask::read(cx, &caller, found))
                .collect::<Result<_, DbError>>()?,
            ready: ready
                .into_iter()
                .map(|found| ReadyTask::new(&caller, found.task))
                .collect(),
        })
    }
}

impl ReadyTask {
    fn new(caller: &Caller, task: TaskHead) -> ReadyTask {
        ReadyTask {
            escalate: caller.config.retry.turn(task.attempts_used()) == Turn::Escalate,
            next_call: Some(caller.start_attempt(&task.id)),
            task: task.into(),
        }
    }
}

impl AnsweredTask {
    fn read(cx: &Cx<'_>, caller: &Caller, found: Standing) -> Result<AnsweredTask, DbError> {
        let is_granted = found.is_granted();
        let task = found.task;
        let approval = approval::deciding(&cx.db, &task.id)?.ok_or(DbError::Internal)?;
        let go = |to, reason| caller.transition(&task.id, task.phase, to, reason);
        Ok(AnsweredTask {
            next_call: Some(match (task.phase, is_granted) {
                (Phase::AwaitingApproval, true) => go(Phase::ReadyToResume, "the approval was granted"),
                (Phase::AwaitingApproval, false) => go(Phase::ExecutionReady, "the approval was not granted"),
                _ => look_call(Some(&task.id)),
            }),
            approval_id: approval.id,
            status: approval.status,
            task: task.into(),
        })
    }
}

impl WaitingTask {
    fn read(cx: &Cx<'_>, caller: &Caller, found: Standing) -> Result<WaitingTask, DbError> {
        Ok(WaitingTask {
            waiting_for: start_blockers(cx, caller, &found)?
                .into_iter()
                .map(|(reason, next_call)| reason.blocker(next_call))
                .collect(),
            task: found.task.into(),
        })
    }
}
