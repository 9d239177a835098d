//! What the misbehaving components share. Each component is an example of this package.

use schemars::JsonSchema;
use serde::Serialize;

/// A reply that says little.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    /// What came of it.
    pub result: String,
}

impl Done {
    /// A reply.
    #[must_use]
    pub fn new(result: impl Into<String>) -> Done {
        Done {
            result: result.into(),
        }
    }
}
