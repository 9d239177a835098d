//! `tool_call`, the way to tools that are not listed: such a call becomes the call of the tool it names,
//! before anything is decided about it.

use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_components::packs::{Catalog, ToolEntry};

use super::Call;
use crate::core_tools::RELAY;

/// The tool that a call is about. One that asks for another by `tool_call` is a call of that one from here on, in
/// every respect. One that asks for none that can be called so stays what it is, and is refused as that.
pub(super) fn follow<'a>(
    catalog: &'a Catalog,
    tool: &'a Arc<ToolEntry>,
    call: &mut Call,
) -> &'a Arc<ToolEntry> {
    if tool.spec.name != RELAY || !call.malformed.is_empty() {
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

/// Tool and arguments of a `tool_call`, if the call asks for nothing else.
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
        // Some models write an argument that is an object as the text of one.
        Some(Value::String(text)) => serde_json::from_str(text).ok()?,
        Some(_) => return None,
    };
    (target.spec.name != RELAY).then_some((target, given))
}
