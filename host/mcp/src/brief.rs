//! Shortened schemas for lists of tools: enough for a model to make a call, in few words.
//!
//! Every character of a tool list costs tokens in each session. For arguments, lists therefore show names, types,
//! choices and whatever those do not make clear. For results, they show names and types. The shortening does not change
//! which calls are accepted: calls are checked against the full schema, which `tool_describe` shows. An argument with
//! `deprecated` or `x-unlisted` is accepted and not listed.

use serde_json::{Map, Value, json};
use tollgate_components::catalog::ENVELOPE_ARGUMENT;
use tollgate_sdk::surface;

/// Input schemas with more characters than this are shortened further.
const LONG_SCHEMA_CHARS: usize = 700;
/// Optional objects with more characters than this are shown without their members.
const LONG_OBJECT: usize = 160;
/// Longest description of an argument in a long schema, in characters.
const LONG_DESCRIPTION: usize = 100;

/// Marks an object that is shown without its members. Other text tells the model which members the object takes.
const BRIEF: &str = "x-brief";

/// Keywords that the host checks, and names in its error if they do not hold.
const CHECKED_KEYWORDS: &[&str] = &[
    "$schema",
    "title",
    "format",
    "default",
    "examples",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Words that add nothing to an argument's name.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "in", "is", "it", "its", "of", "on", "one", "or",
    "so", "that", "the", "this", "to", "was", "what", "which", "who", "with",
];

/// Shortened schema of a tool's arguments. A schema that uses all of JSON Schema is not shortened, because its keywords
/// depend on each other.
pub(super) fn input(tool: &str, schema: &Map<String, Value>) -> Map<String, Value> {
    if surface::is_full(schema) {
        return schema.clone();
    }
    let brief = shorten(&Value::Object(schema.clone()), "", tool, false);
    let passes: [fn(&mut Map<String, Value>); 3] = [cut_descriptions, quiet_members, quiet_options];
    let mut brief = match brief {
        Value::Object(brief) => brief,
        _ => Map::new(),
    };
    for pass in passes {
        if size(&brief) <= LONG_SCHEMA_CHARS {
            break;
        }
        pass(&mut brief);
    }
    brief
}

/// Shortened schema of a tool's result: the names and types of its members.
pub(super) fn output(schema: &Map<String, Value>) -> Map<String, Value> {
    let members = schema.get("properties").and_then(Value::as_object);
    let members = members.into_iter().flatten().map(|(name, member)| {
        let kind = member.get("type").map(|kind| json!({ "type": kind }));
        (name.clone(), kind.unwrap_or_else(|| json!({})))
    });
    let mut brief = Map::from_iter([("type".to_owned(), json!("object"))]);
    let members: Map<String, Value> = members.collect();
    if !members.is_empty() {
        brief.insert("properties".to_owned(), members.into());
    }
    brief
}

/// Removes the keywords that the host checks, and descriptions that say nothing.
fn shorten(schema: &Value, name: &str, tool: &str, is_optional: bool) -> Value {
    let Value::Object(schema) = schema else {
        return schema.clone();
    };
    let mut brief = Map::new();
    for (key, value) in schema {
        let kept = match (key.as_str(), value) {
            (key, _) if CHECKED_KEYWORDS.contains(&key) || key == BRIEF => None,
            ("additionalProperties", Value::Bool(false)) => None,
            ("description", Value::String(text)) => description(text, name, tool).map(Value::String),
            ("properties", Value::Object(members)) => {
                let listed = members
                    .iter()
                    .filter(|(_, of)| of["deprecated"] != true && of["x-unlisted"] != true);
                let members = listed.map(|(member, of)| {
                    let is_optional = !is_required(schema, member);
                    (member.clone(), shorten(of, member, tool, is_optional))
                });
                Some(Value::Object(members.collect()))
            }
            ("$defs" | "definitions", Value::Object(shapes)) => {
                let shapes = shapes
                    .iter()
                    .map(|(shape, of)| (shape.clone(), shorten(of, shape, tool, false)));
                Some(Value::Object(shapes.collect()))
            }
            ("items" | "additionalProperties", of) => Some(shorten(of, name, tool, false)),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                let all = all.iter().map(|of| shorten(of, name, tool, false));
                Some(Value::Array(all.collect()))
            }
            (_, value) => Some(value.clone()),
        };
        brief.extend(kept.map(|kept| (key.clone(), kept)));
    }
    let is_long = is_optional
        && brief
            .get("properties")
            .is_some_and(|members| members.to_string().len() > LONG_OBJECT);
    if is_long || schema.get(BRIEF) == Some(&Value::Bool(true)) {
        brief.retain(|key, _| key == "type" || key == "description");
    }
    Value::Object(brief)
}

/// Description on one line, if it says more than the names do.
fn description(text: &str, name: &str, tool: &str) -> Option<String> {
    // Documentation of types is written for programmers and may contain example code.
    let prose = text.split("```").step_by(2).collect::<String>();
    let line = prose.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    let known: Vec<String> = stems(name).chain(stems(tool)).collect();
    let tells = stems(line).any(|word| !EMPTY_WORDS.contains(&word.as_str()) && !known.contains(&word));
    (tells && name != ENVELOPE_ARGUMENT).then(|| line.to_owned())
}

