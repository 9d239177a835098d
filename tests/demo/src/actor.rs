//! The actors of the story, each in one role.

use serde_json::{Value, json};

/// An actor that makes calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor {
    pub(crate) name: &'static str,
    pub(crate) role: &'static str,
}

/// Orchestrator: decides, and is the only actor that moves the task.
pub(crate) const PLANNER: Actor = Actor::new("planner", "orchestrator");
/// Executor: does the work.
pub(crate) const BUILDER: Actor = Actor::new("builder-7", "executor");
/// Reviewer of whether the spec is met.
pub(crate) const SPEC_CHECKER: Actor = Actor::new("spec-checker", "spec_reviewer");
/// Reviewer of the quality of the work.
pub(crate) const QUALITY_CHECKER: Actor = Actor::new("quality-checker", "quality_reviewer");
/// Human who approves side effects.
pub(crate) const MARIA: Actor = Actor::new("maria", "human");

impl Actor {
    const fn new(name: &'static str, role: &'static str) -> Actor {
        Actor { name, role }
    }

    /// The actor whose name and role a ready call carries.
    pub(crate) fn of_call(arguments: &serde_json::Map<String, Value>) -> Option<Actor> {
        let everybody = [PLANNER, BUILDER, SPEC_CHECKER, QUALITY_CHECKER, MARIA];
        let name = arguments.get("actor")?.as_str()?;
        everybody.into_iter().find(|actor| actor.name == name)
    }

    /// Arguments with the actor's name and role.
    pub(crate) fn signs(self, mut arguments: Value) -> Value {
        if let Value::Object(arguments) = &mut arguments {
            arguments.insert("actor".to_owned(), json!(self.name));
            arguments.insert("actor_role".to_owned(), json!(self.role));
        }
        arguments
    }
}
