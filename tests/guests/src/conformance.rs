//! What MCP's official conformance suite wants to find on a server, offered by a component.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tollgate_sdk::{
    Action, Answer, Content, Cx, Effect, Media, Pack, Prompt, Question, Tier, Tool, ToolError, prompts, tools,
};

/// One red pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00,
    0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01,
    0x01, 0x00, 0x18, 0xdd, 0x8d, 0xb0, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60,
    0x82,
];
/// A wave file without samples.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0";

fn image() -> Content {
    Content::Image(Media {
        mime_type: "image/png".to_owned(),
        data: PNG.to_vec(),
    })
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Resource {
        uri: uri.to_owned(),
        mime_type: mime_type.to_owned(),
        text: text.to_owned(),
    }
}

/// What a tool says.
#[derive(Serialize, JsonSchema)]
pub struct Said {
    /// The words.
    said: String,
}

impl Said {
    fn new(said: impl Into<String>) -> Said {
        Said { said: said.into() }
    }
}

/// A tool without arguments.
macro_rules! tool {
    ($(#[$doc:meta])* $name:ident, $tool:literal, $effect:ident, $run:expr $(, $content:expr)?) => {
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {}

        impl Tool for $name {
            const NAME: &'static str = $tool;
            const TITLE: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            const TIER: Tier = Tier::Core;
            type Output = Said;

            fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
                let run: fn(&Cx<'_>) -> Result<Said, ToolError> = $run;
                run(cx)
            }

            fn text(output: &Said) -> Option<String> {
                Some(output.said.clone())
            }
            $(
                fn content(_output: &Said) -> Vec<Content> {
                    $content
                }
            )?
        }
    };
}

tool!(
    /// Say something simple.
    SimpleText, "test_simple_text", Read,
    |_| Ok(Said::new("This is a simple text response for testing."))
);
tool!(
    /// Show a picture.
    ImageContent, "test_image_content", Read, |_| Ok(Said::new("a red pixel")), vec![image()]
);
tool!(
    /// Play a sound.
    AudioContent, "test_audio_content", Read, |_| Ok(Said::new("silence")),
    vec![Content::Audio(Media { mime_type: "audio/wav".to_owned(), data: WAV.to_vec() })]
);
tool!(
    /// Embed something that has an address.
    EmbeddedResource, "test_embedded_resource", Read, |_| Ok(Said::new("an embedded text")),
    vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
);
tool!(
    /// Say and show several things.
    MultipleContentTypes, "test_multiple_content_types", Read,
    |_| Ok(Said::new("Multiple content types test:")),
    vec![image(), resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#)]
);
tool!(
    /// Fail.
    ErrorHandling, "test_error_handling", Read,
    |_| Err(ToolError::new("AS_ASKED", "This tool intentionally returns an error for testing"))
);
tool!(
    /// Tell how far it is.
    WithProgress, "test_tool_with_progress", Run, |cx| {
        for done in [0, 50, 100] {
            cx.progress(done, Some(100), "going on");
            // More often than this the host passes nothing on.
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(Said::new("Went on to the end."))
    }
);

/// A person's name.
#[derive(Deserialize, JsonSchema)]
struct Name {
    /// What the user is called.
    name: String,
}

/// A yes or no.
#[derive(Deserialize, JsonSchema)]
struct Ok_ {
    /// Whether it is all right.
    ok: bool,
}

/// A colour.
#[derive(Deserialize, JsonSchema)]
struct Colour {
    /// Which.
    color: String,
}

fn needs(question: Question) -> ToolError {
    ToolError::new(
        "ANSWER_NEEDED",
        format!("the user has to answer: {}", question.message),
    )
    .remediation("Use a client that can ask its user.")
    .ask(question)
}

/// The form of an answer, or the refusal that asks for it.
fn form<T: serde::de::DeserializeOwned + JsonSchema>(
    cx: &Cx<'_>,
    key: &str,
    message: &str,
) -> Result<T, ToolError> {
    cx.answer(key)
        .and_then(Answer::form)
        .ok_or_else(|| needs(Question::new::<T>(key, message)))
}

tool!(
    /// Greet the user by a name that is asked for.
    AskName, "test_input_required_result_elicitation", Read, |cx| {
        let name: Name = form(cx, "user_name", "What is your name?")?;
        Ok(Said::new(format!("Hello, {}!", name.name)))
    }
);
tool!(
    /// Ask, and remember that it did.
    AskState, "test_input_required_result_request_state", Read, |cx| confirm(cx)
);
tool!(
    /// Ask, and notice if somebody changes what it remembers.
    AskTampered, "test_input_required_result_tampered_state", Read, |cx| confirm(cx)
);
tool!(
    /// Ask twice, the second time knowing the first answer.
    AskRounds, "test_input_required_result_multi_round", Write, |cx| {
        let name = match (cx.answer("step1").and_then(Answer::form::<Name>), cx.remembered()) {
            (Some(name), _) => name.name,
            (None, Some(name)) if name != "round 1" => name.to_owned(),
            _ => return Err(form::<Name>(cx, "step1", "Step 1: What is your name?").err().map_or_else(
                || ToolError::new("ANSWER_NEEDED", "a name is needed"),
                |err| err.remember("round 1"),
            )),
        };
        let colour: Colour = form(cx, "step2", "Step 2: What is your favorite color?")
            .map_err(|err| err.remember(name.clone()))?;
        Ok(Said::new(format!("{name} likes {}.", colour.color)))
    }
);

fn confirm(cx: &Cx<'_>) -> Result<Said, ToolError> {
    let answer: Ok_ = form(cx, "confirm", "Please confirm").map_err(|err| err.remember("asked"))?;
    match cx.remembered() {
        Some("asked") => Ok(Said::new(format!("state-ok, confirmed: {}", answer.ok))),
        _ => Err(needs(Question::new::<Ok_>("confirm", "Please confirm")).remember("asked")),
    }
}

/// Ask the user something.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elicitation {
    /// What to ask.
    message: String,
}

impl Tool for Elicitation {
    const NAME: &'static str = "test_elicitation";
    const TITLE: &'static str = "Elicitation";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let form = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        let answer = cx
            .answer("user")
            .ok_or_else(|| needs(Question::with_form("user", self.message, form)))?;
        Ok(Said::new(format!("User response: {}", told(answer))))
    }
}

fn told(answer: &Answer) -> String {
    match answer.action {
        Action::Accept => format!("action={}, content={}", answer.action.as_str(), answer.content),
        other => format!("action={}", other.as_str()),
    }
}

tool!(
    /// Ask with a form whose fields have defaults.
    Defaults, "test_elicitation_sep1034_defaults", Read, |cx| {
        let form = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            },
            "required": [],
        });
        completed(cx, form)
    }
);
tool!(
    /// Ask with a form of every kind of choice.
    Enums, "test_elicitation_sep1330_enums", Read, |cx| {
        let titled = |one: &str, two: &str, three: &str, titles: [&str; 3]| {
            json!([{"const": one, "title": titles[0]}, {"const": two, "title": titles[1]}, {"const": three, "title": titles[2]}])
        };
        let form = json!({
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string",
                    "oneOf": titled("value1", "value2", "value3", ["First Option", "Second Option", "Third Option"])},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                "titledMulti": {"type": "array",
                    "items": {"anyOf": titled("value1", "value2", "value3", ["First Choice", "Second Choice", "Third Choice"])}},
            },
            "required": [],
        });
        completed(cx, form)
    }
);

