//! Taking the first ready piece of work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError};

use super::lease::{Length, grant};
use super::next::why;
use crate::error::Reason;
use crate::lease::{self, Until};
use crate::limits::{MAX_NAME_CHARS, short};
use crate::model::{EventType, Workspace};
use crate::record::{Lease, Task};
use crate::reply::{NodeRef, StepRef};
use crate::scope::Scope;
use crate::store::record::all;
use crate::target::one_actor;
use crate::work::{self, Limits, Piece, Ready, Wait};
use crate::write::Write;

/// Most leases of a workspace that are searched for those of the caller.
const MAX_LEASES: usize = 1_000;
/// Waiting tasks that a reply without work explains.
const MAX_WAITING: usize = 3;

/// Take the first ready work of tasks_next for `actor`, in one call: leases the step and shows it. Returns the step
/// that `actor` already holds, if there is one. Without ready work, `waits_for` says why. Next: do it, then
/// tasks_evidence_capture and tasks_close_step with the same `actor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    workspace: Workspace,
    /// Plan id, to take work of this plan only, for example PLAN-001.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Your name, the same in every call about the lease. Default: the identity of your connection.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Old name of `actor`, for leases.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
    /// `connection` ends the lease with your connection at the latest.
    until: Option<Until>,
}

/// The work that was taken, or the reasons why there is none.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Taken {
    /// True if there is work. A step is then leased to the owner.
    taken: bool,
    /// Id of the task, or of the plan to complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// Revision of the task, for `expected_revision` of the next write.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    /// The leased step, absent if the task or plan is to be completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepRef>,
    /// The node of the step to work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeRef>,
    /// Title of the step, node, task or plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    /// Criteria that must hold before the step counts as done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    success_criteria: Vec<String>,
    /// Commands or checks that prove the step is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<String>,
    /// Reason for the rank.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    /// Reasons why the first tasks wait, if nothing is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<String>,
    /// Suggested next calls with complete arguments.
    next_calls: Vec<NextCall>,
}

impl Tool for Take {
    const NAME: &'static str = "tasks_take";
    const TITLE: &'static str = "Take the next work";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::ADDITIVE;
    type Output = Taken;

    fn run(self, cx: &Cx<'_>) -> Result<Taken, ToolError> {
        let actor = one_actor(self.actor.as_deref(), self.owner.as_deref())?;
        let mut write = Write::begin(cx, Self::NAME, &self.workspace)?.by(actor)?;
        if let Some(plan) = &self.plan {
            write.scope.plan_head(plan)?;
        }
        let owner = write
            .actor()
            .ok_or_else(|| Reason::input("actor", "is required, because the connection has no identity"))?
            .to_owned();
        let found = match self.held(&write.scope, &owner)? {
            Some(ready) => Some(ready),
            None => first(&write.scope, self.plan.as_deref(), &owner)?,
        };
        let Some(ready) = found else {
            crate::mutation::pass(cx)?;
            return nothing(&write.scope, self.plan.as_deref(), &owner);
        };
        let (mut taken, call) = describe(&write.scope, &ready, &owner)?;
        taken.revision = Some(write.scope.head(&ready.root.id)?.revision);
        match ready.piece.step() {
            Some(step) => {
                let data: Json = json!({"owner": owner});
                write.shows_events = false;
                taken.revision = Some(
                    grant(
                        write,
                        step,
                        owner,
                        Length::until(self.until),
                        (EventType::StepClaimed, data),
                    )?
                    .revision,
                );
            }
            None => crate::mutation::pass(cx)?,
        }
        taken.next_calls.push(call);
        Ok(taken)
    }
}

impl Take {
    /// The first piece of a step that the owner holds already.
    fn held(&self, scope: &Scope<'_>, owner: &str) -> Result<Option<Ready>, ToolError> {
        for lease in all::<Lease>(scope.db(), &scope.workspace, MAX_LEASES)? {
            if lease.owner != owner || lease::left(scope, &lease).is_none() {
                continue;
            }
            let Some(task) = scope.get::<Task>(&lease.task)? else {
                continue;
            };
            if self.plan.as_ref().is_some_and(|plan| *plan != task.plan) {
                continue;
            }
            let outlook = work::of_task(scope, &task, Some(owner))?;
            if let Some(piece) = outlook.piece
                && piece.step().is_some_and(|step| step.record.id == lease.step)
            {
                return Ok(Some(Ready {
                    root: task.meta,
                    piece,
                    waits: outlook.waits,
                }));
            }
        }
        Ok(None)
    }
}

fn first(scope: &Scope<'_>, plan: Option<&str>, owner: &str) -> Result<Option<Ready>, ToolError> {
    let limits = Limits { ready: 1, waiting: 0 };
    let queue = work::queue(scope, plan, Some(owner), limits)?;
    Ok(queue.ready.into_iter().next())
}

/// The work as the reply shows it, and the call after it.
fn describe(scope: &Scope<'_>, ready: &Ready, owner: &str) -> Result<(Taken, NextCall), ToolError> {
    let piece = &ready.piece;
    let mut taken = Taken {
        taken: true,
        task: Some(ready.root.id.clone()),
        step: piece.step_ref(),
        node: piece.node_ref(),
        title: short(piece.title(), 500),
        why: why(&ready.root, piece),
        ..Taken::default()
    };
    let call = match piece {
        Piece::Step(step) => {
            taken.success_criteria.clone_from(&step.record.success_criteria);
            taken.tests.clone_from(&step.record.tests);
            work::show_step(scope, &step.record)
        }
        piece => piece.call(scope, Some(owner))?,
    };
    Ok((taken, call))
}

/// The reply without work.
fn nothing(scope: &Scope<'_>, plan: Option<&str>, owner: &str) -> Result<Taken, ToolError> {
    let limits = Limits {
        ready: 0,
        waiting: MAX_WAITING,
    };
    let queue = work::queue(scope, plan, Some(owner), limits)?;
    let mut taken = Taken::default();
    for (meta, waits) in queue.waiting {
        let waits: Vec<String> = waits.iter().map(Wait::line).collect();
        taken
            .waits_for
            .push(short(&format!("{} waits for {}", meta.id, waits.join("; ")), 240));
    }
    let mut arguments = json!({"workspace": scope.workspace, "actor": owner});
    if let Some(plan) = plan {
        arguments["plan"] = json!(plan);
    }
    taken.next_calls.push(NextCall::new("tasks_next", arguments));
    Ok(taken)
}
