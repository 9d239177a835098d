//! The tools, grouped by subject, and their shared parts.

pub(crate) mod approval;
pub(crate) mod approvals;
pub(crate) mod attempt;
pub(crate) mod attempt_end;
pub(crate) mod create;
pub(crate) mod list;
mod page;
pub(crate) mod ready;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod transition;

use serde_json::json;
use tollgate_kit::Reason as _;
use tollgate_sdk::{Blocker, Cx, DbError, NextCall, ToolError};

use crate::arguments::clip;
use crate::caller::Caller;
use crate::condition::Condition;
use crate::error::{Reason, Refusals, look_call};
use crate::model::{AttemptId, AttemptStatus, TaskId};
use crate::phase::Phase;
use crate::retry::{Hold, holds};
use crate::store;
use crate::store::approval::CIRCUIT_RESET;
use crate::store::attempt::Attempt;
use crate::store::standing::Standing;
use crate::store::task::{self, TaskHead};
use crate::worker;

/// Place of the workspace of a call that names a task.
fn workspace() -> serde_json::Value {
    json!({"argument": "task_id", "table": "task_store_tasks", "key": "id", "column": "workspace"})
}

/// Place of the workspace of a call that names an attempt only.
fn workspace_of_attempt() -> serde_json::Value {
    json!({"argument": "attempt_id", "table": "task_store_attempts", "key": "id", "column": "task_id",
        "then": {"table": "task_store_tasks", "key": "id", "column": "workspace"}})
}

/// Scope of a call that reads and changes rows of the task that it names, and of no other task. Ids have one form, because
/// they are compared as they are given.
fn scope() -> serde_json::Value {
    json!(["task_id"])
}

/// The attempt that a call names, if any. Adds a refusal if it does not belong to the task.
fn find_attempt(
    cx: &Cx<'_>,
    refusals: &mut Refusals,
    task_id: &TaskId,
    id: Option<&AttemptId>,
) -> Result<Option<Attempt>, DbError> {
    let Some(id) = id else {
        return Ok(None);
    };
    let found = store::attempt::get(&cx.db, id)?.filter(|attempt| attempt.task_id == *task_id);
    if found.is_none() {
        refusals.add(Reason::AttemptNotFound {
            attempt: clip(id.as_str()),
        });
    }
    Ok(found)
}

/// The refusal because a task has left its known phase.
fn moved_meanwhile(cx: &Cx<'_>, seen: &TaskHead) -> Result<ToolError, DbError> {
    let actual = task::head(&cx.db, &seen.id)?.map_or(seen.place(), |task| task.place());
    let mut refusals = Refusals::default();
    refusals.about(&seen.id);
    refusals.add(Reason::PhaseConflict {
        expected: seen.phase,
        actual,
    });
    Ok(refusals.into())
}

impl Refusals {
    /// Requires a task to exist.
    fn known<T>(&mut self, id: &TaskId, found: Option<T>) -> Option<T> {
        match found {
            Some(_) => self.about(id),
            None => self.add_with(Reason::TaskNotFound(clip(id.as_str())), look_call(None)),
        }
        found
    }

    /// Requires a task that is neither completed nor failed.
    fn unfinished(&mut self, tool: &'static str, task: &TaskHead) {
        if task.phase.is_terminal() {
            let unfinished = Phase::ALL.iter().filter(|phase| !phase.is_terminal());
            self.add(Reason::WrongPhase {
                tool,
                phase: task.phase,
                allowed: unfinished.copied().collect(),
            });
        }
    }

    /// Requires an attempt to be the task's current one.
    fn current(&mut self, task: &TaskHead, named: Option<&Attempt>) {
        if let (Some(named), Some(current)) = (named, &task.current_attempt_id)
            && named.id != *current
        {
            self.add(Reason::StaleAttempt {
                given: named.id.to_string(),
                current: current.to_string(),
            });
        }
    }
}

