//! Canonical JSON text, for hashing.

use serde_json::Value;

/// JSON with the keys of every object sorted, so that equal values have equal text.
///
/// ```
/// # use tollgate_sdk::canonical_json;
/// let (one, other) = (serde_json::json!({"a": 1, "b": 2}), serde_json::json!({"b": 2, "a": 1}));
/// assert_eq!(canonical_json(&one), canonical_json(&other));
/// ```
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                if let Some(member) = object.get(key) {
                    write_canonical(member, out);
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn canonical_text_does_not_depend_on_key_order() {
        let value = json!({"b": [1, {"d": null, "c": "é\""}], "a": true});
        assert_eq!(
            canonical_json(&value),
            r#"{"a":true,"b":[1,{"c":"é\"","d":null}]}"#
        );
    }
}
