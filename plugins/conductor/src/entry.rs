//! Rows of the tool table: every tool accepts the name of its caller, and names what it changed in the ledger.

use serde_json::{Map, Value, json};
use tollgate_sdk::{Cx, Effect, Entry, Reply, Tool, ToolError};

use crate::entity;
use crate::error::Refusals;
use crate::tools::answer::{ConductorAnswer, with_known_answers};

/// Argument with the name of the caller.
const ACTOR: &str = "actor";
/// Longest name of a caller, in characters.
const MAX_ACTOR: usize = 200;

/// Scope of a tool, as its argument struct declares it.
const SCOPE: &str = "x-scope";
/// Says that the values of a scope are compared without blanks around them and in upper case, as `tidy_id` makes ids.
const SCOPE_FOLDS: &str = "x-scope-folds";

/// Row of one tool.
pub(crate) const fn entry<T: Tool>() -> Entry {
    Entry {
        input_schema: schema::<T>,
        call: call::<T>,
        ..Entry::of::<T>()
    }
}

/// Schema of a tool's arguments. `actor` is accepted and not listed, so that lists stay short.
fn schema<T: Tool>() -> Value {
    let mut schema = (Entry::of::<T>().input_schema)();
    if let Some(members) = schema.as_object_mut() {
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        properties[ACTOR] = json!({
            "type": "string", "minLength": 1, "maxLength": MAX_ACTOR, "x-unlisted": true,
            "description": "Your name, for the ledger. Default: the proven identity, if there is one.",
        });
        // Two forms of one id must not be two scopes.
        if members.contains_key(SCOPE) {
            members.insert(SCOPE_FOLDS.to_owned(), json!(true));
        }
    }
    schema
}

/// Runs a tool, and tells the ledger which entities it changed.
fn call<T: Tool>(cx: &Cx<'_>, arguments: &str) -> Result<Reply, ToolError> {
    let own = without_actor(arguments)?;
    entity::begin();
    let arguments = own.as_deref().unwrap_or(arguments);
    let reply = (Entry::of::<T>().call)(cx, arguments).map_err(|refusal| match T::NAME {
        ConductorAnswer::NAME => with_known_answers(refusal, arguments),
        _ => refusal,
    });
    // A failed `write` call leaves nothing behind. A `run` call may have committed before it failed.
    if reply.is_ok() || T::EFFECT == Effect::Run {
        entity::tell(cx, T::NAME)?;
    }
    reply
}

/// Arguments without the name of the caller, which the host reads for the row of the call. `None` if there is none.
fn without_actor(arguments: &str) -> Result<Option<String>, ToolError> {
    if !arguments.contains(ACTOR) {
        return Ok(None);
    }
    // What cannot be read is refused where the tool's own arguments are read.
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return Ok(None);
    };
    let Some(actor) = members.shift_remove(ACTOR) else {
        return Ok(None);
    };
    let mut refusals = Refusals::default();
    match &actor {
        Value::String(actor) => refusals.text(ACTOR, actor, MAX_ACTOR),
        Value::Null => {}
        other => refusals.add(crate::error::Reason::argument(
            ACTOR,
            format!("is {other}, but must be text"),
        )),
    }
    refusals.finish()?;
    Ok(Some(Value::Object(members).to_string()))
}
