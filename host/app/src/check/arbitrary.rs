//! Generator of values that match a schema. No I/O.

use std::collections::BTreeMap;

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value};
use tollgate_components::catalog::ENVELOPE_ARGUMENT;

/// Maximum nesting of generated values, and maximum entries of an array.
const SIZE_LIMIT: usize = 32;

/// Extent of generated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Only required members.
    Required,
    /// All members.
    Everything,
}

impl Fill {
    pub(super) const ALL: [Fill; 2] = [Fill::Required, Fill::Everything];
}

/// Text values for arguments by name, such as ids from earlier replies.
#[derive(Debug, Clone)]
pub(super) struct Known(BTreeMap<String, String>);

impl Known {
    /// Creates the values that are known before any call.
    pub(super) fn new(workspace: &str) -> Known {
        Known(BTreeMap::from([("workspace".to_owned(), workspace.to_owned())]))
    }

    /// Value for arguments with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Collects ids from a reply: `task_id` as it is, and the `id` of a `task` or of an entry of `tasks` as a task id.
    pub(super) fn learn(&mut self, reply: &Value) {
        self.learn_from(reply, "", 0);
    }

    fn learn_from(&mut self, value: &Value, name: &str, depth: usize) {
        match value {
            Value::Object(members) if depth <= SIZE_LIMIT => {
                for (key, value) in members {
                    let key = match (key.as_str(), name) {
                        ("id", "") => "id".to_owned(),
                        ("id", name) => format!("{name}_id"),
                        (key, _) => key.to_owned(),
                    };
                    self.learn_from(value, &key, depth + 1);
                }
            }
            Value::Array(entries) if depth <= SIZE_LIMIT => {
                let one = name.strip_suffix('s').unwrap_or(name);
                entries
                    .iter()
                    .take(1)
                    .for_each(|entry| self.learn_from(entry, one, depth + 1));
            }
            Value::String(text) if name == "id" || name.ends_with("_id") => {
                self.0.entry(name.to_owned()).or_insert_with(|| text.clone());
            }
            _ => {}
        }
    }
}

/// Generator of values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) fill: Fill,
    pub(super) known: &'a Known,
}

impl Maker<'_> {
    /// Generates a value for a schema. Some schemas have requirements that cannot be met by guessing, so the value may
    /// not fit.
    pub(super) fn make(self, schema: &Value) -> Value {
        self.value(schema, "", 0, 0)
    }

    /// Generates the `nth` value of a list, under a name.
    fn value(self, schema: &Value, name: &str, nth: usize, depth: usize) -> Value {
        if let Some(value) = offered(schema, nth) {
            return value;
        }
        match kind(schema) {
            _ if depth > SIZE_LIMIT => Value::Null,
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" => integer(schema, nth),
            "number" => number(schema, nth),
            "boolean" => (self.fill == Fill::Everything).into(),
            "null" => Value::Null,
            _ => match self.known.0.get(name).filter(|_| nth == 0) {
                Some(known) => known.as_str().into(),
                None => text(schema, nth).into(),
            },
        }
    }

    fn object(self, schema: &Value, depth: usize) -> Value {
        let mut made = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            // The host fills the envelope's argument itself. A generated id would refer to no envelope.
            let is_wanted = self.fill == Fill::Everything && name != ENVELOPE_ARGUMENT;
            if is_wanted || is_required(name) {
                made.insert(name.clone(), self.value(property, name, 0, depth + 1));
            }
        }
        let others = schema.get("additionalProperties").unwrap_or(&Value::Null);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !made.contains_key(name) {
                made.insert(name.to_owned(), self.value(others, name, 0, depth + 1));
            }
        }
        let least = usize::from(self.fill == Fill::Everything && made.is_empty() && others.is_object());
        for nth in made.len()
            ..count(schema, "minProperties")
                .unwrap_or(0)
                .max(least)
                .min(SIZE_LIMIT)
        {
            made.insert(format!("key{nth}"), self.value(others, "", nth, depth + 1));
        }
        Value::Object(made)
    }

    fn array(self, schema: &Value, name: &str, depth: usize) -> Value {
        let wanted = usize::from(self.fill == Fill::Everything);
        let least = count(schema, "minItems").unwrap_or(0);
        let most = count(schema, "maxItems").unwrap_or(SIZE_LIMIT).min(SIZE_LIMIT);
        let items = schema.get("items").unwrap_or(&Value::Null);
        let entries = 0..wanted.max(least).min(most);
        entries
            .map(|nth| self.value(items, name, nth, depth + 1))
            .collect()
    }
}

