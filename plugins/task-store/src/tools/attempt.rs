//! Starting and finishing attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, DbError, Effect, Hints, NextCall, Tier, Timestamp, Tool, ToolError};

use super::hold_remedy;
use crate::arguments::{REFERENCE, TEXT, clip};
use crate::caller::Caller;
use crate::error::Reason;
use crate::model::{
    AttemptId, AttemptOutcome, AttemptPhase, AttemptStatus, EventType, ExecutorKind, Runtime, TaskId,
};
use crate::phase::Phase;
use crate::retry::{Turn, holds};
use crate::role::{Action, Role};
use crate::store::attempt::{self, Attempt};
use crate::store::standing::{self, Standing};
use crate::store::task::{self, TaskHead};

/// Start the next attempt at a task in `execution_ready`, `executing` or `ready_to_resume`. Fails while one
/// runs, during the wait after a failure (RETRY_TOO_EARLY) or when all are used (RETRIES_EXHAUSTED: call
/// task_open_circuit). Late attempts have `escalate`. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskStartAttempt {
    /// Task id from task_create.
    task_id: TaskId,
    /// Purpose of the attempt. For example executing.
    phase: AttemptPhase,
    /// Runtime that runs the attempt.
    runtime: Runtime,
    /// Kind of executor that works on the attempt.
    executor_kind: ExecutorKind,
    /// Name of the executor, for example worker-3.
    #[schemars(length(min = 1, max = REFERENCE))]
    worker_ref: Option<String>,
    /// Id of the executor's session in another system.
    #[schemars(length(min = 1, max = REFERENCE))]
    external_session_ref: Option<String>,
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A started attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The attempt after the call.
    attempt: Attempt,
    /// Attempts left before the circuit must be opened.
    attempts_left: u32,
    /// The call that moves the task to `executing`, unless it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Json>")]
    next_call: Option<NextCall>,
}

impl Tool for TaskStartAttempt {
    const NAME: &'static str = "task_start_attempt";
    const TITLE: &'static str = "Start an attempt";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Started;

    /// A refusal because of too many attempts writes nothing. The refusal is permanent, because it follows
    /// from the stored attempts. The circuit is opened by a separate call.
    fn run(self, cx: &Cx<'_>) -> Result<Started, ToolError> {
        let caller = Caller::writer(cx, Action::StartAttempt, &self.actor, self.actor_role)?;
        let task = self.check(cx, &caller)?;
        let attempt = self.into_attempt(cx, &caller, &task);
        attempt::insert(&cx.db, &attempt)?;
        task::set_attempt(&cx.db, &task.id, &attempt.id, attempt.ordinal)?;
        let payload = json!({"after": attempt});
        caller.log(
            cx,
            EventType::AttemptStarted,
            &task.id,
            Some(&attempt.id),
            payload,
        )?;
        let elsewhere = task.phase != Phase::Executing;
        Ok(Started {
            attempts_left: caller.config.retry.left(task.attempts_used().saturating_add(1)),
            next_call: elsewhere
                .then(|| caller.transition(&task.id, task.phase, Phase::Executing, "an attempt is running")),
            attempt,
        })
    }
}

impl TaskStartAttempt {
    /// The task, if its next attempt may start.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<TaskHead, ToolError> {
        let mut refusals = caller.check();
        let session = self.external_session_ref.as_deref();
        refusals.optional_text("worker_ref", self.worker_ref.as_deref(), REFERENCE);
        refusals.optional_text("external_session_ref", session, REFERENCE);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        if let Some(Standing { task, running, .. }) = &standing {
            for hold in holds(&caller.config.retry, &task.candidate(running.as_ref()), cx.now()) {
                let remedy = hold_remedy(caller, task, &hold);
                refusals.add_with(hold, remedy);
            }
        }
        Ok(refusals.finish_with(standing)?.task)
    }

    /// The new attempt.
    fn into_attempt(self, cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Attempt {
        Attempt {
            id: cx.new_id(),
            task_id: self.task_id,
            ordinal: task.attempt_count.saturating_add(1),
            phase: self.phase,
            runtime: self.runtime,
            executor_kind: self.executor_kind,
            worker_ref: self.worker_ref,
            external_session_ref: self.external_session_ref,
            status: AttemptStatus::Running,
            escalate: caller.config.retry.turn(task.attempts_used()) == Turn::Escalate,
            error_summary: None,
            started_at: cx.now(),
            finished_at: None,
        }
    }
}

/// End a running attempt. After `failed` or `aborted` the next one may have to wait until `next_retry_at`.
/// Repeating the same outcome changes nothing and returns `replayed`. Does not move the task; call
/// task_transition next. Roles: orchestrator, executor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFinishAttempt {
    /// Attempt id from task_start_attempt.
    attempt_id: AttemptId,
    /// Outcome of the attempt, for example succeeded.
    status: AttemptOutcome,
    /// Summary of the error, if it failed.
    #[schemars(length(min = 1, max = TEXT))]
    error_summary: Option<String>,
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A finished attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Finished {
    /// The attempt after the call.
    attempt: Attempt,
    /// Attempts left before the circuit must be opened.
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
        let caller = Caller::writer(cx, Action::FinishAttempt, &self.actor, self.actor_role)?;
        let found = self.check(cx, &caller)?;
        let task = task::head(&cx.db, &found.task_id)?.ok_or(DbError::Internal)?;
        let attempts_left = caller.config.retry.left(task.attempts_used());
        if found.status != AttemptStatus::Running {
            return Ok(Finished {
                attempt: found,
                attempts_left,
                next_retry_at: task.next_retry_at,
                replayed: true,
            });
        }
        let ended = self.end(cx, &caller, &task, found)?;
        Ok(Finished {
            attempt: ended.attempt,
            attempts_left,
            next_retry_at: ended.next_retry_at,
            replayed: false,
        })
    }
}

/// Changes at the end of an attempt.
#[derive(Serialize)]
struct Ended {
    #[serde(flatten)]
    attempt: Attempt,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_retry_at: Option<Timestamp>,
}

impl TaskFinishAttempt {
    /// The attempt, if it is running or ended the same way before.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Attempt, ToolError> {
        let mut refusals = caller.check();
        refusals.optional_text("error_summary", self.error_summary.as_deref(), TEXT);
        let attempt = attempt::get(&cx.db, &self.attempt_id)?;
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

    /// Ends a running attempt and logs it.
    fn end(
        self,
        cx: &Cx<'_>,
        caller: &Caller,
        task: &TaskHead,
        running: Attempt,
    ) -> Result<Ended, ToolError> {
        let again = self.status != AttemptOutcome::Succeeded && !task.phase.is_terminal();
        let retry_at = caller.config.retry.retry_at(task.attempts_used(), cx.now());
        let ended = Ended {
            attempt: Attempt {
                status: self.status.into(),
                error_summary: self.error_summary,
                finished_at: Some(cx.now()),
                ..running
            },
            next_retry_at: retry_at.filter(|_| again),
        };
        if !attempt::finish(&cx.db, &ended.attempt)? {
            return Err(Reason::attempt_finished(&ended.attempt).into());
        }
        task::set_next_retry(&cx.db, &task.id, ended.next_retry_at)?;
        let payload = json!({"before": {"status": AttemptStatus::Running}, "after": ended});
        let attempt = Some(&ended.attempt.id);
        caller.log(cx, EventType::AttemptFinished, &task.id, attempt, payload)?;
        Ok(ended)
    }
}
