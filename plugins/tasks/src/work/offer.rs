//! Calls that replies and refusals offer for steps and nodes. They never confirm work that nobody began, and each is
//! accepted as it is.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use tollgate_kit::runs::Look;
use tollgate_sdk::{NextCall, ToolError};

use crate::checkpoint;
use crate::evidence::{self, Fault, Proof};
use crate::lease;
use crate::model::Status;
use crate::mutation;
use crate::record::{Node, Step};
use crate::scope::{Located, Scope};

/// The call that shows a plan or task in full.
pub(crate) fn show_root(scope: &Scope<'_>, id: &str) -> NextCall {
    NextCall::new("tasks_show", json!({"workspace": scope.workspace, "task": id}))
}

/// The call that shows a step in full.
pub(crate) fn show_step(scope: &Scope<'_>, step: &Step) -> NextCall {
    NextCall::new(
        "tasks_show",
        json!({"workspace": scope.workspace, "task": step.task, "step_id": step.id}),
    )
}

/// The call for a ready step: claim or show it if nobody began, close it once there is evidence or a confirmation.
pub(crate) fn step_call(
    scope: &Scope<'_>,
    step: &Located<Step>,
    owner: Option<&str>,
) -> Result<NextCall, ToolError> {
    let owner = lease::owner(scope, owner);
    let held = lease::live(scope, &step.record.id)?;
    let proof = Proof::of(scope, &step.record.id)?;
    let is_begun = !proof.is_empty() || !step.record.confirmed.is_empty();
    // What nobody showed anything for is not confirmed on the side.
    let mut missing = checkpoint::missing(&step.record, &BTreeSet::new()).into_iter();
    let is_backed = missing.all(|checkpoint| proof.backs(checkpoint));
    if is_begun && is_backed && is_proven(scope, &step.record, &proof)? {
        return Ok(close_call(scope, &step.record, owner, held.is_some()));
    }
    Ok(match owner {
        Some(owner) if held.is_none() && !is_begun => NextCall::new(
            "tasks_step_claim",
            json!({"workspace": scope.workspace, "task": step.record.task, "step_id": step.record.id, "actor": owner}),
        ),
        _ => show_step(scope, &step.record),
    })
}

/// Returns whether the evidence of a step speaks for closing it: it neither fails nor is out of date, and is there
/// where the workspace requires it.
pub(crate) fn is_proven(scope: &Scope<'_>, step: &Step, proof: &Proof) -> Result<bool, ToolError> {
    let is_required = scope.config.requires_evidence(&scope.workspace);
    let now = mutation::upcoming(scope)?;
    for checkpoint in evidence::to_prove(scope, step, &BTreeSet::new())? {
        let faults = proof.faults(scope, checkpoint, &now, Look::Known)?;
        if !faults
            .iter()
            .all(|fault| *fault == Fault::Missing && !is_required)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The call that confirms a step's checkpoints and closes it.
fn close_call(scope: &Scope<'_>, step: &Step, owner: Option<&str>, is_held: bool) -> NextCall {
    let said: Map<String, Json> = checkpoint::missing(step, &BTreeSet::new())
        .into_iter()
        .map(|checkpoint| (checkpoint.to_string(), json!({"confirmed": true})))
        .collect();
    let mut arguments = json!({"workspace": scope.workspace, "task": step.task, "step_id": step.id});
    let tool = if said.is_empty() {
        "tasks_done"
    } else {
        arguments["checkpoints"] = Json::Object(said);
        "tasks_close_step"
    };
    if let Some(owner) = owner.filter(|_| is_held) {
        arguments["actor"] = json!(owner);
    }
    let mut call = NextCall::new(tool, arguments);
    sign(scope, &mut call, owner);
    call
}

/// Adds the name of the caller to a call that writes, so that the history and undo by actor know whose it is. The name
/// that the transport proves is known without.
pub(crate) fn sign(scope: &Scope<'_>, call: &mut NextCall, actor: Option<&str>) {
    if let Some(actor) = actor.filter(|actor| scope.cx.identity() != Some(*actor)) {
        call.arguments.insert("actor".to_owned(), json!(actor));
    }
}

/// The call that starts a node, or finishes a node that was started.
pub(crate) fn node_call(scope: &Scope<'_>, node: &Node) -> NextCall {
    let status = match node.status {
        Status::Active => Status::Done,
        _ => Status::Active,
    };
    NextCall::new(
        "tasks_task_define",
        json!({"workspace": scope.workspace, "task": node.task, "task_node_id": node.id, "status": status}),
    )
}
