//! The two tools that move tasks between phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use super::{condition_remedy, find_attempt, moved_meanwhile, recover_call};
use crate::arguments::{REFERENCE, TEXT};
use crate::caller::Caller;
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, CircuitStatus, EventType, TaskId};
use crate::phase::{Phase, unmet};
use crate::role::{Action, Role};
use crate::store::attempt::Attempt;
use crate::store::standing::{self, Standing};
use crate::store::task::{self, TaskHead};

/// Move a task from one phase to another. `from_phase` has to be where the task is, else PHASE_CONFLICT
/// tells where that is. Every unmet condition is named at once. `task_recover` lists the legal moves and
/// what each still wants. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTransition {
    /// The task.
    task_id: TaskId,
    /// The phase the task was seen in.
    from_phase: Phase,
    /// The phase it is to be in.
    to_phase: Phase,
    /// Why it moves.
    #[schemars(length(min = 1, max = TEXT))]
    reason: String,
    /// The attempt the move is about. If given, it has to be the task's current one.
    attempt_id: Option<AttemptId>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// In which role.
    actor_role: Role,
}

/// A task that moved.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Moved {
    /// The task.
    task_id: TaskId,
    /// Where it was.
    from_phase: Phase,
    /// Where it is.
    phase: Phase,
    /// `open` exactly while the phase is `circuit_open`.
    circuit_status: CircuitStatus,
    /// Its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<AttemptId>,
    /// Where it may move next, conditions aside.
    legal_transitions: Vec<Phase>,
    /// The event's place in the log, if anything changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<i64>,
}

impl Moved {
    /// A task that stays where it is.
    fn at(task: TaskHead) -> Moved {
        Moved {
            task_id: task.id,
            from_phase: task.phase,
            phase: task.phase,
            circuit_status: task.circuit_status,
            attempt_id: task.current_attempt_id,
            legal_transitions: task.phase.next().to_vec(),
            event_id: None,
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
        let caller = Caller::writer(cx, Action::Transition, &self.actor, self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("reason", &self.reason, TEXT);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        let named = find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        if let Some(standing) = &standing {
            refuse_stale(&mut refusals, &standing.task, named.as_ref());
            self.judge(cx, &caller, standing, &mut refusals);
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
    /// Finds everything that is wrong with the move itself. Conditions are those of a legal move from
    /// the actual phase; for any other there are none to speak of.
    fn judge(&self, cx: &Cx<'_>, caller: &Caller, standing: &Standing, refusals: &mut Refusals) {
        let task = &standing.task;
        let (from, to) = (self.from_phase, self.to_phase);
        let look = || Some(recover_call(&task.id));
        if task.phase != from {
            let conflict = Reason::PhaseConflict {
                expected: from,
                actual: task.phase,
            };
            refusals.add_with(conflict, look());
        }
        if !from.leads_to(to) {
            refusals.add_with(Reason::IllegalTransition { from, to }, look());
        } else if task.phase == from {
            for condition in unmet(from, to, &standing.facts(&caller.config.retry)) {
                refusals.add_with(condition, condition_remedy(cx, caller, standing, condition));
            }
        }
    }
}

/// Wants an attempt, if a move names one, to be the task's current one.
fn refuse_stale(refusals: &mut Refusals, task: &TaskHead, named: Option<&Attempt>) {
    if let (Some(named), Some(current)) = (named, &task.current_attempt_id)
        && named.id != *current
    {
        refusals.add(Reason::StaleAttempt {
            given: named.id.to_string(),
            current: current.to_string(),
        });
    }
}

/// A move that may be made.
struct Move<'a> {
    to: Phase,
    event_type: EventType,
    attempt_id: Option<&'a AttemptId>,
    reason: &'a str,
}

impl Move<'_> {
    /// Moves a task and logs it. Nothing else writes the phase.
    fn apply(&self, cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Result<Moved, ToolError> {
        let moved = task.moved(self.to);
        if !task::set_phase(&cx.db, task.phase, &moved)? {
            return Err(moved_meanwhile(cx, task)?.into());
        }
        let payload = json!({"before": task.position(), "after": moved.position(), "reason": self.reason});
        let event_id = caller.log(cx, self.event_type, &task.id, self.attempt_id, payload)?;
        Ok(Moved {
            event_id: Some(event_id),
            from_phase: task.phase,
            ..Moved::at(moved)
        })
    }
}

/// Stop executing a task: move it to `circuit_open` from any phase but `completed` and `failed`, and
/// keep the failure summary. Opening an open circuit changes nothing and says `replayed`. Moving on to
/// `execution_ready` closes the circuit and counts retries anew. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskOpenCircuit {
    /// The task.
    task_id: TaskId,
    /// What failed.
    #[schemars(length(min = 1, max = TEXT))]
    reason: String,
    /// The attempt that failed last.
    latest_attempt_id: Option<AttemptId>,
    /// Who calls.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// In which role.
    actor_role: Role,
}

/// A task whose circuit is open.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Opened {
    /// Where the task is and was.
    #[serde(flatten)]
    moved: Moved,
    /// The circuit was open before, so nothing changed.
    replayed: bool,
}

impl Tool for TaskOpenCircuit {
    const NAME: &'static str = "task_open_circuit";
    const TITLE: &'static str = "Open a task's circuit";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Opened;

    fn run(self, cx: &Cx<'_>) -> Result<Opened, ToolError> {
        let caller = Caller::writer(cx, Action::OpenCircuit, &self.actor, self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("reason", &self.reason, TEXT);
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
