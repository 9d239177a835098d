//! Prompts: with arguments, with content, and one that asks.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Content, Cx, Prompt, ToolError};

use super::asking::form;
use super::{image, resource};

/// A prompt with a fixed text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimplePrompt {}

impl Prompt for SimplePrompt {
    const NAME: &'static str = "test_simple_prompt";
    const TITLE: &'static str = "Simple";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("This is a simple prompt for testing.".to_owned())
    }
}

/// A prompt that is absent at times.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptNowAndThen {}

impl Prompt for PromptNowAndThen {
    const NAME: &'static str = "test_now_and_then_prompt";
    const TITLE: &'static str = "Now and then";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("Here.".to_owned())
    }
}

/// A prompt with two arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptWithArguments {
    /// First argument of the test prompt.
    arg1: String,
    /// Second argument of the test prompt.
    arg2: String,
}

impl Prompt for PromptWithArguments {
    const NAME: &'static str = "test_prompt_with_arguments";
    const TITLE: &'static str = "With arguments";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            self.arg1, self.arg2
        ))
    }
}

/// A prompt with an embedded resource.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptWithResource {
    /// URI of the embedded resource.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

impl Prompt for PromptWithResource {
    const NAME: &'static str = "test_prompt_with_embedded_resource";
    const TITLE: &'static str = "With a resource";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("Please process the embedded resource above.".to_owned())
    }

    fn show(&self, _cx: &Cx<'_>) -> Vec<Content> {
        vec![resource(
            &self.resource_uri,
            "text/plain",
            "Embedded resource content for testing.",
        )]
    }
}

/// A prompt with an image.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptWithImage {}

impl Prompt for PromptWithImage {
    const NAME: &'static str = "test_prompt_with_image";
    const TITLE: &'static str = "With a picture";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("Please analyze the image above.".to_owned())
    }

    fn show(&self, _cx: &Cx<'_>) -> Vec<Content> {
        vec![image()]
    }
}

/// Form for the context of a prompt.
#[derive(Deserialize, JsonSchema)]
struct Context {
    /// Context in which the prompt is used.
    context: String,
}

/// A prompt that asks the user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptThatAsks {}

impl Prompt for PromptThatAsks {
    const NAME: &'static str = "test_input_required_result_prompt";
    const TITLE: &'static str = "That asks";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let context: Context = form(cx, "user_context", "What context should the prompt use?")?;
        Ok(format!("Use this context: {}", context.context))
    }
}