/// Every reason why a task's next attempt cannot start, with the call that resolves it.
pub(crate) fn start_blockers(
    cx: &Cx<'_>,
    caller: &Caller,
    standing: &Standing,
) -> Result<Vec<(Reason, Option<NextCall>)>, DbError> {
    let (task, policy) = (&standing.task, &caller.config.retry);
    let mut blockers = Vec::new();
    for hold in holds(policy, &task.candidate(standing.running()), cx.now()) {
        let remedy = hold_remedy(cx, caller, standing, &hold)?;
        blockers.push((Reason::from(hold), remedy));
    }
    if task.phase.starts_attempts() {
        let unmet = standing.unmet_of_spec(policy).into_iter();
        blockers.extend(unmet.map(|condition| (Reason::from(condition), None)));
    }
    Ok(blockers)
}

/// An unmet condition with the call that resolves it.
fn unmet_blocker(
    cx: &Cx<'_>,
    caller: &Caller,
    standing: &Standing,
    condition: Condition,
) -> Result<Blocker, DbError> {
    let remedy = condition_remedy(cx, caller, standing, condition)?;
    Ok(Reason::from(condition).blocker(remedy))
}

/// The call that resolves an unmet condition, if it needs no judgement. Reviews and approvals do.
fn condition_remedy(
    cx: &Cx<'_>,
    caller: &Caller,
    standing: &Standing,
    condition: Condition,
) -> Result<Option<NextCall>, DbError> {
    let task = &standing.task;
    let back = |to, reason| {
        let is_legal = task.place().leads_to(to);
        is_legal.then(|| caller.transition(&task.id, task.phase, to, reason))
    };
    Ok(match condition {
        Condition::AcceptanceMissing => back(Phase::SpecDraft, "the spec needs acceptance criteria"),
        Condition::NoRunningAttempt if task.phase == Phase::CircuitOpen => {
            back(Phase::ExecutionReady, "the failures were investigated")
        }
        Condition::NoRunningAttempt
        | Condition::AttemptNotSucceeded(Some(AttemptStatus::Failed | AttemptStatus::Aborted)) => {
            let is_startable = start_blockers(cx, caller, standing)?.is_empty();
            match is_startable {
                true => Some(caller.start_attempt(&task.id)),
                false => back(Phase::ExecutionReady, "the task needs another attempt"),
            }
        }
        Condition::CircuitOpen => Some(caller.open_circuit(&task.id)),
        Condition::ApprovalDenied => back(Phase::ExecutionReady, "an approval was denied"),
        Condition::ResetsExhausted => reset_request(cx, caller, task)?,
        Condition::AttemptNotSucceeded(_)
        | Condition::SpecNotApproved(_)
        | Condition::AttemptNotApproved(_)
        | Condition::QualityNotApproved(_)
        | Condition::ApprovalPending
        | Condition::ApprovalMissing => None,
    })
}

/// The call that asks a person for another reset, unless it was made for the current attempt.
fn reset_request(cx: &Cx<'_>, caller: &Caller, task: &TaskHead) -> Result<Option<NextCall>, DbError> {
    let Some(attempt) = &task.current_attempt_id else {
        return Ok(None);
    };
    let earlier = store::approval::find(&cx.db, &task.id, CIRCUIT_RESET, attempt.as_str())?;
    Ok(earlier.is_none().then(|| caller.request_reset(&task.id, attempt)))
}

/// The call that resolves a hold, if it needs no judgement.
fn hold_remedy(
    cx: &Cx<'_>,
    caller: &Caller,
    standing: &Standing,
    hold: &Hold,
) -> Result<Option<NextCall>, DbError> {
    let task = &standing.task;
    Ok(match hold {
        Hold::CircuitOpen if standing.facts(&caller.config.retry).is_reset_barred => {
            reset_request(cx, caller, task)?
        }
        // The first phase is the one that the task left; if an attempt must run there, the second one is next.
        Hold::CircuitOpen => {
            let next = task.place().next();
            let to = next
                .iter()
                .find(|&&to| standing.unmet(&caller.config.retry, to).is_empty());
            to.map(|&to| caller.transition(&task.id, task.phase, to, "the failures were investigated"))
        }
        Hold::Exhausted(_) if task.phase.starts_attempts() => Some(caller.open_circuit(&task.id)),
        Hold::AttemptRunning(id) => match store::attempt::get(&cx.db, id)? {
            Some(running) => worker::find(cx, caller, &running)?.next_call,
            None => None,
        },
        Hold::Exhausted(_) | Hold::WrongPhase(_) | Hold::TooEarly(_) => None,
    })
}

/// Cuts rows to a limit. Returns whether there were more.
fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    more
}
