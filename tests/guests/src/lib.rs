//! Shared code of the test components. Each component is an example of this package.

use schemars::JsonSchema;
use serde::Serialize;

/// A reply with one text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    /// Result of the call.
    pub result: String,
}

impl Done {
    /// Creates a reply.
    #[must_use]
    pub fn new(result: impl Into<String>) -> Done {
        Done {
            result: result.into(),
        }
    }
}