fn completed(cx: &Cx<'_>, form: serde_json::Value) -> Result<Said, ToolError> {
    let answer = cx
        .answer("form")
        .ok_or_else(|| needs(Question::with_form("form", "Please look at these values", form)))?;
    Ok(Said::new(format!("Elicitation completed: {}", told(answer))))
}

/// Read the text that is always the same.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://static-text", "name": "static-text",
    "title": "Static text", "description": "A text for testing.", "mime_type": "text/plain", "listed": true}]))]
pub struct StaticText {}

impl Tool for StaticText {
    const NAME: &'static str = "test_static_text";
    const TITLE: &'static str = "Static text";
    const EFFECT: Effect = Effect::Read;
    type Output = Said;

    fn run(self, _cx: &Cx<'_>) -> Result<Said, ToolError> {
        Ok(Said::new("This is the content of the static text resource."))
    }

    fn text(output: &Said) -> Option<String> {
        Some(output.said.clone())
    }
}

/// Bytes as text.
#[derive(Serialize, JsonSchema)]
pub struct Bytes {
    /// base64.
    encoding: String,
    /// The bytes.
    content: String,
}

/// Read the picture that is always the same.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://static-binary", "name": "static-binary", "title": "Static picture",
    "description": "A picture for testing.", "mime_type": "image/png", "content": "content", "listed": true}]))]