/// Value that the schema itself offers.
fn offered(schema: &Value, nth: usize) -> Option<Value> {
    let list = |key: &str| {
        let values = schema.get(key)?.as_array()?;
        values.get(nth % values.len().max(1)).cloned()
    };
    let constant = schema.get("const").cloned();
    let offered = constant.or_else(|| list("enum")).or_else(|| list("examples"));
    offered.or_else(|| schema.get("default").filter(|_| nth == 0).cloned())
}

/// Type of a schema. If there are several, the first meaningful one.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    usize::try_from(schema.get(key)?.as_u64()?).ok()
}

fn text(schema: &Value, nth: usize) -> String {
    if let Some(text) = schema.get("format").and_then(Value::as_str).and_then(formatted) {
        return text.to_owned();
    }
    if let Some(text) = schema.get("pattern").and_then(Value::as_str).and_then(matching) {
        return text;
    }
    let mut text = match nth {
        0 => "x".to_owned(),
        nth => format!("x{nth}"),
    };
    let least = count(schema, "minLength").unwrap_or(0).min(1 << 20);
    text.extend(std::iter::repeat_n('x', least.saturating_sub(text.len())));
    text.truncate(count(schema, "maxLength").unwrap_or(usize::MAX));
    text
}

fn formatted(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-01T00:00:00Z",
        "date" => "2026-01-01",
        "time" => "00:00:00Z",
        "duration" => "P1D",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.org/",
        "email" | "idn-email" => "ada@example.org",
        "hostname" | "idn-hostname" => "example.org",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        _ => return None,
    })
}

/// A short text that matches a pattern.
fn matching(pattern: &str) -> Option<String> {
    let mut text = String::new();
    write(&regex_syntax::parse(pattern).ok()?, &mut text)?;
    Some(text)
}

fn write(pattern: &Hir, text: &mut String) -> Option<()> {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(one_of(class)?),
        HirKind::Repetition(repeated) => {
            for _ in 0..repeated.min.min(1 << 10) {
                write(&repeated.sub, text)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, text))?,
        HirKind::Alternation(parts) => write(parts.first()?, text)?,
    }
    Some(())
}

/// A character of a class, preferably a plain one.
fn one_of(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            let ranges = class.iter();
            ranges
                .map(|range| (char::from(range.start()), char::from(range.end())))
                .collect()
        }
    };
    let has = |c: char| ranges.iter().any(|(start, end)| (*start..=*end).contains(&c));
    let plain = ('a'..='z').chain('A'..='Z').chain('0'..='9').find(|c| has(*c));
    plain.or_else(|| ranges.first().map(|(start, _)| *start))
}

fn integer(schema: &Value, nth: usize) -> Value {
    let bound = |key: &str| schema.get(key).and_then(whole);
    let above = bound("exclusiveMinimum").map(|bound| bound.saturating_add(1));
    let below = bound("exclusiveMaximum").map(|bound| bound.saturating_sub(1));
    let least = bound("minimum").max(above);
    let most = match (bound("maximum"), below) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let step = bound("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    let start = least.unwrap_or_else(|| most.map_or(1, |most| most.min(1)));
    let nth = i64::try_from(nth).unwrap_or(i64::MAX).saturating_mul(step);
    let first = match start.rem_euclid(step) {
        0 => start,
        over => start.saturating_add(step - over),
    };
    first.saturating_add(nth).into()
}

/// A bound as a whole number, rounded towards zero.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a cast to an integer ends at its own bounds"
)]
fn whole(bound: &Value) -> Option<i64> {
    bound
        .as_i64()
        .or_else(|| bound.as_f64().map(|bound| bound as i64))
}

