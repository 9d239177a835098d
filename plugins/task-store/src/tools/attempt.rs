//! Starting attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, NextCall, Tier, Tool, ToolError};

use super::start_blockers;
use super::transition::Move;
use crate::arguments::MAX_REFERENCE_CHARS;
use crate::caller::{Caller, Change};
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, AttemptPhase, AttemptStatus, EventType, ExecutorKind, Runtime, TaskId};
use crate::phase::Phase;
use crate::retry::{Hold, Turn};
use crate::role::{Action, Role};
use crate::store::attempt::{self, Attempt};
use crate::store::standing;
use crate::store::task::{self, TaskHead};

/// Start a task's next attempt. Fails outside `execution_ready`, `executing` and `ready_to_resume`, while an attempt
/// runs, too soon after a failure, or when all attempts are used up, which opens the circuit. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskStartAttempt {
    /// Task id from task_create.
    task_id: TaskId,
    /// Phase of the attempt. Always `executing`.
    phase: AttemptPhase,
    /// Runtime that runs the attempt.
    runtime: Runtime,
    /// Kind of executor that works on the attempt.
    executor_kind: ExecutorKind,
    /// Name of the executor, for example worker-3.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    worker_ref: Option<String>,
    /// Id of the executor's session in another system.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    external_session_ref: Option<String>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A started attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The attempt after the call.
    attempt: Attempt,
    /// Attempts left before the circuit opens.
    attempts_left: u32,
    /// The call that moves the task to `executing`, unless the task is already there.
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

    fn run(self, cx: &Cx<'_>) -> Result<Started, ToolError> {
        let caller = Caller::writer(cx, Action::StartAttempt, self.actor.as_deref(), self.actor_role)?;
        let task = self.check(cx, &caller)?;
        let attempt = self.into_attempt(cx, &caller, &task);
        attempt::insert(&cx.db, &attempt)?;
        task::set_attempt(&cx.db, &task.id, &attempt.id, attempt.ordinal)?;
        let change = Change::of(EventType::AttemptStarted, &task.id, json!({"after": attempt}));
        caller.log(cx, change.in_attempt(Some(&attempt.id)).part(attempt.id.as_str()))?;
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
        refusals.optional_text("worker_ref", self.worker_ref.as_deref(), MAX_REFERENCE_CHARS);
        refusals.optional_text("external_session_ref", session, MAX_REFERENCE_CHARS);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        let Some(found) = &standing else {
            return Err(refusals.into());
        };
        for (reason, remedy) in start_blockers(cx, caller, found)? {
            refusals.add_with(reason, remedy);
        }
        if is_last_refusal(&refusals, &found.task) {
            return Err(exhausted(cx, caller, &found.task)?);
        }
        Ok(refusals.finish_with(standing)?.task)
    }

    /// The new attempt.
    fn into_attempt(self, cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Attempt {
        let id: AttemptId = cx.new_id();
        Attempt {
            attempt_id: id.clone(),
            id,
            task_id: self.task_id,
            ordinal: task.attempt_count.saturating_add(1),
            phase: self.phase,
            runtime: self.runtime,
            executor_kind: self.executor_kind,
            worker_ref: self.worker_ref,
            external_session_ref: self.external_session_ref,
            envelope_id: cx.envelope_id().map(str::to_owned),
            client: cx.client().map(str::to_owned),
            status: AttemptStatus::Running,
            escalate: caller.config.retry.turn(task.attempts_used()) == Turn::Escalate,
            error_summary: None,
            started_at: cx.now(),
            finished_at: None,
            lost: false,
        }
    }
}

/// Returns whether a start is refused only because all attempts are used up.
fn is_last_refusal(refusals: &Refusals, task: &TaskHead) -> bool {
    task.phase.starts_attempts() && !refusals.is_empty() && refusals.has_only(Hold::Exhausted(0).code())
}

/// Opens the circuit, and returns the refusal of the start that was one too many. The refused call keeps its rows, so
/// that no caller can leave the circuit closed by ignoring the refusal.
fn exhausted(cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Result<ToolError, ToolError> {
    let opening = Move {
        to: Phase::CircuitOpen,
        event_type: EventType::CircuitOpened,
        attempt_id: task.current_attempt_id.as_ref(),
        reason: "all attempts are used up",
    };
    opening.apply(cx, caller, task)?;
    cx.keep_rows();
    let mut refusals = Refusals::default();
    refusals.about(&task.id);
    refusals.add(Reason::from(Hold::Exhausted(
        caller.config.retry.max_attempts.get(),
    )));
    refusals.fact("phase", Phase::CircuitOpen.as_str());
    refusals.fact(
        "legal_transitions",
        json!(task.moved(Phase::CircuitOpen).place().next()),
    );
    Ok(refusals.into())
}
