//! Check of a call's arguments against the tool's schema, as the gate does before a component runs. It knows the keywords that
//! tools of this SDK have; a pattern is left to the host, because it needs a reader of regular expressions.

use serde_json::{Map, Value};

use crate::{Blocker, ToolError};

/// Refuses arguments that the gate would refuse, with every problem.
pub(super) fn check(tool: &str, schema: &Value, arguments: &str) -> Result<(), ToolError> {
    // Something else than JSON is refused by the tool itself.
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
        return Ok(());
    };
    let mut problems = Vec::new();
    value(schema, &arguments, "", &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("the arguments do not fit the tool: {}", problems.join("; "));
    let blockers = problems
        .iter()
        .map(|problem| Blocker::new("INVALID", problem.clone()));
    Err(ToolError::new("INVALID_ARGUMENTS", message)
        .remediation(format!("Call {tool} with arguments that fit its schema."))
        .blockers(blockers))
}

fn value(schema: &Value, given: &Value, path: &str, problems: &mut Vec<String>) {
    let at = if path.is_empty() { "the arguments" } else { path };
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(given)
    {
        problems.push(format!(
            "{at}: {given} is not one of {}",
            Value::from(allowed.clone())
        ));
        return;
    }
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && !is_a(kind, given)
        && !schema.get("x-accepts").is_some_and(|other| accepts(other, given))
    {
        problems.push(format!("{at}: {given} is not of type {kind}"));
        return;
    }
    match given {
        Value::String(text) => size(
            schema,
            text.chars().count(),
            ["minLength", "maxLength"],
            at,
            problems,
        ),
        Value::Number(number) => bounds(schema, number.as_f64().unwrap_or_default(), at, problems),
        Value::Array(items) => {
            size(schema, items.len(), ["minItems", "maxItems"], at, problems);
            for (nth, item) in items.iter().enumerate() {
                let place = format!("{path}[{nth}]");
                value(
                    schema.get("items").unwrap_or(&Value::Null),
                    item,
                    &place,
                    problems,
                );
            }
        }
        Value::Object(members) => object(schema, members, path, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

fn accepts(other: &Value, given: &Value) -> bool {
    let mut problems = Vec::new();
    value(other, given, "", &mut problems);
    problems.is_empty()
}

fn is_a(kind: &str, given: &Value) -> bool {
    match kind {
        "string" => given.is_string(),
        "boolean" => given.is_boolean(),
        "number" => given.is_number(),
        // JSON Schema calls 300.0 an integer.
        "integer" => given.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => given.is_array(),
        "object" => given.is_object(),
        "null" => given.is_null(),
        _ => true,
    }
}

fn size(schema: &Value, size: usize, [least, most]: [&str; 2], at: &str, problems: &mut Vec<String>) {
    let bound = |key: &str| {
        schema
            .get(key)?
            .as_u64()
            .and_then(|bound| usize::try_from(bound).ok())
    };
    if let Some(bound) = bound(least).filter(|bound| size < *bound) {
        problems.push(format!("{at}: {size} is less than {least} {bound}"));
    }
    if let Some(bound) = bound(most).filter(|bound| size > *bound) {
        problems.push(format!("{at}: {size} is more than {most} {bound}"));
    }
}

fn bounds(schema: &Value, number: f64, at: &str, problems: &mut Vec<String>) {
    type Breaks = fn(f64, f64) -> bool;
    let rules: [(&str, Breaks); 4] = [
        ("minimum", |number, bound| number < bound),
        ("maximum", |number, bound| number > bound),
        ("exclusiveMinimum", |number, bound| number <= bound),
        ("exclusiveMaximum", |number, bound| number >= bound),
    ];
    for (key, breaks) in rules {
        let bound = schema.get(key).and_then(Value::as_f64);
        if let Some(bound) = bound.filter(|bound| breaks(number, *bound)) {
            problems.push(format!("{at}: {number} breaks {key} {bound}"));
        }
    }
}

fn object(schema: &Value, members: &Map<String, Value>, path: &str, problems: &mut Vec<String>) {
    let below = |name: &str| match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    for name in required.iter().filter(|name| !members.contains_key(**name)) {
        problems.push(format!("{}: it is missing", below(name)));
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, member) in members {
        // The gate drops what an optional member says with null.
        if member.is_null() && !required.contains(&name.as_str()) {
            continue;
        }
        match (
            known.and_then(|known| known.get(name)),
            schema.get("additionalProperties"),
        ) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                value(schema, member, &below(name), problems);
            }
            (None, Some(Value::Bool(false))) => problems.push(format!("{}: it is not known", below(name))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn everything_that_the_gate_would_refuse_is_told_at_once() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                "title": {"type": "string", "minLength": 1, "maxLength": 3},
                "tags": {"type": "array", "maxItems": 1, "items": {"type": "string", "enum": ["a", "b"]}},
                "form": {"type": "object", "x-accepts": {"type": "string"}},
            },
            "required": ["title"],
            "additionalProperties": false,
        });
        let told = |arguments: &str| check("note_add", &schema, arguments).map_err(|err| err.message);
        for good in [
            r#"{"title": "abc", "limit": 100.0, "tags": ["a"], "form": "x"}"#,
            r#"{"title": "äöü", "limit": null, "form": {}}"#,
        ] {
            assert_eq!(told(good), Ok(()), "{good}");
        }
        let wrong = told(r#"{"title": "", "limit": 0, "tags": ["a", "c"], "form": 1, "x": 1}"#).unwrap_err();
        for problem in [
            "title: 0 is less than minLength 1",
            "limit: 0 breaks minimum 1",
            "tags: 2 is more than maxItems 1",
            "tags[1]: \"c\" is not one of [\"a\",\"b\"]",
            "form: 1 is not of type object",
            "x: it is not known",
        ] {
            assert!(wrong.contains(problem), "{problem}: {wrong}");
        }
        assert!(told("{}").unwrap_err().contains("title: it is missing"));
    }
}
