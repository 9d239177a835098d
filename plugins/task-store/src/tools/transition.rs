//! The two tools that move tasks between phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, DbError, Effect, Hints, Tier, Tool, ToolError};

use super::attempt_end::End;
use super::list::TaskLine;
use super::{condition_remedy, find_attempt, moved_meanwhile};
use crate::arguments::{MAX_REFERENCE_CHARS, MAX_TEXT_CHARS};
use crate::asked;
use crate::caller::{Caller, Change};
use crate::error::{Reason, Refusals, look_call};
use crate::model::{AttemptId, AttemptStatus, CircuitStatus, EventType, TaskId};
use crate::phase::{Phase, Place};
use crate::role::{Action, Role};
use crate::store::attempt;
use crate::store::standing::{self, Standing};
use crate::store::task::{self, TaskHead};

/// Move a task to another phase. Fails with PHASE_CONFLICT if it is not in `from_phase`, or with every unmet
/// condition. task_recover lists the legal transitions. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskTransition {
    /// Task id from task_create.
    task_id: TaskId,
    /// Phase that the task is in.
    from_phase: Phase,
    /// Phase to move the task to.
    to_phase: Phase,
    /// Reason for the transition.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    /// Id of the task's current attempt. Fails if the task has a newer one.
    attempt_id: Option<AttemptId>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A moved task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Moved {
    /// Task id from task_create.
    task_id: TaskId,
    /// Previous phase of the task.
    from_phase: Phase,
    /// New phase of the task.
    phase: Phase,
    /// `open` only in the phase `circuit_open`.
    circuit_status: CircuitStatus,
    /// Latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<AttemptId>,
    /// Phases that are legal next, regardless of conditions.
    legal_transitions: Vec<Phase>,
    /// Id of the event in the log, if anything changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<i64>,
    /// The task after the call.
    task: TaskLine,
}

impl Moved {
    /// A task that was not moved.
    fn at(task: TaskHead) -> Moved {
        Moved {
            task_id: task.id.clone(),
            from_phase: task.phase,
            phase: task.phase,
            circuit_status: task.circuit_status,
            attempt_id: task.current_attempt_id.clone(),
            legal_transitions: task.place().next(),
            event_id: None,
            task: task.into(),
        }
    }
}

impl Tool for TaskTransition {
    const NAME: &'static str = "task_transition";
    const TITLE: &'static str = "Move a task";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Moved;

    fn run(self, cx: &Cx<'_>) -> Result<Moved, ToolError> {
        let caller = Caller::writer(cx, Action::Transition, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("reason", &self.reason, MAX_TEXT_CHARS);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        let named = find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        if let Some(standing) = &standing {
            refusals.current(&standing.task, named.as_ref());
            self.judge(cx, &caller, standing, &mut refusals)?;
        }
        let task = refusals.finish_with(standing)?.task;
        let change = Move {
            to: self.to_phase,
            event_type: EventType::TaskTransitioned,
            attempt_id: task.current_attempt_id.as_ref(),
            reason: &self.reason,
        };
        change.apply(cx, &caller, &task)
    }
}

impl TaskTransition {
    /// Finds every fault of the transition. Conditions are checked only for a legal transition from the
    /// actual phase.
    fn judge(
        &self,
        cx: &Cx<'_>,
        caller: &Caller,
        standing: &Standing,
        refusals: &mut Refusals,
    ) -> Result<(), DbError> {
        let task = &standing.task;
        let (from, to) = (self.from_phase, self.to_phase);
        let look = || look_call(Some(&task.id));
        let is_there = task.phase == from;
        if !is_there {
            let conflict = Reason::PhaseConflict {
                expected: from,
                actual: task.place(),
            };
            refusals.add_with(conflict, look());
        }
        let claimed = Place {
            phase: from,
            circuit_from: None,
        };
        let (from, is_legal) = match is_there {
            true => (task.place(), task.place().leads_to(to)),
            false => (claimed, from.leads_to(to)),
        };
        if !is_legal {
            refusals.add_with(Reason::IllegalTransition { from, to }, look());
        } else if is_there {
            for condition in standing.unmet(&caller.config.retry, to) {
                let remedy = condition_remedy(cx, caller, standing, condition)?;
                refusals.add_with(condition, remedy);
            }
        }
        Ok(())
    }
}

/// An allowed transition.
pub(super) struct Move<'a> {
    pub to: Phase,
    pub event_type: EventType,
    pub attempt_id: Option<&'a AttemptId>,
    pub reason: &'a str,
}

impl Move<'_> {
    /// Moves a task and logs the transition. No other code writes the phase. The end of a task ends its running
    /// attempt.
    pub(super) fn apply(&self, cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Result<Moved, ToolError> {
        if self.to.is_terminal() {
            self.end_attempt(cx, caller, task)?;
        }
        let moved = task.moved(self.to);
        if !task::set_phase(&cx.db, task.phase, &moved)? {
            return Err(moved_meanwhile(cx, task)?);
        }
        if self.to.is_terminal() {
            asked::withdraw(cx, &task.id)?;
        }
        let payload = json!({"before": task.position(), "after": moved.position(), "reason": self.reason});
        let change = Change::of(self.event_type, &task.id, payload).in_attempt(self.attempt_id);
        let event_id = caller.log(cx, change)?;
        let updated = TaskHead {
            updated_at: cx.now(),
            ..moved
        };
        Ok(Moved {
            event_id: Some(event_id),
            from_phase: task.phase,
            ..Moved::at(updated)
        })
    }

    fn end_attempt(&self, cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Result<(), ToolError> {
        let Some(running) = attempt::running(&cx.db, &task.id)? else {
            return Ok(());
        };
        let end = End {
            status: AttemptStatus::Aborted,
            error_summary: Some(format!("the task moved to {}", self.to)),
            is_lost: false,
        };
        end.apply(cx, caller, &task.moved(self.to), running).map(drop)
    }
}

/// Stop executing a task: move it to `circuit_open` with a failure summary, from any phase but `completed`
/// and `failed`. Opening an open circuit changes nothing and returns `replayed`. task_transition moves the task
/// back to the phase that it left, closes the circuit and resets the retry count. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskOpenCircuit {
    /// Task id from task_create.
    task_id: TaskId,
    /// Summary of the failures so far.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    /// Id of the last failed attempt.
    latest_attempt_id: Option<AttemptId>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A task with an open circuit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Opened {
    /// New and previous phase of the task.
    #[serde(flatten)]
    moved: Moved,
    /// True if the circuit was already open, so that nothing changed.
    replayed: bool,
}

impl Tool for TaskOpenCircuit {
    const NAME: &'static str = "task_open_circuit";
    const TITLE: &'static str = "Open a task's circuit";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Opened;

    fn run(self, cx: &Cx<'_>) -> Result<Opened, ToolError> {
        let caller = Caller::writer(cx, Action::OpenCircuit, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("reason", &self.reason, MAX_TEXT_CHARS);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.latest_attempt_id.as_ref())?;
        if let Some(task) = &task {
            refusals.unfinished(Self::NAME, task);
        }
        let task = refusals.finish_with(task)?;
        if task.phase == Phase::CircuitOpen {
            return Ok(Opened {
                moved: Moved::at(task),
                replayed: true,
            });
        }
        let change = Move {
            to: Phase::CircuitOpen,
            event_type: EventType::CircuitOpened,
            attempt_id: self
                .latest_attempt_id
                .as_ref()
                .or(task.current_attempt_id.as_ref()),
            reason: &self.reason,
        };
        Ok(Opened {
            moved: change.apply(cx, &caller, &task)?,
            replayed: false,
        })
    }
}
