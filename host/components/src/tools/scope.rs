//! Scope of a call: `x-scope` at the root of the input schema of a `write` tool names the arguments that say which part of the
//! pack's tables a call reads and changes.
//!
//! Hosts on several machines may share a database. There, calls of one pack run one after another. Calls with a scope run beside
//! those whose values are others.

use serde_json::Value;
use tollgate_core::effect::Effect;

use super::spec::ToolSpec;

/// Key of a schema that names the arguments.
const SCOPE: &str = "x-scope";

/// Arguments whose values keep calls apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope(Vec<Argument>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument {
    name: String,
    /// Value of a call that does not give it.
    default: Value,
}

impl Scope {
    /// Takes what a tool declares out of its schema.
    pub(super) fn take(spec: &mut ToolSpec) -> Result<Option<Scope>, String> {
        let Some(declared) = spec.input_schema.remove(SCOPE) else {
            return Ok(None);
        };
        let wrong = || format!("{SCOPE}: it lists arguments of a `write` tool whose values are texts");
        let names: Vec<String> = serde_json::from_value(declared).map_err(|_| wrong())?;
        if spec.effect != Effect::Write || names.is_empty() {
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
            .map(|arguments| Some(Scope(arguments)))
            .ok_or_else(wrong)
    }

    /// Values of a call, as JSON.
    pub fn of(&self, arguments: &Value) -> String {
        let values = self.0.iter().map(|argument| {
            let given = arguments.get(&argument.name).filter(|given| !given.is_null());
            given.unwrap_or(&argument.default).clone()
        });
        Value::from(values.collect::<Vec<Value>>()).to_string()
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
        assert_eq!(of(json!({"workspace": "a", "more": 1})), r#"["a","all"]"#);
        assert_eq!(of(json!({"workspace": "a", "part": "all"})), r#"["a","all"]"#);
        assert_eq!(of(json!({"workspace": "a", "part": null})), r#"["a","all"]"#);
        assert_ne!(of(json!({"workspace": "b"})), of(json!({"workspace": "a"})));
        assert_eq!(taken(json!({"type": "object"}), Effect::Write), Ok(None));
        for (scope, effect) in [
            (json!(["workspace"]), Effect::Read),
            (json!(["workspace"]), Effect::Run),
            (json!(["nothing"]), Effect::Write),
            (json!(["count"]), Effect::Write),
            (json!("workspace"), Effect::Write),
            (json!([]), Effect::Write),
        ] {
            assert!(taken(schema(scope.clone()), effect).is_err(), "{scope}");
        }
    }
}