pub struct StaticBinary {}

impl Tool for StaticBinary {
    const NAME: &'static str = "test_static_binary";
    const TITLE: &'static str = "Static picture";
    const EFFECT: Effect = Effect::Read;
    type Output = Bytes;

    fn run(self, _cx: &Cx<'_>) -> Result<Bytes, ToolError> {
        // PNG, above.
        let content =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";
        Ok(Bytes {
            encoding: "base64".to_owned(),
            content: content.to_owned(),
        })
    }
}

/// Data about an id.
#[derive(Serialize, JsonSchema)]
pub struct Data {
    /// The id.
    id: String,
    /// That it came from a template.
    #[serde(rename = "templateTest")]
    template_test: bool,
    /// The data.
    data: String,
}

/// Read data about an id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = [{"path": "test://template/{id}/data", "name": "template-data",
    "title": "Data about an id", "description": "Data for testing.", "mime_type": "application/json"}]))]
pub struct TemplateData {
    /// Which.
    id: String,
}

impl Tool for TemplateData {
    const NAME: &'static str = "test_template_data";
    const TITLE: &'static str = "Data about an id";
    const EFFECT: Effect = Effect::Read;
    type Output = Data;

    fn run(self, _cx: &Cx<'_>) -> Result<Data, ToolError> {
        Ok(Data {
            template_test: true,
            data: format!("Data for ID: {}", self.id),
            id: self.id,
        })
    }
}

/// A prompt that is always the same.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimplePrompt {}

impl Prompt for SimplePrompt {
    const NAME: &'static str = "test_simple_prompt";
    const TITLE: &'static str = "Simple";

    fn say(self, _cx: &Cx<'_>) -> Result<String, ToolError> {
        Ok("This is a simple prompt for testing.".to_owned())
    }
}

/// A prompt with two arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptWithArguments {
    /// First test argument.
    arg1: String,
    /// Second test argument.
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

/// A prompt that embeds what has an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptWithResource {
    /// The address.
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

/// A prompt with a picture.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptWithImage {}

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

/// Where a prompt is used.
#[derive(Deserialize, JsonSchema)]
struct Context {
    /// The context.
    context: String,
}

/// A prompt that asks the user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptThatAsks {}

impl Prompt for PromptThatAsks {
    const NAME: &'static str = "test_input_required_result_prompt";
    const TITLE: &'static str = "That asks";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let context: Context = form(cx, "user_context", "What context should the prompt use?")?;
        Ok(format!("Use this context: {}", context.context))
    }
}

const PACK: Pack = Pack {
    name: "conformance",
    version: "0.1.0",
    summary: "What the conformance suite wants to find.",
    tools: tools![
        SimpleText,
        ImageContent,
        AudioContent,
        EmbeddedResource,
        MultipleContentTypes,
        ErrorHandling,
        WithProgress,
        AskName,
        AskState,
        AskTampered,
        AskRounds,
        Elicitation,
        Defaults,
        Enums,
        StaticText,
        StaticBinary,
        TemplateData
    ],
    prompts: prompts![
        SimplePrompt,
        PromptWithArguments,
        PromptWithResource,
        PromptWithImage,
        PromptThatAsks
    ],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
