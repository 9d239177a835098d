//! What every listed tool must keep to, so that no client refuses the whole list.

use serde_json::{Map, Value};

use super::manifest::ToolSpec;

/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 1 << 10;
/// Largest schema, in bytes of JSON.
const MAX_SCHEMA: usize = 16 << 10;
/// Longest name of a tool: clients put their own before it.
const MAX_NAME: usize = 40;
/// Longest of its other names, which no client lists.
const MAX_ALIAS: usize = 64;
/// Deepest nesting of objects and arrays in an input schema.
const MAX_DEPTH: usize = 5;

/// Everything about a tool that some client would refuse.
pub(super) fn check(tool: &ToolSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let aliases = tool.aliases.iter().map(|alias| (alias, MAX_ALIAS));
    for (name, longest) in std::iter::once((&tool.name, MAX_NAME)).chain(aliases) {
        if !is_tool_name(name, longest) {
            problems.push(format!(
                "the name {:?} does not match ^[a-z][a-z0-9_]{{0,{}}}$",
                crate::text::cut(name, 80),
                longest - 1
            ));
        }
    }
    if tool.title.is_empty() {
        problems.push("it has no title".to_owned());
    }
    if tool.description.is_empty() {
        problems.push("it has no description".to_owned());
    }
    if tool.description.len() > MAX_DESCRIPTION {
        problems.push(format!(
            "its description has {} bytes, more than {MAX_DESCRIPTION}",
            tool.description.len()
        ));
    }
    for (kind, schema) in [("input", &tool.input_schema), ("output", &tool.output_schema)] {
        let size = Value::Object(schema.clone()).to_string().len();
        if size > MAX_SCHEMA {
            problems.push(format!(
                "its {kind} schema has {size} bytes, more than {MAX_SCHEMA}"
            ));
        }
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            problems.push(format!("its {kind} schema is not of type object"));
        }
        walk(schema, kind, 0, &mut problems);
    }
    problems
        .into_iter()
        .map(|problem| format!("tool {}: {problem}", tool.name))
        .collect()
}

fn is_tool_name(name: &str, longest: usize) -> bool {
    name.len() <= longest
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn walk(schema: &Map<String, Value>, path: &str, depth: usize, problems: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        problems.push(format!("{path} is nested deeper than {MAX_DEPTH}"));
        return;
    }
    for banned in ["$ref", "$schema", "$defs", "oneOf", "anyOf", "allOf", "not"] {
        if schema.contains_key(banned) {
            problems.push(format!("{path} uses {banned}"));
        }
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => match schema.get("items") {
            Some(Value::Object(items)) => walk(items, &format!("{path}[]"), depth + 1, problems),
            _ => problems.push(format!("{path} is an array without items")),
        },
        Some(Value::String(_)) => {}
        Some(_) => problems.push(format!("{path} has several types")),
        None => problems.push(format!("{path} has no type")),
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            match property {
                Value::Object(property) => walk(property, &format!("{path}.{name}"), depth + 1, problems),
                _ => problems.push(format!("{path}.{name} has no type")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::manifest::{Effect, Tier};
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn everything_wrong_is_named() {
        let tool = ToolSpec {
            name: "Bad Name".to_owned(),
            title: String::new(),
            description: "x".repeat(2000),
            effect: Effect::Read,
            tier: Tier::Core,
            destructive: false,
            idempotent: true,
            open_world: false,
            members: None,
            input_schema: object(json!({"type": "object", "anyOf": [], "properties": {
                "a": {"type": ["string", "null"]}, "b": {"type": "array"}, "c": true
            }})),
            output_schema: object(json!({"type": "array", "items": {"$ref": "#/x"}})),
            aliases: vec![],
        };
        let problems = check(&tool).join("\n");
        expect![[r#"
            tool Bad Name: the name "Bad Name" does not match ^[a-z][a-z0-9_]{0,39}$
            tool Bad Name: it has no title
            tool Bad Name: its description has 2000 bytes, more than 1024
            tool Bad Name: input uses anyOf
            tool Bad Name: input.a has several types
            tool Bad Name: input.b is an array without items
            tool Bad Name: input.c has no type
            tool Bad Name: its output schema is not of type object
            tool Bad Name: output[] uses $ref
            tool Bad Name: output[] has no type"#]]
        .assert_eq(&problems);
    }
}
