//! The work queue of a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, NextCall, Tier, Tool, ToolError};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::limits::{MAX_NAME_CHARS, short};
use crate::model::{Status, Workspace};
use crate::record::Meta;
use crate::reply::{NodeRef, StepRef};
use crate::scope::Scope;
use crate::target::one_actor;
use crate::work::{self, Limits, Piece, Wait};

/// Show the work queue of a workspace or plan: ready work by rank, and blocked tasks with their blockers.
/// tasks_take takes the first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Next {
    workspace: Workspace,
    /// Plan id, to list only its tasks.
    #[schemars(length(max = MAX_NAME_CHARS))]
    plan: Option<String>,
    /// Your name. Steps others hold count as blocked.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Old name of `actor`, which is still accepted.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    owner: Option<String>,
    /// Entries per list, 1 to 50 (default 5).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// Ready and blocked work.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Queue {
    /// Ready work, by rank: at most one step or node of each task, and tasks and plans to complete.
    ready: Vec<Ready>,
    /// Tasks without ready work.
    blocked: Vec<Waiting>,
    /// True if there are more entries of either list.
    has_more: bool,
}

/// A piece of ready work.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Id of the task, or of the plan to complete.
    task: String,
    /// The ready step, absent if the task or plan is to be completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepRef>,
    /// The ready node of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeRef>,
    /// Title of the step, node, task or plan.
    title: String,
    /// Reason for the rank.
    why: String,
    /// The call that starts, shows or ends the work, absent if you cannot make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// A task that waits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waiting {
    /// Id of the task.
    task: String,
    /// Title in one line.
    title: String,
    /// Everything that the task waits for.
    waits_for: Vec<String>,
}

impl View for Queue {
    const ORDER: &'static [Shrink] = &[Shrink::End("blocked"), Shrink::End("ready")];

    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if ["ready", "blocked"]
            .iter()
            .any(|list| budget::is_cut(view, whole, list))
        {
            view.insert("has_more".to_owned(), json!(true));
        }
    }
}

impl Tool for Next {
    const NAME: &'static str = "tasks_next";
    const TITLE: &'static str = "Show what to do next";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Bounded<Queue>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 5, 50)?;
        let scope = Scope::known(cx, &self.workspace)?;
        if let Some(plan) = &self.plan {
            scope.plan_head(plan)?;
        }
        let owner = one_actor(self.actor.as_deref(), self.owner.as_deref())?;
        let limits = Limits {
            ready: limit,
            waiting: limit,
        };
        let found = work::queue(&scope, self.plan.as_deref(), owner, limits)?;
        let mut queue = Queue {
            has_more: found.more,
            ..Queue::default()
        };
        for ready in &found.ready {
            queue.ready.push(entry(&scope, ready, owner)?);
        }
        for (meta, waits) in found.waiting {
            queue.blocked.push(Waiting {
                task: meta.id,
                title: short(&meta.title, 200),
                waits_for: waits.iter().map(Wait::line).collect(),
            });
        }
        budget::fit(&queue, self.max_chars)
    }
}

fn entry(scope: &Scope<'_>, ready: &work::Ready, owner: Option<&str>) -> Result<Ready, ToolError> {
    Ok(Ready {
        task: ready.root.id.clone(),
        step: ready.piece.step_ref(),
        node: ready.piece.node_ref(),
        title: short(ready.piece.title(), 200),
        why: why(&ready.root, &ready.piece),
        next_call: Some(ready.piece.call(scope, owner)?),
    })
}

/// Reason for the rank of a piece, and what it asks for if that is not to do a step.
pub(super) fn why(meta: &Meta, piece: &Piece) -> String {
    let begun = if meta.status == Status::Active {
        "has been started"
    } else {
        "has no open dependencies"
    };
    let action = match piece {
        Piece::Step(step) if step.record.tests.is_empty() => ", but the step has no tests",
        Piece::Step(_) => "",
        Piece::Node(..) => "; finish the node",
        Piece::Confirm(_) => "; confirm the step that was closed without its checkpoints",
        Piece::Complete(_) => "; everything below it is closed, so complete it",
    };
    let reopened = piece.step().and_then(|step| step.record.reopen_reason.as_ref());
    let reopened = reopened.map_or_else(String::new, |reason| {
        format!("; the step was reopened: {}", short(reason, 200))
    });
    format!(
        "{} is {} priority and {begun}{action}{reopened}",
        meta.id, meta.priority
    )
}
