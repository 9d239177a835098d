//! Arguments that take two forms, such as an object or a word that stands for it.
//!
//! Clients want one type for each property, so the listed schema has one. A pack names the other form beside it,
//! under `x-accepts`; calls are checked against either, and lists do not show it.

use serde_json::{Map, Value, json};

/// Key of a schema's other form.
const KEY: &str = "x-accepts";

/// The schema that arguments are checked against: either form where there are two.
pub(super) fn accepted(schema: &Map<String, Value>) -> Value {
    let mut schema = Value::Object(schema.clone());
    each(&mut schema, &mut |members| {
        if let Some(other) = members.remove(KEY) {
            let listed = Value::Object(std::mem::take(members));
            members.insert("anyOf".to_owned(), json!([listed, other]));
        }
    });
    schema
}

/// Takes the other forms out of a schema that is to be listed.
pub(super) fn hide(schema: &mut Map<String, Value>) {
    for (name, value) in schema.iter_mut() {
        if name != KEY {
            each(value, &mut |members| drop(members.remove(KEY)));
        }
    }
}

/// Visits every object of a schema, the inner ones first.
fn each(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|member| each(member, visit));
            visit(members);
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| each(entry, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_accepted_and_one_is_listed() {
        let schema = json!({"type": "object", "properties": {
            "checkpoints": {"type": "object", "x-accepts": {"type": "string", "enum": ["all"]}},
            "ops": {"type": "array", "items": {"type": "object", "properties": {"value": {"type": "string", "x-accepts": {}}}}},
        }});
        let Value::Object(mut schema) = schema else {
            unreachable!();
        };
        let validator = jsonschema::validator_for(&accepted(&schema)).unwrap();
        for good in [
            json!({"checkpoints": {}}),
            json!({"checkpoints": "all", "ops": [{"value": [1]}, {"value": "x"}]}),
        ] {
            assert!(validator.is_valid(&good), "{good}");
        }
        for bad in [
            json!({"checkpoints": "none"}),
            json!({"checkpoints": 1}),
            json!({"ops": "x"}),
        ] {
            assert!(!validator.is_valid(&bad), "{bad}");
        }
        hide(&mut schema);
        assert!(!Value::Object(schema).to_string().contains(KEY));
    }
}
