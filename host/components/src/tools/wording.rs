//! Strings in schemas. Agents and people read the descriptions, which are sanitized. Programs compare all other
//! strings, which are refused if they contain hidden characters, because removing those would make another name.

use serde_json::{Map, Value};
use tollgate_core::text;

/// Keywords whose text is for reading and is never compared.
const PROSE_KEYWORDS: &[&str] = &["$comment", "description", "title"];
/// Longest one-line text, in bytes.
pub(super) const MAX_LINE: usize = 200;
/// Most problems that are reported for one schema.
const MAX_PROBLEMS: usize = 8;

/// Text of a component on one line.
pub(crate) fn line(said: &str) -> String {
    text::clean(text::cut(said, MAX_LINE))
}

/// Sanitizes the readable text in a schema. The error lists other strings with invisible characters.
pub(crate) fn clean_schema(schema: &mut Map<String, Value>) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    clean_members(schema, &mut String::new(), &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn clean_members(members: &mut Map<String, Value>, place: &mut String, problems: &mut Vec<String>) {
    for (name, value) in members {
        let length = place.len();
        place.push('/');
        place.push_str(name);
        if text::hides(name) {
            tell("the name", place, problems);
        }
        match value {
            Value::String(said) if PROSE_KEYWORDS.contains(&name.as_str()) => *said = text::clean_lines(said),
            value => clean_value(value, place, problems),
        }
        place.truncate(length);
    }
}

fn clean_value(value: &mut Value, place: &mut String, problems: &mut Vec<String>) {
    match value {
        Value::Object(members) => clean_members(members, place, problems),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| clean_value(item, place, problems)),
        Value::String(said) if text::hides(said) => tell("the value", place, problems),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn tell(what: &str, place: &str, problems: &mut Vec<String>) {
    if problems.len() < MAX_PROBLEMS {
        let place = text::clean(text::cut(place, 200));
        problems.push(format!(
            "{what} at {place} contains invisible characters; use only visible characters in names and values of schemas"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(schema: Value) -> Result<Value, Vec<String>> {
        let Value::Object(mut schema) = schema else {
            panic!("{schema}")
        };
        clean_schema(&mut schema).map(|()| Value::Object(schema))
    }

    #[test]
    fn descriptions_are_cleaned_at_any_depth() {
        let said = "a\u{1b}[31m\u{202e}\u{e0041}\nb\u{61c}";
        let schema = |said: &str| {
            json!({"title": said, "properties": {"a": {"description": said, "items": {"anyOf": [{"$comment": said}]}}},
                "$defs": {"b": {"title": said, "patternProperties": {"^x": {"description": said}}}}})
        };
        assert_eq!(cleaned(schema(said)).unwrap(), schema("a[31m\nb"));
    }

    #[test]
    fn names_and_values_that_hide_something_are_refused_wherever_they_are() {
        for hidden in [
            "a\u{200b}",
            "\u{202e}a",
            "a\u{9b}",
            "\u{e0061}",
            "a\u{7f}",
            "a\u{fe0f}",
        ] {
            for schema in [
                json!({"properties": {hidden: {"type": "string"}}}),
                json!({"properties": {"a": {"enum": ["b", hidden]}}}),
                json!({"properties": {"a": {"const": {"b": [hidden]}}}}),
                json!({"properties": {"a": {"default": hidden}}}),
                json!({"properties": {"a": {"examples": [hidden]}}}),
                json!({"properties": {"a": {"pattern": hidden}}}),
                json!({"required": [hidden]}),
                json!({"x-resources": [{"path": hidden, "name": "b"}]}),
                json!({"$defs": {hidden: {}}}),
                json!({hidden: 1}),
            ] {
                let problems = cleaned(schema.clone()).unwrap_err();
                assert_eq!(problems.len(), 1, "{schema}: {problems:?}");
                assert!(!text::hides(&problems[0]), "{problems:?}");
            }
        }
        let plain = json!({"properties": {"a": {"enum": ["✔️", "日本", "line\n"], "default": "\t", "pattern": "^é$"}}});
        assert_eq!(cleaned(plain.clone()).unwrap(), plain);
    }
}
