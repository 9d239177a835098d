//! Denial of a call that needs an approval.

use serde_json::{Map, Value, json};
use tollgate_sdk::policy::{Denial, Request};
use tollgate_sdk::{Approval, NextCall};

use crate::{APPROVAL_TOOLS, REQUEST_TOOL, RESOLVE_TOOL};

/// Says how the approval is given: in the host's list, if the call is there, or through task-store.
pub(crate) fn denial(request: &Request, key: &str, listed: Option<&Approval>) -> Denial {
    let tool = &request.tool;
    let reason = match listed {
        Some(listed) => format!("{tool} needs an approval; request {} is pending", listed.id),
        None => format!("{tool} needs an approval"),
    };
    let denial = Denial::new("APPROVAL_REQUIRED", reason);
    let wanted = json!({
        "requested_action": format!("Run {tool}"), "side_effect_kind": tool, "idempotency_key": key,
    });
    let answer = listed.map(|listed| {
        format!(
            "Tell the user to approve the call with `tollgate approvals allow {id}`, or let another caller approve it \
             with approval_resolve. Then call again with the same arguments. ",
            id = listed.id
        )
    });
    let answer = answer.unwrap_or_default();
    let Some(arguments) = ready(request, wanted) else {
        let denial = denial.remediation(format!(
            "{answer}In a task: call {REQUEST_TOOL} with side_effect_kind `{tool}` and idempotency_key `{key}`, and wait for \
             the answer from {RESOLVE_TOOL}."
        ));
        return match listed {
            Some(listed) => denial.next_call(NextCall::new(
                APPROVAL_TOOLS[0],
                json!({"approval_id": listed.id}),
            )),
            None => denial,
        };
    };
    denial
        .next_call(NextCall::new(REQUEST_TOOL, arguments))
        .remediation(format!(
            "{answer}To record the request in the task, make next_call, wait for the answer from {RESOLVE_TOOL}, and call \
             again with the same arguments."
        ))
}

/// Arguments of a request for approval, if the call contains all that are needed.
fn ready(request: &Request, wanted: Value) -> Option<Value> {
    let Value::Object(mut arguments) = wanted else {
        return None;
    };
    for name in ["task_id", "attempt_id", "actor", "actor_role"] {
        let given = request.arguments.get(name)?;
        arguments.insert(name.to_owned(), given.clone());
    }
    Some(Value::Object(Map::from_iter(arguments)))
}
