//! Fields of an object in a tool's input schema, for refusals that name the accepted fields.

use serde_json::{Map, Value};

/// Most fields that a refusal names.
const MAX_FIELDS: usize = 20;

/// Fields of the expected object, as the end of a sentence.
pub(super) fn wanted(schema: &Map<String, Value>, keyword: &str) -> Option<String> {
    let fields = object(schema, keyword)?;
    let required = fields.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
    let names = fields.get("properties")?.as_object()?.keys();
    let told: Vec<String> = names
        .take(MAX_FIELDS)
        .map(|name| {
            if is_required(name) {
                format!("{name} (required)")
            } else {
                name.clone()
            }
        })
        .collect();
    (!told.is_empty()).then(|| format!("; the object has the fields {}", told.join(", ")))
}

/// Known field that is most similar to an unknown name.
pub(super) fn nearest<'a>(schema: &'a Map<String, Value>, keyword: &str, name: &str) -> Option<&'a str> {
    let names = object(schema, keyword)?.get("properties")?.as_object()?.keys();
    tollgate_core::text::nearest(name, names.map(String::as_str))
}

/// Schema of the object that a keyword belongs to, or one of the alternatives that the keyword lists.
fn object<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Map<String, Value>> {
    let mut at = schema;
    let mut names = keyword.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        let name = name.replace("~1", "/").replace("~0", "~");
        if names.peek().is_none() {
            break;
        }
        at = match at.get(&name)? {
            Value::String(reference) if name == "$ref" => referred(schema, reference)?,
            // Alternatives, of which the next name is the index.
            Value::Array(all) => all.get(names.next()?.parse::<usize>().ok()?)?.as_object()?,
            next => next.as_object()?,
        };
    }
    let alternatives = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|name| at.get(name)?.as_array());
    let alternatives = alternatives.flatten().filter_map(Value::as_object);
    std::iter::once(at)
        .chain(alternatives)
        .map(|one| match one.get("$ref").and_then(Value::as_str) {
            Some(reference) => referred(schema, reference).unwrap_or(one),
            None => one,
        })
        .find(|one| one.contains_key("properties"))
}

fn referred<'a>(schema: &'a Map<String, Value>, reference: &str) -> Option<&'a Map<String, Value>> {
    let mut names = reference.strip_prefix("#/")?.split('/');
    let first = schema.get(names.next()?)?;
    names.try_fold(first, |at, name| at.get(name))?.as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(value: &Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {
                "plain": { "type": "object", "properties": { "a": {}, "b": {} }, "required": ["b"] },
                "behind": { "$ref": "#/$defs/limits" },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/limits" }, { "type": "null" }] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/limits" } },
                "text": { "type": "string" },
            },
            "$defs": { "limits": { "type": "object", "properties": { "most": {} }, "additionalProperties": false } },
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let err = validator.iter_errors(value).next().unwrap();
        let keyword = err.schema_path().to_string();
        let schema = schema.as_object().unwrap();
        let near = nearest(schema, &keyword, "mots").unwrap_or("-");
        format!("{} {near}", wanted(schema, &keyword).unwrap_or_default())
    }

    #[test]
    fn the_fields_of_the_wanted_object_are_named() {
        assert_eq!(
            told(&json!({ "plain": "x" })),
            "; the object has the fields a, b (required) -"
        );
        for value in [
            json!({ "behind": 3 }),
            json!({ "maybe": "x" }),
            json!({ "list": [[]] }),
            json!({ "behind": { "mots": 1 } }),
        ] {
            assert_eq!(told(&value), "; the object has the fields most most", "{value}");
        }
        assert_eq!(told(&json!({ "text": 3 })), " -");
    }
}
