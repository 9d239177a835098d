//! Finishing attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, DbError, Effect, Hints, Timestamp, Tool, ToolError};

use crate::arguments::{MAX_REFERENCE_CHARS, MAX_TEXT_CHARS, clip};
use crate::caller::{Caller, Change};
use crate::error::Reason;
use crate::model::{AttemptId, AttemptOutcome, AttemptStatus, EventType};
use crate::role::{Action, Role};
use crate::store::attempt::{self, Attempt};
use crate::store::task::{self, TaskHead};
use crate::worker;

/// End a running attempt. After `failed` or `aborted` the next one may have to wait until `next_retry_at`. Aborting
/// an attempt whose worker is gone (`worker` in task_recover) costs no retry and no wait. Repeating the same outcome changes nothing and returns `replayed`. Does not move the task; call
/// task_transition next. Roles: orchestrator, executor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// No scope: only the stored row says which task an attempt belongs to, and the call changes that task.
#[schemars(extend("x-workspace" = super::workspace_of_attempt()))]
pub(crate) struct TaskFinishAttempt {
    /// Attempt id from task_start_attempt.
    attempt_id: AttemptId,
    /// Outcome of the attempt, for example succeeded.
    status: AttemptOutcome,
    /// Summary of the error, if it failed.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    error_summary: Option<String>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A finished attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Finished {
    /// The attempt after the call.
    attempt: Attempt,
    /// Attempts left before the circuit opens.
    attempts_left: u32,
    /// Earliest start of the next attempt, if it must wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_retry_at: Option<Timestamp>,
    /// True if the attempt had already ended this way, so that nothing changed.
    replayed: bool,
}

impl Tool for TaskFinishAttempt {
    const NAME: &'static str = "task_finish_attempt";
    const TITLE: &'static str = "Finish an attempt";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Finished;

    fn run(self, cx: &Cx<'_>) -> Result<Finished, ToolError> {
        let caller = Caller::writer(cx, Action::FinishAttempt, self.actor.as_deref(), self.actor_role)?;
        let found = self.check(cx, &caller)?;
        let task = task::head(&cx.db, &found.task_id)?.ok_or(DbError::Internal)?;
        let policy = &caller.config.retry;
        if found.status != AttemptStatus::Running {
            return Ok(Finished {
                attempt: found,
                attempts_left: policy.left(task.attempts_used()),
                next_retry_at: task.next_retry_at,
                replayed: true,
            });
        }
        let end = End {
            status: self.status.into(),
            error_summary: self.error_summary,
            is_lost: self.status == AttemptOutcome::Aborted && is_lost(cx, &caller, &found)?,
        };
        let ended = end.apply(cx, &caller, &task, found)?;
        Ok(Finished {
            attempt: ended.attempt,
            attempts_left: policy.left(ended.attempts_used),
            next_retry_at: ended.next_retry_at,
            replayed: false,
        })
    }
}

/// Returns whether the worker of a running attempt is gone, so that its abort costs nothing. As many attempts as may
/// be used may be lost, so that a caller who always vanishes comes to an end as well.
fn is_lost(cx: &Cx<'_>, caller: &Caller, attempt: &Attempt) -> Result<bool, DbError> {
    let is_left = attempt::lost(&cx.db, &attempt.task_id)? < caller.config.retry.max_attempts.get();
    Ok(is_left && worker::find(cx, caller, attempt)?.is_gone())
}

impl TaskFinishAttempt {
    /// The attempt, if it is running or ended the same way before.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Attempt, ToolError> {
        let mut refusals = caller.check();
        refusals.optional_text("error_summary", self.error_summary.as_deref(), MAX_TEXT_CHARS);
        let attempt = attempt::get(&cx.db, &self.attempt_id)?;
        if let Some(found) = &attempt {
            refusals.about(&found.task_id);
        }
        match &attempt {
            None => refusals.add(Reason::AttemptNotFound {
                attempt: clip(self.attempt_id.as_str()),
            }),
            Some(found) if found.status != AttemptStatus::Running && found.status != self.status.into() => {
                refusals.add(Reason::attempt_finished(found));
            }
            Some(_) => {}
        }
        refusals.finish_with(attempt)
    }
}

/// End of an attempt.
#[derive(Debug)]
pub(super) struct End {
    pub status: AttemptStatus,
    pub error_summary: Option<String>,
    /// True if the worker is gone, so that the attempt does not count.
    pub is_lost: bool,
}

/// Changes at the end of an attempt.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    #[serde(flatten)]
    attempt: Attempt,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_retry_at: Option<Timestamp>,
    /// Attempts since the retry count was last reset.
    #[serde(skip)]
    attempts_used: u32,
}

impl End {
    /// Ends a running attempt and logs it.
    pub(super) fn apply(
        self,
        cx: &Cx<'_>,
        caller: &Caller,
        task: &TaskHead,
        running: Attempt,
    ) -> Result<Ended, ToolError> {
        let waits = self.status != AttemptStatus::Succeeded && !self.is_lost && !task.phase.is_terminal();
        let retry_at = caller.config.retry.retry_at(task.attempts_used(), cx.now());
        let task = TaskHead {
            retry_base: task.retry_base.saturating_add(u32::from(self.is_lost)),
            next_retry_at: retry_at.filter(|_| waits),
            ..task.clone()
        };
        let ended = Ended {
            attempt: Attempt {
                status: self.status,
                error_summary: self.error_summary,
                finished_at: Some(cx.now()),
                lost: self.is_lost,
                ..running
            },
            next_retry_at: task.next_retry_at,
            attempts_used: task.attempts_used(),
        };
        if !attempt::finish(&cx.db, &ended.attempt)? {
            return Err(Reason::attempt_finished(&ended.attempt).into());
        }
        task::set_retry(&cx.db, &task)?;
        let id = &ended.attempt.id;
        let payload = json!({"before": {"status": AttemptStatus::Running}, "after": ended});
        let change = Change::of(EventType::AttemptFinished, &task.id, payload);
        caller.log(cx, change.in_attempt(Some(id)).part(id.as_str()))?;
        Ok(ended)
    }
}
