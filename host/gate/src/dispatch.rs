//! Dispatch of `tool_call`: the call is replaced by a call of the tool it names, before any decision about it. An
//! `approval_resolve` is replaced by the component's own tool, if the component answers with one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_components::catalog::{Catalog, ENVELOPE_ARGUMENT, ToolEntry};
use tollgate_sdk::ApprovalStatus;
use tollgate_store::storage::StoredApproval;

use super::pending_operation::recorded_actor;
use super::{Call, Gate, Generation};
use crate::approvers::Answerer;
use crate::core_tools::{RESOLVE, Resolve, TOOL_CALL};

/// Tool that a call is about. A `tool_call` of another tool becomes a call of that tool in every respect. If the
/// named tool cannot be called that way, the call stays a `tool_call` and is refused as such.
pub(super) fn follow<'a>(
    catalog: &'a Catalog,
    tool: &'a Arc<ToolEntry>,
    call: &mut Call,
) -> &'a Arc<ToolEntry> {
    if tool.spec.name != TOOL_CALL || !call.malformed.is_empty() {
        return tool;
    }
    match asked_for(catalog, &call.arguments) {
        Some((target, arguments)) => {
            call.tool = target.spec.name.clone();
            call.arguments = arguments;
            target
        }
        None => tool,
    }
}

/// Target tool of a call that does not exist yet.
pub(super) fn target_of<'a>(
    catalog: &'a Catalog,
    tool: &'a Arc<ToolEntry>,
    arguments: &Map<String, Value>,
) -> &'a Arc<ToolEntry> {
    if tool.spec.name != TOOL_CALL {
        return tool;
    }
    asked_for(catalog, arguments).map_or(tool, |(target, _)| target)
}

/// Tool and arguments of a `tool_call`, if the call has no further arguments.
fn asked_for<'a>(
    catalog: &'a Catalog,
    arguments: &Map<String, Value>,
) -> Option<(&'a Arc<ToolEntry>, Map<String, Value>)> {
    if arguments.keys().any(|name| name != "tool" && name != "arguments") {
        return None;
    }
    let target = catalog.find(arguments.get("tool")?.as_str()?)?;
    let given = match arguments.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given.clone(),
        // Some models write an object argument as JSON text.
        Some(Value::String(text)) => serde_json::from_str(text).ok()?,
        Some(_) => return None,
    };
    (target.spec.name != TOOL_CALL).then_some((target, given))
}

impl Gate {
    /// Tool that answers a request for approval: the component's own tool with its own arguments, if the component
    /// has one and the caller may answer. Every other call stays an `approval_resolve` and is refused as such.
    pub(super) async fn follow_approval<'a>(
        &self,
        generation: &'a Generation,
        tool: &'a Arc<ToolEntry>,
        call: &mut Call,
    ) -> &'a Arc<ToolEntry> {
        if tool.spec.name != RESOLVE || !call.malformed.is_empty() {
            return tool;
        }
        // Arguments that name the envelope do not belong to the tool itself and stay with the call.
        let mut own = call.arguments.clone();
        let envelope = own.remove(ENVELOPE_ARGUMENT);
        let Ok(answer) = serde_json::from_value::<Resolve>(Value::Object(own)) else {
            return tool;
        };
        let Some(asked) = self.executors.approval(answer.approval_id.clone()).await else {
            return tool;
        };
        let now_ms = self.clock.now_ms();
        let actor = recorded_actor(&call.caller, &call.arguments);
        let answerer = Answerer {
            identity: call.caller.identity.as_ref(),
            actor: actor.as_deref(),
            connection: &call.caller.connection,
            is_local: call.caller.share.is_alone(),
        };
        let settings = &generation.approvals;
        let may_answer = asked.status(now_ms) == ApprovalStatus::Pending
            && answerer.sees(&asked, settings)
            && answerer.objection(&asked, settings).is_none();
        let name = answerer.name().unwrap_or("a user of this machine").to_owned();
        let Some(mut arguments) = answering(&asked, &answer, &name).filter(|_| may_answer) else {
            return tool;
        };
        let Some(target) = target(generation, &asked, &answer) else {
            return tool;
        };
        if let Some(envelope) = envelope {
            arguments.insert(ENVELOPE_ARGUMENT.to_owned(), envelope);
        }
        call.tool = target.spec.name.clone();
        call.arguments = arguments;
        target
    }
}

/// Component's own tool that takes an answer. A component can answer only with its own tools.
fn target<'a>(
    generation: &'a Generation,
    asked: &StoredApproval,
    answer: &Resolve,
) -> Option<&'a Arc<ToolEntry>> {
    let call = answer.decision.call(asked)?;
    let target = generation.catalog.find(&call.tool)?;
    (target.pack_name() == asked.component).then_some(target)
}

/// Arguments of the component's own tool, with name and note of the person.
fn answering(asked: &StoredApproval, answer: &Resolve, name: &str) -> Option<Map<String, Value>> {
    let mut arguments = answer.decision.call(asked)?.arguments;
    let answering = asked.answering.as_ref()?;
    if let Some(by) = &answering.by {
        arguments.insert(by.clone(), Value::from(name));
    }
    if let (Some(argument), Some(note)) = (&answering.note, &answer.note) {
        arguments.insert(argument.clone(), Value::from(note.as_str()));
    }
    Some(arguments)
}