fn number(schema: &Value, nth: usize) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    let nth = f64::from(u32::try_from(nth).unwrap_or(u32::MAX));
    let made = match (least, most, bound("multipleOf").filter(|step| *step > 0.0)) {
        (least, _, Some(step)) => ((least.unwrap_or(step) / step).floor() + 1.0 + nth) * step,
        (Some(least), Some(most), None) => least + (most - least) / (2.0 + nth),
        (Some(least), None, None) => least + 1.0 + nth,
        (None, Some(most), None) => most - 1.0 - nth,
        (None, None, None) => 1.5 + nth,
    };
    Number::from_f64(made).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;
    use serde_json::json;

    use super::*;

    /// Each schema with the value generated for it, which must fit.
    fn made(properties: &Value, required: &[&str]) -> String {
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let mut told = String::new();
        for fill in Fill::ALL {
            let known = &Known::new("check");
            let value = Maker { fill, known }.make(&schema);
            let problems: Vec<String> = validator.iter_errors(&value).map(|err| err.to_string()).collect();
            let _ = writeln!(told, "{}", format!("{value} {}", problems.join("; ")).trim_end());
        }
        told
    }

    #[test]
    fn what_is_made_up_fits() {
        let texts = json!({
            "any": {"type": "string"}, "long": {"type": "string", "minLength": 5}, "none": {"type": "string", "maxLength": 0},
            "at": {"type": "string", "format": "date-time"}, "id": {"type": "string", "format": "uuid"},
            "unit": {"type": "string", "pattern": "^[ST][0-9]{2,3}(-(?:a|b))?$"}, "hash": {"type": "string", "pattern": "^[0-9a-f]{8}$"},
            "word": {"type": "string", "enum": ["b", "a"]}, "usual": {"type": "string", "default": "d"},
            "such": {"type": "string", "examples": ["e"]}, "workspace": {"type": "string"}, "envelope_id": {"type": "string"}
        });
        let numbers = json!({
            "any": {"type": "integer"}, "least": {"type": "integer", "minimum": 7}, "above": {"type": "integer", "exclusiveMinimum": 7},
            "most": {"type": "integer", "maximum": -3}, "step": {"type": "integer", "minimum": 11, "multipleOf": 5},
            "real": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "half": {"type": "number", "multipleOf": 0.5}, "yes": {"type": "boolean"}
        });
        let nested = json!({
            "some": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "string"}},
            "kinds": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"enum": ["a", "b"]}},
            "none": {"type": "array", "maxItems": 0, "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["a"]}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "two": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "string"}}
        });
        let told =
            made(&texts, &["word"]) + &made(&numbers, &["any"]) + &made(&nested, &["some", "list", "two"]);
        expect![[r#"
            {"word":"b"}
            {"any":"x","long":"xxxxx","none":"","at":"2026-01-01T00:00:00Z","id":"00000000-0000-4000-8000-000000000000","unit":"S00","hash":"aaaaaaaa","word":"b","usual":"d","such":"e","workspace":"check"}
            {"any":1}
            {"any":1,"least":7,"above":8,"most":-3,"step":15,"real":0.5,"half":1.0,"yes":true}
            {"some":["x","x1"],"list":[],"two":{"key0":"x","key1":"x1"}}
            {"some":["x","x1"],"kinds":["a","b"],"none":[],"list":[{"a":1,"b":null}],"map":{"key0":1},"two":{"key0":"x","key1":"x1"}}
        "#]].assert_eq(&told);
    }

    #[test]
    fn ids_are_learnt_from_replies() {
        let mut known = Known::new("check");
        known.learn(&json!({
            "id": "plan_1", "task": {"id": "tsk_1", "attempt_id": "att_1"}, "notes": [{"id": "note_1"}, {"id": "note_2"}],
            "text": "x"
        }));
        known.learn(&json!({"task_id": "tsk_2"}));
        let told: Vec<String> = known
            .0
            .iter()
            .map(|(name, text)| format!("{name} {text}"))
            .collect();
        assert_eq!(
            told,
            [
                "attempt_id att_1",
                "id plan_1",
                "note_id note_1",
                "task_id tsk_1",
                "workspace check"
            ]
        );
    }

    #[test]
    fn what_nobody_can_guess_ends_all_the_same() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
        }
        for schema in [
            deep,
            json!({"type": "array", "minItems": 1_000_000_000, "items": {"type": "string"}}),
            json!({"type": "integer", "minimum": i64::MAX, "multipleOf": 7}),
            json!({"type": "string", "pattern": "(?=a)b"}),
            json!({"enum": []}),
            json!(true),
        ] {
            let fill = Fill::Everything;
            let known = &Known::new("check");
            Maker { fill, known }.make(&schema);
        }
    }
}
