//! Arguments of a call in the event log, and the hash by which changes are compared.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use tollgate_sdk::{ToolError, canonical_json};

/// Arguments for actor, reason and workspace.
const HEADER_ARGUMENTS: [&str; 4] = ["workspace", "actor", "actor_name", "trigger_reason"];

/// Arguments as the event log stores them: without actor, reason and workspace, and without empty values,
/// which equal absent ones.
pub(crate) fn params_of(call: &impl Serialize) -> Result<Map<String, Json>, ToolError> {
    match serde_json::to_value(call) {
        Ok(Json::Object(params)) => Ok(params
            .into_iter()
            .filter(|(name, _)| !HEADER_ARGUMENTS.contains(&name.as_str()))
            .map(|(name, value)| (name, without_nothing(value)))
            .filter(|(_, value)| !is_nothing(value))
            .collect()),
        _ => Err(ToolError::new(
            "INTERNAL",
            "the arguments cannot be written to the event log",
        )),
    }
}

fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(entries) => entries.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// A value without members that say nothing.
pub(crate) fn without_nothing(value: Json) -> Json {
    match value {
        Json::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, without_nothing(value)))
            .filter(|(_, value)| !is_nothing(value))
            .collect(),
        Json::Array(entries) => entries.into_iter().map(without_nothing).collect(),
        scalar => scalar,
    }
}

/// The first 16 hex digits of the SHA-256 of command and arguments as canonical JSON.
pub(crate) fn event_hash(cmd: &str, params: &Map<String, Json>) -> String {
    let text = canonical_json(&json!({"cmd": cmd, "params": params}));
    Sha256::digest(text.as_bytes())
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
