//! Arguments that accept two forms, such as an object or a word that stands for it.
//!
//! Clients expect one type for each property, so the listed schema has one. A pack declares the other form beside the
//! argument, under `x-accepts`, and calls are checked against either form. Lists do not show the key; descriptions of
//! single tools do.

use serde_json::{Map, Value, json};

/// Key of an argument's other form.
const KEY: &str = "x-accepts";

/// Schema that arguments are checked against, with both forms where there are two.
pub(crate) fn accepted(schema: &Map<String, Value>) -> Value {
    let mut schema = Value::Object(schema.clone());
    each(&mut schema, &mut |members| {
        if let Some(other) = members.remove(KEY) {
            let listed = Value::Object(std::mem::take(members));
            members.insert("anyOf".to_owned(), json!([listed, other]));
        }
    });
    schema
}

/// Removes the other forms from a schema that will be listed.
pub(crate) fn hide(schema: &mut Map<String, Value>) {
    for (name, value) in schema.iter_mut() {
        if name != KEY {
            each(value, &mut |members| drop(members.remove(KEY)));
        }
    }
}

/// Listed schema with the other forms from the pack's own schema.
pub(crate) fn described(listed: &Map<String, Value>, declared: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = listed.clone();
    for (name, member) in &mut schema {
        if let Some(declared) = declared.get(name) {
            unhide(member, declared);
        }
    }
    schema
}

/// Adds other forms to part of a listed schema. The description stays outside the forms. An other form of the same
/// type is left out: with such a form, a pack only refuses wrong values with its own message.
fn unhide(listed: &mut Value, declared: &Value) {
    match (listed, declared) {
        (Value::Object(members), Value::Object(declared)) => {
            for (name, member) in members.iter_mut() {
                if let Some(declared) = declared.get(name) {
                    unhide(member, declared);
                }
            }
            let other = declared.get(KEY);
            if let Some(other) = other.filter(|other| other.get("type") != members.get("type")) {
                let mut form = std::mem::take(members);
                let description = form.shift_remove("description");
                members.extend(description.map(|words| ("description".to_owned(), words)));
                members.insert("anyOf".to_owned(), json!([form, other]));
            }
        }
        (Value::Array(entries), Value::Array(declared)) => {
            for (entry, declared) in entries.iter_mut().zip(declared) {
                unhide(entry, declared);
            }
        }
        _ => {}
    }
}

/// Visits every object of a schema, inner ones first.
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

    #[test]
    fn both_forms_are_described() {
        let words = json!({"type": "string", "enum": ["all"]});
        let declared = json!({"properties": {
            "checkpoints": {"type": "object", "description": "Which ones.", "x-accepts": words},
            "ops": {"type": "array", "items": {"type": "object", "properties": {"value": {"type": "string", "x-accepts": {}}}}},
            "status": {"type": "string", "enum": ["open"], "x-accepts": {"type": "string"}},
        }});
        let Value::Object(declared) = declared else {
            unreachable!();
        };
        let mut listed = declared.clone();
        hide(&mut listed);
        // The host adds an argument of its own.
        listed["properties"]["envelope_id"] = json!({"type": "string"});
        let described = described(&listed, &declared);
        assert_eq!(
            described["properties"]["checkpoints"],
            json!({"description": "Which ones.", "anyOf": [{"type": "object"}, words]})
        );
        let value = &described["properties"]["ops"]["items"]["properties"]["value"];
        assert_eq!(*value, json!({"anyOf": [{"type": "string"}, {}]}));
        assert_eq!(
            described["properties"]["status"],
            json!({"type": "string", "enum": ["open"]})
        );
        assert_eq!(described["properties"]["envelope_id"], json!({"type": "string"}));
    }
}
