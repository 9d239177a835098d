//! Parsing of a tool's arguments. Refuses unknown keys, which serde does not do for flattened structs.
//!
//! `#[serde(flatten)]` and `#[serde(deny_unknown_fields)]` cannot be combined. A struct with a flattened block of
//! shared arguments therefore has neither the attribute nor `additionalProperties: false`. This module adds both.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::schema;

/// Schema of a tool's arguments, closed even if parts of the struct are flattened.
pub(crate) fn schema<T: DeserializeOwned + JsonSchema>() -> Value {
    let mut schema = schema::input_schema::<T>();
    if let Value::Object(object) = &mut schema
        && is_flattened::<T>()
    {
        object.entry(ADDITIONAL).or_insert(Value::Bool(false));
    }
    schema
}

/// Parses a tool's arguments. Unknown keys are refused if the schema refuses them.
///
/// Arguments that the gate has checked are not checked again, because generating the schema takes longer than parsing.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(
    text: &str,
    is_checked: bool,
) -> Result<T, serde_json::Error> {
    let arguments = match serde_json::from_str(text) {
        Ok(arguments) => arguments,
        Err(err) => read_whole(text).ok_or(err)?,
    };
    // Other structs refuse unknown keys during parsing.
    if !is_checked && is_flattened::<T>() {
        refuse_unknown::<T>(text)?;
    }
    Ok(arguments)
}

/// Parses arguments whose whole numbers are written as 300.0, as some clients do. JSON Schema calls these integers.
fn read_whole<T: DeserializeOwned>(text: &str) -> Option<T> {
    let mut arguments: Value = serde_json::from_str(text).ok()?;
    let is_changed = make_whole(&mut arguments);
    is_changed
        .then(|| serde_json::from_value(arguments).ok())
        .flatten()
}

/// Converts floating-point numbers without a fraction to integers. Returns whether there were any.
fn make_whole(value: &mut Value) -> bool {
    /// Beyond this value, a floating-point number can represent several integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(entries) => any_whole(entries.iter_mut()),
        Value::Object(members) => any_whole(members.values_mut()),
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                #[expect(clippy::cast_possible_truncation, reason = "the number is whole and exact")]
                let whole = float as i64;
                *value = whole.into();
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Converts all values, without stopping at the first.
fn any_whole<'a>(values: impl Iterator<Item = &'a mut Value>) -> bool {
    let changed = values.map(make_whole).filter(|changed| *changed).count();
    changed > 0
}

const ADDITIONAL: &str = "additionalProperties";

fn refuse_unknown<T: JsonSchema>(text: &str) -> Result<(), serde_json::Error> {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let is_open = schema
        .get(ADDITIONAL)
        .is_some_and(|more| *more != Value::Bool(false));
    let Some(known) = schema
        .get("properties")
        .and_then(Value::as_object)
        .filter(|_| !is_open)
    else {
        return Ok(());
    };
    let given: Map<String, Value> = serde_json::from_str(text)?;
    match given.keys().find(|key| !known.contains_key(*key)) {
        None => Ok(()),
        Some(unknown) => {
            let known: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
            let known = known.join(", ");
            Err(serde_json::Error::custom(format!(
                "unknown field `{unknown}`, expected one of {known}"
            )))
        }
    }
}

/// Returns whether serde reads a struct as a map, which means that parts of it are flattened.
fn is_flattened<T: DeserializeOwned>() -> bool {
    let mut is_map = false;
    // The probe has no input, so reading always fails.
    let _ = T::deserialize(Probe(&mut is_map)).is_ok();
    is_map
}

/// Deserializer without input, which records whether a map was requested.
struct Probe<'a>(&'a mut bool);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("the probe has no input"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        *self.0 = true;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde::Deserialize;

    use super::*;

    /// Move a step.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Move {
        #[serde(flatten)]
        target: Target,
        /// Number of places to move the step by.
        by: i32,
    }

    /// The step to move.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Target {
        /// Name of the workspace that has the step.
        workspace: String,
        /// Path of the step, for example s:0.
        path: Option<String>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Open {
        /// Number of places to move the step by.
        by: i32,
        #[serde(flatten)]
        others: Map<String, Value>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        /// Number of places to move the step by.
        by: i32,
    }

    #[test]
    fn flattened_parts_are_properties_of_a_closed_schema() {
        let schema = schema::<Move>();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["workspace", "path", "by"]);
        assert_eq!(schema["required"], serde_json::json!(["workspace", "by"]));
        assert_eq!(schema[ADDITIONAL], Value::Bool(false));
        assert_eq!(schema["description"], "Move a step.");
    }

    #[test]
    fn unknown_keys_are_refused_beside_flattened_parts() {
        let read = |text| match read::<Move>(text, false) {
            Ok(Move { target, by }) => format!("{by} {} {:?}", target.workspace, target.path),
            Err(err) => err.to_string(),
        };
        assert_eq!(read(r#"{"by": 1, "workspace": "w"}"#), "1 w None");
        assert_eq!(
            read(r#"{"workspace": "w", "by": 1, "path": "s:0"}"#),
            r#"1 w Some("s:0")"#
        );
        expect!["unknown field `pat`, expected one of `workspace`, `path`, `by`"]
            .assert_eq(&read(r#"{"workspace": "w", "by": 1, "pat": "s:0"}"#));
        expect!["missing field `workspace` at line 1 column 9"].assert_eq(&read(r#"{"by": 1}"#));
        assert!(read(r#"{"by": 1, "by": 2, "workspace": "w"}"#).starts_with("duplicate field `by`"));
    }

    #[test]
    fn whole_numbers_with_a_point_are_integers() {
        let by = |text: &str| {
            read::<Closed>(text, false)
                .map(|closed| closed.by)
                .map_err(|err| err.to_string())
        };
        assert_eq!(by(r#"{"by": 300.0}"#), Ok(300));
        assert_eq!(by(r#"{"by": -3e2}"#), Ok(-300));
        for text in [r#"{"by": 300.5}"#, r#"{"by": 1e300}"#] {
            assert!(
                by(text).unwrap_err().starts_with("invalid type: floating point"),
                "{text}"
            );
        }
        let moved = read::<Move>(r#"{"by": 2.0, "workspace": "w"}"#, false).unwrap();
        assert_eq!(moved.by, 2);
    }

    #[test]
    fn open_structs_stay_open_and_closed_ones_closed() {
        assert_eq!(schema::<Open>()[ADDITIONAL], Value::Bool(true));
        let open = read::<Open>(r#"{"by": 1, "else": 2}"#, false).unwrap();
        assert_eq!((open.by, open.others["else"].as_i64()), (1, Some(2)));
        assert_eq!(schema::<Closed>()[ADDITIONAL], Value::Bool(false));
        assert_eq!(read::<Closed>(r#"{"by": 1}"#, false).unwrap().by, 1);
        let err = read::<Closed>(r#"{"by": 1, "else": 2}"#, true).unwrap_err();
        assert!(
            err.to_string().starts_with("unknown field `else`, expected `by`"),
            "{err}"
        );
    }
}
