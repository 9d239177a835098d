//! Scope of a call: `x-scope` at the root of a `write` tool's input schema names the arguments that identify the part
//! of the pack's tables a call reads and changes.
//!
//! Hosts on several machines may share a database, which serializes the calls of a pack. Calls with different scope
//! values run in parallel. A scope without arguments marks a tool that only adds rows that no other call reads yet.
//!
//! `x-feed` at the root of a `read` tool's input schema marks a tool that continues after a number, which the tables
//! assign to rows of all scopes. On such a database, numbers can become visible out of order, so the tool waits for
//! the calls in progress.

use serde_json::Value;
use tollgate_core::effect::Effect;

use super::spec::ToolSpec;

/// Key of a schema with the names of the arguments.
const SCOPE: &str = "x-scope";
/// Key of a schema whose scope arguments ignore letter case and surrounding blanks.
const FOLDS: &str = "x-scope-folds";
/// Key of a schema of a tool that reads a feed over all scopes.
const FEED: &str = "x-feed";

/// Arguments whose values separate calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    arguments: Vec<Argument>,
    /// True if letter case and surrounding blanks make no difference.
    folds: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument {
    name: String,
    /// Value of a call that omits the argument.
    default: Value,
}

impl Scope {
    /// Removes a tool's declaration from its schema and returns it.
    pub(super) fn take(spec: &mut ToolSpec) -> Result<Option<Scope>, String> {
        let folds = spec.input_schema.remove(FOLDS);
        let Some(declared) = spec.input_schema.remove(SCOPE) else {
            return match folds {
                None => Ok(None),
                Some(_) => Err(format!(
                    "{FOLDS} has no effect without {SCOPE}; add {SCOPE}, or remove {FOLDS}"
                )),
            };
        };
        let folds = match folds {
            None => false,
            Some(Value::Bool(folds)) => folds,
            Some(_) => return Err(format!("{FOLDS} must be true or false")),
        };
        let wrong = || format!("{SCOPE} must list arguments of a `write` tool whose values are strings");
        let names: Vec<String> = serde_json::from_value(declared).map_err(|_| wrong())?;
        if spec.effect != Effect::Write {
            return Err(wrong());
        }
        let properties = spec.input_schema.get("properties");
        let argument = |name: String| {
            let property = properties?.get(&name)?;
            let is_text = property.get("type").and_then(Value::as_str) == Some("string");
            is_text.then(|| Argument {
                default: property.get("default").cloned().unwrap_or_default(),
                name,
            })
        };
        let arguments: Option<Vec<Argument>> = names.into_iter().map(argument).collect();
        arguments
            .map(|arguments| Some(Scope { arguments, folds }))
            .ok_or_else(wrong)
    }

    /// Lock names of a call: its values, as JSON. Empty if it conflicts with no other call.
    pub fn of(&self, arguments: &Value) -> Vec<String> {
        if self.arguments.is_empty() {
            return Vec::new();
        }
        let values = self.arguments.iter().map(|argument| {
            let given = arguments.get(&argument.name).filter(|given| !given.is_null());
            match given.unwrap_or(&argument.default) {
                Value::String(text) if self.folds => text.trim().to_uppercase().into(),
                value => value.clone(),
            }
        });
        vec![Value::from(values.collect::<Vec<Value>>()).to_string()]
    }
}

/// Removes the feed declaration from a tool's schema and returns it.
pub(super) fn take_feed(spec: &mut ToolSpec) -> Result<bool, String> {
    match spec.input_schema.remove(FEED) {
        None => Ok(false),
        Some(Value::Bool(true)) if spec.effect == Effect::Read => Ok(true),
        Some(_) => Err(format!("{FEED} must be true, in a `read` tool")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::spec;
    use super::*;

    fn taken(schema: Value, effect: Effect) -> Result<Option<Scope>, String> {
        let mut spec = spec(schema);
        spec.effect = effect;
        let taken = Scope::take(&mut spec);
        assert!(!spec.input_schema.contains_key(SCOPE), "lists do not show it");
        taken
    }

    #[test]
    fn a_scope_is_the_values_of_its_arguments() {
        let schema = |scope: Value| {
            json!({"type": "object", "x-scope": scope, "properties": {
                "workspace": {"type": "string"}, "part": {"type": "string", "default": "all"}, "count": {"type": "integer"}}})
        };
        let scope = taken(schema(json!(["workspace", "part"])), Effect::Write)
            .unwrap()
            .unwrap();
        let of = |arguments: Value| scope.of(&arguments);
        assert_eq!(of(json!({"workspace": "a", "more": 1})), [r#"["a","all"]"#]);
        assert_eq!(of(json!({"workspace": "a", "part": "all"})), [r#"["a","all"]"#]);
        assert_eq!(of(json!({"workspace": "a", "part": null})), [r#"["a","all"]"#]);
        assert_ne!(of(json!({"workspace": "b"})), of(json!({"workspace": "a"})));
        assert_eq!(taken(json!({"type": "object"}), Effect::Write), Ok(None));
        let of_what_is_new = taken(schema(json!([])), Effect::Write).unwrap().unwrap();
        assert_eq!(
            of_what_is_new.of(&json!({"workspace": "a"})),
            Vec::<String>::new()
        );
        for (scope, effect) in [
            (json!(["workspace"]), Effect::Read),
            (json!(["workspace"]), Effect::Run),
            (json!(["nothing"]), Effect::Write),
            (json!(["count"]), Effect::Write),
            (json!("workspace"), Effect::Write),
            (json!([]), Effect::Read),
        ] {
            assert!(taken(schema(scope.clone()), effect).is_err(), "{scope}");
        }
    }

    #[test]
    fn names_that_fold_are_one() {
        let schema = |folds: Value| {
            json!({"type": "object", "x-scope": ["job"], "x-scope-folds": folds,
                "properties": {"job": {"type": "string"}}})
        };
        let scope = taken(schema(json!(true)), Effect::Write).unwrap().unwrap();
        let of = |job: &str| scope.of(&json!({"job": job}));
        assert_eq!(of("job-1"), of(" JOB-1\n"));
        assert_ne!(of("job-1"), of("job-2"));
        assert!(taken(schema(json!("upper")), Effect::Write).is_err());
        assert!(taken(json!({"type": "object", "x-scope-folds": true}), Effect::Write).is_err());
    }

    #[test]
    fn a_feed_is_read() {
        let taken = |feed: Value, effect: Effect| {
            let mut spec = spec(json!({"type": "object", "x-feed": feed}));
            spec.effect = effect;
            let taken = take_feed(&mut spec);
            assert!(!spec.input_schema.contains_key(FEED), "lists do not show it");
            taken
        };
        assert_eq!(taken(json!(true), Effect::Read), Ok(true));
        assert!(taken(json!(true), Effect::Write).is_err());
        assert!(taken(json!("id"), Effect::Read).is_err());
        assert_eq!(take_feed(&mut spec(json!({"type": "object"}))), Ok(false));
    }
}
