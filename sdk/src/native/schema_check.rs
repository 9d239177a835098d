//! Check of a call's arguments against the tool's schema, as the gate does before a component runs. The check supports
//! the keywords that schemas of this SDK use. Patterns are left to the host, because checking them needs a regular
//! expression engine.

impl super::Session {
    /// Refuses arguments that do not fit the schema of the tool, as the gate does before running a tool. Patterns, and
    /// schemas that use all of JSON Schema, are left to the host.
    ///
    /// ```
    /// # use tollgate_sdk::{Cx, Pack, ToolError, native::Session, tools};
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # pub struct Listed {}
    /// tollgate_sdk::tool! {
    ///     /// List notes.
    ///     read "List notes" fn notes_list(
    ///         _cx: &Cx<'_>,
    ///         /// Maximum number of notes, 1 to 100.
    ///         #[schemars(range(min = 1, max = 100))]
    ///         limit: u32,
    ///     ) -> Result<Listed, ToolError> {
    ///         let _ = limit;
    ///         Ok(Listed {})
    ///     }
    /// }
    /// const PACK: Pack = Pack { name: "notes", tools: tools![notes_list], ..Pack::EMPTY };
    ///
    /// let session = Session::new(&PACK).checked();
    /// let refusal = session.call("notes_list", r#"{"limit": 0}"#).unwrap_err();
    /// assert_eq!(refusal.code, "INVALID_ARGUMENTS");
    /// assert_eq!(refusal.blockers[0].message, "0 is less than the minimum of 1");
    /// ```
    #[must_use]
    pub fn checked(mut self) -> super::Session {
        self.is_checked = true;
        self
    }
}

use serde_json::{Map, Value};

use crate::{Blocker, ToolError};

/// Keyword for another form that an argument may have besides the listed one.
const OTHER_FORM: &str = "x-accepts";

