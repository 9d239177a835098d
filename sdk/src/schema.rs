//! JSON Schemas that every client accepts: inlined objects with one type per property.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value, json};

/// Schema of a tool's arguments. Its `description` is the struct's doc comment.
///
/// ```
/// # use tollgate_sdk::input_schema;
/// /// Keep a note.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Add {
///     /// Text to keep, at most one paragraph.
///     text: Option<String>,
/// }
/// let schema = input_schema::<Add>();
/// assert_eq!(schema["description"], "Keep a note.");
/// assert_eq!(schema["properties"]["text"]["type"], "string");
/// ```
#[must_use]
pub fn input_schema<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Schema of a tool's structured reply.
///
/// ```
/// # use tollgate_sdk::output_schema;
/// /// Number of stored notes.
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Kept {
///     /// Number of notes.
///     notes: u32,
/// }
/// assert_eq!(output_schema::<Kept>()["required"][0], "notes");
/// ```
#[must_use]
pub fn output_schema<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Schema of a pack's `config` table, for [`Pack::config_schema`](crate::Pack::config_schema).
///
/// ```
/// # use tollgate_sdk::{Pack, config_schema};
/// /// Settings of the operator.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Settings {
///     /// Maximum number of notes that are kept.
///     max_notes: u32,
/// }
/// const PACK: Pack = Pack { config_schema: Some(config_schema::<Settings>), ..Pack::EMPTY };
/// # assert!(PACK.config_schema.is_some());
/// ```
#[must_use]
pub fn config_schema<T: JsonSchema>() -> Value {
    input_schema::<T>()
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(Portable))
        .into_generator()
        .into_root_schema_for::<T>();
    // A struct without fields has no properties; clients need the key nevertheless.
    if schema.get("type").is_some_and(|kind| kind == "object") && schema.get("properties").is_none() {
        schema.insert("properties".into(), json!({}));
    }
    schema.to_value()
}

/// Rewrites constructs that some clients refuse: `type` arrays and `anyOf` with null for optional fields,
/// `oneOf` of constants for enums, non-standard number formats.
#[derive(Debug, Clone)]
struct Portable;

impl Transform for Portable {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        object.remove("title");
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
        drop_null_type(object);
        drop_null_variant(object);
        flatten_constants(object);
        if let Some(Value::String(description)) = object.get_mut("description") {
            *description = unwrap(description);
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        if object
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(is_number_format)
        {
            object.remove("format");
        }
    }
}

fn is_number_format(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int") || matches!(format, "double" | "float")
}

fn drop_null_type(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
}

fn drop_null_variant(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get_mut("anyOf") else {
        return;
    };
    variants.retain(|variant| variant.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = variants.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// Rewrites `oneOf: [{const, description}, …]` to `enum`, with the descriptions joined.
fn flatten_constants(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut notes = Vec::new();
    for variant in variants {
        let constants = match (variant.get("const"), variant.get("enum")) {
            (Some(constant), _) => vec![constant.clone()],
            (None, Some(Value::Array(constants))) => constants.clone(),
            _ => return,
        };
        if let (Some(note), [Value::String(constant)]) = (
            variant.get("description").and_then(Value::as_str),
            constants.as_slice(),
        ) {
            notes.push(format!("{constant}: {note}"));
        }
        values.extend(constants);
    }
    object.remove("oneOf");
    object.insert("type".into(), json!("string"));
    object.insert("enum".into(), Value::Array(values));
    if !notes.is_empty() {
        let own = object
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let all = format!("{own} {}", notes.join(" "));
        object.insert("description".into(), json!(all.trim()));
    }
}

/// Joins the lines of each paragraph, because line breaks of a comment are meaningless in a schema. A line that starts
/// like a list item keeps its line break.
fn unwrap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        if let Some(next) = lines.peek() {
            let joins = !line.is_empty() && !next.is_empty() && !next.starts_with(['*', '-', '|']);
            out.push(if joins { ' ' } else { '\n' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    /// Pick one.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        /// The first.
        One,
        Two,
    }

    /// Do a thing.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Arguments {
        /// A count.
        count: Option<u32>,
        /// A choice.
        choice: Option<Choice>,
        /// Nested parts.
        #[serde(default)]
        parts: Vec<Part>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Part {
        name: String,
    }

    #[test]
    fn descriptions_lose_the_line_breaks_of_their_comments() {
        let text = "Do a thing\nthat takes long.\n\nRules:\n* one\n  goes on\n* two";
        assert_eq!(
            unwrap(text),
            "Do a thing that takes long.\n\nRules:\n* one goes on\n* two"
        );
    }

    #[test]
    fn optional_fields_and_enums_become_plain() {
        let schema = serde_json::to_string_pretty(&input_schema::<Arguments>()).unwrap();
        expect![[r#"
            {
              "type": "object",
              "additionalProperties": false,
              "properties": {
                "count": {
                  "type": "integer",
                  "description": "A count.",
                  "minimum": 0
                },
                "choice": {
                  "description": "A choice. one: The first.",
                  "type": "string",
                  "enum": [
                    "two",
                    "one"
                  ]
                },
                "parts": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "properties": {
                      "name": {
                        "type": "string"
                      }
                    },
                    "additionalProperties": false,
                    "required": [
                      "name"
                    ]
                  },
                  "description": "Nested parts."
                }
              },
              "description": "Do a thing."
            }"#]]
        .assert_eq(&schema);
    }
}
