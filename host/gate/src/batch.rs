//! Batches: the calls that a tool makes on behalf of one call, each under its own tool name.
//!
//! Only tools of the same pack that exist on this host can be members, so an excluded tool cannot be reached through
//! another one. Before any policy judges a member, it gets the form in which the pack receives it: under the tool's
//! own name, without null arguments, and with the arguments inherited from the enclosing call.

use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_components::catalog::{Catalog, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_core::hash;
use tollgate_sdk::{Blocker, ToolError};
use tollgate_store::storage::MemberCall;

use super::arguments;

/// Key of a member's tool.
const TOOL: &str = "tool";
/// Key of a member's arguments.
pub(super) const ARGUMENTS: &str = "args";

/// Most members of a call.
const MAX_MEMBERS: usize = 1_000;

/// Member of a batch: one call inside another.
#[derive(Clone)]
pub(super) struct Member {
    /// Tool of the member.
    pub(super) tool: Arc<ToolEntry>,
}

/// Members of a call. Empty if the tool runs no others. Normalizes their entries in `arguments`, which are then
/// judged and run. The refusal names every member that is not allowed.
pub(super) fn find(
    catalog: &Catalog,
    tool: &ToolEntry,
    arguments: &mut Value,
) -> Result<Vec<Member>, ToolError> {
    let Some(argument) = &tool.spec.members else {
        return Ok(Vec::new());
    };
    let inherited = inheritance(tool, arguments);
    let mut members = Vec::new();
    let mut blockers = Vec::new();
    match arguments.get_mut(argument) {
        Some(Value::Array(listed)) => {
            check_count(tool, listed.len())?;
            check_room(tool, &inherited, listed.len())?;
            for (place, entry) in listed.iter_mut().enumerate() {
                match member(catalog, tool, entry, &inherited) {
                    Ok(member) => members.push(member),
                    Err(fault) => blockers.push(fault.blocker(argument, place)),
                }
            }
        }
        None | Some(Value::Null) => {}
        // A pack that reads the other form would run a member that no policy judged.
        Some(_) => blockers.push(
            Blocker::new(
                "INVALID_FIELD",
                "must be a list of objects with `tool` and `args`",
            )
            .field(argument.as_str()),
        ),
    }
    if blockers.is_empty() {
        return Ok(members);
    }
    Err(ToolError::new(
        "MEMBERS_REFUSED",
        format!(
            "{} cannot run all of the requested calls; nothing was run",
            tool.spec.name
        ),
    )
    .remediation("Correct every call named in blockers, then call again.")
    .blockers(blockers))
}

/// Members as the ledger stores them.
pub(super) fn recorded(tool: &ToolEntry, arguments: &Value, members: &[Member]) -> Option<String> {
    let argument = tool.spec.members.as_ref()?;
    let entries = arguments.get(argument)?.as_array()?;
    let calls: Vec<MemberCall> = entries
        .iter()
        .zip(members)
        .map(|(entry, member)| {
            let given = entry.get(ARGUMENTS).unwrap_or(&Value::Null);
            MemberCall {
                tool: member.tool.spec.name.clone(),
                effect: member.tool.spec.effect,
                args_hash: hash::sha256_hex(tollgate_sdk::canonical_json(given).as_bytes()),
            }
        })
        .collect();
    MemberCall::text(&calls)
}

/// Arguments that members inherit from the enclosing call.
pub(super) fn inheritance(tool: &ToolEntry, arguments: &Value) -> Map<String, Value> {
    let names = tool.inherited.iter();
    let given = names.filter_map(|name| Some((name.clone(), arguments.get(name)?.clone())));
    given.collect()
}

/// Complete arguments with which a member runs.
pub(super) fn completed(
    tool: &ToolEntry,
    given: Map<String, Value>,
    inherited: &Map<String, Value>,
) -> Map<String, Value> {
    let mut arguments = match arguments::normalised(tool, given) {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    let properties = tool.spec.input_schema.get("properties");
    for (name, value) in inherited {
        let is_missing = arguments.get(name).is_none_or(Value::is_null);
        if is_missing && properties.is_some_and(|known| known.get(name).is_some()) {
            arguments.insert(name.clone(), value.clone());
        }
    }
    arguments
}

/// Refuses more members than a row of the ledger can name.
fn check_count(tool: &ToolEntry, members: usize) -> Result<(), ToolError> {
    if members <= MAX_MEMBERS {
        return Ok(());
    }
    let name = &tool.spec.name;
    Err(ToolError::new(
        "MEMBERS_REFUSED",
        format!("{name} got {members} calls; at most {MAX_MEMBERS} are allowed"),
    )
    .remediation(format!("Send at most {MAX_MEMBERS} calls at once."))
    .context("limit", MAX_MEMBERS))
}

/// Refuses inherited arguments that would grow too large when they are copied to each member.
fn check_room(tool: &ToolEntry, inherited: &Map<String, Value>, members: usize) -> Result<(), ToolError> {
    let each: usize = inherited.values().map(|value| value.to_string().len()).sum();
    if each.saturating_mul(members) <= arguments::MAX_BYTES {
        return Ok(());
    }
    Err(ToolError::new(
        "ARGUMENTS_TOO_LARGE",
        format!(
            "the arguments that the {members} calls of {} share are too large when copied to each call",
            tool.spec.name
        ),
    )
    .remediation("Send fewer calls at once.")
    .context("limit", arguments::MAX_BYTES))
}

/// Reason for which a value cannot be a member.
enum Fault {
    Shape,
    Extra(String),
    Unknown(String),
    OtherPack(String),
    Nested(String),
    Runs(String),
}

fn member(
    catalog: &Catalog,
    outer: &ToolEntry,
    entry: &mut Value,
    inherited: &Map<String, Value>,
) -> Result<Member, Fault> {
    let Value::Object(entry) = entry else {
        return Err(Fault::Shape);
    };
    let quoted = |name: &str| tollgate_core::text::clean(tollgate_core::text::cut(name, 64));
    if let Some(extra) = entry.keys().find(|key| *key != TOOL && *key != ARGUMENTS) {
        return Err(Fault::Extra(quoted(extra)));
    }
    let Some(Value::String(name)) = entry.get(TOOL) else {
        return Err(Fault::Shape);
    };
    let tool = catalog.find(name).ok_or_else(|| Fault::Unknown(quoted(name)))?;
    if tool.pack_name() != outer.pack_name() {
        return Err(Fault::OtherPack(quoted(name)));
    }
    if tool.spec.members.is_some() {
        return Err(Fault::Nested(quoted(name)));
    }
    if tool.spec.effect == Effect::Run {
        return Err(Fault::Runs(quoted(name)));
    }
    let given = match entry.remove(ARGUMENTS) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(Fault::Shape),
    };
    entry.insert(TOOL.to_owned(), Value::String(tool.spec.name.clone()));
    let arguments = completed(tool, given, inherited);
    entry.insert(ARGUMENTS.to_owned(), Value::Object(arguments));
    Ok(Member {
        tool: Arc::clone(tool),
    })
}

impl Fault {
    fn blocker(&self, argument: &str, place: usize) -> Blocker {
        let (code, message) = match self {
            Fault::Shape => (
                "INVALID_FIELD",
                "must be an object with a tool's name in `tool` and an object in `args`".to_owned(),
            ),
            Fault::Extra(name) => (
                "INVALID_FIELD",
                format!("`{name}` is not a field of a call; the fields are `tool` and `args`"),
            ),
            Fault::Unknown(name) => ("UNKNOWN_TOOL", format!("there is no tool `{name}`")),
            Fault::OtherPack(name) => (
                "MEMBER_OF_OTHER_PACK",
                format!("`{name}` belongs to another pack"),
            ),
            Fault::Nested(name) => ("MEMBERS_NESTED", format!("`{name}` runs tools itself")),
            Fault::Runs(name) => ("MEMBER_RUNS_PROGRAMS", format!("`{name}` may start programs")),
        };
        Blocker::new(code, message).field(format!("{argument}[{place}].tool"))
    }
}
