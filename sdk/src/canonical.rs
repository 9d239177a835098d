//! JSON text, canonical for hashing or as it is.

use serde::Serialize;
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
    let mut out = Vec::new();
    write_canonical(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// JSON text. Quicker than `Display`, which formats each part.
pub(crate) fn json_text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            out.push(b'{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_plain(key, out);
                out.push(b':');
                if let Some(member) = object.get(key) {
                    write_canonical(member, out);
                }
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        scalar => write_plain(scalar, out),
    }
}

/// Writes a value that has no keys to sort.
fn write_plain(value: &impl Serialize, out: &mut Vec<u8>) {
    // Memory takes every byte, and JSON can express these values.
    let _ = serde_json::to_writer(out, value);
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
