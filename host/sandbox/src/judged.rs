//! The call that a policy judges: its tool, and the binding of the policy's question.

use std::sync::{Arc, Mutex, PoisonError};

/// Input schema of a tool as JSON, created when a policy requests it.
pub type SchemaOf = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The call that a policy judges. Clones refer to the same evaluation.
#[derive(Clone, Default)]
pub struct JudgedCall {
    /// Operator's name for the policy.
    pub name: String,
    schema: Option<SchemaOf>,
    bound: Arc<Mutex<Bound>>,
}

/// Binding of a policy's question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// Key that the answer is bound to instead of the message.
    pub key: Option<String>,
    /// Arguments with which the call runs after a yes, as JSON.
    pub arguments: Option<String>,
}

impl JudgedCall {
    /// Call that is judged by the policy with a name.
    pub fn by(name: &str, schema: Option<SchemaOf>) -> JudgedCall {
        JudgedCall {
            name: name.to_owned(),
            schema,
            bound: Arc::default(),
        }
    }

    pub(crate) fn schema(&self) -> Option<String> {
        self.schema.as_ref().and_then(|schema| schema())
    }

    pub(crate) fn bind(&self, key: String) {
        self.with(|bound| bound.key = Some(key));
    }

    pub(crate) fn propose(&self, arguments: String) {
        self.with(|bound| bound.arguments = Some(arguments));
    }

    /// Binding of the evaluation's question.
    pub fn take_bound(&self) -> Bound {
        self.with(std::mem::take)
    }

    fn with<T>(&self, body: impl FnOnce(&mut Bound) -> T) -> T {
        body(&mut self.bound.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
