//! Calls of this pack's tools that the host refused. They never reach the pack, so the host's ledger answers for them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::NOT_FOUND;
use tollgate_sdk::{Cx, LedgerError, Operation, OperationFilter, Timestamp, ToolError};

use crate::store::log;

/// Most calls of one reply.
const MAX_CALLS: u32 = 200;

/// Call that the host refused: its arguments, its budget, or a policy's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RefusedCall {
    /// Time of the call.
    ts: Timestamp,
    /// Name of the tool.
    tool: String,
    /// Code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Caller, as the ledger names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    /// Id of the operation in the ledger.
    op_id: String,
}

/// The refused calls from one time to another, or to now. Refusals by the pack itself are in its own log. Without the
/// grant to read the ledger there are none.
pub(crate) fn between(
    cx: &Cx<'_>,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
) -> Result<Vec<RefusedCall>, ToolError> {
    let filter = OperationFilter {
        pack: Some(crate::PACK.name.to_owned()),
        success: Some(false),
        // Whoever has proven an identity sees that one's own.
        actor: cx.identity().map(str::to_owned),
        since_ms: from.map(Timestamp::as_ms),
        limit: MAX_CALLS,
        ..OperationFilter::default()
    };
    let found = match cx.ledger().query(&filter) {
        Ok(found) => found,
        Err(LedgerError::Denied) => return Ok(Vec::new()),
        Err(err) => return Err(err.into()),
    };
    let known: BTreeSet<String> = log::refusals_since(&cx.db, from)?.into_iter().collect();
    let is_wanted = |operation: &Operation| {
        let is_in_time = until.is_none_or(|until| operation.at_ms <= until.as_ms());
        let code = operation.error_code.as_deref().unwrap_or_default();
        is_in_time && !known.contains(&operation.op_id) && !is_own(code)
    };
    Ok(found
        .into_iter()
        .filter(is_wanted)
        .map(RefusedCall::from)
        .collect())
}

/// Returns whether only the pack refuses with a code. Its reads, and its changes while a log is ahead, leave no entry.
fn is_own(code: &str) -> bool {
    [NOT_FOUND, "WORKSPACE_UNKNOWN"].contains(&code) || code.starts_with("LOG_")
}

impl From<Operation> for RefusedCall {
    fn from(operation: Operation) -> RefusedCall {
        RefusedCall {
            ts: Timestamp::from_ms(operation.at_ms),
            tool: operation.tool,
            code: operation.error_code,
            actor: operation.actor,
            op_id: operation.op_id,
        }
    }
}