/// Words of a text without their endings.
fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let stems = words.map(|word| {
        let word = word.to_ascii_lowercase();
        word.strip_suffix("ed")
            .or_else(|| word.strip_suffix('s'))
            .map_or_else(|| word.clone(), str::to_owned)
    });
    stems.filter(|stem| !stem.is_empty())
}

/// Keeps only the first sentence of each description.
fn cut_descriptions(schema: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let end = [". ", "; "].iter().filter_map(|end| text.find(end)).min();
        text.truncate(end.unwrap_or(text.len()));
        if text.chars().count() > LONG_DESCRIPTION {
            let cut = tollgate_core::text::cut(text, LONG_DESCRIPTION);
            *text = format!("{}…", cut.rsplit_once(' ').map_or(cut, |(whole, _)| whole));
        }
    }
    each_below(schema, cut_descriptions);
}

/// Removes descriptions from lists' items and from the items' optional members.
fn quiet_members(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        items.remove("description");
        quiet(items, |_| true);
    }
    each_below(schema, quiet_members);
}

/// Removes descriptions from optional arguments whose names have several words, because such names are mostly
/// self-explanatory.
fn quiet_options(schema: &mut Map<String, Value>) {
    quiet(schema, |name| name.contains('_'));
}

fn quiet(schema: &mut Map<String, Value>, which: fn(&str) -> bool) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_optional = |name: &str| {
        !required
            .as_array()
            .is_some_and(|all| all.iter().any(|known| known == name))
    };
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        for (name, member) in members {
            if let Value::Object(member) = member
                && is_optional(name)
                && which(name)
            {
                member.remove("description");
            }
        }
    }
}

/// Applies a function to each direct subschema.
fn each_below(schema: &mut Map<String, Value>, act: fn(&mut Map<String, Value>)) {
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(members)) => {
                members
                    .values_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(act);
            }
            ("items" | "additionalProperties", Value::Object(below)) => act(below),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                all.iter_mut().filter_map(Value::as_object_mut).for_each(act);
            }
            _ => {}
        }
    }
}

fn is_required(schema: &Map<String, Value>, member: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|name| name == member))
}

fn size(schema: &Map<String, Value>) -> usize {
    serde_json::to_string(schema).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn arguments_keep_names_types_choices_and_what_those_do_not_tell() {
        let schema = object(json!({
            "type": "object", "title": "TaskCreate", "additionalProperties": false,
            "properties": {
                "title": { "type": "string", "description": "The task's title.", "minLength": 1 },
                "phase": { "type": "string", "enum": ["a", "b"], "description": "Where it starts.\n\n```\nassert!(true);\n```" },
                "description": { "type": "string", "description": "What it is about, in Markdown." },
                "spec": { "type": "object", "description": "Parts that win.", "properties": {
                    "goal": { "type": "string", "description": "A long description of what is to be reached by this." },
                    "risks": { "type": "array", "items": { "type": "string" }, "description": "What may go wrong with it, at length." },
                } },
                "answers": { "type": "object", "description": "Answers by key.", "x-brief": true,
                    "properties": { "goal": { "type": "string" } } },
                "name": { "type": "string", "description": "The title under its old name.", "deprecated": true },
                "envelope_id": { "type": "string", "description": "Envelope id from envelope_open." },
            },
            "required": ["title"],
        }));
        assert_eq!(
            Value::Object(input("task_create", &schema)),
            json!({
                "type": "object",
                "properties": {
                    "title": { "type": "string" },
                    "phase": { "type": "string", "enum": ["a", "b"], "description": "Where it starts" },
                    "description": { "type": "string", "description": "What it is about, in Markdown" },
                    "spec": { "type": "object", "description": "Parts that win" },
                    "answers": { "type": "object", "description": "Answers by key" },
                    "envelope_id": { "type": "string" },
                },
                "required": ["title"],
            })
        );
    }

    #[test]
    fn long_schemas_lose_words_and_no_argument() {
        let many: Map<String, Value> = (0..12)
            .map(|number| {
                let about =
                    format!("Number {number} matters for reasons. They are told at length here; and again.");
                (
                    format!("option_{number}"),
                    json!({ "type": "string", "description": about }),
                )
            })
            .collect();
        let schema = object(json!({ "type": "object", "properties": many, "required": ["option_0"] }));
        let brief = input("x", &schema);
        let members = brief["properties"].as_object().unwrap();
        assert_eq!(members.len(), 12);
        assert_eq!(members["option_0"]["description"], "Number 0 matters for reasons");
        assert_eq!(members["option_1"], json!({ "type": "string" }));
    }

    #[test]
    fn results_keep_names_and_types() {
        let schema = object(json!({
            "type": "object", "required": ["tasks"], "properties": {
                "tasks": { "type": "array", "items": { "type": "object" }, "description": "All." },
                "more": { "anyOf": [{ "type": "null" }] },
            },
        }));
        assert_eq!(
            Value::Object(output(&schema)),
            json!({ "type": "object", "properties": { "tasks": { "type": "array" }, "more": {} } })
        );
    }
}