/// Refuses arguments that the gate would refuse, with the gate's messages and every problem at once.
pub(super) fn check(tool: &str, schema: &Value, arguments: &str) -> Result<(), ToolError> {
    // The tool itself refuses text that is not a JSON object.
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(arguments) else {
        return Ok(());
    };
    let required = required(schema);
    arguments.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
    let mut problems = Vec::new();
    object(schema, &arguments, "", &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ToolError::new(
        "INVALID_ARGUMENTS",
        "the arguments do not match the tool's input schema",
    )
    .context("tool", tool)
    .remediation("Correct every field named in blockers and call again.")
    .blockers(problems))
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn value(schema: &Value, given: &Value, path: &str, problems: &mut Vec<Blocker>) {
    if schema.get(OTHER_FORM).is_some_and(|other| fits(other, given)) {
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(given)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return problems.push(problem(
            path,
            format!("{given} is not one of {}", allowed.join(", ")),
        ));
    }
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && !is_a(kind, given)
    {
        return problems.push(problem(path, format!("{given} is not of type {kind:?}")));
    }
    match given {
        Value::String(text) => {
            let length = text.chars().count();
            size(schema, given, length, &TEXT, path, problems);
        }
        Value::Number(number) => bounds(schema, number.as_f64().unwrap_or_default(), path, problems),
        Value::Array(items) => {
            size(schema, given, items.len(), &LIST, path, problems);
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            for (nth, item) in items.iter().enumerate() {
                value(of_items, item, &format!("{path}.{nth}"), problems);
            }
        }
        Value::Object(members) => object(schema, members, path, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

fn fits(schema: &Value, given: &Value) -> bool {
    let mut problems = Vec::new();
    value(schema, given, "", &mut problems);
    problems.is_empty()
}

fn problem(path: &str, message: String) -> Blocker {
    Blocker::new("INVALID_FIELD", message).field(path)
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

/// Keywords for the minimum and maximum size, and the message if a size is out of bounds.
type Sizes = [(&'static str, &'static str); 2];
const TEXT: (Sizes, &str) = (
    [("minLength", "is shorter than"), ("maxLength", "is longer than")],
    "character",
);
const LIST: (Sizes, &str) = (
    [("minItems", "has less than"), ("maxItems", "has more than")],
    "item",
);

fn size(
    schema: &Value,
    given: &Value,
    size: usize,
    (rules, unit): &(Sizes, &str),
    path: &str,
    problems: &mut Vec<Blocker>,
) {
    let breaches: [fn(usize, usize) -> bool; 2] = [|size, bound| size < bound, |size, bound| size > bound];
    for ((keyword, words), is_breach) in rules.iter().zip(breaches) {
        let bound = schema.get(keyword).and_then(Value::as_u64);
        let bound = bound.and_then(|bound| usize::try_from(bound).ok());
        if let Some(bound) = bound.filter(|bound| is_breach(size, *bound)) {
            let plural = if bound == 1 { "" } else { "s" };
            problems.push(problem(path, format!("{given} {words} {bound} {unit}{plural}")));
        }
    }
}

/// A keyword, the numbers that violate it, and the message for a violation.
type Bound = (&'static str, fn(f64, f64) -> bool, &'static str);
const BOUNDS: [Bound; 4] = [
    ("minimum", |number, bound| number < bound, "less than the minimum"),
    (
        "maximum",
        |number, bound| number > bound,
        "greater than the maximum",
    ),
    (
        "exclusiveMinimum",
        |number, bound| number <= bound,
        "less than or equal to the minimum",
    ),
    (
        "exclusiveMaximum",
        |number, bound| number >= bound,
        "greater than or equal to the maximum",
    ),
];

fn bounds(schema: &Value, number: f64, path: &str, problems: &mut Vec<Blocker>) {
    for (keyword, is_breach, words) in BOUNDS {
        let bound = schema.get(keyword).and_then(Value::as_f64);
        if let Some(bound) = bound.filter(|bound| is_breach(number, *bound)) {
            problems.push(problem(path, format!("{number} is {words} of {bound}")));
        }
    }
}

fn object(schema: &Value, members: &Map<String, Value>, path: &str, problems: &mut Vec<Blocker>) {
    let below = |name: &str| match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    };
    for name in required(schema) {
        if !members.contains_key(name) {
            problems.push(problem(&below(name), format!("{name} is required")));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (name, member) in members {
        let of_member = known.and_then(|known| known.get(name)).or(others);
        match of_member {
            Some(Value::Bool(false)) => problems.push(problem(
                &below(name),
                format!("{name} is not an argument of this tool"),
            )),
            Some(schema) => value(schema, member, &below(name), problems),
            None => {}
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
                "word": {"type": "string", "enum": ["open"], "x-accepts": {"type": "string"}},
                "inner": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false},
            },
            "required": ["title"],
            "additionalProperties": false,
        });
        for good in [
            r#"{"title": "abc", "limit": 100.0, "tags": ["a"], "form": "x", "word": "shut"}"#,
            r#"{"title": "äöü", "limit": null, "form": {}, "inner": {"a": "x"}}"#,
        ] {
            assert_eq!(check("note_add", &schema, good), Ok(()), "{good}");
        }
        let told = |arguments: &str| {
            let refusal = check("note_add", &schema, arguments).unwrap_err();
            let blockers = refusal.blockers.into_iter();
            blockers
                .map(|blocker| format!("{}: {}", blocker.field.unwrap_or_default(), blocker.message))
                .collect::<Vec<_>>()
        };
        let mut wrong = told(
            r#"{"title": "", "limit": 0, "tags": ["a", "c"], "form": 1, "x": 1, "inner": {"a": null, "b": 1}}"#,
        );
        wrong.sort();
        let expected = [
            "form: 1 is not of type \"object\"",
            "inner.a: null is not of type \"string\"",
            "inner.b: b is not an argument of this tool",
            "limit: 0 is less than the minimum of 1",
            "tags.1: \"c\" is not one of \"a\", \"b\"",
            "tags: [\"a\",\"c\"] has more than 1 item",
            "title: \"\" is shorter than 1 character",
            "x: x is not an argument of this tool",
        ];
        assert_eq!(wrong, expected);
        assert_eq!(told("{}"), ["title: title is required"]);
        assert_eq!(
            told(r#"{"title": "abcd"}"#),
            ["title: \"abcd\" is longer than 3 characters"]
        );
    }
}
