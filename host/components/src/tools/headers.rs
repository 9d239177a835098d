//! Arguments that clients repeat in HTTP headers, so that proxies can route a call without reading its body.
//!
//! `"x-mcp-header": "Region"` beside an argument asks clients for the header `Mcp-Param-Region` (SEP-2243). The
//! transport refuses a call whose header is missing or does not match the body.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Key of an argument with its header.
const HEADER: &str = "x-mcp-header";
/// Keys of maps from names to schemas.
const SCHEMA_MAP_KEYWORDS: &[&str] = &[
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keys of values that are not schemas.
const DATA_KEYWORDS: &[&str] = &["default", "const", "enum", "examples"];

/// True if a schema has an argument that is repeated in a header.
pub(crate) fn is_annotated(schema: &Map<String, Value>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_object)
        .any(|property| property.contains_key(HEADER) || is_annotated(property))
}

/// Problems of a schema's headers. Clients drop a tool that has one.
pub(crate) fn faults(schema: &Map<String, Value>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    if schema.contains_key(HEADER) {
        faults.push(format!(
            "{HEADER} belongs beside an argument, not at the root of the schema"
        ));
    }
    look(schema, "", true, &mut names, &mut faults);
    faults
}

/// Checks everything below a schema. `is_argument`: the schema is the root, or an argument or a member of one.
fn look(
    schema: &Map<String, Value>,
    path: &str,
    is_argument: bool,
    names: &mut BTreeSet<String>,
    faults: &mut Vec<String>,
) {
    for (key, value) in schema
        .iter()
        .filter(|(key, _)| !DATA_KEYWORDS.contains(&key.as_str()))
    {
        let is_argument = is_argument && key == "properties";
        let below: Vec<(&str, &Value)> = match value {
            Value::Object(all) if SCHEMA_MAP_KEYWORDS.contains(&key.as_str()) => {
                all.iter().map(|(name, below)| (name.as_str(), below)).collect()
            }
            Value::Array(all) => all.iter().map(|below| (key.as_str(), below)).collect(),
            other => vec![(key, other)],
        };
        for (name, below) in below {
            let Value::Object(below) = below else { continue };
            let path = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            };
            if let Some(header) = below.get(HEADER) {
                faults.extend(
                    fault(header, below, is_argument, names).map(|why| format!("{HEADER} of {path}: {why}")),
                );
            }
            look(below, &path, is_argument, names, faults);
        }
    }
}

/// Problem of one header, if it has one.
fn fault(
    header: &Value,
    property: &Map<String, Value>,
    is_argument: bool,
    names: &mut BTreeSet<String>,
) -> Option<String> {
    if !is_argument {
        return Some("only an argument, or a member of one, can be repeated in a header".to_owned());
    }
    let Some(name) = header.as_str().filter(|name| is_token(name)) else {
        return Some(format!(
            "{header} is not the name of an HTTP header, such as \"Region\""
        ));
    };
    if !names.insert(name.to_ascii_lowercase()) {
        return Some(format!("the header {name} already belongs to another argument"));
    }
    let kind = property.get("type").and_then(Value::as_str);
    (!matches!(kind, Some("string" | "integer" | "boolean")))
        .then(|| "only a string, an integer or a boolean can be repeated in a header".to_owned())
}

/// True for a token of RFC 9110, at most 100 bytes long.
fn is_token(name: &str) -> bool {
    let is_token_char = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(is_token_char)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(properties: Value) -> Map<String, Value> {
        Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), properties),
        ])
    }

    #[test]
    fn arguments_and_their_members_may_have_headers() {
        let good = schema(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "place": {"type": "object", "properties": {"shelf": {"type": "integer", "x-mcp-header": "Shelf"}}},
            "note": {"type": "string", "default": {"x-mcp-header": 1}},
        }));
        assert_eq!(faults(&good), [""; 0]);
        assert!(is_annotated(&good));
        assert!(is_annotated(&schema(json!({"place": good}))));
        assert!(!is_annotated(&schema(json!({"region": {"type": "string"}}))));
    }

    #[test]
    fn clients_would_drop_what_is_refused() {
        let cases = [
            (
                json!({"a": {"type": "string", "x-mcp-header": ""}}),
                "x-mcp-header of a: \"\" is not the name",
            ),
            (
                json!({"a": {"type": "string", "x-mcp-header": "two words"}}),
                "is not the name",
            ),
            (
                json!({"a": {"type": "string", "x-mcp-header": 7}}),
                "7 is not the name",
            ),
            (
                json!({"a": {"type": "number", "x-mcp-header": "A"}}),
                "only a string, an integer",
            ),
            (json!({"a": {"x-mcp-header": "A"}}), "only a string, an integer"),
            (
                json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
                "x-mcp-header of b: the header a already belongs to another",
            ),
            (
                json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
                "x-mcp-header of a.items: only an argument",
            ),
            (
                json!({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}),
                "x-mcp-header of a.anyOf: only an argument",
            ),
        ];
        for (properties, expected) in cases {
            let found = faults(&schema(properties.clone()));
            assert_eq!(found.len(), 1, "{properties}: {found:?}");
            assert!(found[0].contains(expected), "{properties}: {found:?}");
        }
        let root = Map::from_iter([(HEADER.to_owned(), json!("A"))]);
        assert!(faults(&root)[0].contains("not at the root"));
    }
}
