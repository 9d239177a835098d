//! Marks a reply whose files could not be updated after the commit.

use serde_json::{Map, Value};

/// Sets `stale: true` and adds the reasons to `warnings` in a structured reply, if its schema has a `stale`.
/// Does nothing without a reason. Returns whether the reply was changed.
pub fn mark(structured: &mut Map<String, Value>, output_schema: &Value, reasons: &[String]) -> bool {
    let declared = |name: &str| {
        output_schema
            .pointer("/properties")
            .and_then(|all| all.get(name))
            .is_some()
    };
    if reasons.is_empty() || !declared("stale") {
        return false;
    }
    structured.insert("stale".to_owned(), true.into());
    if declared("warnings") {
        let warnings = structured
            .entry("warnings")
            .or_insert_with(|| Value::Array(Vec::new()));
        if !warnings.is_array() {
            *warnings = Value::Array(Vec::new());
        }
        if let Value::Array(warnings) = warnings {
            warnings.extend(reasons.iter().map(|reason| reason.as_str().into()));
        }
    }
    true
}

/// Like [`mark`], on a reply's text.
pub(crate) fn mark_text(structured: &mut String, output_schema: &Value, reasons: &[String]) {
    if let Ok(mut object) = serde_json::from_str(structured)
        && mark(&mut object, output_schema, reasons)
    {
        *structured = Value::Object(object).to_string();
    }
}
