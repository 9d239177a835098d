//! Rules for listed tools.
//!
//! Some rules must hold, because otherwise a client refuses the whole list. The host enforces them when it loads a
//! component. Other rules help readers of the list. Tests of packs and `tollgate packs check` report both kinds.

mod words;

use serde_json::{Map, Value};

use self::words::{OF_FIELD, OF_PARAMETER, OF_TOOL, is_silent, is_vague};
use crate::Effect;

/// Longest name of a tool and longest title, in bytes.
const LONGEST_NAME: usize = 40;
/// Longest alias of a tool, which no client lists.
const LONGEST_ALIAS: usize = 64;
/// Longest description, in bytes.
const LONGEST_DESCRIPTION: usize = 1 << 10;
/// Largest schema, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// Deepest nesting of objects and arrays in a schema.
const MAX_DEPTH: usize = 5;
/// Deepest nesting of a schema that uses all of JSON Schema.
const MAX_DEPTH_FULL: usize = 24;
/// Dialect that a schema names in order to use all of JSON Schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords for which some client refuses the whole list.
const BANNED_KEYWORDS: [&str; 7] = ["$ref", "$schema", "$defs", "oneOf", "anyOf", "allOf", "not"];
/// Keywords with schemas that clients do not show, so that nobody reads the descriptions in there.
const UNREAD_KEYWORDS: [&str; 16] = [
    "definitions",
    "patternProperties",
    "prefixItems",
    "additionalItems",
    "contains",
    "propertyNames",
    "dependencies",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "$dynamicRef",
    "$recursiveRef",
    "if",
    "then",
    "else",
];

/// A tool as clients see it.
#[derive(Debug, Clone)]
pub struct Surface<'a> {
    /// Name of the tool, followed by its aliases.
    pub names: Vec<&'a str>,
    /// Title for people.
    pub title: &'a str,
    /// Description for agents.
    pub description: &'a str,
    /// Effect of the tool.
    pub effect: Effect,
    /// True if the tool may delete or overwrite data.
    pub destructive: bool,
    /// JSON Schema of the arguments.
    pub input: &'a Map<String, Value>,
    /// JSON Schema of the reply.
    pub output: &'a Map<String, Value>,
}

/// Faults of a tool's surface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Faults for which some client refuses the list.
    pub refused: Vec<String>,
    /// Faults that make the tool hard to understand.
    pub unclear: Vec<String>,
    /// Descriptions of the tool, its parameters and the fields of its reply that are too short to explain them, only
    /// repeat their names, or are placeholders.
    pub vague: Vec<String>,
}

/// Returns whether a schema claims all of JSON Schema 2020-12: its `$schema` names that dialect.
///
/// Some clients refuse the whole list because of such a schema. A host therefore lists the tool only if the operator sets
/// `full_schemas` for its pack.
///
/// ```
/// # use tollgate_sdk::surface::is_full;
/// let schema = serde_json::json!({
///     "$schema": "https://json-schema.org/draft/2020-12/schema",
///     "type": "object",
///     "anyOf": [{"required": ["phone"]}, {"required": ["email"]}],
/// });
/// assert!(is_full(schema.as_object().unwrap()));
/// ```
#[must_use]
pub fn is_full(schema: &Map<String, Value>) -> bool {
    schema.get("$schema").and_then(Value::as_str) == Some(DIALECT)
}

/// Finds every fault of a tool's surface.
#[must_use]
pub fn faults(tool: &Surface<'_>) -> Faults {
    let mut lint = Lint::new(true);
    lint.read_tool(tool);
    lint.faults
}

/// Finds only the faults for which some client refuses the list. It reads no descriptions, and is quick enough for each
/// start of a host.
#[must_use]
pub fn refused(tool: &Surface<'_>) -> Vec<String> {
    let mut lint = Lint::new(false);
    lint.read_tool(tool);
    lint.faults.refused
}

