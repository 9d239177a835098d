//! The calls that a refused undo or redo suggests: each one is tried first, so that it is accepted.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, NextCall, ToolError};

use super::{Order, Write};
use crate::model::Workspace;
use crate::store::operation::{self, State};

/// Tool that undoes an operation.
const UNDO: &str = "tasks_undo";
/// Tool that redoes an operation.
const REDO: &str = "tasks_redo";

/// A refusal whose suggested calls are accepted. An undo or redo that is refused itself is replaced by the call
/// that its own refusal suggests, and so on.
pub(crate) fn settled(
    cx: &Cx<'_>,
    workspace: &Workspace,
    actor: Option<&str>,
    mut err: ToolError,
) -> Result<ToolError, ToolError> {
    for blocker in &mut err.blockers {
        if let Some(call) = blocker.next_call.take() {
            blocker.next_call = Some(accepted(cx, workspace, actor, call)?);
        }
    }
    if let Some(call) = err.next_call.take() {
        err.next_call = Some(accepted(cx, workspace, actor, call)?);
    }
    Ok(err)
}

fn accepted(
    cx: &Cx<'_>,
    workspace: &Workspace,
    actor: Option<&str>,
    mut call: NextCall,
) -> Result<NextCall, ToolError> {
    let mut tried = BTreeSet::new();
    while let (Some(to), Some(seq)) = (
        direction(&call),
        call.arguments.get("operation").and_then(Json::as_i64),
    ) {
        if !tried.insert((to == State::Undone, seq)) {
            return Ok(history(workspace));
        }
        match try_it(cx, workspace, actor, (seq, to))? {
            Ok(()) => return Ok(call),
            Err(err) => call = err.next_call.unwrap_or_else(|| history(workspace)),
        }
    }
    Ok(call)
}

fn direction(call: &NextCall) -> Option<State> {
    match call.tool.as_str() {
        UNDO => Some(State::Undone),
        REDO => Some(State::Done),
        _ => None,
    }
}

/// Plans an undo or redo without applying it. The inner result is the refusal.
fn try_it(
    cx: &Cx<'_>,
    workspace: &Workspace,
    actor: Option<&str>,
    (seq, to): (i64, State),
) -> Result<Result<(), ToolError>, ToolError> {
    let tool = if to == State::Undone { UNDO } else { REDO };
    let mut write = Write::begin(cx, tool, workspace)?.by(actor)?;
    let from = if to == State::Undone {
        State::Done
    } else {
        State::Undone
    };
    match operation::get(&cx.db, workspace, seq)?.filter(|operation| operation.state == from) {
        Some(operation) => {
            let unit = operation::unit(&cx.db, workspace, operation)?;
            Ok(write.plan_revert(&unit, to, Order::Records, false).map(drop))
        }
        None => Ok(Err(ToolError::new(
            "UNDO_CONFLICT",
            "the operation cannot be reverted",
        ))),
    }
}

fn history(workspace: &Workspace) -> NextCall {
    NextCall::new("tasks_history", json!({"workspace": workspace}))
}
