//! Bounded views: a reply never has more bytes than the caller allows.
//!
//! Each view documents the order in which its fields are dropped. The last resort is `{"signal":"minimal"}`,
//! or `{}` if even that is too long. The `budget` object that reports the cut is not counted.

#[cfg(test)]
mod every;

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{DbError, ToolError};

use crate::error::Reason;
use crate::limits::json_bytes;

/// Default size limit of a view, in bytes.
const DEFAULT_BYTES: usize = 30_000;
/// Largest size limit that a caller can set, in bytes.
pub(crate) const MAX_BYTES: usize = 500_000;
/// Bytes of the shortest reply, `{}`.
const MIN_BYTES: i64 = 2;

/// Cut that makes a view shorter, by the path of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shrink {
    /// Leave a field out.
    Drop(&'static str),
    /// Leave out as many entries at the end of a list as have to go.
    End(&'static str),
    /// Leave out as many entries at the start of a list as have to go.
    Start(&'static str),
    /// Cut a nested view, in its own order.
    Within(&'static str, &'static [Shrink]),
}

/// A reply that can be made shorter.
pub(crate) trait View: Serialize + JsonSchema {
    /// Cuts in the order in which they are tried.
    const ORDER: &'static [Shrink];

    /// Makes the fields that are left of a whole view consistent again. The view must not grow.
    fn settle(_view: &mut Map<String, Json>, _whole: &Map<String, Json>) {}
}

/// A view within its budget.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    view: Map<String, Json>,
    budget: Option<Budget>,
    kind: PhantomData<T>,
}

/// Report of a size limit and its effect.
#[derive(Debug, Serialize)]
struct Budget {
    max_chars: usize,
    used_chars: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

/// Fits a view into `max_chars` bytes.
pub(crate) fn fit<T: View>(view: &T, max_chars: Option<i64>) -> Result<Bounded<T>, ToolError> {
    let max = match max_chars {
        Some(max) if max < MIN_BYTES => return Err(Reason::BudgetTooSmall(max).into()),
        Some(max) => usize::try_from(max).unwrap_or(MAX_BYTES).min(MAX_BYTES),
        None => DEFAULT_BYTES,
    };
    let Ok(Json::Object(mut view)) = serde_json::to_value(view) else {
        return Err(DbError::Internal.into());
    };
    let (used_chars, warnings) = shrink::<T>(&mut view, max);
    let budget = Budget {
        max_chars: max,
        used_chars,
        truncated: !warnings.is_empty(),
        warnings,
    };
    let told = max_chars.is_some() || budget.truncated;
    Ok(Bounded {
        view,
        budget: told.then_some(budget),
        kind: PhantomData,
    })
}

/// Shrinks a view to `max` bytes. Returns its size and the cuts that were made.
fn shrink<T: View>(view: &mut Map<String, Json>, max: usize) -> (usize, Vec<&'static str>) {
    let mut size = json_bytes(view);
    let mut warnings = Vec::new();
    if size > max {
        warnings.push("BUDGET_TRUNCATED");
        let whole = view.clone();
        cut(view, None, T::ORDER, max);
        T::settle(view, &whole);
        size = json_bytes(view);
    }
    if size > max {
        warnings.push("BUDGET_MINIMAL");
        *view = Map::from_iter([("signal".to_owned(), json!("minimal"))]);
        size = json_bytes(view);
    }
    if size > max {
        warnings.push("BUDGET_MIN_CLAMPED");
        *view = Map::new();
        size = json_bytes(view);
    }
    (size, warnings)
}

/// Makes cuts, of the nested view `inner` if one is named, until the whole view has at most `max` bytes.
fn cut(view: &mut Map<String, Json>, inner: Option<&str>, cuts: &[Shrink], max: usize) {
    for shrink in cuts {
        let size = json_bytes(view);
        if size <= max {
            return;
        }
        let excess = size - max;
        match *shrink {
            Shrink::Drop(path) => apply(view, inner, path, |_| false),
            Shrink::End(path) => apply(view, inner, path, |entries| shorten(entries, excess)),
            Shrink::Start(path) => apply(view, inner, path, |entries| {
                entries.reverse();
                let enough = shorten(entries, excess);
                entries.reverse();
                enough
            }),
            Shrink::Within(inner, cuts) => cut(view, Some(inner), cuts, max),
        }
    }
}

/// Shortens a list of a view, or leaves the field out if it is not a list that becomes short enough.
fn apply(
    view: &mut Map<String, Json>,
    inner: Option<&str>,
    path: &str,
    shorten: impl FnOnce(&mut Vec<Json>) -> bool,
) {
    let mut fields = inner.into_iter().chain(path.split('.'));
    let last = fields.next_back().unwrap_or_default();
    let mut holder = view;
    for field in fields {
        match holder.get_mut(field) {
            Some(Json::Object(inner)) => holder = inner,
            _ => return,
        }
    }
    let enough = holder
        .get_mut(last)
        .and_then(Json::as_array_mut)
        .is_some_and(shorten);
    if !enough {
        holder.shift_remove(last);
    }
}

/// Returns whether a list lost entries.
pub(crate) fn is_cut(view: &Map<String, Json>, whole: &Map<String, Json>, list: &str) -> bool {
    let length = |view: &Map<String, Json>| view.get(list).and_then(Json::as_array).map_or(0, Vec::len);
    length(view) < length(whole)
}

/// Removes the last entries until `excess` bytes are saved. Returns whether they were.
fn shorten(entries: &mut Vec<Json>, excess: usize) -> bool {
    let mut gone = 0;
    while gone < excess {
        let Some(entry) = entries.pop() else {
            return false;
        };
        let comma = usize::from(!entries.is_empty());
        gone += json_bytes(&entry) + comma;
    }
    true
}

impl<T> Serialize for Bounded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.view {
            map.serialize_entry(name, value)?;
        }
        if let Some(budget) = &self.budget {
            map.serialize_entry("budget", budget)?;
        }
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Bounded<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Bounded{}", T::schema_name()).into()
    }

    /// The view's schema, any field of which may be missing.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        if let Some(Json::Object(properties)) = schema.get_mut("properties") {
            properties.values_mut().for_each(loosen);
            properties.insert(
                "signal".to_owned(),
                json!({"type": "string", "description": "`minimal` if nothing else fits."}),
            );
            properties.insert("budget".to_owned(), budget_schema());
        }
        schema
    }
}

/// Makes the fields of nested views optional too.
fn loosen(schema: &mut Json) {
    if let Some(schema) = schema.as_object_mut()
        && schema.get("type").is_some_and(|kind| kind == "object")
    {
        schema.shift_remove("required");
    }
}

fn budget_schema() -> Json {
    json!({
        "type": "object",
        "description": "Use of max_chars. This object is not counted.",
        "properties": {
            "max_chars": {"type": "integer", "description": "Limit in bytes."},
            "used_chars": {"type": "integer", "description": "Bytes of the reply without this object."},
            "truncated": {"type": "boolean", "description": "True if something was omitted."},
            "warnings": {
                "type": "array",
                "description": "BUDGET_TRUNCATED, BUDGET_MINIMAL, BUDGET_MIN_CLAMPED.",
                "items": {"type": "string"},
            },
        },
    })
}
