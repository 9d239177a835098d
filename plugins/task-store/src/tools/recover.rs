//! Resuming a task in a fresh context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_kit::Reason as _;
use tollgate_sdk::{Blocker, Cx, DbError, Effect, NextCall, Tier, Tool, ToolError};

use super::{start_blockers, unmet_blocker};
use crate::arguments::MAX_REFERENCE_CHARS;
use crate::caller::Caller;
use crate::error::Reason;
use crate::model::TaskId;
use crate::phase::Phase;
use crate::retry::Hold;
use crate::role::Role;
use crate::store::MAX_SHOWN_ROWS;
use crate::store::approval::{self, Approval};
use crate::store::artifact::{self, Artifact};
use crate::store::attempt::{self, Attempt};
use crate::store::event::{self, Event};
use crate::store::review::{self, Review};
use crate::store::standing::{self, Standing};
use crate::store::task::{self, Task};
use crate::worker::{self, Worker};

/// Show everything needed to resume a task: phase, spec, the latest attempt, review, approval, checkpoint and
/// artifact, pending work, and each legal transition with its call and unmet conditions. Call this first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRecover {
    /// Task id from task_create.
    task_id: TaskId,
    /// Name for suggested calls.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Role for suggested calls.
    actor_role: Option<Role>,
}

/// State of a task and its next steps.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recovery {
    /// Phase of the task.
    phase: Phase,
    /// The task with its spec.
    task: Task,
    /// Attempts left before the circuit opens.
    attempts_left: u32,
    /// Latest attempt, open or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_attempt: Option<Attempt>,
    /// Worker of the running attempt: whether it is still there, and its envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<Worker>,
    /// Latest review of either type.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_review: Option<Review>,
    /// Latest approval, with its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_approval: Option<Approval>,
    /// Latest checkpoint that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_checkpoint: Option<Event>,
    /// Latest artifact that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_artifact: Option<Artifact>,
    /// Running and awaited work, each with a code, a message and, if possible, a call.
    #[schemars(with = "Vec<Map<String, Json>>")]
    pending: Vec<Blocker>,
    /// Every legal transition.
    transitions: Vec<LegalMove>,
}

/// A legal transition.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LegalMove {
    /// Target phase of the transition.
    to_phase: Phase,
    /// True if every condition is met.
    ready: bool,
    /// Every unmet condition, with the call that resolves it, if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Json>>")]
    unmet: Vec<Blocker>,
    /// The call that makes the transition. Absent if you cannot call that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Json>")]
    next_call: Option<NextCall>,
}

impl Tool for TaskRecover {
    const NAME: &'static str = "task_recover";
    const TITLE: &'static str = "Resume a task";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Recovery;

    fn run(self, cx: &Cx<'_>) -> Result<Recovery, ToolError> {
        let (db, id) = (&cx.db, &self.task_id);
        let caller = Caller::reader(cx, Self::NAME, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let standing = refusals.known(id, standing::get(&cx.db, id)?);
        let standing = refusals.finish_with(standing)?;
        let latest_attempt = attempt::latest(db, id, 1)?.pop();
        let worker = match latest_attempt.as_ref() {
            Some(latest) if standing.running().is_some() => Some(worker::find(cx, &caller, latest)?),
            _ => None,
        };
        Ok(Recovery {
            phase: standing.task.phase,
            task: task::get(db, id)?.ok_or(DbError::Internal)?,
            attempts_left: caller.config.retry.left(standing.task.attempts_used()),
            latest_attempt,
            worker,
            latest_review: review::latest(db, id)?,
            latest_approval: approval::latest(db, id, 1)?.pop(),
            latest_checkpoint: event::latest_checkpoint(db, id)?,
            latest_artifact: artifact::latest(db, id, 1)?.pop(),
            pending: pending(cx, &caller, &standing)?,
            transitions: legal_moves(cx, &caller, &standing)?,
        })
    }
}

/// Running and awaited work: the running attempt, the reasons why the next one cannot start, and pending
/// approvals.
fn pending(cx: &Cx<'_>, caller: &Caller, standing: &Standing) -> Result<Vec<Blocker>, DbError> {
    let task = &standing.task;
    let is_open_end = |reason: &Reason| match reason {
        Reason::Hold(Hold::AttemptRunning(_)) => true,
        Reason::Hold(Hold::WrongPhase(_)) => false,
        _ => !task.phase.is_terminal(),
    };
    let mut pending: Vec<Blocker> = start_blockers(cx, caller, standing)?
        .into_iter()
        .filter(|(reason, _)| is_open_end(reason))
        .map(|(reason, next_call)| reason.blocker(next_call))
        .collect();
    for approval in approval::pending(&cx.db, &task.id, MAX_SHOWN_ROWS)? {
        pending.push(Blocker::new(
            "APPROVAL_PENDING",
            format!(
                "approval {} is pending: {}",
                approval.id, approval.requested_action
            ),
        ));
    }
    Ok(pending)
}

fn legal_moves(cx: &Cx<'_>, caller: &Caller, standing: &Standing) -> Result<Vec<LegalMove>, DbError> {
    let task = &standing.task;
    let legal_move = |to: Phase| {
        let unmet = standing.unmet(&caller.config.retry, to);
        Ok(LegalMove {
            to_phase: to,
            ready: unmet.is_empty(),
            unmet: unmet
                .into_iter()
                .map(|condition| unmet_blocker(cx, caller, standing, condition))
                .collect::<Result<_, DbError>>()?,
            next_call: Some(caller.transition(&task.id, task.phase, to, "the task continues")),
        })
    };
    task.place().next().into_iter().map(legal_move).collect()
}
