//! Removal of suggested calls that the reader cannot make, because the operator excluded the tool or the token does
//! not allow it.

use serde_json::Value;
use tollgate_components::catalog::Catalog;
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_core::scopes::Calls;
use tollgate_sdk::{NextCall, ToolError};

/// Key of a tool's name in a suggestion, as JSON has it.
const TOOL_KEY: &str = "\"tool\"";

/// Tools that a caller can call, listed or not.
#[derive(Clone, Copy)]
pub(super) struct Callable<'a> {
    catalog: &'a Catalog,
    calls: Calls,
}

/// Kinds of tools that a caller's token allows.
pub(super) fn calls_of(identity: Option<&Identity>) -> Calls {
    identity.map_or(Calls::All, |identity| identity.rights().calls)
}

impl<'a> Callable<'a> {
    pub(super) fn new(catalog: &'a Catalog, calls: Calls) -> Callable<'a> {
        Callable { catalog, calls }
    }

    fn has(self, tool: &str) -> bool {
        let Some(tool) = self.catalog.find(tool) else {
            return false;
        };
        match (self.calls, tool.spec.effect) {
            (Calls::All, _) | (Calls::Reads, Effect::Read) => true,
            (Calls::Reads | Calls::None, _) => false,
        }
    }

    /// Removes suggestions that the caller cannot follow from a refusal. Keeps its reasons.
    pub(super) fn refusal(self, mut refusal: ToolError) -> ToolError {
        let can = |call: &NextCall| self.has(&call.tool);
        refusal.next_call = refusal.next_call.filter(can);
        for blocker in &mut refusal.blockers {
            blocker.next_call = blocker.next_call.take().filter(can);
        }
        refusal
    }

    /// Removes such suggestions from a tool's structured result, in `next`, `next_call` and `next_calls` at any
    /// depth. Keeps keys that the tool's output schema requires, because clients would refuse a result without them.
    pub(super) fn result(self, of: &str, json: String) -> String {
        // Most results suggest nothing else, and parsing one costs more than searching its text.
        if tools_in(&json).all(|name| self.has(name)) {
            return json;
        }
        let Ok(mut result) = serde_json::from_str::<Value>(&json) else {
            return json;
        };
        let schema = self.catalog.find(of).map(|tool| &tool.spec.output_schema);
        let mut keys = vec!["next", "next_call"];
        keys.retain(|key| schema.is_none_or(|schema| !schema.values().any(|part| requires(part, key))));
        if self.prune(&keys, &mut result) {
            return result.to_string();
        }
        json
    }

    /// Removes suggestions, or only those at some keys. Returns whether there were any.
    fn prune(self, keys: &[&str], value: &mut Value) -> bool {
        match value {
            Value::Object(fields) => {
                let mut pruned = false;
                for &key in keys {
                    if fields.get(key).is_some_and(|call| self.is_out_of_reach(call)) {
                        fields.shift_remove(key);
                        pruned = true;
                    }
                }
                if let Some(Value::Array(calls)) = fields.get_mut("next_calls") {
                    let before = calls.len();
                    calls.retain(|call| !self.is_out_of_reach(call));
                    pruned |= calls.len() < before;
                }
                for value in fields.values_mut() {
                    pruned |= self.prune(keys, value);
                }
                pruned
            }
            Value::Array(values) => {
                let mut pruned = false;
                for value in values {
                    pruned |= self.prune(keys, value);
                }
                pruned
            }
            _ => false,
        }
    }

    fn is_out_of_reach(self, call: &Value) -> bool {
        let tool = call.get("tool").and_then(Value::as_str);
        tool.is_some_and(|tool| !self.has(tool))
    }
}

/// Returns whether a JSON schema requires a property, at any depth.
fn requires(schema: &Value, key: &str) -> bool {
    match schema {
        Value::Object(parts) => parts.iter().any(|(name, part)| match part {
            Value::Array(names) if name == "required" => names.iter().any(|name| name == key),
            part => requires(part, key),
        }),
        Value::Array(parts) => parts.iter().any(|part| requires(part, key)),
        _ => false,
    }
}

/// Names of tools in the suggestions of a JSON text.
fn tools_in(json: &str) -> impl Iterator<Item = &str> {
    json.split(TOOL_KEY).skip(1).filter_map(|rest| {
        let value = rest.trim_start().strip_prefix(':')?;
        value.trim_start().strip_prefix('"')?.split('"').next()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_required_property_is_found_at_any_depth() {
        let item = json!({"type": "object", "properties": {"next_call": {}}, "required": ["next_call"]});
        let schema = json!({"properties": {"ready": {"items": item}}, "required": ["ready"]});
        assert!(requires(&schema, "next_call"));
        assert!(!requires(&schema, "next"));
    }

    #[test]
    fn names_are_found_however_a_pack_spaces_its_json() {
        let json = r#"{"tool": "a", "next":{"tool":"b"}, "next_calls": [{"tool" : "c"}], "tools": ["d"], "tool": 1}"#;
        assert_eq!(tools_in(json).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
