//! The calls inside a call: what a tool that runs others is about to run, each under its own name.
//!
//! Only tools of the same pack that exist here can be members, so that a tool that was excluded cannot be
//! reached through another one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_sdk::{Blocker, ToolError};

use crate::packs::{Catalog, Effect, ToolEntry};

/// Where a member has its arguments.
pub(super) const ARGUMENTS: &str = "args";

/// One call inside another.
#[derive(Clone)]
pub(super) struct Member {
    /// The tool.
    pub(super) tool: Arc<ToolEntry>,
}

/// The members of a call, none if the tool runs no others. The refusal names every one that may not be.
pub(super) fn find(catalog: &Catalog, tool: &ToolEntry, arguments: &Value) -> Result<Vec<Member>, ToolError> {
    let Some(argument) = &tool.spec.members else {
        return Ok(Vec::new());
    };
    let listed = arguments.get(argument).and_then(Value::as_array);
    let mut members = Vec::new();
    let mut blockers = Vec::new();
    for (place, entry) in listed.into_iter().flatten().enumerate() {
        match entry
            .as_object()
            .map_or(Err(Fault::Shape), |entry| member(catalog, tool, entry))
        {
            Ok(member) => members.push(member),
            Err(fault) => blockers.push(fault.blocker(argument, place)),
        }
    }
    if blockers.is_empty() {
        return Ok(members);
    }
    Err(ToolError::new(
        "MEMBERS_REFUSED",
        format!(
            "{} cannot run everything it is asked to; nothing was run",
            tool.spec.name
        ),
    )
    .remediation("Correct every member named in blockers and call again.")
    .blockers(blockers))
}

/// Why something cannot be a member.
enum Fault {
    Shape,
    Unknown(String),
    OtherPack(String),
    Nested(String),
    Runs(String),
}

fn member(catalog: &Catalog, outer: &ToolEntry, entry: &Map<String, Value>) -> Result<Member, Fault> {
    let Some(name) = entry.get("tool").and_then(Value::as_str) else {
        return Err(Fault::Shape);
    };
    let quoted = || crate::text::clean(crate::text::cut(name, 64));
    let tool = catalog.find(name).ok_or_else(|| Fault::Unknown(quoted()))?;
    if tool.pack_name() != outer.pack_name() {
        return Err(Fault::OtherPack(quoted()));
    }
    if tool.spec.members.is_some() {
        return Err(Fault::Nested(quoted()));
    }
    if tool.spec.effect == Effect::Run {
        return Err(Fault::Runs(quoted()));
    }
    Ok(Member {
        tool: Arc::clone(tool),
    })
}

impl Fault {
    fn blocker(&self, argument: &str, place: usize) -> Blocker {
        let (code, message) = match self {
            Fault::Shape => ("INVALID_FIELD", "it is no object with a tool's name".to_owned()),
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
