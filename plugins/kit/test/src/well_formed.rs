//! The rules that the outcome of every call keeps to.

use std::cell::RefCell;
use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use tollgate_sdk::{NextCall, Pack, Reply, ToolError};

thread_local! {
    static VALIDATORS: RefCell<HashMap<String, Validator>> = RefCell::default();
}

/// Checks a call after it ran. Arguments of a call that succeeds fit the input schema, replies fit the output
/// schema and leave out what is null. A refusal has a remediation, and the calls that it names can be made.
pub fn well_formed(pack: &Pack, tool: &str, arguments: &str, result: &Result<Reply, ToolError>) {
    well_formed_with_nulls(pack, tool, arguments, result);
    if let Ok(Reply { structured, .. }) = result {
        assert!(!structured.contains(":null"), "{tool}: {structured}");
    }
}

/// Like [`well_formed`], for packs whose replies hold null where it means something.
pub fn well_formed_with_nulls(pack: &Pack, tool: &str, arguments: &str, result: &Result<Reply, ToolError>) {
    match result {
        Ok(reply) => {
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            fits(pack, tool, Side::Input, &arguments);
            let structured = serde_json::from_str(&reply.structured).unwrap_or_default();
            fits(pack, tool, Side::Output, &structured);
        }
        Err(err) => is_helpful(pack, err),
    }
}

fn is_helpful(pack: &Pack, err: &ToolError) {
    assert!(!err.remediation.is_empty(), "{err:?} says what to do");
    assert_ne!(err.code, "INTERNAL", "{err:?}");
    assert_ne!(err.code, "STORAGE_FAILED", "{err:?}");
    for blocker in &err.blockers {
        assert!(!blocker.message.is_empty(), "{err:?}");
    }
    let calls = err
        .blockers
        .iter()
        .filter_map(|blocker| blocker.next_call.as_ref());
    for NextCall { tool, arguments } in calls.chain(&err.next_call) {
        fits(pack, tool, Side::Input, &Value::Object(arguments.clone()));
    }
}

/// A schema of a tool.
#[derive(Debug, Clone, Copy)]
enum Side {
    Input,
    Output,
}

fn fits(pack: &Pack, tool: &str, side: Side, value: &Value) {
    VALIDATORS.with_borrow_mut(|validators| {
        let validator = validators
            .entry(format!("{} {tool} {side:?}", pack.name))
            .or_insert_with(|| validator(pack, tool, side));
        let faults: Vec<String> = validator.iter_errors(value).map(|err| err.to_string()).collect();
        assert!(faults.is_empty(), "{tool} {side:?} {value}: {faults:?}");
    });
}

fn validator(pack: &Pack, tool: &str, side: Side) -> Validator {
    let Some(entry) = pack.tool(tool) else {
        panic!("{} has no tool {tool}", pack.name);
    };
    let mut schema = match side {
        Side::Input => (entry.input_schema)(),
        Side::Output => (entry.output_schema)(),
    };
    widen(&mut schema);
    jsonschema::validator_for(&schema).unwrap_or_else(|err| panic!("{tool} {side:?}: {err}"))
}

/// Accepts the other form of a property as well, as the host does.
fn widen(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(widen);
            if let Some(other) = members.remove("x-accepts") {
                let listed = Value::Object(std::mem::take(members));
                *members = Map::from_iter([("anyOf".to_owned(), json!([listed, other]))]);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(widen),
        _ => {}
    }
}
