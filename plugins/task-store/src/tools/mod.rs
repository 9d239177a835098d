//! The tools, grouped by subject, and their shared parts.

pub(crate) mod approval;
pub(crate) mod attempt;
pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod show;
pub(crate) mod transition;

use serde_json::json;
use tollgate_kit::Reason as _;
use tollgate_sdk::{Blocker, Cx, DbError, NextCall};

use crate::arguments::clip;
use crate::caller::Caller;
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, TaskId};
use crate::phase::{Condition, Phase};
use crate::retry::{Hold, holds};
use crate::store;
use crate::store::attempt::Attempt;
use crate::store::standing::Standing;
use crate::store::task::{self, TaskHead};

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
fn moved_meanwhile(cx: &Cx<'_>, seen: &TaskHead) -> Result<Reason, DbError> {
    let actual = task::head(&cx.db, &seen.id)?.map_or(seen.phase, |task| task.phase);
    Ok(Reason::PhaseConflict {
        expected: seen.phase,
        actual,
    })
}

impl Refusals {
    /// Requires a task to exist.
    fn known<T>(&mut self, id: &TaskId, found: Option<T>) -> Option<T> {
        if found.is_none() {
            let list = NextCall::new("task_list", json!({}));
            self.add_with(Reason::TaskNotFound(clip(id.as_str())), Some(list));
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
}

/// The call that shows a task's state.
fn recover_call(id: &TaskId) -> NextCall {
    NextCall::new("task_recover", json!({"task_id": id}))
}

/// An unmet condition with the call that resolves it.
fn unmet_blocker(cx: &Cx<'_>, caller: &Caller, standing: &Standing, condition: Condition) -> Blocker {
    Reason::from(condition).blocker(condition_remedy(cx, caller, standing, condition))
}

/// The call that resolves an unmet condition, if it needs no judgement. Reviews and approvals do.
fn condition_remedy(
    cx: &Cx<'_>,
    caller: &Caller,
    standing: &Standing,
    condition: Condition,
) -> Option<NextCall> {
    let task = &standing.task;
    match condition {
        Condition::AcceptanceMissing => Some(caller.transition(
            &task.id,
            Phase::SpecReview,
            Phase::SpecDraft,
            "the spec needs acceptance criteria",
        )),
        Condition::NoRunningAttempt => {
            let candidate = task.candidate(standing.running.as_ref());
            let startable = holds(&caller.config.retry, &candidate, cx.now()).is_empty();
            startable.then(|| caller.start_attempt(&task.id))
        }
        Condition::CircuitOpen => Some(caller.open_circuit(&task.id)),
        Condition::SpecNotApproved(_)
        | Condition::QualityNotApproved(_)
        | Condition::ApprovalPending
        | Condition::ApprovalMissing => None,
    }
}

/// The call that resolves a hold, if it needs no judgement.
fn hold_remedy(caller: &Caller, task: &TaskHead, hold: &Hold) -> Option<NextCall> {
    match hold {
        Hold::CircuitOpen => Some(caller.transition(
            &task.id,
            Phase::CircuitOpen,
            Phase::ExecutionReady,
            "the failures were investigated",
        )),
        Hold::Exhausted(_) if !task.phase.is_terminal() => Some(caller.open_circuit(&task.id)),
        Hold::Exhausted(_) | Hold::WrongPhase(_) | Hold::AttemptRunning(_) | Hold::TooEarly(_) => None,
    }
}

/// A hold with the call that resolves it.
fn hold_blocker(caller: &Caller, task: &TaskHead, hold: Hold) -> Blocker {
    let next_call = hold_remedy(caller, task, &hold);
    Reason::from(hold).blocker(next_call)
}

/// Cuts rows to a limit. Returns whether there were more.
fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    more
}
