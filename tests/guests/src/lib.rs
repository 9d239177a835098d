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

/// Defines the tool `Hello` under a name. It takes nothing and replies "hello".
#[macro_export]
macro_rules! hello {
    ($name:literal) => {
        /// Say hello.
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Hello {}

        impl tollgate_sdk::Tool for Hello {
            const NAME: &'static str = $name;
            const TITLE: &'static str = "Hello";
            const EFFECT: tollgate_sdk::Effect = tollgate_sdk::Effect::Read;
            type Output = $crate::Done;

            fn run(self, _cx: &tollgate_sdk::Cx<'_>) -> Result<$crate::Done, tollgate_sdk::ToolError> {
                Ok($crate::Done::new("hello"))
            }
        }
    };
}

/// Implements the functions of a policy other than `describe`: any settings are valid, and every call and result
/// passes.
#[macro_export]
macro_rules! passes {
    () => {
        fn configure(_settings: String) -> Result<(), Vec<Problem>> {
            Ok(())
        }

        fn before_call(_request: Request) -> Result<(Verdict, Vec<Note>), String> {
            Ok((Verdict::Pass, Vec::new()))
        }

        fn after_call(_request: Request, _outcome: Outcome) -> Result<(Review, Vec<Note>), String> {
            Ok((Review::Pass, Vec::new()))
        }
    };
}