fn is_name(name: &str, longest: usize) -> bool {
    name.len() <= longest
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

impl Faults {
    /// All faults, the gravest first.
    pub fn into_all(self) -> impl Iterator<Item = String> {
        self.refused.into_iter().chain(self.unclear).chain(self.vague)
    }
}

/// A walk over a tool's surface.
struct Lint {
    faults: Faults,
    /// True if descriptions are read too.
    is_thorough: bool,
}

impl Lint {
    fn new(is_thorough: bool) -> Self {
        Self {
            faults: Faults::default(),
            is_thorough,
        }
    }

    fn refuse(&mut self, fault: String) {
        self.faults.refused.push(fault);
    }

    fn unclear(&mut self, fault: String) {
        self.faults.unclear.push(fault);
    }

    fn vague(&mut self, fault: String) {
        self.faults.vague.push(fault);
    }

    fn read_tool(&mut self, tool: &Surface<'_>) {
        let longest = std::iter::once(LONGEST_NAME).chain(std::iter::repeat(LONGEST_ALIAS));
        for (name, longest) in tool.names.iter().zip(longest) {
            if !is_name(name, longest) {
                let start = &name[..name.floor_char_boundary(80)];
                let more = longest - 1;
                self.refuse(format!(
                    "the name {start:?} does not match ^[a-z][a-z0-9_]{{0,{more}}}$"
                ));
            }
        }
        if tool.title.is_empty() {
            self.refuse("the tool has no title".to_owned());
        } else if tool.title.len() > LONGEST_NAME {
            self.unclear(format!(
                "the title {:?} is longer than {LONGEST_NAME} bytes",
                tool.title
            ));
        }
        let name = tool.names.first().copied().unwrap_or_default();
        if tool.description.is_empty() {
            self.refuse("the tool has no description".to_owned());
        } else if !self.is_thorough {
            // Only `faults` reads it.
        } else if is_silent(tool.description) {
            // No client refuses signs alone, so a host must still load them.
            self.unclear("the tool has no description".to_owned());
        } else if is_vague(name, tool.description, OF_TOOL) {
            let start = &tool.description[..tool.description.floor_char_boundary(80)];
            self.vague(format!("the tool has a vague description: {start:?}"));
        }
        let length = tool.description.len();
        if length > LONGEST_DESCRIPTION {
            self.refuse(format!(
                "the description has {length} bytes; at most {LONGEST_DESCRIPTION} are allowed"
            ));
        }
        if tool.effect == Effect::Read && tool.destructive {
            self.unclear("the tool has the effect read and is marked as destructive".to_owned());
        }
        if tool.input.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.unclear(
                "the input schema accepts unknown arguments; set additionalProperties to false".to_owned(),
            );
        }
        for (side, schema) in [("input", tool.input), ("output", tool.output)] {
            let size = serde_json::to_string(schema).map_or(0, |text| text.len());
            if size > MAX_SCHEMA_BYTES {
                self.refuse(format!(
                    "the {side} schema has {size} bytes; at most {MAX_SCHEMA_BYTES} are allowed"
                ));
            }
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                self.refuse(format!("the {side} schema is not of type object"));
            }
            if side == "input" && is_full(schema) {
                self.unclear(
                    "the input schema uses all of JSON Schema 2020-12, which some clients refuse".to_owned(),
                );
                schema.values().for_each(|value| self.walk_full(value, 1));
                if self.is_thorough {
                    self.read_full(schema, side, 0);
                }
            } else {
                self.walk(schema, side, 0);
            }
        }
    }

    /// Finds faults that make a full schema unsafe for clients: references to other documents, and endless nesting.
    fn walk_full(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH_FULL {
            return self.refuse(format!("input is nested deeper than {MAX_DEPTH_FULL}"));
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("$ref" | "$dynamicRef", Value::String(to)) if !to.starts_with('#') => {
                            let to = &to[..to.floor_char_boundary(80)];
                            self.refuse(format!("input refers to another document, {to:?}"));
                        }
                        _ => self.walk_full(member, depth + 1),
                    }
                }
            }
            Value::Array(entries) => entries.iter().for_each(|entry| self.walk_full(entry, depth + 1)),
            _ => {}
        }
    }

    /// Finds vague descriptions in a full schema, wherever it describes a property.
    fn read_full(&mut self, schema: &Map<String, Value>, path: &str, depth: usize) {
        if depth > MAX_DEPTH_FULL {
            return;
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let path = format!("{path}.{name}");
                        let Value::Object(property) = property else {
                            continue;
                        };
                        let described = property.get("description").and_then(Value::as_str);
                        if let Some(text) = described {
                            self.read(name, text, &path);
                        }
                        self.read_full(property, &path, depth + 1);
                    }
                }
                // Names there are not parameters, and values there are no schemas.
                ("$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                    for schema in schemas.values().filter_map(Value::as_object) {
                        self.read_full(schema, path, depth + 1);
                    }
                }
                ("const" | "default" | "enum" | "examples", _) => {}
                (_, Value::Object(schema)) => self.read_full(schema, path, depth + 1),
                (_, Value::Array(schemas)) => {
                    for schema in schemas.iter().filter_map(Value::as_object) {
                        self.read_full(schema, path, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// Finds faults of a property's description.
    fn read(&mut self, name: &str, description: &str, path: &str) {
        if !self.is_thorough {
            return;
        }
        let least = match path.starts_with("input") {
            true => OF_PARAMETER,
            false => OF_FIELD,
        };
        if is_silent(description) {
            self.unclear(format!("{path} has no description"));
        } else if is_vague(name, description, least) {
            self.vague(format!("{path} has a vague description: {description:?}"));
        }
    }

    fn walk(&mut self, schema: &Map<String, Value>, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.refuse(format!("{path} is nested deeper than {MAX_DEPTH}"));
        }
        // A schema has few keywords, so comparing them is quicker than looking up each keyword of the lists.
        let uses = |keyword: &str| schema.keys().any(|used| used == keyword);
        for banned in BANNED_KEYWORDS.iter().filter(|keyword| uses(keyword)) {
            self.refuse(format!("{path} uses {banned}"));
        }
        for unread in UNREAD_KEYWORDS.iter().filter(|keyword| uses(keyword)) {
            self.unclear(format!("{path} uses {unread}, which some clients do not read"));
        }
        if uses("const") {
            self.unclear(format!("{path} uses const"));
        }
        match schema.get("type") {
            Some(Value::String(kind)) if kind == "array" => match schema.get("items") {
                Some(Value::Object(items)) => self.walk(items, &format!("{path}[]"), depth + 1),
                _ => self.refuse(format!("{path} is an array without items")),
            },
            Some(Value::String(_)) => {
                if schema.contains_key("items") {
                    self.unclear(format!("{path} has items and is not an array"));
                }
            }
            Some(_) => self.refuse(format!("{path} has several types")),
            None => self.refuse(format!("{path} has no type")),
        }
        let none = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if name.as_str().is_none_or(|name| !properties.contains_key(name)) {
                self.unclear(format!("{path} requires {name}, which is not a property"));
            }
        }
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            let Value::Object(property) = property else {
                self.refuse(format!("{path} has no type"));
                continue;
            };
            let described = property.get("description").and_then(Value::as_str);
            self.read(name, described.unwrap_or_default(), &path);
            self.walk(property, &path, depth + 1);
        }
        // An empty schema is the same as true.
        match schema.get("additionalProperties") {
            Some(Value::Object(others)) if !others.is_empty() => {
                let before = self.faults.refused.len();
                self.walk(others, &format!("{path}.*"), depth + 1);
                // A host must still load packs of versions that did not look there.
                let found = self.faults.refused.split_off(before);
                self.faults.unclear.extend(found);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// A surface whose only faults are those of its schemas.
    fn fine_but_for_schemas<'a>(
        input: &'a Map<String, Value>,
        output: &'a Map<String, Value>,
    ) -> Surface<'a> {
        Surface {
            names: vec!["fine_name"],
            title: "A title",
            description: "Call somebody on the phone.",
            effect: Effect::Read,
            destructive: false,
            input,
            output,
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        let input = object(
            json!({"type": "object", "anyOf": [], "required": ["a", "e"], "properties": {
                "a": {"type": ["string", "null"]}, "b": {"type": "array"}, "c": true, "d": {"type": "string", "const": "d"}
            }}),
        );
        let mut deep = json!({"type": "integer"});
        for _ in 0..6 {
            deep = json!({"type": "array", "items": deep, "description": "Rows."});
        }
        let output = object(json!({"type": "array", "items": {"$ref": "#/x"}, "properties": {"rows": deep}}));
        let description = "Call somebody. ".repeat(200);
        let surface = Surface {
            names: vec!["Bad Name", "fine_name"],
            title: "",
            description: &description,
            effect: Effect::Read,
            destructive: true,
            input: &input,
            output: &output,
        };
        let told = faults(&surface);
        assert_eq!(refused(&surface), told.refused);
        let told = [
            told.refused.join("\n"),
            told.unclear.join("\n"),
            told.vague.join("\n"),
        ]
        .join("\n--\n");
        expect![[r#"
            the name "Bad Name" does not match ^[a-z][a-z0-9_]{0,39}$
            the tool has no title
            the description has 3000 bytes; at most 1024 are allowed
            input uses anyOf
            input.a has several types
            input.b is an array without items
            input.c has no type
            the output schema is not of type object
            output[] uses $ref
            output[] has no type
            output.rows[][][][][] is nested deeper than 5
            --
            the tool has the effect read and is marked as destructive
            the input schema accepts unknown arguments; set additionalProperties to false
            input requires "e", which is not a property
            input.a has no description
            input.b has no description
            input.d has no description
            input.d uses const
            --
            output.rows has a vague description: "Rows.""#]]
        .assert_eq(&told);
    }

    #[test]
    fn a_schema_that_names_its_dialect_uses_all_of_it_within_one_document() {
        let told = |schema: Value| {
            let input = object(schema);
            let output = object(json!({"type": "object", "properties": {}}));
            let told = faults(&fine_but_for_schemas(&input, &output));
            (told.refused, told.unclear)
        };
        let mut schema = json!({"type": "object", "additionalProperties": false, "allOf": [{"required": ["a"]}],
            "$defs": {"a": {"$anchor": "a", "type": ["string", "null"]}}, "properties": {"a": {"$ref": "#a"}}});
        assert_eq!(
            told(schema.clone()).0,
            [
                "input uses $defs",
                "input uses allOf",
                "input.a uses $ref",
                "input.a has no type"
            ]
        );
        schema["$schema"] = DIALECT.into();
        let note = "the input schema uses all of JSON Schema 2020-12, which some clients refuse".to_owned();
        assert_eq!(told(schema.clone()), (Vec::new(), vec![note]));
        schema["properties"]["a"]["$ref"] = "https://example.org/a".into();
        let mut deep = json!({});
        for _ in 0..30 {
            deep = json!([deep]);
        }
        schema["not"] = deep;
        assert_eq!(
            told(schema).0,
            [
                r#"input refers to another document, "https://example.org/a""#,
                "input is nested deeper than 24"
            ]
        );
    }

    #[test]
    fn parameters_say_more_than_their_names() {
        let property = |description: &str| json!({"type": "string", "description": description});
        let input = object(
            json!({"type": "object", "additionalProperties": false, "properties": {
                "job_id": property("The job."),
                "expected_configuration_revision": property("The expected configuration revision."),
                "path": property("Path of the file, for example src/lib.rs."),
                "rows": {"type": "array", "description": "Rows to add to the table, in order.", "items": {
                    "type": "object", "properties": {"name": property("Name.")}
                }}
            }}),
        );
        let output = object(json!({"type": "object", "properties": {"job": property("The job.")}}));
        let found = faults(&fine_but_for_schemas(&input, &output));
        assert_eq!((found.refused, found.unclear), (Vec::new(), Vec::new()));
        expect![[r#"
            input.job_id has a vague description: "The job."
            input.expected_configuration_revision has a vague description: "The expected configuration revision."
            input.rows[].name has a vague description: "Name."
            output.job has a vague description: "The job.""#]]
        .assert_eq(&found.vague.join("\n"));
    }

    #[test]
    fn the_table_of_descriptions_holds() {
        let table: Value = serde_json::from_str(include_str!("../tests/descriptions.json")).unwrap();
        let empty = object(json!({"type": "object", "additionalProperties": false}));
        for case in table["descriptions"].as_array().unwrap() {
            let [kind, name, text, expected] = [0, 1, 2, 3].map(|at| case[at].as_str().unwrap());
            let described = object(
                json!({"type": "object", "additionalProperties": false, "properties": {
                    name: {"type": "string", "description": text}
                }}),
            );
            let mut surface = fine_but_for_schemas(&empty, &empty);
            match kind {
                "parameter" => surface.input = &described,
                "field" => surface.output = &described,
                _ => {
                    surface.names = vec![name];
                    surface.description = text;
                }
            }
            let found: Vec<String> = faults(&surface).into_all().collect();
            let told = match found.join("\n") {
                told if told.is_empty() => "fine",
                told if told.contains("has a vague description: ") => "vague",
                told if told.contains("has no description") => "none",
                _ => "other",
            };
            assert_eq!(
                (told, found.len()),
                (expected, usize::from(expected != "fine")),
                "{case}: {found:?}"
            );
        }
        for case in table["schemas"].as_array().unwrap() {
            let mut property = json!({"type": "object", "description": "Rows to add to the table, by key."});
            for (keyword, value) in case[0].as_object().unwrap() {
                property[keyword] = value.clone();
            }
            let input = object(
                json!({"type": "object", "additionalProperties": false, "properties": {"a": property}}),
            );
            let found = faults(&fine_but_for_schemas(&input, &empty));
            let found = found
                .into_all()
                .map(|fault| fault.split(": ").next().unwrap().to_owned());
            assert_eq!(json!(found.collect::<Vec<_>>()), case[1], "{case}");
        }
    }

    #[test]
    fn a_schema_that_uses_all_of_json_schema_explains_its_parameters() {
        let vague = json!({"properties": {"a": {"type": "string", "description": "The a."}}});
        let input = object(
            json!({"$schema": DIALECT, "type": "object", "additionalProperties": false,
            "properties": {"b": {"items": vague}}, "anyOf": [vague], "then": vague, "$defs": {"c": vague},
            "examples": [vague]}),
        );
        let output = object(json!({"type": "object"}));
        let mut found = faults(&fine_but_for_schemas(&input, &output)).vague;
        found.sort();
        let told = "input.a has a vague description: \"The a.\"";
        assert_eq!(
            found,
            [told, told, told, "input.b.a has a vague description: \"The a.\""]
        );
    }
}
