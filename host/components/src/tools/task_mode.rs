//! Task mode of a tool: whether its calls may become tasks, for whose reply clients do not wait.
//!
//! `"x-task": "required"` at the root of a `run` tool's input schema means that a call takes long, so that only
//! clients with tasks may call it. Calls of other effects hold a transaction and end in time. `"never"` keeps the
//! client waiting. With `"optional"` or without the key, a client that supports tasks gets one if its call takes long
//! or waits for a person. Lists do not show the key.

use serde_json::{Map, Value};
use tollgate_core::effect::Effect;

/// Key of the schema.
const KEY: &str = "x-task";

/// Rule on whether calls of a tool become tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskMode {
    /// The client always waits for the reply.
    Never,
    /// A call that waits for a person becomes a task.
    #[default]
    Waiting,
    /// A call that takes long becomes a task as well.
    Optional,
    /// Only clients that support tasks may call.
    Required,
}

impl TaskMode {
    /// True if a call that takes long becomes a task.
    pub fn may_take_long(self) -> bool {
        matches!(self, TaskMode::Optional | TaskMode::Required)
    }

    fn read(value: &Value) -> Result<TaskMode, String> {
        match value.as_str() {
            Some("never") => Ok(TaskMode::Never),
            Some("optional") => Ok(TaskMode::Optional),
            Some("required") => Ok(TaskMode::Required),
            _ => Err(format!("{KEY} must be \"never\", \"optional\" or \"required\"")),
        }
    }
}

/// Removes the mode from a tool's schema and returns it. Without a declaration, a tool that runs programs is assumed
/// to take long.
pub(crate) fn take(schema: &mut Map<String, Value>, effect: Effect) -> Result<TaskMode, String> {
    match schema.remove(KEY) {
        Some(value) => match TaskMode::read(&value)? {
            mode if mode.may_take_long() && effect != Effect::Run => Err(format!(
                "{KEY}: {value} is only for `run` tools; a call of a `{}` tool does not take a long time",
                effect.as_str()
            )),
            mode => Ok(mode),
        },
        None if effect == Effect::Run => Ok(TaskMode::Optional),
        None => Ok(TaskMode::Waiting),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_whether_calls_become_tasks() {
        let taken = |value: Value, effect| {
            let mut schema = Map::from_iter([(KEY.to_owned(), value)]);
            schema.retain(|_, value| !value.is_null());
            let mode = take(&mut schema, effect);
            assert!(schema.is_empty());
            mode
        };
        assert_eq!(taken(json!(null), Effect::Run), Ok(TaskMode::Optional));
        assert_eq!(taken(json!(null), Effect::Write), Ok(TaskMode::Waiting));
        assert_eq!(taken(json!("never"), Effect::Run), Ok(TaskMode::Never));
        assert_eq!(taken(json!("never"), Effect::Write), Ok(TaskMode::Never));
        assert_eq!(taken(json!("optional"), Effect::Run), Ok(TaskMode::Optional));
        assert_eq!(taken(json!("required"), Effect::Run), Ok(TaskMode::Required));
        for (long, effect) in [("optional", Effect::Read), ("required", Effect::Write)] {
            assert!(
                taken(json!(long), effect)
                    .unwrap_err()
                    .contains("only for `run` tools")
            );
        }
        for bad in [json!("always"), json!(true), json!(1)] {
            assert!(taken(bad, Effect::Run).unwrap_err().contains("x-task"));
        }
    }
}
