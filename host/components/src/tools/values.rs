//! Possible values of an argument: fixed words, or values that another tool lists.

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_core::effect::Effect;

use super::host_tool::HostTools;
use super::spec::ToolSpec;

/// Key of a property's list of values.
pub(super) const VALUES: &str = "x-values";

/// Possible values of an argument.
#[derive(Debug, Clone)]
pub enum Values {
    /// One of these words.
    Words(Vec<String>),
    /// Values that a tool lists.
    Listed(Source),
}

/// A tool that lists values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Tool that lists them, which only reads.
    pub tool: String,
    /// Arguments of that tool.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Member of its reply that is the list.
    pub items: String,
    /// Member of each entry that is a value, or a list of values.
    pub value: String,
}

/// Removes the values from an argument's schema and returns them.
pub(super) fn take(property: &mut Map<String, Value>) -> serde_json::Result<Option<Values>> {
    if let Some(source) = property.remove(VALUES) {
        return serde_json::from_value(source).map(|source| Some(Values::Listed(source)));
    }
    let words = property.get("enum").and_then(Value::as_array);
    Ok(words.map(|words| {
        Values::Words(
            words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    }))
}

impl Source {
    /// Values in a reply, without duplicates.
    pub fn values(&self, reply: &Map<String, Value>) -> Vec<String> {
        let items = reply.get(&self.items).and_then(Value::as_array);
        let mut values: Vec<String> = Vec::new();
        for item in items.into_iter().flatten() {
            let of_item = match item.get(&self.value) {
                Some(Value::Array(several)) => several.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            for value in of_item.iter().filter_map(Value::as_str) {
                // A value with invisible characters cannot be offered as a choice.
                if !tollgate_core::text::hides(value) && !values.iter().any(|known| known == value) {
                    values.push(value.to_owned());
                }
            }
        }
        values
    }
}

/// Checks that a pack may have a tool called to list values: a tool of its own that reads, or one of the host's tools
/// without confidential content. The tool is called whenever a client lists or completes values, so any other tool
/// would let a component make calls in the caller's name.
pub(crate) fn check_source(tools: &[ToolSpec], host_tools: HostTools, source: &Source) -> Result<(), String> {
    if host_tools.get(&source.tool).is_some_and(|tool| tool.lists_values) {
        return Ok(());
    }
    let own = tools.iter().find(|tool| tool.name == source.tool);
    let named = tollgate_core::text::clean(tollgate_core::text::cut(&source.tool, 64));
    let why = match own {
        Some(tool) if tool.effect == Effect::Read => return Ok(()),
        Some(_) => "is not a `read` tool",
        None => "is not a tool of the pack",
    };
    let allowed = host_tools.listing().collect::<Vec<_>>().join(", ");
    Err(format!(
        "{VALUES}: `{named}` {why}; name a `read` tool of the pack, or one of {allowed}"
    ))
}
